"""Primitives of HIPS autograd: their vjps, as defined by `defvjp`, are checked as a backward on
arrays.

The package is imported only for a primitive, whose own module has imported it already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from gradcheck.backends.base import is_differentiable
from gradcheck.spec.containers import map_leaves


class NoVjpError(TypeError):
    """A primitive has no vjp for an argument whose gradient is needed."""


def is_primitive(value: Any) -> bool:
    """Whether a function was made by ``autograd.extend.primitive``."""
    return (
        isinstance(value, FunctionType)
        and value.__globals__.get("__name__") == "autograd.tracer"
        and getattr(value, "_is_autograd_primitive", False)
    )


def primitive_pull(primitive: Any) -> Callable[..., list[Any]]:
    """The pull of a primitive; see `gradcheck.case.of_arrays.function_with_pull`.

    It uses the vjps of the arguments that are floating or complex arrays, as autograd does. Where
    an argument has none it returns a NoVjpError in place of the gradient.

    Raises:
        TypeError: nothing was given to defvjp.
    """
    from autograd.core import primitive_vjps

    name = primitive.__name__
    make_vjps = primitive_vjps.get(primitive)
    if make_vjps is None:
        raise TypeError(f"{name} is a primitive without vjps: give it some by defvjp({name}, …)")

    def missing(place: str) -> NoVjpError:
        return NoVjpError(
            f"{name} has no vjp of {place}, whose gradient is needed: give defvjp({name}, …) one, "
            "or pass integers or a plain number in its place"
        )

    def without_vjp(place: str, value: Any) -> Any:
        """Replace the arrays in a value by errors: autograd does not unpack it."""
        return map_leaves("", value, lambda _, leaf: missing(place) if has_vjp(leaf) else None)

    def pull(
        arguments: Sequence[Any],
        output: Any,
        cotangents: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> list[Any]:
        starts = tuple(map(conjugate, cotangents))
        cotangent = starts if isinstance(output, tuple) else starts[0]
        gradients: list[Any] = []
        for position, value in enumerate(arguments):
            place = f"argument {position}"
            if not has_vjp(value):
                gradients.append(without_vjp(place, value))
                continue
            try:
                vjps = make_vjps((position,), output, tuple(arguments), keywords)
            except (NotImplementedError, KeyError):
                gradients.append(missing(place))
            else:
                gradients.append(conjugate(next(iter(vjps(cotangent)))))
        return [*gradients, {key: without_vjp(key, value) for key, value in keywords.items()}]

    return pull


def conjugate(value: Any) -> Any:
    """Convert a complex cotangent or gradient from autograd's convention to Paddle's, or back.

    In autograd's convention the vjp of y = a z is a g, not conj(a) g. Anything else unchanged.
    """
    is_complex = hasattr(value, "dtype") and value.dtype.kind == "c"
    return value.conj() if is_complex else value


def has_vjp(value: Any) -> bool:
    """Whether a value is an array with derivatives."""
    return hasattr(value, "dtype") and is_differentiable(value)
