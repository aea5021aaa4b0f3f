"""Data types under Paddle's names, one object per type."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np


class DType:
    """A data type: A dtype: Paddle's name for it and its NumPy dtype. Compares equal only to
    itself.
    """

    __slots__ = ("name", "numpy")

    def __init__(self, name: str) -> None:
        self.name = name
        self.numpy: np.dtype[Any] = np.dtype(name)  # ml_dtypes has registered bfloat16 with NumPy

    def __repr__(self) -> str:
        return f"paddle.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)

    @property
    def is_floating(self) -> bool:
        """Whether values are real floating-point numbers."""
        return self in FLOATING

    @property
    def is_complex(self) -> bool:
        """Whether values are complex numbers."""
        return self.numpy.kind == "c"

    @property
    def is_differentiable(self) -> bool:
        """Whether a gradient can be taken with respect to values of this type."""
        return self.is_floating or self.is_complex

    @property
    def rank(self) -> int:
        """The rank of the dtype's kind in the order bool, integer, floating, complex."""
        return {"b": 0, "u": 1, "i": 1, "c": 3}.get(self.numpy.kind, 2)  # bfloat16 is of kind V

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.numpy.itemsize


NAMES = "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 bool complex64 complex128"
DTYPES = tuple(DType(name) for name in NAMES.split())
(
    float16,
    float32,
    float64,
    bfloat16,
    int8,
    int16,
    int32,
    int64,
    uint8,
    bool_,
    complex64,
    complex128,
) = DTYPES
FLOATING = frozenset({float16, float32, float64, bfloat16})


def common_dtype(name: str, shaped: set[DType], zero_d: set[DType]) -> DType:
    """The dtype in which an operation on Tensors of these dtypes, with and without dimensions, is
    computed.

    It is the narrowest dtype that holds all of those that count: integers do not count next to a
    floating or complex one.

    Raises:
        TypeError: the dtypes with dimensions differ, are not all floating, and none is complex.
    """
    complexes = any(d.is_complex for d in shaped)
    if len(shaped) > 1 and not complexes and not all(d.is_floating for d in shaped):
        names = ", ".join(sorted(d.name for d in shaped))
        raise TypeError(
            f"(InvalidType) {name}(): Type promotion only support calculations between "
            f"floating-point numbers and "
            f"between complex and real numbers, but got {names}. Cast one with astype()."
        )
    highest = max((d.rank for d in shaped), default=-1)
    counting = shaped | {d for d in zero_d if d.rank > highest or complexes}
    candidates = {d for d in counting if d.is_differentiable} or counting
    if candidates >= {float16, bfloat16}:  # neither holds the other
        candidates = candidates - {float16, bfloat16} | {float32}
    return BY_NUMPY[np.dtype(functools.reduce(np.promote_types, (d.numpy for d in candidates)))]


for _dtype in DTYPES:  # ``DataType.FLOAT32``
    setattr(DType, _dtype.name.upper(), _dtype)

_BY_NAME = {d.name: d for d in DTYPES}
BY_NUMPY: dict[np.dtype[Any], DType] = {d.numpy: d for d in DTYPES}

_default = float32


def get_default_dtype() -> str:
    """The dtype of Python floats, and of creation functions without a dtype."""
    return _default.name


def set_default_dtype(dtype: Any) -> None:
    """Set the default floating dtype. Raises TypeError if `dtype` is not floating."""
    global _default
    wanted = as_dtype(dtype)
    if not wanted.is_floating:
        raise TypeError(f"set_default_dtype only supports floating dtypes, but received {dtype!r}.")
    _default = wanted


def default_dtype() -> DType:
    """The default floating dtype as an object."""
    return _default


def as_dtype(value: Any) -> DType:
    """The DType for a DType, its name (with or without ``paddle.``), or a NumPy or Python type.

    Raises:
        TypeError: the argument is not a dtype of the engine.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        name = value.removeprefix("paddle.")
        if name in _BY_NAME:
            return _BY_NAME[name]
    elif value is float:
        return _default
    else:
        try:
            return BY_NUMPY[np.dtype(value)]
        except (TypeError, KeyError):
            pass
    raise TypeError(f"{value!r} is not a dtype; the dtypes are {', '.join(_BY_NAME)}.")


class finfo:  # noqa: N801 - Paddle's name
    """The limits of a floating dtype; for a complex one, those of its parts.

    Raises:
        ValueError: the dtype is an integer dtype.
    """

    def __init__(self, dtype: Any) -> None:
        wanted = as_dtype(dtype)
        if not wanted.is_differentiable:
            raise ValueError(
                f"finfo(): the dtype must be floating or complex, but is {wanted.name}."
            )
        limits: Any = ml_dtypes.finfo  # untyped
        info = limits(np.zeros((), wanted.numpy).real.dtype)
        self.min, self.max = float(info.min), float(info.max)
        self.eps, self.tiny = float(info.eps), float(info.tiny)
        self.resolution, self.smallest_normal = (
            float(info.resolution),
            float(info.smallest_normal),
        )
        self.bits, self.dtype = int(info.bits), info.dtype.name

    def __repr__(self) -> str:
        return (
            f"paddle.finfo(min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"resolution={self.resolution:g}, smallest_normal={self.smallest_normal:g}, "
            f"tiny={self.tiny:g}, bits={self.bits}, dtype={self.dtype})"
        )


class iinfo:  # noqa: N801 - Paddle's name
    """The limits of an integer dtype. Raises ValueError for another dtype."""

    def __init__(self, dtype: Any) -> None:
        wanted = as_dtype(dtype)
        if wanted.rank != 1:
            raise ValueError(f"iinfo(): the dtype must be an integer one, but is {wanted.name}.")
        info = np.iinfo(wanted.numpy)
        self.min, self.max, self.bits, self.dtype = (
            int(info.min),
            int(info.max),
            info.bits,
            wanted.name,
        )

    def __repr__(self) -> str:
        return f"paddle.iinfo(min={self.min}, max={self.max}, bits={self.bits}, dtype={self.dtype})"
