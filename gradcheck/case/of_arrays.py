"""Wrap a function of NumPy arrays and its hand-written gradients as a function of Tensors with a
backward.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import compress
from types import FunctionType
from typing import Any

import numpy as np

from gradcheck.backends import hips
from gradcheck.backends.base import Backend
from gradcheck.case.broken_contracts import NoGradient
from gradcheck.checking.precision import identical
from gradcheck.spec.containers import fill_leaves, flat_names
from gradcheck.support.display_paths import count

ArrayPull = Callable[[Sequence[Any], Any, Sequence[Any], Mapping[str, Any]], Any]
"""See `function_with_pull`."""
PLACES = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
"""The kinds of parameters that take positional arguments."""


def function_of_arrays(backend: Backend, forward: Any, backward: Any) -> Callable[..., Any]:
    """Wrap a function of arrays and its backward as a function of the backend's Tensors.

    Args:
        forward: takes arrays, also in lists, tuples and dicts, and whatever else it is given;
            returns an array, or a tuple or list of them.
        backward: ``backward(*arguments, *output_gradients, **keywords)`` returns a gradient per
            array among the arguments, None for none, also in lists and tuples; for one array, the
            gradient itself is enough. Keyword arguments of the call go to both functions; arrays
            among them are the last.

    Raises:
        TypeError: `forward` or `backward` cannot be called. From the function: `forward` returned
            something else; `backward` does not take these arguments.
        NoGradient: raised from its backward: the numbers of gradients and of arrays differ.
    """
    for name, function in (("the function", forward), ("backward", backward)):
        if not callable(function):
            raise TypeError(f"{name} must be a function of arrays, not {function!r}")

    def pull(
        arguments: Sequence[Any],
        outputs: Any,
        gradients: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> Any:
        _, written = of_tensors.layer_of_arrays.pair  # type: ignore[attr-defined]
        check_signature(written, len(arguments), len(gradients), keywords)
        return written(*arguments, *gradients, **keywords)

    of_tensors = function_with_pull(backend, forward, pull)
    # the search for a fix reads the pair and replaces its backward
    of_tensors.layer_of_arrays.pair = forward, backward  # type: ignore[attr-defined]
    return of_tensors


def adapt_primitive(backend: Backend, value: Any) -> Any:
    """Wrap a primitive of HIPS autograd as a function of the backend's Tensors; other functions are
    unchanged.

    Raises:
        TypeError: the primitive has no vjps.
    """
    if not hips.is_primitive(value):
        return value
    return function_with_pull(backend, value.fun, hips.primitive_pull(value))


def function_with_pull(backend: Backend, forward: Any, pull: ArrayPull) -> Callable[..., Any]:
    """A function of the backend's Tensors that computes with arrays and has the parameters of
    `forward`.

    Args:
        forward: as in `function_of_arrays`.
        pull: ``pull(arguments, result of forward, output_gradients, keywords)`` returns the
            gradients like a backward. An exception in place of a gradient is raised if that
            gradient is needed.
    """
    if backend.paddle is None:
        raise TypeError(
            f"a function of NumPy arrays is not {backend.words.framework}'s: check it on numpy, "
            f"without -b {backend.name}"
        )
    arrays = TensorArrays(backend)
    called = str(getattr(forward, "__name__", "function"))

    class OfArrays(backend.paddle.autograd.PyLayer):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, inputs: Callable[[], list[Any]], *leaves: Any) -> Any:
            """`leaves` are the values in `inputs`; passed directly, the engine would treat them as
            Tensors.
            """
            ctx.leaves, ctx.names = leaves, [*flat_names("", inputs())]
            ctx.arrays = list(map(arrays.array, leaves))
            values = dict(zip(ctx.names, ctx.arrays, strict=True))
            *ctx.arguments, ctx.keywords = fill_leaves("", inputs(), values)
            ctx.returned = forward(*ctx.arguments, **ctx.keywords)
            arrays.keep_up(leaves, ctx.arrays)
            return arrays.result(ctx.returned, called)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            gradients = list(map(arrays.array, cotangents))
            returned = pull(ctx.arguments, ctx.returned, gradients, ctx.keywords)
            arrays.keep_up([*ctx.leaves, *cotangents], [*ctx.arrays, *gradients])
            are_tensors = dict(zip(ctx.names, map(arrays.is_tensor, ctx.leaves), strict=True))
            array_gradients = per_array(flat_names("", returned), are_tensors)
            needed = [not t.stop_gradient for t in filter(arrays.is_tensor, ctx.leaves)]
            return tuple(map(arrays.gradient, array_gradients, needed))

    def of_arrays(*inputs: Any, **keywords: Any) -> Any:
        arguments = [*inputs, keywords]
        return OfArrays.apply(lambda: arguments, *flat_names("", arguments).values())

    of_arrays.layer_of_arrays = OfArrays  # type: ignore[attr-defined]
    OfArrays.__name__ = OfArrays.__qualname__ = called
    # so that objects reached from them count as the user's
    OfArrays.__module__ = of_arrays.__module__ = str(getattr(forward, "__module__", None))
    with suppress(TypeError, ValueError):  # a builtin may have no signature
        signature = of_arrays.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
        positional_only = inspect.Parameter.POSITIONAL_ONLY
        places = [
            p.replace(kind=positional_only, default=p.empty)
            for p in signature.parameters.values()
            if p.kind in PLACES
        ]
        first = [inspect.Parameter(name, positional_only) for name in ("ctx", "inputs")]
        OfArrays.forward.__signature__ = inspect.Signature([*first, *places])  # type: ignore[attr-defined]
    return of_arrays


def layer_of_arrays(value: Any) -> Any:
    """The PyLayer of a function that `function_with_pull` made; anything else unchanged."""
    return getattr(value, "layer_of_arrays", value) if isinstance(value, FunctionType) else value


def without_backward(message: str) -> str:
    """A hint if an error or a verdict is typical of NumPy code that got Tensors; otherwise
    empty.
    """
    if "__array_ufunc__" not in message and "returned a ndarray" not in message:
        return ""
    return (
        "for Tensors use the framework's functions; a function of NumPy arrays is checked with "
        "the gradients written for it: backward=… (--backward module:function; in a spec file, "
        "layer: {ref: …, backward: …})"
    )


def kind_of_result(returned: Any) -> str:
    """Describe what a function returned: its type, or None."""
    return "None" if returned is None else f"a {type(returned).__name__}"


class TensorArrays:
    """Convert Tensors of a backend to arrays that code may write into, and arrays to Tensors."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a Tensor."""
        return isinstance(value, self.backend.paddle.Tensor)

    def array(self, value: Any) -> Any:
        """A copy of a Tensor's values; anything else unchanged."""
        return value.numpy() if self.is_tensor(value) else value

    def tensor(self, value: Any) -> Any:
        """An array or number as a Tensor; None for None."""
        if value is None:
            return None
        return self.backend.paddle.to_tensor(
            value if hasattr(value, "dtype") else np.asarray(value)
        )

    def gradient(self, value: Any, is_needed: bool) -> Any:
        """A gradient as a Tensor. Raise the exception in place of a gradient if that gradient is
        needed.
        """
        if isinstance(value, Exception):
            if is_needed:
                raise value
            return None
        return self.tensor(value)

    def keep_up(self, tensors: Sequence[Any], arrays: Sequence[Any]) -> None:
        """Copy arrays back into their Tensors if code wrote into them, so that the caller sees the
        change.

        Recorded arrays are of another type.
        """
        for tensor, array in zip(tensors, arrays, strict=True):
            if self.is_tensor(tensor):
                memory = self.backend.array(tensor)
                if type(array) is type(memory) and not identical(array, memory):
                    memory[...] = array

    def result(self, returned: Any, name: str) -> Any:
        """A function's result as Tensors.

        Raises:
            TypeError: it is neither an array nor arrays.
        """
        if isinstance(returned, (tuple, list)):
            return tuple(self.result(item, name) for item in returned)
        if returned is None or isinstance(returned, (str, bytes, dict, set)):
            raise TypeError(
                f"{name} returned {kind_of_result(returned)}: return an array, or a tuple or list "
                "of arrays"
            )
        return self.tensor(returned)


