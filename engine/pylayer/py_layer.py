"""PyLayer and PyLayerContext: operations whose forward and backward are written in Python by the user.

The rules are those of the documents (paddle.autograd.PyLayer and PyLayerContext, English and Chinese, and the guide to
custom dynamic-graph operators); where they are silent, of what Paddle 3.3.1 was observed to do.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pylayer.array import Array
from pylayer.graph import Node, Output, grad_mode
from pylayer.py_layer_node import PyLayerNode, input_slots, output_slots
from pylayer.saved import Packed, active_hooks, packed
from pylayer.symbol import holds_symbol, named, recording
from pylayer.tensor import Tensor
from pylayer.versions import check_unchanged, clock, mark_changed
from pylayer.watch import in_force, records_all


class PyLayerContext:
    """What forward hands to backward: the first argument of both, one per `apply`. Any attribute may be set on it."""

    def __init__(self, layer: str) -> None:
        self._layer = layer
        self._in_forward = True
        self._called: set[str] = set()
        self._saved: tuple[Any, ...] | None = None
        self.age = 0
        """Minus the stamp at which tensors were saved, as of a node."""
        self._not_inplace: tuple[Any, ...] = ()
        self._non_differentiable: tuple[Any, ...] = ()
        self._materialize_grads = True
        self._grad_in_dtype_consistent = True

    @property
    def label(self) -> str:
        """What messages call the layer's node."""
        return f"GradNodePyLayer_{self._layer}"

    def name(self) -> str:
        """The name of the layer's node."""
        return self.label

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep `tensors` for backward (PyLayerContext.save_for_backward).

        Raises:
            RuntimeError: called twice, or outside forward: "at most once, and only inside forward".
            ValueError: with saved_tensors_hooks in force, something is not a Tensor or a list of Tensors.
        """
        self._allow("save_for_backward", once=True)
        hooks = active_hooks.get()
        self._saved = tensors if hooks is None else tuple(_packed_argument(t, hooks) for t in tensors)
        self.age = next(clock)

    def saved_tensor(self) -> tuple[Any, ...] | None:
        """What `save_for_backward` kept, or None if it was not called (PyLayerContext.saved_tensor).

        Raises:
            RuntimeError: a saved Tensor was changed in place since.
        """
        if self._saved is None:
            return None
        check_unchanged(_arrays(self._saved), self)
        return tuple(_restored(value) for value in self._saved)

    def mark_not_inplace(self, *args: Any) -> None:
        """Have an input that forward returns unchanged returned as a new Tensor (PyLayerContext.mark_not_inplace).

        Raises:
            RuntimeError: called twice, or outside forward.
        """
        self._allow("mark_not_inplace", once=True)
        self._not_inplace = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Give the outputs `args` stop_gradient True (PyLayerContext.mark_non_differentiable).

        Raises:
            RuntimeError: called twice, or outside forward.
        """
        self._allow("mark_non_differentiable", once=True)
        self._non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether undefined cotangents reach backward as zeros (the default) or as None.

        Raises:
            RuntimeError: called outside forward.
            TypeError: `value` is not a bool.
        """
        self._allow("set_materialize_grads")
        self._materialize_grads = _bool("set_materialize_grads", value)

    def set_grad_in_dtype_consistent(self, value: bool) -> None:
        """Whether cotangents are cast to the dtype of forward's outputs (the default) before backward sees them.

        Raises:
            RuntimeError: called outside forward.
            TypeError: `value` is not a bool.
        """
        self._allow("set_grad_in_dtype_consistent")
        self._grad_in_dtype_consistent = _bool("set_grad_in_dtype_consistent", value)

    @property
    def container(self) -> Any:
        """What was saved, as one object; may be set as well (observed rule 48)."""
        return self.saved_tensor()

    @container.setter
    def container(self, value: Any) -> None:
        self._saved = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        self.age = next(clock)

    def _allow(self, method: str, once: bool = False) -> None:
        if not self._in_forward:
            raise RuntimeError(f"{self._layer}: ctx.{method} must be called inside forward, but forward has returned.")
        if once and method in self._called:
            raise RuntimeError(
                f"{self._layer}: ctx.{method} must be called at most once. Pass all Tensors to one call."
            )
        self._called.add(method)


def _bool(method: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"(InvalidType) {method}: argument (position 1) must be bool, but got {type(value).__name__}")
    return value


class _SavedOutput(NamedTuple):
    """An output of forward kept for backward: not the Tensor itself, whose node holds what is saved."""

    tensor: weakref.ref[Tensor]
    array: Array
    node: weakref.ref[Node]
    slot: int

    def restored(self) -> Tensor:
        """The Tensor that forward returned, or one like it if that is gone."""
        tensor, node = self.tensor(), self.node()
        if tensor is not None:
            return tensor
        return Tensor(self.array, Output(node, self.slot) if node else None, node is None)


def _packed_argument(value: Any, hooks: Any) -> Any:
    if isinstance(value, (list, tuple)) and all(isinstance(v, Tensor) for v in value):
        return type(value)(packed(v, hooks) for v in value)
    if value is not None and not isinstance(value, Tensor):
        raise ValueError("save_for_backward only support Tensor, list of Tensor, tuple of Tensor.")
    return packed(value, hooks)  # None goes to the hook too (observed rule 53)


def _restored(value: Any) -> Any:
    if type(value) is _SavedOutput:
        return value.restored()
    if type(value) is Packed:
        return value.unpack(value.value)
    if type(value) in (list, tuple) and any(type(v) is Packed for v in value):
        return type(value)(_restored(v) for v in value)
    return value


def _arrays(values: Iterable[Any]) -> list[Array]:
    """The arrays of the Tensors among saved values; tensors a hook packed are the hook's business."""
    return [v.array for v in values if isinstance(v, (Tensor, _SavedOutput))]


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
    def backward(ctx: PyLayerContext, *args: Any) -> Any:
        """To be overridden: the gradients of the inputs."""
        raise NotImplementedError("You must implement the backward function for PyLayer.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record backward if a Tensor input needs a gradient.

        Returns:
            What forward returned, its Tensors with stop_gradient False unless marked otherwise.

        Raises:
            ValueError: forward returned no Tensor, or an input leaf that needs a gradient; an input is a Variable.
            NotImplementedError: forward is not overridden.
        """
        if recording.get() is not None and holds_symbol((args, kwargs)):
            raise ValueError(
                f"{cls.__name__}.apply is for dynamic mode{named((args, kwargs))}. In a program use "
                f"paddle.static.nn.static_pylayer."
            )
        ctx = PyLayerContext(cls.__name__)
        if records_all():
            return _recorded_forward(cls, ctx, args, kwargs)
        slots, slotless = input_slots(cls.__name__, args, kwargs)
        token = grad_mode.set(False)
        try:
            returned = cls.forward(ctx, *args, **kwargs)
        finally:
            grad_mode.reset(token)
            ctx._in_forward = False
        outputs = output_slots(cls.__name__, returned)
        inputs = [tensor for slot in slots for tensor in slot.tensors]
        if not grad_mode.get() or all(t._stop_gradient for t in inputs):
            return returned
        frame = sys._getframe(1)
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        replaced = {id(t): own_output(ctx, t, inputs) for slot in outputs for t in slot.tensors}
        node = PyLayerNode(cls, ctx, slots, outputs, slotless, where)
        marked = {id(t) for t in ctx._non_differentiable}
        flat = [t for slot in outputs for t in slot.tensors]
        _release_outputs(ctx, flat, node)
        for index, tensor in enumerate(flat):
            output = replaced[id(tensor)]
            output.node = Output(node, index)
            output._stop_gradient = id(tensor) in marked
        return _with_replaced(returned, replaced)


def _recorded_forward(cls: type[PyLayer], ctx: PyLayerContext, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What forward returns, its own operations recorded in place of the layer."""
    watch = in_force.get()
    if watch is not None:
        watch.applied(cls)
    try:
        return cls.forward(ctx, *args, **kwargs)
    finally:
        ctx._in_forward = False


def _release_outputs(ctx: PyLayerContext, outputs: Sequence[Tensor], node: Node) -> None:
    """Keep saved outputs by reference only, so that no cycle holds the graph: node, ctx, output, node."""
    positions = {id(t): k for k, t in enumerate(outputs)}
    if ctx._saved:
        this = weakref.ref(node)
        ctx._saved = tuple(
            _SavedOutput(weakref.ref(v), v.array, this, positions[id(v)]) if id(v) in positions else v
            for v in ctx._saved
        )


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
    changed_before = _is_changed(ctx)
    mark_changed(output.array)
    if not changed_before:
        ctx.age = next(clock)
    return output


def _is_changed(ctx: PyLayerContext) -> bool:
    try:
        check_unchanged(_arrays(ctx._saved or ()), ctx)
    except RuntimeError:
        return True
    return False
