"""Parsing of shapes and axes, in all forms that Paddle accepts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pylayer.tensor.array import Array
from pylayer.tensor.invalid import invalid, no_tensor
from pylayer.tensor.tensor import Tensor


def require(holds: bool, text: str, *tensors: Tensor, error: type[Exception] = ValueError) -> None:
    """Raise `error` unless a condition `holds`; the message has the requirement `text`, and the
    dtypes and shapes of the Tensors.
    """
    if not holds:
        got = " and ".join(f"{t.dtype.name} {list(t.shape)}" for t in tensors)
        raise error(
            f"(InvalidArgument) {text}, but got {got}." if tensors else f"(InvalidArgument) {text}."
        )


def one_of(argument: str, value: Any, *choices: Any) -> None:
    """Raise a ValueError unless the value of an argument, such as "qr(): `mode`", is one of the
    choices.
    """
    if value not in choices:
        raise invalid(f"{argument} is one of {', '.join(map(str, choices))}, but got {value!r}")


Ints = int | Sequence[Any] | Array
"""An int, a list of ints and 0-d integer Tensors, or an integer Tensor."""


def as_ints(values: Ints) -> list[int]:
    """A shape or a list of axes as a list of ints, from any of the forms that Paddle accepts."""
    if isinstance(values, (int, float)):
        return [as_int(values)]
    if isinstance(values, (list, tuple)) and {int}.issuperset(map(type, values)):
        return list(values)
    if hasattr(values, "reshape"):
        return [int(v) for v in values.reshape(-1).tolist()]
    return [as_int(v) for v in values]


def as_int(value: Any) -> int:
    """An int, also from an array or a Tensor of one element; raises TypeError for other types."""
    if type(value) is int:
        return value
    number = value.item() if hasattr(value, "item") else value
    text = f"must be list of int, but got {type(number).__name__} ({number!r})"
    require(not isinstance(number, (float, str)), text, error=TypeError)
    return int(number)


def one_list(arguments: tuple[Any, ...]) -> Any:
    """Arguments that may be given separately or in one list."""
    is_list = len(arguments) == 1 and isinstance(arguments[0], (list, tuple))
    return arguments[0] if is_list else arguments


def check_tensor(name: str, argument: str, position: int, value: Any) -> None:
    """Raise a ValueError unless an argument of the function `name` is a Tensor."""
    if not isinstance(value, Tensor):
        raise no_tensor(name, argument, position, value)


class OutOfRangeError(IndexError, ValueError):
    """An axis or a position is out of range. It is both a ValueError and an IndexError, because
    Paddle raises either.
    """


def normal_axis(axis: Any, ndim: int) -> int:
    """`axis` counted from the front; an OutOfRangeError if it is outside [-ndim, ndim)."""
    number = int(axis)
    if not -ndim <= number < ndim:  # not by `require`: most calls need no text
        text = f"the axis should be in the range of [{-ndim}, {ndim}), but received {number}"
        raise OutOfRangeError(f"(InvalidArgument) {text}.")
    return number % ndim


def accept_separate_ints(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Allow a list argument to be given as separate ints too: ``x.reshape(2, 3)``."""

    @functools.wraps(function)
    def call(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if len(args) > 1 and not isinstance(args[0], (list, tuple)) and args[1] is not None:
            args = (list(args),)
        return function(x, *args, **kwargs)

    return call


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The selected axes, counted from the front; all for None or []. A 0-d Tensor has the axis 0. A
    TypeError for values that are not integers.
    """
    if axis is None or (isinstance(axis, (list, tuple)) and not axis):
        return tuple(range(ndim))
    numbers = [axis] if type(axis) is int else as_ints(axis)
    axes = tuple([normal_axis(k, ndim or 1) for k in numbers])
    if len(set(axes)) < len(axes):
        raise invalid(f"Axis contains duplicate dimensions: {list(axes)}")
    return axes if ndim else ()


def kept_shape(shape: Sequence[int], axis: Any) -> list[int]:
    """The shape of a reduction of `shape` with its axes kept."""
    axes = axes_of(axis, len(shape))
    return [1 if k in axes else n for k, n in enumerate(shape)]


def vector_shape(axis: int, ndim: int) -> list[int]:
    """The shape in which a vector broadcasts along an axis, counted from the front."""
    return [*[1] * axis, -1, *[1] * (ndim - axis - 1)]


def drop_axes(shape: Sequence[int], axes: Sequence[int]) -> list[int]:
    """`shape` without some axes, counted from the front."""
    return [n for k, n in enumerate(shape) if k not in axes]
