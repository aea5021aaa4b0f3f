"""A function of NumPy arrays, and the gradients that somebody wrote for it, as a layer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcheck.backends.base import Backend
from gradcheck.case.observe import identical


def layer_of(backend: Backend, forward: Any, backward: Any) -> type:
    """A PyLayer of the backend that computes with plain arrays, its parameters named as those of `forward`.

    Args:
        forward: ``forward(*arrays)`` returns an array, or a tuple or list of them.
        backward: ``backward(*arrays, *output_gradients)`` returns a gradient per array, None for none; of one array the
            gradient itself will do.

    Raises:
        TypeError: one of them cannot be called.
    """
    for name, function in (("the function", forward), ("backward", backward)):
        if not callable(function):
            raise TypeError(f"{name} must be a function of arrays, not {function!r}")
    paddle = backend.paddle

    def arrays_of(values: Sequence[Any]) -> list[Any]:
        return [value.numpy() if isinstance(value, paddle.Tensor) else value for value in values]

    def show_changes(inputs: Sequence[Any], arrays: Sequence[Any]) -> None:
        """Where forward wrote into an array, which is a copy, write that into the Tensor, as the caller's would be."""
        tensors = [(backend.array(v), a) for v, a in zip(inputs, arrays, strict=True) if isinstance(v, paddle.Tensor)]
        for memory, array in tensors:
            if type(array) is type(memory) and not identical(array, memory):  # recorded ones are of another type
                memory[...] = array

    def tensor(value: Any) -> Any:
        return value if value is None else paddle.to_tensor(value if hasattr(value, "dtype") else np.asarray(value))

    class OfArrays(paddle.autograd.PyLayer):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.arrays = arrays_of(inputs)
            found = forward(*ctx.arrays)
            show_changes(inputs, ctx.arrays)
            return tuple(map(tensor, found)) if isinstance(found, (tuple, list)) else tensor(found)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            found = backward(*ctx.arrays, *arrays_of(gradients))
            return tuple(map(tensor, found)) if isinstance(found, (tuple, list)) else tensor(found)

    OfArrays.__name__ = OfArrays.__qualname__ = str(getattr(forward, "__name__", "function"))
    take_parameters(OfArrays.forward, forward)
    return OfArrays


def take_parameters(function: Any, like: Callable[..., Any]) -> None:
    """Give a forward the parameters of another function, after its context."""
    try:
        parameters = inspect.signature(like).parameters.values()
    except (TypeError, ValueError):  # of a builtin
        return
    kept = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_ONLY)
    function.__signature__ = inspect.Signature(
        [context, *(p.replace(kind=p.POSITIONAL_ONLY, default=p.empty) for p in kept)]
    )
