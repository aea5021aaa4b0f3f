"""Operators and methods of Tensor: the one table that attaches the operations to the class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pylayer.ops.complexes as complexes
import pylayer.ops.creation as creation
import pylayer.ops.diagonal as diagonal
import pylayer.ops.elementwise as elementwise
import pylayer.ops.gathering as gathering
import pylayer.ops.indexing as indexing
import pylayer.ops.joining as joining
import pylayer.ops.linalg as linalg
import pylayer.ops.logic as logic
import pylayer.ops.padding as padding
import pylayer.ops.random as random
import pylayer.ops.reduction as reduction
import pylayer.ops.shape as shape
import pylayer.ops.sorting as sorting
from pylayer.array import XP
from pylayer.op import fast_binary
from pylayer.ops.inplace import detach_, fill_, in_place, in_place_anew, set_, set_value, zero_
from pylayer.tensor import Tensor

FAMILIES: tuple[Any, ...] = (
    complexes, creation, diagonal, elementwise, gathering, indexing, joining, linalg, logic, padding, random, reduction,
    shape, sorting,
)  # fmt: skip

IN_PLACE = (
    "abs", "acos", "acosh", "add", "addmm", "asin", "asinh", "atan", "atanh", "bernoulli", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "ceil", "clip", "cos", "cosh", "cumprod", "cumsum", "divide", "erf",
    "exp", "expm1", "floor", "floor_divide", "index_add", "index_fill", "index_put", "lerp", "log", "log10", "log1p",
    "log2", "masked_fill", "mod", "multiply", "neg", "pow", "put_along_axis", "reciprocal", "remainder", "round",
    "rsqrt", "scale", "scatter", "sigmoid", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "tril", "triu",
    "trunc",
)  # fmt: skip
"""The methods that have a form with an underscore."""

IN_PLACE_ANEW = (
    "cast", "equal", "flatten", "greater_equal", "greater_than", "less_equal", "less_than", "logical_and",
    "logical_not", "logical_or", "logical_xor", "not_equal", "reshape", "squeeze", "t", "transpose", "unsqueeze",
)  # fmt: skip
"""Those whose form with an underscore changes the shape or dtype."""


def as_operand(x: Tensor, other: Any) -> Any:
    """The other side of an operator: arrays become Tensors, those of shape [] numbers; Tensors and numbers stay.

    Raises:
        TypeError: it is a list, a tuple or a string, which Python would otherwise repeat, or join.
    """
    if isinstance(other, Tensor):
        return other
    if hasattr(other, "dtype"):
        array = XP[type(x.array)].asarray(other)
        return Tensor(array) if array.ndim else array.item()
    if isinstance(other, (int, float, complex)):
        return other
    if isinstance(other, (list, tuple, str)):
        raise TypeError(
            f"(InvalidType) the operand of a Tensor must be int, float, bool or Tensor, but got "
            f"{type(other).__name__}. Convert it with paddle.to_tensor."
        )
    return NotImplemented


def forward_operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """``x ∘ other``."""

    def operator(x: Tensor, other: Any) -> Any:
        if type(other) is not Tensor:
            other = as_operand(x, other)
            if other is NotImplemented:
                return NotImplemented
        return function(x, other)

    return operator


def reflected_operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """``other ∘ x``."""

    def operator(x: Tensor, other: Any) -> Any:
        other = as_operand(x, other)
        return NotImplemented if other is NotImplemented else function(other, x)

    return operator


OPERATORS: dict[str, Any] = {
    "add": elementwise.add, "sub": elementwise.subtract, "mul": elementwise.multiply, "truediv": elementwise.divide,
    "floordiv": elementwise.floor_divide, "mod": elementwise.remainder, "pow": elementwise.pow,
    "matmul": linalg.matmul_, "and": logic.bitwise_and, "or": logic.bitwise_or, "xor": logic.bitwise_xor,
}  # fmt: skip
COMPARISONS: dict[str, Any] = {
    "lt": logic.less_than, "le": logic.less_equal, "gt": logic.greater_than, "ge": logic.greater_equal,
}  # fmt: skip


def equals(x: Tensor, other: Any) -> Any:
    """``x == other``: element by element, and False for what is no Tensor, array or number (observed rule 84)."""
    return logic.equal(x, as_operand(x, other)) if comparable(other) else False


def differs(x: Tensor, other: Any) -> Any:
    """``x != other``: element by element, and True for what is no Tensor, array or number."""
    return logic.not_equal(x, as_operand(x, other)) if comparable(other) else True


def comparable(other: Any) -> bool:
    """Whether `other` is a Tensor, an array or a number."""
    return isinstance(other, (Tensor, int, float, complex)) or hasattr(other, "dtype")


def attach() -> None:
    """Give Tensor its operators and methods."""
    for name, function in OPERATORS.items():
        slow = forward_operator(function)
        setattr(Tensor, f"__{name}__", slow if function is linalg.matmul_ else fast_binary(function.op, slow))
        setattr(Tensor, f"__r{name}__", reflected_operator(function))
    for name, function in COMPARISONS.items():
        setattr(Tensor, f"__{name}__", fast_binary(function.op, forward_operator(function)))
    for family in FAMILIES:
        for name in family.METHODS:
            setattr(Tensor, name, getattr(family, name))
    for name in IN_PLACE:
        setattr(Tensor, f"{name}_", in_place(getattr(Tensor, name)))
    for name in IN_PLACE_ANEW:
        setattr(Tensor, f"{name}_", in_place_anew(getattr(Tensor, name)))
    attributes: dict[str, Any] = {
        "__eq__": equals,
        "__ne__": differs,
        "__neg__": elementwise.neg,
        "__abs__": elementwise.abs,
        "__invert__": logic.bitwise_not,
        "__getitem__": indexing.getitem,
        "__setitem__": in_place(indexing.setitem),
        "T": property(lambda x: shape.transpose(x, list(range(x.ndim))[::-1])),
        "mT": property(linalg._swapped),
        "conjugate": complexes.conj,
        "detach_": detach_,
        "set_": set_,
        "set_value": set_value,
        "fill_": fill_,
        "zero_": zero_,
    }
    for name, value in attributes.items():
        setattr(Tensor, name, value)
