"""Reading and writing at lists of positions, all by way of `getitem`, `setitem` and `add_at`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.dtype import bool_
from pylayer.op import op
from pylayer.ops.arguments import Ints, as_ints, normal_axis
from pylayer.ops.creation import full, full_like, ones_like, zeros
from pylayer.ops.indexing import add_at, getitem, parsed, setitem, where_
from pylayer.ops.shape import broadcast_shape, broadcast_to, reshape
from pylayer.tensor import Tensor

METHODS = (
    "gather", "gather_nd", "index_add", "index_fill", "index_put", "index_sample", "index_select", "masked_fill",
    "masked_select", "put_along_axis", "repeat_interleave", "scatter", "scatter_nd_add", "take", "take_along_axis",
)  # fmt: skip
"""The functions that are methods of Tensor as well."""


def _at(x: Tensor, index: Any, axis: Any) -> tuple[Any, ...]:
    """The index of the slices `index` along `axis`."""
    return (*(slice(None),) * normal_axis(axis, x.ndim), index)


def _columns(index: Tensor) -> tuple[Any, ...]:
    """The coordinates in the last axis of `index`, one Tensor per axis of what is indexed."""
    return tuple(getitem(index, (..., k)) for k in range(index.shape[-1]))


def _same_dtype(name: str, x: Tensor, values: Any) -> None:
    if isinstance(values, Tensor) and values.dtype is not x.dtype:
        raise ValueError(
            f"(InvalidArgument) {name}(): the values to write are {values.dtype.name}, the Tensor is {x.dtype.name}. "
            f"Cast one with astype()."
        )


# --------------------------------------------------------------------------- reading
def index_select(x: Tensor, index: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """The slices `index` along `axis`.

    Raises:
        IndexError: one is out of range.
        ValueError: the index is not of integers.
    """
    return getitem(x, _at(x, index, axis))  # type: ignore[no-any-return]


def gather(x: Tensor, index: Tensor, axis: Any = 0, name: str | None = None) -> Tensor:
    """The slices `index`, a 0-d or 1-d Tensor or one of shape [n, 1], along `axis`.

    Raises:
        IndexError: one is out of range.
    """
    return index_select(x, reshape(index, [-1]) if index.ndim > 1 else index, 0 if axis is None else axis)


def gather_nd(x: Tensor, index: Tensor, name: str | None = None) -> Tensor:
    """The elements or slices whose coordinates are in the last axis of `index`.

    Raises:
        ValueError: out of range, or more coordinates than axes.
    """
    return getitem(x, _columns(index))  # type: ignore[no-any-return]


def index_sample(x: Tensor, index: Tensor) -> Tensor:
    """Per row of a matrix the elements `index`.

    Raises:
        ValueError: the numbers of rows differ, or a position is out of range.
    """
    if x.ndim != 2 or index.ndim != 2 or x.shape[0] != index.shape[0]:
        raise ValueError(
            f"(InvalidArgument) index_sample(): needs matrices with as many rows, but the shapes are {x.shape} and "
            f"{index.shape}."
        )
    return getitem(x, ([[k] for k in range(x.shape[0])], index))  # type: ignore[no-any-return]


def take(x: Tensor, index: Tensor, mode: str = "raise", name: str | None = None) -> Tensor:
    """The elements of the flat Tensor at `index`; beyond the ends as `mode` says: raise, wrap or clip.

    Raises:
        TypeError: the index is of another dtype than int32 or int64.
        ValueError: another mode.
        IndexError: out of range, with ``raise``.
    """
    if index.dtype.name not in ("int32", "int64"):
        raise TypeError(
            f"The data type of 'index' must be one of ['int32', 'int64'], but got {index.dtype}. Cast it with astype()."
        )
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"'mode' in 'take' should be 'raise', 'wrap', 'clip', but received {mode}.")
    positions: Array = index.array
    if mode == "wrap":
        positions = positions % x.size
    elif mode == "clip":
        positions = positions.clip(0, x.size - 1)
    return getitem(reshape(x, [-1]), positions)  # type: ignore[no-any-return]


def masked_select(x: Tensor, mask: Tensor, name: str | None = None) -> Tensor:
    """The elements where `mask` holds, as a Tensor of one axis.

    Raises:
        ValueError: the mask is not bool, or the shapes do not broadcast.
    """
    if mask.dtype is not bool_:
        raise ValueError(f"(InvalidArgument) masked_select(): the mask must be bool, but is {mask.dtype.name}.")
    shape = broadcast_shape(x.shape, mask.shape)
    return getitem(broadcast_to(x, shape), broadcast_to(mask, shape))  # type: ignore[no-any-return]


def repeat_interleave(x: Tensor, repeats: int | Tensor, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each slice along `axis`, or each element of the flat Tensor, repeated in place.

    Raises:
        ValueError: there are not as many `repeats` as slices.
    """
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    size = x.shape[axis]
    counts = [repeats] * size if isinstance(repeats, int) else as_ints(repeats)
    if len(counts) != size:
        raise ValueError(
            f"(InvalidArgument) repeat_interleave(): {len(counts)} repeats for the {size} slices along axis {axis}."
        )
    return index_select(x, [k for k, n in zip(range(size), counts, strict=True) for _ in range(n)], axis)


