"""The forms in which Paddle takes shapes and axes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pylayer.tensor.array import Array
from pylayer.tensor.invalid import invalid
from pylayer.tensor.tensor import Tensor


def require(holds: bool, what: str, *tensors: Tensor, error: type[Exception] = ValueError) -> None:
    """Raise `error` unless it `holds`: `what` is required, and of which dtypes and shapes the Tensors are."""
    if not holds:
        got = " and ".join(f"{t.dtype.name} {list(t.shape)}" for t in tensors)
        raise error(
            f"(InvalidArgument) {what}, but got {got}." if tensors else f"(InvalidArgument) {what}."
        )


def one_of(argument: str, value: Any, *choices: Any) -> None:
    """Raise a ValueError unless the value of an argument, such as "qr(): `mode`", is one of the choices."""
    if value not in choices:
        raise invalid(f"{argument} is one of {', '.join(map(str, choices))}, but got {value!r}")


Ints = int | Sequence[Any] | Array
"""An int, a list of ints and 0-d integer Tensors, or an integer Tensor."""


def as_ints(values: Ints) -> list[int]:
    """A shape or a list of axes as a list of ints, from any of the forms that Paddle takes."""
    if isinstance(values, int):
        return [values]
    if hasattr(values, "reshape"):
        return [int(v) for v in values.reshape(-1).tolist()]
    return [as_int(v) for v in values]


def as_int(value: Any) -> int:
    """An int, also one in an array or a Tensor of one element; a TypeError for what is no integer."""
    if type(value) is int:
        return value
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, (float, str)):
        raise TypeError(
            f"(InvalidType) must be list of int, but got {type(value).__name__} ({value!r})."
        )
    return int(value)


class OutOfRangeError(IndexError, ValueError):
    """An axis or a position is out of range: both errors, as Paddle raises now one, now the other."""


def normal_axis(axis: Any, ndim: int) -> int:
    """`axis` counted from the front; an OutOfRangeError if it is outside [-ndim, ndim)."""
    at = int(axis)
    if not -ndim <= at < ndim:
        text = f"the axis should be in the range of [{-ndim}, {ndim}), but received {at}"
        raise OutOfRangeError(f"(InvalidArgument) {text}.")
    return at % ndim


def spread(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Let the list be given as separate ints as well: ``x.reshape(2, 3)``."""

    @functools.wraps(function)
    def call(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if len(args) > 1 and not isinstance(args[0], (list, tuple)) and args[1] is not None:
            args = (list(args),)
        return function(x, *args, **kwargs)

    return call


def exchange(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Let two axes to exchange be given for the order of all: ``x.transpose(0, 1)``. Paddle looks at no third one."""

    @functools.wraps(function)
    def call(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        places = [one if isinstance(one, int) else None for one in (*args, None, None)[:2]]
        first, second = (
            kwargs.pop(f"dim{k}", kwargs.pop(f"axis{k}", place)) for k, place in enumerate(places)
        )
        if first is None or second is None:
            return function(x, *args, **kwargs)
        order = list(range(x.ndim))
        order[first], order[second] = order[second], order[first]
        return function(x, order)

    signature, kind = inspect.signature(function), inspect.Parameter.KEYWORD_ONLY
    axes = [
        inspect.Parameter(name, kind, default=None) for name in ("dim0", "dim1", "axis0", "axis1")
    ]
    call.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *axes])  # type: ignore[attr-defined]
    return call


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes meant, from the front, all by None or []; a 0-d Tensor has the axis 0. A TypeError for no integers."""
    if axis is None or (isinstance(axis, (list, tuple)) and not axis):
        return tuple(range(ndim))
    if isinstance(axis, (str, float)):
        got = type(axis).__name__
        raise TypeError(
            f"(InvalidType) axis must be an int, a list or tuple of ints, or a Tensor, but got {got}."
        )
    axes = tuple(normal_axis(k, ndim or 1) for k in as_ints(axis))
    if len(set(axes)) < len(axes):
        raise invalid(f"Axis contains duplicate dimensions: {list(axes)}")
    return axes if ndim else ()


def kept(shape: Sequence[int], axis: Any) -> list[int]:
    """The shape of a reduction of `shape` with its axes kept."""
    axes = axes_of(axis, len(shape))
    return [1 if k in axes else n for k, n in enumerate(shape)]
