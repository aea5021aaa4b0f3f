"""A function of NumPy arrays, and its gradients written by hand, as a function of Tensors with a backward."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gradcheck.backends.base import Backend
from gradcheck.case.function import NoGradient, identical
from gradcheck.support.display_paths import count

PLACES = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
"""The kinds of parameters that arguments are passed to in order."""


def function_of_arrays(backend: Backend, forward: Any, backward: Any) -> Callable[..., Any]:
    """A function of the backend's Tensors that computes with plain arrays, its parameters those of `forward`.

    Args:
        forward: takes arrays, also in lists, tuples and dicts, and whatever else it is given; returns an array, or a
            tuple or list of them.
        backward: ``backward(*arguments, *output_gradients)`` returns a gradient per array among the arguments, None for
            none, also in lists and tuples; of one array the gradient itself will do.

    Raises:
        TypeError: one of them cannot be called. From the function: `forward` returned something else; `backward` does
            not take these arguments.
        NoGradient: from its backward: there are as many gradients as there are arrays no more, or not yet.
    """
    for name, function in (("the function", forward), ("backward", backward)):
        if not callable(function):
            raise TypeError(f"{name} must be a function of arrays, not {function!r}")
    paddle = backend.paddle

    def is_tensor(value: Any) -> bool:
        return isinstance(value, paddle.Tensor)

    def array_of(value: Any) -> Any:
        return value.numpy() if is_tensor(value) else value

    def keep_up(tensors: Sequence[Any], arrays: Sequence[Any]) -> None:
        """Write into Tensors what code has written into arrays, which are copies of theirs, as it would into the
        caller's. Recorded arrays are of another type."""
        for tensor, array in zip(tensors, arrays, strict=True):
            memory = backend.array(tensor) if is_tensor(tensor) else None
            if memory is not None and type(array) is type(memory) and not identical(array, memory):
                memory[...] = array

    def tensor_of(value: Any) -> Any:
        return value if value is None else paddle.to_tensor(value if hasattr(value, "dtype") else np.asarray(value))

    def result_of(found: Any) -> Any:
        if isinstance(found, (tuple, list)):
            return tuple(map(result_of, found))
        if found is None or isinstance(found, (str, bytes, dict, set)):
            kind = "None" if found is None else f"a {type(found).__name__}"
            raise TypeError(f"{OfArrays.__name__} returned {kind}: return an array, or a tuple or list of arrays")
        return tensor_of(found)

    class OfArrays(paddle.autograd.PyLayer):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, arguments: Callable[[Sequence[Any]], list[Any]], *given: Any) -> Any:
            ctx.given, ctx.arrays = given, [array_of(value) for value in given]
            ctx.arguments = arguments(ctx.arrays)
            found = forward(*ctx.arguments)
            keep_up(given, ctx.arrays)
            return result_of(found)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            gradients = [array_of(cotangent) for cotangent in cotangents]
            takes(backward, len(ctx.arguments), len(gradients))
            returned = leaves(backward(*ctx.arguments, *gradients))
            keep_up([*ctx.given, *cotangents], [*ctx.arrays, *gradients])
            wanted = sum(map(is_tensor, ctx.given))
            if len(returned) == len(ctx.given) and wanted < len(returned):  # None for what is no array, too
                returned = [g for g, value in zip(returned, ctx.given, strict=True) if is_tensor(value)]
            if len(returned) != wanted:
                raise NoGradient(f"{count(len(returned), 'gradient')} for {count(wanted, 'array')}")
            return tuple(map(tensor_of, returned))

    def of_arrays(*inputs: Any) -> Any:
        return OfArrays.apply(lambda arrays: rebuilt(list(inputs), iter(arrays)), *leaves(list(inputs)))

    OfArrays.__name__ = OfArrays.__qualname__ = str(getattr(forward, "__name__", "function"))
    OfArrays.__module__ = str(getattr(forward, "__module__", None))  # what it holds is looked through as the user's is
    with suppress(TypeError, ValueError):  # of a builtin nothing is known
        signature = of_arrays.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
        only = inspect.Parameter.POSITIONAL_ONLY
        places = [p.replace(kind=only, default=p.empty) for p in signature.parameters.values() if p.kind in PLACES]
        first = [inspect.Parameter(name, only) for name in ("ctx", "arguments")]
        OfArrays.forward.__signature__ = inspect.Signature([*first, *places])  # type: ignore[attr-defined]
    return of_arrays


def leaves(value: Any) -> list[Any]:
    """What is in nested lists, tuples and dicts, in order; a single value as a list of one."""
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for one in value for leaf in leaves(one)] if isinstance(value, (list, tuple)) else [value]


def rebuilt(value: Any, left: Any) -> Any:
    """The same lists, tuples and dicts with what an iterator gives in place of what is in them."""
    if isinstance(value, dict):
        return {key: rebuilt(one, left) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        items = [rebuilt(one, left) for one in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return next(left)


def takes(backward: Callable[..., Any], arguments: int, gradients: int) -> None:
    """See that a function takes so many arguments. Raises TypeError."""
    try:
        signature = inspect.signature(backward)
    except (TypeError, ValueError):  # of a builtin nothing is known
        return
    try:
        signature.bind(*range(arguments + gradients))
    except TypeError as error:
        raise TypeError(
            f"backward is called with {arguments + gradients} arguments, those of the function ({arguments}) and the "
            f"gradients of its outputs ({gradients}), but its signature is {signature}: {error}"
        ) from None
