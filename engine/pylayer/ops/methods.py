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
from pylayer.ops.inplace import detach_, in_place, set_
from pylayer.tensor import Tensor

FAMILIES: tuple[Any, ...] = (
    complexes, creation, diagonal, elementwise, gathering, indexing, joining, linalg, logic, padding, random, reduction,
    shape, sorting,
)  # fmt: skip

IN_PLACE = (
    "abs", "acos", "add", "asin", "atan", "bernoulli", "cast", "ceil", "clip", "cos", "cosh", "cumsum", "divide",
    "erf", "exp", "expm1", "flatten", "floor", "floor_divide", "index_add", "index_fill", "index_put", "lerp",
    "log", "log10", "log1p", "log2", "masked_fill", "multiply", "neg", "pow", "put_along_axis", "reciprocal",
    "remainder", "round", "rsqrt", "scale", "scatter", "sigmoid", "sin", "sinh", "sqrt", "square", "subtract",
    "tan", "tanh", "tril", "triu", "trunc",
)  # fmt: skip
"""The methods that have a form with an underscore."""


def as_operand(x: Tensor, other: Any) -> Any:
    """The other side of an operator: arrays become Tensors, NumPy scalars numbers; Tensors and numbers stay."""
    if isinstance(other, (Tensor, int, float, complex)):
        return other
    if hasattr(other, "dtype") or isinstance(other, (list, tuple)):
        array = XP[type(x.array)].asarray(other)
        return array.item() if not array.ndim else Tensor(array)
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


OPERATORS = {
    "add": elementwise.add, "sub": elementwise.subtract, "mul": elementwise.multiply, "truediv": elementwise.divide,
    "floordiv": elementwise.floor_divide, "mod": elementwise.remainder, "pow": elementwise.pow, "matmul": linalg.matmul,
    "and": logic.bitwise_and, "or": logic.bitwise_or, "xor": logic.bitwise_xor,
}  # fmt: skip
COMPARISONS = {
    "lt": logic.less_than, "le": logic.less_equal, "gt": logic.greater_than, "ge": logic.greater_equal,
}  # fmt: skip


def equals(x: Tensor, other: Any) -> Any:
    """``x == other``: element by element, and False for what is no Tensor or number (observed rule 84)."""
    other = as_operand(x, other)
    return False if other is NotImplemented else logic.equal(x, other)


def differs(x: Tensor, other: Any) -> Any:
    """``x != other``."""
    other = as_operand(x, other)
    return True if other is NotImplemented else logic.not_equal(x, other)


def fill_(x: Tensor, value: Any) -> Tensor:
    """Set every element to `value`."""
    return in_place(lambda t: creation.full_like(t, value))(x)


def zero_(x: Tensor) -> Tensor:
    """Set every element to 0."""
    return fill_(x, 0)


def attach() -> None:
    """Give Tensor its operators and methods."""
    for name, function in OPERATORS.items():
        setattr(Tensor, f"__{name}__", forward_operator(function))
        setattr(Tensor, f"__r{name}__", reflected_operator(function))
    for name, function in COMPARISONS.items():
        setattr(Tensor, f"__{name}__", forward_operator(function))
    for family in FAMILIES:
        for name in family.METHODS:
            setattr(Tensor, name, getattr(family, name))
    for name in IN_PLACE:
        setattr(Tensor, f"{name}_", in_place(getattr(Tensor, name)))
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
        "fill_": fill_,
        "zero_": zero_,
    }
    for name, value in attributes.items():
        setattr(Tensor, name, value)