def check_signature(
    backward: Callable[..., Any], arguments: int, gradients: int, keywords: Mapping[str, Any]
) -> None:
    """Raise TypeError unless `backward` accepts these numbers of arguments, and the keyword
    arguments.
    """
    name = str(getattr(backward, "__name__", ""))
    shown = name if name.isidentifier() else ""
    try:
        signature = inspect.signature(backward)
    except (TypeError, ValueError):  # a builtin may have no signature
        return
    try:
        signature.bind(*range(arguments + gradients), **keywords)
    except TypeError as error:
        with_keywords = "".join(f", and {name}=…" for name in keywords)
        raise TypeError(
            f"backward is called with {arguments + gradients} arguments, those of the function "
            f"({arguments}) and the gradients of its outputs ({gradients}){with_keywords}, but its "
            f"signature is {shown}{signature}: {error}"
        ) from None


def per_array(returned: dict[str, Any], are_tensors: dict[str, bool]) -> list[Any]:
    """The gradients of the Tensors among arguments.

    Args:
        returned: the gradients, flat, by position. They have the structure of the arguments, dicts
            in any order, or come one after the other; arguments that are not arrays have None or
            are left out.
        are_tensors: by argument.

    Raises:
        NoGradient: their number does not match.
    """
    gradients = [*returned.values()]
    if set(returned) == set(are_tensors):
        gradients = [returned[name] for name in are_tensors]
    wanted = sum(are_tensors.values())
    if len(gradients) == len(are_tensors):
        gradients = [*compress(gradients, are_tensors.values())]
    if len(gradients) != wanted:
        raise NoGradient(f"{count(len(gradients), 'gradient')} for {count(wanted, 'array')}")
    return gradients
