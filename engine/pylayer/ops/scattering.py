"""Writing at lists of positions, all by way of `setitem` and `add_at`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.invalid import invalid
from pylayer.op import composed, op
from pylayer.ops.arguments import normal_axis
from pylayer.ops.creation import full, full_like, ones_like, zeros
from pylayer.ops.gathering import _along, _at, _columns
from pylayer.ops.indexing import add_at, getitem, parsed, setitem, where_
from pylayer.ops.rearranging import _slices
from pylayer.ops.shape import broadcast_shape, broadcast_to, reshape
from pylayer.tensor import Tensor


def _same_dtype(name: str, x: Tensor, values: Any) -> None:
    if isinstance(values, Tensor) and values.dtype is not x.dtype:
        raise invalid(
            f"{name}(): the values to write are {values.dtype.name}, the Tensor is {x.dtype.name}. "
            f"Cast one with astype()"
        )


_EXTREMES = {"mul": "multiply", "multiply": "multiply", "amin": "minimum", "amax": "maximum"}
_REDUCTIONS = ("assign", "add", "mean", *_EXTREMES)


def _put_share(g: Any, F: Any, arr: Any, index: Any, values: Any, out: Any, kind: str, include_self: bool) -> Any:
    """What goes back to `arr`: nothing at a place that was written to without it."""
    kept = g if include_self else F.setitem(g, index, 0)
    if kind == "multiply":
        return kept * F.put_reduced(arr * 0 + 1, index, values, kind, include_self)
    return kept * F.cast(arr == out, g.dtype)


def _put_values(g: Any, F: Any, index: Any, values: Any, out: Any, kind: str) -> Any:
    """What goes back to the values: the product of the others, or all where the value is the extreme."""
    if kind == "multiply":
        return F.getitem(g * out, index) / values
    return F.getitem(g, index) * F.cast(F.getitem(out, index) == values, g.dtype)


@op(arr=_put_share, values=_put_values)
def put_reduced(xp: ModuleType, arr: Array, index: Any, values: Array, kind: str, include_self: bool) -> Array:
    """A copy of `arr` with the product or an extreme of `values` at the places `index`."""
    out = arr.copy()
    basic, advanced = parsed(xp, arr.shape, index)
    if not include_self:
        least, largest = extremes(xp, arr.dtype)
        out[basic][advanced] = {"multiply": 1, "minimum": largest, "maximum": least}[kind]
    getattr(xp, kind).at(out[basic], advanced, values)
    return out


def extremes(xp: ModuleType, dtype: Any) -> tuple[Any, Any]:
    """The least and the largest value of a NumPy dtype."""
    if dtype.kind not in "iu":
        return -math.inf, math.inf
    limits = xp.iinfo(dtype)
    return limits.min, limits.max


def put_along_axis(
    arr: Tensor,
    indices: Tensor,
    values: Any,
    axis: int,
    reduce: str = "assign",
    include_self: bool = True,
    broadcast: bool = True,
) -> Tensor:
    """A copy of `arr` with `values` at the positions `indices` along `axis`.

    `reduce` says what becomes of the values for one place: the last one counts (assign), their sum (add), product (mul,
    multiply), mean, smallest (amin) or largest (amax); `include_self`, whether what was there takes part.
    """
    if reduce not in _REDUCTIONS:
        raise ValueError(f"put_along_axis(): `reduce` is one of {', '.join(_REDUCTIONS)}, but got {reduce!r}.")
    _same_dtype("put_along_axis", arr, values)
    index = _along("put_along_axis", arr, indices, axis, broadcast)
    values = values if isinstance(values, Tensor) else full_like(arr[index], values)
    if reduce == "assign":
        return setitem(arr, index, values)
    values = broadcast_to(values, index[normal_axis(axis, arr.ndim)].shape)
    if reduce in _EXTREMES:
        return put_reduced(arr, index, values, _EXTREMES[reduce], include_self)
    start = arr if include_self else setitem(arr, index, 0)
    total = add_at(start, index, values)
    if reduce == "add":
        return total
    counts = add_at(ones_like(arr) if include_self else setitem(ones_like(arr), index, 0), index, ones_like(values))
    return total / counts


_OTHER_WORDS = {"sum": "add", "prod": "mul", "mean": "mean", "amin": "amin", "amax": "amax"}


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`put_along_axis` without broadcasting, and with `reduce` one of sum, prod, mean, amin and amax."""
    if reduce not in _OTHER_WORDS:
        raise ValueError(f"scatter_reduce(): reduce is one of {', '.join(_OTHER_WORDS)}, but got {reduce!r}.")
    return put_along_axis(input, index, src, dim, _OTHER_WORDS[reduce], include_self, False)


scatter_add = composed("scatter_add", lambda input, dim, index, src: scatter_reduce(input, dim, index, src, "sum"))


