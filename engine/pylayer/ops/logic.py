"""Comparisons, logic and predicates: bool results, through which no gradient flows."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.op import binary, op, unary
from pylayer.tensor import Tensor

METHODS = (
    "allclose", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "equal", "equal_all", "greater_equal",
    "greater_than", "isclose", "isfinite", "isinf", "isnan", "less_equal", "less_than", "logical_and", "logical_not",
    "logical_or", "logical_xor", "not_equal",
)  # fmt: skip
"""The functions that are methods of Tensor as well."""

equal = binary("equal", promote=False)
not_equal = binary("not_equal", promote=False)
less_than = binary("less_than", forward=lambda xp: xp.less, promote=False)
less_equal = binary("less_equal", promote=False)
greater_than = binary("greater_than", forward=lambda xp: xp.greater, promote=False)
greater_equal = binary("greater_equal", promote=False)

logical_and = binary("logical_and", promote=False)
logical_or = binary("logical_or", promote=False)
logical_xor = binary("logical_xor", promote=False)
logical_not = unary("logical_not")
bitwise_and = binary("bitwise_and")
bitwise_or = binary("bitwise_or")
bitwise_xor = binary("bitwise_xor")
bitwise_not = unary("bitwise_not", forward=lambda xp: xp.invert)

isnan = unary("isnan")
isinf = unary("isinf")
isfinite = unary("isfinite")


@op()
def isclose_(xp: ModuleType, x: Array, y: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    """``|x − y| ≤ atol + rtol·|y|``, element by element."""
    return xp.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)


def isclose(
    x: Tensor, y: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False, name: str | None = None
) -> Tensor:
    """``|x − y| ≤ atol + rtol·|y|``, element by element."""
    return isclose_(x, y, float(rtol), float(atol), equal_nan)  # type: ignore[no-any-return]


def allclose(
    x: Tensor, y: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False, name: str | None = None
) -> Tensor:
    """Whether `isclose` holds for all elements."""
    close = isclose(x, y, rtol, atol, equal_nan)
    return Tensor(close.array.all().reshape(()) if hasattr(close.array.all(), "reshape") else close.array)


@op()
def equal_all(xp: ModuleType, x: Array, y: Array) -> Any:
    """Whether shapes and all elements are equal."""
    return xp.asarray(x.shape == y.shape and bool((x == y).all()))