@op()
def positions(xp: ModuleType, indices: Array, shape: Sequence[int], at: int, broadcast: bool) -> list[Array]:
    """Per axis an index: `indices` along `at`, and one's own position along the others."""
    if broadcast:
        others = [1 if k == at else n for k, n in enumerate(shape)]
        indices = xp.broadcast_to(indices, broadcast_shape(others, indices.shape))
    return [
        indices if k == at else xp.arange(n).reshape([-1 if j == k else 1 for j in range(len(shape))])
        for k, n in enumerate(indices.shape)
    ]


def _along(name: str, x: Tensor, indices: Tensor, axis: int, broadcast: bool) -> tuple[Any, ...]:
    """The index that `indices` along `axis` and one's own position along the other axes make."""
    if indices.ndim != x.ndim:
        raise ValueError(f"{name}(): `indices` and `arr` must have the same number of dimensions!")
    return tuple(positions(indices, x.shape, normal_axis(axis, x.ndim), broadcast))


def take_along_axis(arr: Tensor, indices: Tensor, axis: int, broadcast: bool = True) -> Tensor:
    """The elements whose position along `axis` is in `indices`, which is broadcast to the other axes of `arr`.

    Raises:
        ValueError: the numbers of dimensions differ.
        IndexError: out of range.
    """
    return getitem(arr, _along("take_along_axis", arr, indices, axis, broadcast))  # type: ignore[no-any-return]


# --------------------------------------------------------------------------- writing
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

    Args:
        reduce: what becomes of the values for one place: the last one counts (assign), their sum (add), product (mul,
            multiply), mean, smallest (amin) or largest (amax).
        include_self: whether what was there takes part.

    Raises:
        ValueError: another `reduce`, or the shapes or dtypes do not fit.
        IndexError: out of range.
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
        return put_reduced(arr, index, values, _EXTREMES[reduce], include_self)  # type: ignore[no-any-return]
    start = arr if include_self else setitem(arr, index, 0)
    total = add_at(start, index, values)
    if reduce == "add":
        return total  # type: ignore[no-any-return]
    counts = add_at(ones_like(arr) if include_self else setitem(ones_like(arr), index, 0), index, ones_like(values))
    return total / counts  # type: ignore[no-any-return]


def scatter(x: Tensor, index: Tensor, updates: Tensor, overwrite: bool = True, name: str | None = None) -> Tensor:
    """A copy of `x` with the rows `index` replaced by `updates`, of several for one row by the last; or by their sum.

    Raises:
        ValueError: the dtypes differ, or the shapes do not fit.
        IndexError: out of range.
    """
    _same_dtype("scatter", x, updates)
    if updates.shape[:1] != [index.size] or updates.shape[1:] != x.shape[1:]:
        raise ValueError(
            f"(InvalidArgument) scatter(): the updates for {index.size} rows of {x.shape[1:]} have shape "
            f"{updates.shape}."
        )
    rows = reshape(index, [-1]) if index.ndim > 1 else index
    if overwrite:
        return setitem(x, rows, updates)
    return add_at(setitem(x, rows, 0), rows, updates)  # type: ignore[no-any-return]


def scatter_nd_add(x: Tensor, index: Tensor, updates: Tensor, name: str | None = None) -> Tensor:
    """A copy of `x` with `updates` added at the coordinates in the last axis of `index`.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the shapes do not fit.
        IndexError: out of range.
    """
    if updates.dtype is not x.dtype:
        raise TypeError(
            f"x and updates must have same data type but x.dtype={x.dtype.name}, updates.dtype={updates.dtype.name}"
        )
    slices = [*index.shape[:-1], *x.shape[index.shape[-1] :]]
    if index.shape[-1] > x.ndim or updates.shape != slices:
        raise ValueError(
            f"(InvalidArgument) scatter_nd_add(): coordinates of shape {index.shape} into {x.shape} need updates of "
            f"shape {slices}, but they have {updates.shape}."
        )
    return add_at(x, _columns(index), updates)  # type: ignore[no-any-return]


def scatter_nd(index: Tensor, updates: Tensor, shape: Ints, name: str | None = None) -> Tensor:
    """`scatter_nd_add` to zeros of `shape`."""
    return scatter_nd_add(zeros(shape, updates.dtype), index, updates)


def index_add(x: Tensor, index: Tensor, axis: int, value: Tensor, alpha: float = 1, name: str | None = None) -> Tensor:
    """A copy of `x` with `alpha` times `value` added to the slices `index` along `axis`."""
    _same_dtype("index_add", x, value)
    return add_at(x, _at(x, index, axis), value if alpha == 1 else value * alpha)  # type: ignore[no-any-return]


def index_put(
    x: Tensor, indices: Sequence[Tensor], value: Tensor, accumulate: bool = False, name: str | None = None
) -> Tensor:
    """A copy of `x` with `value` at, or added at, ``x[indices]``."""
    _same_dtype("index_put", x, value)
    return add_at(x, tuple(indices), value) if accumulate else setitem(x, tuple(indices), value)


def index_fill(x: Tensor, index: Tensor, axis: int, value: Any, name: str | None = None) -> Tensor:
    """A copy of `x` with the slices `index` along `axis` filled with `value`."""
    return setitem(x, _at(x, index, axis), value)


def masked_fill(x: Tensor, mask: Tensor, value: Any, name: str | None = None) -> Tensor:
    """`value`, a number or a 0-d Tensor, where `mask` holds, else `x`.

    Raises:
        ValueError: a Tensor `value` is of another dtype than `x`, or the shapes do not fit.
    """
    if not isinstance(value, Tensor):
        value = full([], value, x.dtype)
    _same_dtype("masked_fill", x, value)
    return where_(mask, value, x)  # type: ignore[no-any-return]
