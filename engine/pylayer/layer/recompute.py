"""Recomputation: a forward that keeps only its inputs, and runs again when its gradient is
computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pylayer.layer.py_layer import PyLayer, Slot
from pylayer.ops.random import current, generator
from pylayer.tape.autograd import backward
from pylayer.tape.grad_mode import enable_grad
from pylayer.tape.node import saved_tensors_hooks
from pylayer.tensor.nested import mapped
from pylayer.tensor.tensor import Tensor


class _Recomputed(PyLayer):
    """The function as a layer; its inputs are the arguments that are Tensors, or lists or tuples of
    them.
    """

    @staticmethod
    def forward(
        ctx: Any, function: Callable[..., Any], random: Any, kwargs: Any, *args: Any
    ) -> Any:
        ctx.function, ctx.random, ctx.kwargs, ctx.args = function, random, kwargs, args
        ctx.save_for_backward(*(t for argument in args for t in Slot("", argument).tensors))
        return function(*args, **kwargs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        saved = iter(ctx.saved_tensor() or ())

        def leaf(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            restored = next(saved).detach()
            restored.stop_gradient = value.stop_gradient
            return restored

        inputs = [
            mapped(argument, leaf) if Slot("", argument).tensors else argument
            for argument in ctx.args
        ]
        with _random_from(ctx.random), enable_grad():
            outputs = ctx.function(*inputs, **ctx.kwargs)
        pairs = zip(Slot("", outputs).tensors, cotangents, strict=True)
        live = [(output, cotangent) for output, cotangent in pairs if not output.stop_gradient]
        if not live:
            raise RuntimeError(
                "none of output has stop_gradient=False, this recompute() is not necessary"
            )
        backward([output for output, _ in live], [cotangent for _, cotangent in live])
        owning = tuple(value for value in inputs if Slot("", value).tensors)
        return mapped(owning, lambda t: None if t.stop_gradient else t.grad)


def _call_recorded(
    function: Callable[..., Any], random: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """The function, recorded. Saved-tensor hooks: saved values are numbered, and computed again
    when the first of them is read.
    """
    numbers = itertools.count()
    again: dict[int, Tensor] = {}

    def unpack(number: int) -> Tensor:
        if number not in again:
            counted = itertools.count()

            def keep(tensor: Tensor) -> int:
                k = next(counted)
                again[k] = tensor.detach()
                return k

            with _random_from(random), enable_grad(), saved_tensors_hooks(keep, again.__getitem__):
                function(*args, **kwargs)
        return again[number]

    with saved_tensors_hooks(lambda tensor: next(numbers), unpack):
        return function(*args, **kwargs)


@contextmanager
def _random_from(state: Any) -> Iterator[None]:
    """A block with a separate random state, which starts from a given state or from the current
    one.
    """
    token = current.set((state or generator()).get_state())
    try:
        yield
    finally:
        current.reset(token)


def recompute(
    function: Callable[..., Any],
    *args: Any,
    preserve_rng_state: bool = True,
    use_reentrant: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)`` without keeping its intermediate results: it runs again in
    backward.

    Args:
        preserve_rng_state: random numbers are the same both times.
        use_reentrant: as one layer. Gradients reach the Tensors among `args`, including those in
            lists and tuples, and Tensors that `function` closes over, such as the parameters of a
            layer; at least one of `args` must need a gradient. If False, the function is recorded
            like any other, but keeps no saved values: gradients reach whatever it reads.

    Raises:
        ValueError: a list or tuple among `args` mixes Tensors with other values, or both values of
            stop_gradient.
    """
    random = generator().get_state() if preserve_rng_state else None
    if not use_reentrant:
        return _call_recorded(function, random, args, kwargs)
    for argument in args:
        slot = Slot("", argument)
        if slot.is_list and 0 < len(slot.tensors) < len(argument):
            raise ValueError(
                "Recompute receive a tuple containing tensor and non-tensor at same time."
            )
        if len({t.stop_gradient for t in slot.tensors}) > 1:
            raise ValueError(
                "Recompute receive a tuple containing tensor holds different stop gradient."
            )
    return _Recomputed.apply(function, random, kwargs, *args)
