"""In which dtype an operation on Tensors of different dtypes is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pylayer.dtype import DType, default_dtype, promote_types
from pylayer.tensor import Tensor
from pylayer.vjp import OPS


def as_floating(value: Any) -> Any:
    """An integer or bool Tensor cast to the default floating dtype; anything else unchanged."""
    if isinstance(value, Tensor) and value.array.dtype.kind in "iub":
        return OPS["cast"].apply(value, default_dtype())
    return value


def reconciled(name: str, inputs: Sequence[Any]) -> list[Any]:
    """The inputs of an elementwise operation in a common dtype (observed rule 76).

    Floating and complex Tensors go to the widest; a 0-d Tensor follows the others unless its kind is higher. A Python
    number follows the Tensor, except that a float takes an integer Tensor to the default floating dtype.

    Raises:
        TypeError: Tensors of different dtypes that are not all floating or complex.
    """
    # NumPy's float64 is a float, but an array would follow it; `item` makes it a Python number.
    inputs = [v.item() if hasattr(v, "dtype") and not isinstance(v, Tensor) else v for v in inputs]
    tensors = [t for t in inputs if isinstance(t, Tensor)]
    if len({t.array.dtype for t in tensors}) == 1:
        weak_float = any(isinstance(value, float) for value in inputs)
        return [as_floating(value) for value in inputs] if weak_float else list(inputs)
    common = common_dtype(name, {t.dtype for t in tensors if t.ndim}, {t.dtype for t in tensors if not t.ndim})
    return [OPS["cast"].apply(v, common) if isinstance(v, Tensor) and v.dtype is not common else v for v in inputs]


def common_dtype(name: str, shaped: set[DType], zero_d: set[DType]) -> DType:
    """The dtype in which an operation on Tensors of these dtypes, with and without dimensions, is computed.

    Raises:
        TypeError: the ones with dimensions differ, and are neither all floating nor is one complex.
    """
    if len(shaped) > 1 and not (all(d.is_floating for d in shaped) or any(d.is_complex for d in shaped)):
        found = ", ".join(sorted(d.name for d in shaped))
        raise TypeError(
            f"(InvalidType) {name}(): Type promotion only support calculations between floating-point numbers and "
            f"between complex and real numbers, but got {found}. Cast one with astype()."
        )
    highest = max((d.rank for d in shaped), default=-1)
    complexes = any(d.is_complex for d in shaped)
    return promote_types(shaped | {d for d in zero_d if d.rank > highest or complexes})
