"""PyLayer: operations whose forward and backward are written in Python by the user.

The rules are those of the documents (paddle.autograd.PyLayer and PyLayerContext, English and Chinese, and the guide to
custom dynamic-graph operators); where they are silent, of what Paddle 3.3.1 was observed to do.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from pylayer.grad_mode import grad_mode
from pylayer.graph import Output
from pylayer.op_node import parent_of
from pylayer.py_layer_context import PyLayerContext, release_outputs, saved_changed
from pylayer.py_layer_node import PyLayerNode
from pylayer.slots import input_slots, output_slots
from pylayer.symbol import is_of_a_program, named, recording
from pylayer.tensor import Tensor
from pylayer.versions import clock, mark_changed
from pylayer.watch import in_force, records_all


class PyLayer:
    """A custom operation: a subclass with static `forward` and `backward`, run through `apply`.

    forward(ctx, *args, **kwargs) computes with grad mode off and returns a Tensor, or a list or tuple with at least
    one. backward(ctx, *cotangents) gets one cotangent per Tensor output and returns one gradient per Tensor input: in
    the order of the call, one for a whole list or tuple of Tensors, None where stop_gradient is True.
    """

    @staticmethod
    def forward(ctx: PyLayerContext, *args: Any, **kwargs: Any) -> Any:
        """To be overridden: the outputs."""
        raise NotImplementedError("You must implement the forward function for PyLayer.")

    @staticmethod
    def backward(ctx: PyLayerContext, *args: Any, **kwargs: Any) -> Any:
        """To be overridden: the gradients of the inputs."""
        raise NotImplementedError("You must implement the backward function for PyLayer.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record backward if a Tensor input needs a gradient.

        Returns:
            What forward returned, its Tensors with stop_gradient False unless marked otherwise.

        Raises:
            ValueError: forward returned no Tensor, or an input leaf that needs a gradient; an input is a Variable,
                or a parameter in static mode.
            NotImplementedError: forward is not overridden.
        """
        if recording.get() is not None and is_of_a_program((args, kwargs)):
            raise ValueError(
                f"{cls.__name__}.apply is for dynamic mode{named((args, kwargs))}. In a program use "
                f"paddle.static.nn.static_pylayer."
            )
        ctx = PyLayerContext(cls.__name__)
        watch = in_force.get() if records_all() else None
        if watch is not None:
            watch.applied(cls)
            if not watch.backwards:
                return cls.forward(ctx, *args, **kwargs)
        slots, slotless = input_slots(cls.__name__, args, kwargs)
        inputs = [tensor for slot in slots for tensor in slot.tensors]
        recorded = grad_mode.get() and not all(t._stop_gradient for t in inputs)  # before forward can change that
        token = grad_mode.set(watch is not None)
        try:
            returned = cls.forward(ctx, *args, **kwargs)
        finally:
            grad_mode.reset(token)
            ctx._in_forward = False
        outputs = output_slots(cls.__name__, returned)
        if not recorded:
            return returned
        frame = sys._getframe(1)
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        replaced = {id(t): own_output(ctx, t, inputs) for slot in outputs for t in slot.tensors}
        node = PyLayerNode(cls, ctx, slots, outputs, slotless, where)
        marked = {id(t) for t in ctx._non_differentiable}
        flat = [t for slot in outputs for t in slot.tensors]
        release_outputs(ctx, flat, node)
        for index, tensor in enumerate(flat):
            output = replaced[id(tensor)]
            made_by = parent_of(tensor)
            output.node = Output(node, index)
            output._stop_gradient = id(tensor) in marked
            if watch is not None:
                watch.stands_for(output.node, made_by)
        return _with_replaced(returned, replaced)


def _with_replaced(returned: Any, replaced: dict[int, Tensor]) -> Any:
    """What forward returned, in its own container, with new Tensors where inputs were marked not in place."""
    if all(id_ == id(tensor) for id_, tensor in replaced.items()):
        return returned
    if isinstance(returned, Tensor):
        return replaced[id(returned)]
    if isinstance(returned, (list, tuple)):
        items = [_with_replaced(item, replaced) for item in returned]
        return type(returned)(*items) if hasattr(returned, "_fields") else type(returned)(items)
    return returned


def own_output(ctx: PyLayerContext, output: Tensor, inputs: Sequence[Tensor]) -> Tensor:
    """The Tensor to return for `output`: itself, unless it is an input, which is then changed in place or copied.

    Raises:
        ValueError: an input leaf was returned unchanged (observed rule 18).
    """
    if not any(output.array is tensor.array for tensor in inputs):
        return output
    if any(output is tensor or output.array is getattr(tensor, "array", None) for tensor in ctx._not_inplace):
        return Tensor(output.array.copy())
    if output.is_leaf:
        raise ValueError(
            f"{ctx._layer} : Leaf Var ({output.name}) that doesn't stop gradient can't use inplace strategy. forward "
            f"returned an input unchanged: call ctx.mark_not_inplace on it to get a new Tensor, or return a clone()."
        )
    changed_before = saved_changed(ctx)
    mark_changed(output.array)
    if not changed_before:
        ctx.age = next(clock)
    return output
