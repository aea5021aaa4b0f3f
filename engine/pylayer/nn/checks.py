"""What functions of `paddle.nn.functional` require of their arguments: one check per family of requirements.

Each raises ValueError (`check_count` a TypeError for another type), as Paddle 3.3.1 does, in place of a result that the
release does not give.
"""

from __future__ import annotations

from typing import Any

from pylayer.ops.elementwise import check_same_dtype
from pylayer.tape.symbol import Symbol
from pylayer.tensor.dtype import float32
from pylayer.tensor.invalid import invalid
from pylayer.tensor.tensor import Tensor

REDUCTIONS = ("sum", "mean", "none")


def check_reduction(reduction: Any) -> None:
    """Check how a loss is reduced."""
    if reduction not in REDUCTIONS:
        raise ValueError(
            f"The value of 'reduction' should be 'sum', 'mean' or 'none', but received {reduction}."
        )


def check_format(data_format: Any, *formats: str) -> None:
    """Check where channels stand."""
    if data_format not in formats:
        expected = " or ".join(map(repr, formats))
        raise ValueError(
            f"Attr(data_format) should be {expected}. Received Attr(data_format): {data_format}."
        )


def check_positive(name: str, **numbers: Any) -> None:
    """Check numbers, or lists of numbers, that have to be above 0."""
    for argument, value in numbers.items():
        least = min(value) if isinstance(value, (list, tuple)) else value
        if least <= 0:
            raise invalid(f"{name}(): {argument} should be larger than 0, but received {value}")


def check_count(argument: str, value: Any) -> None:
    """Check an int that has to be above 0; a TypeError for another type."""
    if not isinstance(value, int):
        raise TypeError(f"{argument} must be int type, but got {type(value).__name__}.")
    if value <= 0:
        raise ValueError(f"{argument} must be positive, but got {value}.")


def check_parameters(name: str, x: Tensor, *parameters: Tensor | None) -> None:
    """Check that weights, biases and running statistics have the dtype of `x`, or float32 beside half precision."""
    half = x.dtype.is_floating and x.dtype.itemsize == 2
    check_same_dtype(
        name, [x, *(p for p in parameters if p is not None and not (half and p.dtype is float32))]
    )


def check_label_shape(name: str, input: Tensor, *others: Tensor) -> None:
    """Check that labels have the shape of the input, which they are not broadcast to."""
    if any(isinstance(tensor, Symbol) for tensor in (input, *others)):
        return  # sizes of a program may be known only in the run
    for other in others:
        if list(other.shape) != list(input.shape):
            raise ValueError(
                f"{name}(): input's shape must equal to label's shape, but they are {list(input.shape)} and "
                f"{list(other.shape)}."
            )
