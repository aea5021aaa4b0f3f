"""Comparisons, logic and predicates: bool results, through which no gradient flows."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.invalid import invalid
from pylayer.op import binary, op, unary
from pylayer.symbol import named
from pylayer.tensor import Tensor
from pylayer.vjp import Function

equal = binary("equal", numbers=True)
not_equal = binary("not_equal")
less_than = binary("less_than", forward=lambda xp: xp.less)
less_equal = binary("less_equal")
greater_than = binary("greater_than", forward=lambda xp: xp.greater)
greater_equal = binary("greater_equal")

logical_and, logical_or, logical_xor = map(binary, ("logical_and", "logical_or", "logical_xor"))
logical_not = unary("logical_not")


def check_one_dtype(x: Array, y: Array) -> None:
    """Raise ValueError if the dtypes of arrays differ, or one is a number (the key phrases are Paddle's)."""
    kinds = [getattr(array, "dtype", type(array).__name__) for array in (x, y)]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"The type of data we are trying to retrieve ({kinds[0]}) does not match the type of data ({kinds[1]}) of "
            f"the other. Cast one with astype()"
        )


def _bitwise(name: str) -> Function:
    def bind(xp: ModuleType) -> Function:
        def forward(x: Array, y: Array) -> Array:
            check_one_dtype(x, y)
            return getattr(xp, name)(x, y)

        return forward

    return binary(name, forward=bind, promote=False)


bitwise_and, bitwise_or, bitwise_xor = map(_bitwise, ("bitwise_and", "bitwise_or", "bitwise_xor"))
bitwise_not = unary("bitwise_not", forward=lambda xp: xp.invert)

isnan, isinf, isfinite = map(unary, ("isnan", "isinf", "isfinite"))


def check_same_dtype(name: str, tensors: Sequence[Any]) -> None:
    """Raise ValueError if one is not a Tensor, or their dtypes differ (the key phrases are Paddle's)."""
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise invalid(
                f"{name}(): argument (position {position}) must be Tensor, but got "
                f"{type(tensor).__name__}. Convert it with paddle.to_tensor"
            )
        if tensor.dtype is not tensors[0].dtype:
            raise invalid(
                f"{name}(): The type of data we are trying to retrieve ({tensors[0].dtype.name}) "
                f"does not match the type of data ({tensor.dtype.name}) of argument (position {position}). "
                f"Cast one with astype(){named(list(tensors))}"
            )


@op(inputs=("x", "y"))
def isclose(
    xp: ModuleType, x: Array, y: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Array:
    """``|x − y| ≤ atol + rtol·|y|``, element by element, of one dtype."""
    check_one_dtype(x, y)
    return xp.isclose(x, y, rtol=float(rtol), atol=float(atol), equal_nan=equal_nan)


@op(inputs=("x", "y"))
def allclose(
    xp: ModuleType, x: Array, y: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Array:
    """Whether `isclose` holds for all elements of Tensors of one shape: a bool of shape []."""
    check_one_dtype(x, y)
    if x.shape != y.shape:
        raise ValueError("the shapes differ")
    return xp.all(xp.isclose(x, y, rtol=float(rtol), atol=float(atol), equal_nan=equal_nan))


@op(inputs=("x", "y"))
def equal_all(xp: ModuleType, x: Array, y: Array) -> Array:
    """Whether shapes and all elements are equal: a bool of shape []."""
    if getattr(x, "shape", ()) != getattr(y, "shape", ()):
        return xp.zeros((), bool)
    check_one_dtype(x, y)
    return xp.all(x == y)
