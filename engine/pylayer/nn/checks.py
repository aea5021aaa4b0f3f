"""Checks of arguments of `paddle.nn.functional`, one per family.

Each raises ValueError if Paddle 3.3.1 does.
"""

from __future__ import annotations

from typing import Any

from pylayer.ops.arguments import as_ints, require
from pylayer.ops.elementwise import check_same_dtype
from pylayer.tape.symbol import Symbol
from pylayer.tensor.dtype import float32
from pylayer.tensor.tensor import Tensor

REDUCTIONS = ("sum", "mean", "none")


def check_reduction(reduction: Any) -> None:
    """Check the name of a loss's reduction."""
    text = "The value of 'reduction' should be 'sum', 'mean' or 'none'"
    require(reduction in REDUCTIONS, f"{text}, but received {reduction}")


def check_positive(name: str, **numbers: Any) -> None:
    """Check that numbers, or lists of numbers, are above 0."""
    for argument, value in numbers.items():
        text = f"{name}(): {argument} should be larger than 0, but received {value}"
        require(min(as_ints(value)) > 0, text)


def check_parameters(name: str, x: Tensor, *parameters: Tensor | None) -> None:
    """Check that weights, biases and running statistics have the dtype of `x`, or float32 with half
    precision.
    """
    is_half = x.dtype.is_floating and x.dtype.itemsize == 2
    for parameter in parameters:
        if parameter is not None and not (is_half and parameter.dtype is float32):
            check_same_dtype(name, [x, parameter])


def check_label_shape(name: str, input: Tensor, label: Tensor) -> None:
    """Check that labels have the shape of the input, as they are not broadcast.

    Sizes of Variables that are known only when the program runs are not checked.
    """
    if not isinstance(input, Symbol) and not isinstance(label, Symbol):
        text = f"{name}(): input's shape must equal to label's shape"
        require(list(label.shape) == list(input.shape), text, input, label)
