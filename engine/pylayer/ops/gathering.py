"""Reading at lists of positions, all by way of `getitem`."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from pylayer.array import XP, Array
from pylayer.dtype import bool_
from pylayer.invalid import invalid
from pylayer.op import op
from pylayer.ops.arguments import as_ints, normal_axis
from pylayer.ops.indexing import getitem
from pylayer.ops.shape import broadcast_shape, broadcast_to, reshape
from pylayer.tensor import Tensor


def _at(x: Tensor, index: Any, axis: Any) -> tuple[Any, ...]:
    """The index of the slices `index` along `axis`."""
    return (*(slice(None),) * normal_axis(axis, x.ndim), index)


def _columns(index: Tensor) -> tuple[Any, ...]:
    """The coordinates in the last axis of `index`, one Tensor per axis of what is indexed."""
    return tuple(getitem(index, (..., k)) for k in range(index.shape[-1]))


# --------------------------------------------------------------------------- reading
def index_select(x: Tensor, index: Any, axis: int = 0) -> Tensor:
    """The slices `index` along `axis`."""
    return getitem(x, _at(x, index, axis))


def gather(x: Tensor, index: Tensor, axis: Any = 0) -> Tensor:
    """The slices `index`, a 0-d or 1-d Tensor or one of shape [n, 1], along `axis`."""
    return index_select(x, reshape(index, [-1]) if index.ndim > 1 else index, 0 if axis is None else axis)


def gather_nd(x: Tensor, index: Tensor) -> Tensor:
    """The elements or slices whose coordinates are in the last axis of `index`."""
    return getitem(x, _columns(index))


def index_sample(x: Tensor, index: Tensor) -> Tensor:
    """Per row of a matrix the elements `index`."""
    if x.ndim != 2 or index.ndim != 2 or x.shape[0] != index.shape[0]:
        raise invalid(
            f"index_sample(): needs matrices with as many rows, but the shapes are {x.shape} and {index.shape}"
        )
    return getitem(x, ([[k] for k in range(x.shape[0])], index))


def take(x: Tensor, index: Tensor, mode: str = "raise") -> Tensor:
    """The elements of the flat Tensor at `index`, int32 or int64 (else a TypeError); beyond the ends as `mode` says:
    raise, wrap or clip."""
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
    return getitem(reshape(x, [-1]), positions)


def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements where `mask` holds, as a Tensor of one axis."""
    if mask.dtype is not bool_:
        raise invalid(f"masked_select(): the mask must be bool, but is {mask.dtype.name}")
    shape = broadcast_shape(x.shape, mask.shape)
    return getitem(broadcast_to(x, shape), broadcast_to(mask, shape))


def repeat_interleave(x: Tensor, repeats: int | Tensor, axis: int | None = None) -> Tensor:
    """Each slice along `axis`, or each element of the flat Tensor, repeated in place."""
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    size = x.shape[axis]
    counts = [repeats] * size if isinstance(repeats, int) else as_ints(repeats)
    if len(counts) != size or min(counts, default=0) < 0:
        raise invalid(
            f"repeat_interleave(): the {size} slices along axis {axis} need as many repeats, none negative, "
            f"but got {counts}"
        )
    return index_select(x, Tensor(XP[type(x.array)].asarray(np.repeat(np.arange(size), counts))), axis)


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
    """The elements whose position along `axis` is in `indices`, which is broadcast to the other axes of `arr`."""
    return getitem(arr, _along("take_along_axis", arr, indices, axis, broadcast))