def scatter(x: Tensor, index: Tensor, updates: Tensor, overwrite: bool = True) -> Tensor:
    """A copy of `x` with the rows `index` replaced by `updates`, of several for a row by the last; or by their sum."""
    _same_dtype("scatter", x, updates)
    if index.ndim == 2 and index.shape[1] != 1:
        raise invalid(
            f"The last dim of the index should be 1 when the index is a 2D tensor, but we get {index.shape[1]}"
        )
    if index.ndim > 2:
        raise invalid(
            f"The index should be a 0D or 1D tensor when the index is not a 2D tensor, but we get {index.ndim}"
        )
    if not index.ndim and updates.shape == x.shape[1:]:  # one row
        index, updates = reshape(index, [1]), reshape(updates, [1, *updates.shape])
    elif not index.ndim:
        raise invalid(f"scatter(): the update for one row of {x.shape[1:]} has shape {updates.shape}")
    if updates.shape[:1] != [index.size] or updates.shape[1:] != x.shape[1:]:
        raise invalid(f"scatter(): the updates for {index.size} rows of {x.shape[1:]} have shape {updates.shape}")
    rows = reshape(index, [-1]) if index.ndim > 1 else index
    if overwrite:
        return setitem(x, rows, updates)
    return add_at(setitem(x, rows, 0), rows, updates)


def scatter_nd_add(x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    """A copy of `x` with `updates`, of its dtype (else a TypeError), added at the coordinates in the last axis of
    `index`."""
    if updates.dtype is not x.dtype:
        raise TypeError(
            f"x and updates must have same data type but x.dtype={x.dtype.name}, updates.dtype={updates.dtype.name}"
        )
    slices = [*index.shape[:-1], *x.shape[index.shape[-1] :]]
    if index.shape[-1] > x.ndim or updates.shape != slices:
        raise invalid(
            f"scatter_nd_add(): coordinates of shape {index.shape} into {x.shape} need updates of "
            f"shape {slices}, but they have {updates.shape}"
        )
    return add_at(x, _columns(index), updates)


scatter_nd = composed(
    "scatter_nd", lambda index, updates, shape: scatter_nd_add(zeros(shape, updates.dtype), index, updates)
)


def index_add(x: Tensor, index: Tensor, axis: int, value: Tensor, alpha: float = 1) -> Tensor:
    """A copy of `x` with `alpha` times `value` added to the slices `index` along `axis`."""
    _same_dtype("index_add", x, value)
    return add_at(x, _at(x, index, axis), value if alpha == 1 else value * alpha)


def index_put(x: Tensor, indices: Sequence[Tensor], value: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `x` with `value` at, or added at, ``x[indices]``."""
    _same_dtype("index_put", x, value)
    return add_at(x, tuple(indices), value) if accumulate else setitem(x, tuple(indices), value)


index_fill = composed("index_fill", lambda x, index, axis, value: setitem(x, _at(x, index, axis), value))


def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value`, a number or a 0-d Tensor of the dtype of `x`, where `mask` holds, else `x`."""
    if not isinstance(value, Tensor):
        value = full([], value, x.dtype)
    _same_dtype("masked_fill", x, value)
    return where_(mask, value, x)


# --------------------------------------------------------------------------- slices, and masked elements
def select_scatter(x: Tensor, values: Tensor, axis: int, index: int) -> Tensor:
    """A copy of `x` with `values` as slice `index` along `axis`; a RuntimeError if they are of another shape."""
    at = normal_axis(axis, x.ndim)
    expected = [n for k, n in enumerate(x.shape) if k != at]
    if list(values.shape) != expected:
        raise RuntimeError(
            f"expected values to have shape {expected}, but got {list(values.shape)}: x.shape is {list(x.shape)}"
        )
    return setitem(x, (*(slice(None),) * at, index), values)


def slice_scatter(x: Tensor, value: Tensor, axes: Any, starts: Any, ends: Any, strides: Any) -> Tensor:
    """A copy of `x` with `value` at the places that `strided_slice` reads."""
    return setitem(x, _slices(x, axes, starts, ends, strides), value)


def masked_scatter(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """A copy of `x` with the elements of `value`, in order, where `mask` holds; AssertionErrors if it does not fit."""
    if mask.dtype.name != "bool":
        raise AssertionError("The mask must be bool")
    if value.dtype is not x.dtype:
        raise AssertionError(
            f"x and value must have the same dtype, but got x dtype is {x.dtype}, value dtype is {value.dtype}"
        )
    if broadcast_shape(x.shape, mask.shape) != list(x.shape):
        raise AssertionError(f"The mask of shape {mask.shape} does not broadcast to {x.shape}.")
    mask = broadcast_to(mask, x.shape)
    count = int(mask.array.sum().item())
    if count > value.size:
        raise AssertionError(
            f"mask true nums must be <= value size, but got mask true nums is {count}, value size is {value.size}"
        )
    return setitem(x, mask, getitem(reshape(value, [-1]), slice(count)))
