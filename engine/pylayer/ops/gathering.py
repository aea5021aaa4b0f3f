"""Reading and writing at lists of positions, all by way of `getitem`, `setitem` and `add_at`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pylayer.array import XP, Array
from pylayer.ops.creation import full_like, ones_like, zeros
from pylayer.ops.indexing import add_at, getitem, setitem, where
from pylayer.ops.shape import Ints, as_ints, broadcast_shape, broadcast_to, cast, normal_axis, reshape
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
    """The coordinates in the last axis of `index`, one array per axis of what is indexed."""
    return tuple(index.array[..., k] for k in range(index.shape[-1]))


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
    """The elements or slices whose coordinates are in the last axis of `index`."""
    return getitem(x, _columns(index))  # type: ignore[no-any-return]


def index_sample(x: Tensor, index: Tensor) -> Tensor:
    """Per row of a matrix the elements `index`."""
    return getitem(x, ([[k] for k in range(x.shape[0])], index))  # type: ignore[no-any-return]


def take(x: Tensor, index: Tensor, mode: str = "raise", name: str | None = None) -> Tensor:
    """The elements of the flat Tensor at `index`; beyond the ends as `mode` says: raise, wrap or clip.

    Raises:
        ValueError: another mode.
        IndexError: out of range, with ``raise``.
    """
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"'mode' in 'take' should be 'raise', 'wrap', 'clip', but received {mode}.")
    positions: Array = index.array
    if mode == "wrap":
        positions = positions % x.size
    elif mode == "clip":
        positions = positions.clip(0, x.size - 1)
    return getitem(reshape(x, [-1]), positions)  # type: ignore[no-any-return]


def masked_select(x: Tensor, mask: Tensor, name: str | None = None) -> Tensor:
    """The elements where `mask` holds, as a Tensor of one axis."""
    shape = broadcast_shape(x.shape, mask.shape)
    return getitem(broadcast_to(x, shape), broadcast_to(mask, shape))  # type: ignore[no-any-return]


def repeat_interleave(x: Tensor, repeats: int | Tensor, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each slice along `axis`, or each element of the flat Tensor, repeated in place."""
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    size = x.shape[axis]
    counts = as_ints(repeats)
    counts = counts * size if len(counts) == 1 else counts
    return index_select(x, [k for k, n in zip(range(size), counts, strict=True) for _ in range(n)], axis)


def _along(name: str, x: Tensor, indices: Tensor, axis: int, broadcast: bool) -> tuple[Any, ...]:
    """The index that `indices` along `axis` and one's own position along the other axes make."""
    if indices.ndim != x.ndim:
        raise ValueError(f"{name}(): `indices` and `arr` must have the same number of dimensions!")
    at = normal_axis(axis, x.ndim)
    array, xp = indices.array, XP[type(indices.array)]
    if broadcast:
        others = [1 if k == at else n for k, n in enumerate(x.shape)]
        array = xp.broadcast_to(array, broadcast_shape(others, array.shape))
    grid = [
        array if k == at else xp.arange(n).reshape([-1 if j == k else 1 for j in range(x.ndim)])
        for k, n in enumerate(array.shape)
    ]
    return tuple(grid)


def take_along_axis(arr: Tensor, indices: Tensor, axis: int, broadcast: bool = True) -> Tensor:
    """The elements whose position along `axis` is in `indices`, which is broadcast to the other axes of `arr`.

    Raises:
        ValueError: the numbers of dimensions differ.
        IndexError: out of range.
    """
    return getitem(arr, _along("take_along_axis", arr, indices, axis, broadcast))  # type: ignore[no-any-return]


# --------------------------------------------------------------------------- writing
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
        reduce: what becomes of the values for one place: the last one counts (assign), their sum (add) or their mean.
        include_self: whether what was there takes part.

    Raises:
        ValueError: another `reduce`, or the shapes or dtypes do not fit.
        IndexError: out of range.
    """
    if reduce not in ("assign", "add", "mean"):
        raise ValueError(
            f"put_along_axis(): the bundled engine's `reduce` is 'assign', 'add' or 'mean', but got {reduce!r}."
        )
    _same_dtype("put_along_axis", arr, values)
    index = _along("put_along_axis", arr, indices, axis, broadcast)
    values = values if isinstance(values, Tensor) else full_like(arr[index], values)
    if reduce == "assign":
        return setitem(arr, index, values)
    values = broadcast_to(values, index[normal_axis(axis, arr.ndim)].shape)
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
    rows = reshape(index, [-1]) if index.ndim > 1 else index
    if overwrite:
        return setitem(x, rows, updates)
    return add_at(setitem(x, rows, 0), rows, updates)  # type: ignore[no-any-return]


def scatter_nd_add(x: Tensor, index: Tensor, updates: Tensor, name: str | None = None) -> Tensor:
    """A copy of `x` with `updates` added at the coordinates in the last axis of `index`.

    Raises:
        ValueError: the dtypes differ, or the shapes do not fit.
        IndexError: out of range.
    """
    _same_dtype("scatter_nd_add", x, updates)
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
    """`value`, a number or a 0-d Tensor, where `mask` holds, else `x`."""
    value = cast(value, x.dtype) if isinstance(value, Tensor) and value.dtype is not x.dtype else value
    return where(mask, value, x)  # type: ignore[no-any-return]
