"""Recomputation: a forward that keeps its inputs alone, and runs again when its gradient is wanted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pylayer.autograd import backward
from pylayer.grad_mode import enable_grad
from pylayer.ops.random import generator
from pylayer.py_layer import PyLayer
from pylayer.saved import saved_tensors_hooks
from pylayer.tensor import Tensor


class _Recomputed(PyLayer):
    """The function as a layer of the Tensors among its arguments, those in tuples too."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], random: Any, kwargs: Any, shape: Any, *args: Any) -> Any:
        ctx.function, ctx.random, ctx.kwargs, ctx.shape, ctx.args = function, random, kwargs, shape, args
        ctx.save_for_backward(*(a for a in args if isinstance(a, Tensor)))
        return function(*_folded(args, shape), **kwargs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        saved = iter(ctx.saved_tensor() or ())
        inputs = []
        for given in ctx.args:
            if isinstance(given, Tensor):
                tensor = next(saved).detach()
                tensor.stop_gradient = given.stop_gradient
                inputs.append(tensor)
            else:
                inputs.append(given)
        with _random_from(ctx.random), enable_grad():
            outputs = ctx.function(*_folded(inputs, ctx.shape), **ctx.kwargs)
        listed = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        pairs = [
            (o, g)
            for o, g in zip([o for o in listed if isinstance(o, Tensor)], cotangents, strict=True)
            if not o.stop_gradient
        ]
        if not pairs:
            raise RuntimeError("none of output has stop_gradient=False, this recompute() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        tensors = [t for t in inputs if isinstance(t, Tensor)]
        return tuple(None if t.stop_gradient else t.grad for t in tensors)


def _recorded(function: Callable[..., Any], random: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The function, recorded; what it saves is numbered, and made again when the first of it is read."""
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
    """A block whose random numbers start from a state, unless that is None; those after it go on from before."""
    here = generator().get_state()
    if state is not None:
        generator().set_state(state)
    try:
        yield
    finally:
        generator().set_state(here)


def _unfolded(args: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
    """The arguments with what is in tuples of Tensors beside them, and the lengths of those tuples, None for no tuple.

    Raises:
        ValueError: a tuple holds both Tensors and other things, or Tensors that need a gradient and some that do not.
    """
    flat: list[Any] = []
    shape: list[int | None] = []
    for value in args:
        tensors = [v for v in value if isinstance(v, Tensor)] if isinstance(value, tuple) else []
        shape.append(len(value) if tensors else None)
        flat += value if tensors else [value]
        if tensors and len(tensors) < len(value):
            raise ValueError("Recompute receive a tuple containing tensor and non-tensor at same time.")
        if len({t.stop_gradient for t in tensors}) > 1:
            raise ValueError("Recompute receive a tuple containing tensor holds different stop gradient.")
    return flat, shape


def _folded(flat: Sequence[Any], shape: Sequence[int | None]) -> list[Any]:
    """The arguments that `_unfolded` laid out."""
    rest = iter(flat)
    return [next(rest) if n is None else tuple(itertools.islice(rest, n)) for n in shape]


def recompute(
    function: Callable[..., Any],
    *args: Any,
    preserve_rng_state: bool = True,
    use_reentrant: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, of whose intermediate results nothing is kept: it runs again in backward.

    Args:
        preserve_rng_state: random numbers are the same both times.
        use_reentrant: as one layer. Gradients reach the Tensors among `args` and in tuples there, and what `function`
            closes over, such as the parameters of a layer; at least one of `args` must need a gradient. If False, the
            function is recorded as any other, without what it saves: gradients reach whatever it reads.

    Raises:
        ValueError: a tuple among `args` holds Tensors and other things, or both kinds of stop_gradient.
    """
    random = generator().get_state() if preserve_rng_state else None
    if not use_reentrant:
        return _recorded(function, random, args, kwargs)
    flat, shape = _unfolded(args)
    return _Recomputed.apply(function, random, kwargs, shape, *flat)
