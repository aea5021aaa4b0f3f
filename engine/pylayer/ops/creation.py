"""Creation of Tensors: from values, or filled with constants and sequences."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pylayer.ops.arguments import Ints, as_int, as_ints, one_list, require, vector_shape
from pylayer.ops.shape import broadcast_to, cast, reshape
from pylayer.tape.op import composed, unwrap
from pylayer.tape.symbol import creates, creates_like
from pylayer.tensor.array import XP, check_place, default_module, quietly, to_numpy
from pylayer.tensor.dtype import BY_NUMPY, DType, as_dtype, default_dtype
from pylayer.tensor.invalid import check_supported, invalid
from pylayer.tensor.tensor import Tensor
from pylayer.watch import from_numpy_hook, recording_all
from pylayer.watch.casts import leaves_out

DTypeLike = DType | str | type | None


def _numpy_dtype(dtype: Any) -> Any:
    """The requested NumPy dtype, or the default floating dtype for None; the widest dtype of its
    kind if the observer leaves casts to it out.
    """
    if dtype is None:
        return default_dtype().numpy
    wanted = as_dtype(dtype).numpy
    widest = np.dtype("complex128" if wanted.kind == "c" else "float64")
    return widest if leaves_out(widest, wanted) else wanted


# --------------------------------------------------------------------------- from data
@creates
def to_tensor(
    data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True
) -> Tensor:
    """A new leaf with a copy of `data`: a number, nested lists, an array, or a Tensor; a TypeError
    for any other type.

    Python floats become the default dtype, ints int64, complex numbers complex64 or, with float64
    as the default, complex128; arrays keep their dtype (observed rule 72). `place`, if given, must
    be the current device; see `set_device`.
    """
    check_place(place)
    xp = default_module()
    tensor = from_numpy_hook(data, with_lists=True)
    if tensor is not data or (
        isinstance(data, Tensor) and data.node is not None and recording_all()
    ):
        return cast(tensor, tensor.dtype if dtype is None else as_dtype(dtype))
    values = _values_of(data, dtype is None)
    if dtype is None and values.dtype not in BY_NUMPY:
        text = f"Can't constructs a 'paddle.Tensor' of dtype {values.dtype}; convert it first"
        require(False, text, error=TypeError)
    if type(values) in XP and XP[type(values)] is not xp:
        values = to_numpy(values)
    wanted = values.dtype if dtype is None else as_dtype(dtype).numpy
    return Tensor(_quiet_cast(xp, values, wanted), None, bool(stop_gradient))


def _values_of(data: Any, by_default: bool) -> Any:
    """The data of `to_tensor` as an array; lists get the dtype that Paddle gives them
    `by_default`.
    """
    if isinstance(data, Tensor):
        return data.array
    if type(data) in XP:
        return data
    if isinstance(data, (np.generic, np.ndarray)):  # of any class
        return np.asarray(data)
    check_supported(data)
    text = f"Can't constructs a 'paddle.Tensor' with data type {type(data)}"
    text = f"{text}, data type must be scalar|list|tuple|np.ndarray|paddle.Tensor"
    takes = isinstance(data, (bool, int, float, complex, list, tuple))
    require(takes, text, error=TypeError)
    return _from_lists(data, by_default)


def _quiet_cast(xp: Any, values: Any, dtype: Any) -> Any:
    """A copy in another dtype: values beyond its range become infinite without a warning."""
    return quietly(functools.partial(xp.array, dtype=dtype, order="C"), [values])


def _from_lists(data: Any, by_default: bool) -> np.ndarray[Any, Any]:
    """Nested lists of numbers, arrays and Tensors as an array."""
    tensors: list[Tensor] = []
    try:
        values = np.asarray(_on_host(data, tensors))
    except ValueError as error:
        raise ValueError(f"Failed to convert input data to a regular ndarray: {error}") from None
    text = f"with elements of data type {values.dtype}; they must be numbers"
    is_numeric = values.dtype.kind not in "OUS"
    require(is_numeric, f"Can't constructs a 'paddle.Tensor' {text}", error=TypeError)
    return _quiet_cast(np, values, _usual_dtype(values.dtype, tensors)) if by_default else values


def _usual_dtype(dtype: np.dtype[Any], tensors: list[Tensor]) -> Any:
    """The dtype that Paddle gives lists of numbers of `dtype`, which may have `tensors` among
    them.
    """
    if dtype.kind == "c":
        return "complex128" if default_dtype().itemsize == 8 else "complex64"
    if tensors:
        return dtype
    if dtype.kind == "f":
        return default_dtype().numpy
    return "int64" if dtype == "int32" else dtype


def _on_host(data: Any, tensors: list[Tensor]) -> Any:
    """Nested lists with plain values in place of Tensors, which are added to `tensors`."""
    if isinstance(data, (list, tuple)):
        return [_on_host(item, tensors) for item in data]
    if isinstance(data, Tensor):
        tensors.append(data)
        return data._values("to_tensor() of a list")
    return to_numpy(data) if type(data) in XP else data


# --------------------------------------------------------------------------- filled
def sizes_of(shape: Ints) -> list[int]:
    """The sizes of a new Tensor, none of them negative."""
    sizes = as_ints(unwrap(shape))
    text = "Each value of attribute 'shape' is expected to be no less than 0"
    require(min(sizes, default=0) >= 0, f"{text}, but received {sizes}")
    return sizes


def _make_full(shape: Ints, value: Any, dtype: Any) -> Tensor:
    sizes = sizes_of(shape)
    wanted = _numpy_dtype(dtype)
    fits = wanted.kind != "b" or value in (0, 1)
    require(fits, f"the fill_value for bool should be from 0 to 1, but is {value}")
    try:
        return Tensor(default_module().full(sizes, value, dtype=wanted))
    except OverflowError as error:
        raise invalid(f"the value or a size is too large for {wanted.name} ({error})") from None


def _all(name: str, value: int) -> Callable[..., Tensor]:
    """A Tensor of a shape, of the default dtype unless given; a ValueError for a negative size."""
    return creates(composed(name, lambda shape, dtype=None: _make_full(shape, value, dtype)))


def _all_like(name: str, value: int) -> Callable[..., Tensor]:
    """A Tensor of the shape and, unless given, the dtype of another."""
    return creates_like(
        composed(name, lambda x, dtype=None: _make_full(x.shape, value, dtype or x.dtype))
    )


zeros, zeros_like = _all("zeros", 0), _all_like("zeros_like", 0)
ones, ones_like = _all("ones", 1), _all_like("ones_like", 1)
# Undefined values are zeros, so that a program that relies on them is repeatable.
empty, empty_like = _all("empty", 0), _all_like("empty_like", 0)


@creates
def full(shape: Ints, fill_value: Any, dtype: DTypeLike = None) -> Tensor:
    """A Tensor with all elements `fill_value`, a number (otherwise a TypeError); without a `dtype`
    it is bool, complex128 or the default.
    """
    value = _number(fill_value)
    usual = {bool: "bool", complex: "complex128"}.get(type(value))
    return _make_full(shape, value, usual if dtype is None else dtype)


def _number(value: Any) -> Any:
    if isinstance(value, (Tensor, np.generic)):
        return value.item()
    if isinstance(value, str):
        return float(value)
    check_supported(value)
    text = "The fill_value should be int, float, bool, complex, np.number or Tensor"
    is_number = isinstance(value, (bool, int, float, complex))
    require(is_number, f"{text}, but received {type(value)}", error=TypeError)
    return value


@creates_like
def full_like(x: Tensor, fill_value: Any, dtype: DTypeLike = None) -> Tensor:
    """`full` of the shape and, unless given, the dtype of `x`."""
    return _make_full(x.shape, _number(fill_value), dtype or x.dtype)


# --------------------------------------------------------------------------- sequences
@creates
def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: DTypeLike = None) -> Tensor:
    """Numbers from `start` to `end` (excluded) in steps; a single argument is the end. The dtype is
    int64 if all are ints, otherwise the default.
    """
    start, end = (0, start) if end is None else (start, end)
    numbers = [_number(n) for n in (start, end, step)]
    if dtype is None and all(isinstance(n, int) for n in numbers):
        dtype = "int64"
    wanted = _numpy_dtype(dtype)
    if wanted.kind in "iu":  # as in Paddle, before counting
        numbers = [int(n) for n in numbers]
    first, stop, by = numbers
    require(by != 0, "arange(): the step must not be 0, also as an integer")
    count = (stop - first) / by
    require(
        math.isfinite(count), f"arange(): start, end and step must be finite, but are {numbers}"
    )
    steps = default_module().arange(max(0, math.ceil(count)))
    return Tensor((first + steps * by).astype(wanted))


@creates
def linspace(start: Any, stop: Any, num: Any, dtype: DTypeLike = None) -> Tensor:
    """`num` values from `start` to `stop`, both included; for integer dtypes rounded towards
    zero.
    """
    values = default_module().linspace(_number(start), _number(stop), int(num), dtype="float64")
    return Tensor(values.astype(_numpy_dtype(dtype)))


@creates
def logspace(start: Any, stop: Any, num: Any, base: Any = 10.0, dtype: DTypeLike = None) -> Tensor:
    """`base` to the power of the values of `linspace`."""
    powers = default_module().linspace(_number(start), _number(stop), int(num), dtype="float64")
    return Tensor((_number(base) ** powers).astype(_numpy_dtype(dtype)))


@creates
def eye(num_rows: Any, num_columns: Any = None, dtype: DTypeLike = None) -> Tensor:
    """Ones on the diagonal; a TypeError if a number is negative or not an integer."""
    rows = as_int(num_rows)
    columns = rows if num_columns is None else as_int(num_columns)
    text = f"num_rows and num_columns should be non-negative, but are {rows} and {columns}"
    require(min(rows, columns) >= 0, text, error=TypeError)
    return Tensor(default_module().eye(rows, columns, dtype=_numpy_dtype(dtype)))


def tril_indices(row: int, col: int | None, offset: int = 0, dtype: DTypeLike = "int64") -> Tensor:
    """Rows and columns of the lower triangle, of shape [2, n]."""
    return to_tensor(np.stack(np.tril_indices(row, offset, row if col is None else col)), dtype)


def triu_indices(
    row: int, col: int | None = None, offset: int = 0, dtype: DTypeLike = "int64"
) -> Tensor:
    """Rows and columns of the upper triangle, of shape [2, n]."""
    return to_tensor(np.stack(np.triu_indices(row, offset, row if col is None else col)), dtype)


def meshgrid(*args: Any) -> list[Tensor]:
    """Grids: each of the 1-d Tensors along its own axis, broadcast to a common shape."""
    tensors: Sequence[Tensor] = one_list(args)
    sizes = [t.size for t in tensors]
    shapes = [vector_shape(axis, len(sizes)) for axis in range(len(sizes))]
    return [broadcast_to(reshape(t, to), sizes) for t, to in zip(tensors, shapes, strict=True)]


# --------------------------------------------------------------------------- about tensors
is_tensor = composed("is_tensor", lambda x: isinstance(x, Tensor), "bool")
numel = composed("numel", lambda x: to_tensor(x.size))
shape = composed("shape", lambda input: to_tensor(list(input.shape), "int64"))
rank = composed("rank", lambda input: to_tensor(input.ndim, "int32"))
