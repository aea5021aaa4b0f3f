"""Sorting and searching. Positions have no gradient; values do, through `take_along_axis`."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any, NamedTuple

from pylayer.ops.arguments import normal_axis, one_of, require
from pylayer.ops.elementwise import isnan
from pylayer.ops.indexing import along, where_
from pylayer.ops.positions import take_along_axis
from pylayer.ops.shape import cast, clone, reshape, squeeze
from pylayer.tape.op import Operation, composed, op
from pylayer.tensor.array import XP, Array
from pylayer.tensor.dtype import as_dtype
from pylayer.tensor.tensor import Tensor
from pylayer.watch import watchers


# ---------------------------------------------------------------------------- searches in a Tensor
def _no_gradient(g: Any, F: Any, x_shape: Any, x_dtype: Any) -> Any:
    zero = F.cast(F.sum(g) * 0, x_dtype)
    return F.broadcast_view(F.reshape(zero, [1] * len(x_shape)), list(x_shape))


@op(x=_no_gradient)
def flag_where_found(xp: ModuleType, x: Array, result: Array) -> Array:
    """`result`."""
    return result


def mark_as_dependent(x: Tensor, result: Tensor) -> Tensor:
    """Mark `result` as needing a gradient if `x` does, as in Paddle, although that gradient
    is 0.
    """
    return result if x._stop_gradient else flag_where_found(x, result)


# --------------------------------------------------------------------------- positions
def index_dtype(dtype: Any) -> Any:
    """The NumPy dtype of positions: int32 or int64."""
    wanted = as_dtype(dtype)
    one_of("the dtype of positions", wanted.name, "int32", "int64")
    return wanted.numpy


def _position(name: str) -> Operation:
    """The position of an extreme element along `axis`, or in the flattened Tensor; the first of
    several.

    NaN is never chosen first, as in Paddle: it counts as the number that is least likely to be
    chosen.
    """
    last = -math.inf if name == "argmax" else math.inf

    def forward(
        xp: ModuleType,
        x: Array,
        axis: int | None = None,
        keepdim: bool = False,
        dtype: Any = "int64",
    ) -> Array:
        if x.dtype.kind not in "iub":
            x = xp.where(x == x, x, xp.asarray(last, x.dtype))
        return getattr(xp, name)(x, axis, keepdims=keepdim).astype(index_dtype(dtype))

    return op()(composed(name, forward))


argmax, argmin = _position("argmax"), _position("argmin")


@op()
def argsort_(xp: ModuleType, x: Array, axis: int, descending: bool) -> Array:
    """The positions that sort `x` along `axis`; equal elements keep their order in both
    directions.
    """
    if not x.ndim:
        normal_axis(axis, 1)
        return xp.zeros((), "int64")
    if not descending:
        return xp.argsort(x, axis, kind="stable")
    # The reverse of a stable sort of the reverse: the largest first, equals in their order.
    reversed_order = xp.argsort(xp.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - xp.flip(reversed_order, axis)


argsort = composed(
    "argsort",
    lambda x, axis=-1, descending=False, stable=False: mark_as_dependent(
        x, argsort_(x, axis, descending)
    ),
)


def sort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The elements in order along `axis`."""
    return take_along_axis(x, argsort_(x, axis, descending), axis) if x.ndim else clone(x)


msort = composed("msort", lambda input, *, out=None: sort(input, 0))


class TopK(NamedTuple):
    """The result of `topk` and `kthvalue`."""

    values: Tensor
    indices: Tensor


def topk(
    x: Tensor, k: Any, axis: int | None = None, largest: bool = True, sorted: bool = True
) -> TopK:
    """The `k` largest (or smallest) elements along `axis`, the last unless given, in order, and
    their positions.
    """
    if not x.ndim and int(k) > 0:
        x, axis = reshape(x, [1]), normal_axis(axis or 0, 1)
        return TopK(*(squeeze(t, 0) for t in topk(x, 1, axis)))
    axis = normal_axis(-1 if axis is None else axis, x.ndim)
    text = f"topk(): k must be from 1 to {x.shape[axis]}, the size of axis {axis}, not {k}"
    require(1 <= int(k) <= x.shape[axis], text)
    order = argsort_(x, axis, largest)
    indices = clone(along(order, axis, slice(int(k))))
    return TopK(take_along_axis(x, indices, axis), mark_as_dependent(x, indices))


def kthvalue(x: Tensor, k: int, axis: int | None = None, keepdim: bool = False) -> TopK:
    """The `k`-th smallest element along `axis`, the last unless given, and its position."""
    if not x.ndim and k == 1:
        return topk(x, 1, axis)
    axis = normal_axis(-1 if axis is None else axis, x.ndim)
    last = [along(t, axis, slice(k - 1, k)) for t in topk(x, k, axis, largest=False)]
    return TopK(*(last if keepdim else [squeeze(t, axis) for t in last]))


def median(x: Tensor, axis: int | None = None, keepdim: bool = False, mode: str = "avg") -> Any:
    """The middle element, or the mean of both; with mode ``min`` the smaller, and its position if
    there is an axis.
    """
    one_of("median(): `mode`", mode, "avg", "min")
    if axis is None:
        flat = median(reshape(x, [-1]), 0, True, mode)
        value = flat[0] if mode == "min" else flat
        return reshape(value, [1] * x.ndim if keepdim else [])
    if not x.ndim:
        normal_axis(axis, 1)
        result = median(reshape(x, [1]), 0, False, mode)
        return result if mode == "avg" else tuple(result)
    axis = normal_axis(axis, x.ndim)
    size = x.shape[axis]
    lower = kthvalue(x, (size + 1) // 2, axis, True)
    if x.dtype.rank > 1:  # the first NaN of a row is its median
        first = argmax(cast(isnan(x), "int64"), axis, True)
        lost = isnan(take_along_axis(x, first, axis))
        lower = TopK(where_(lost, math.nan, lower.values), where_(lost, first, lower.indices))
    if mode == "min":
        return tuple(lower if keepdim else [squeeze(t, axis) for t in lower])
    middle = lower.values
    if size % 2 == 0:
        middle = (middle + kthvalue(x, size // 2 + 1, axis, True).values) / 2
    if middle.dtype.name != "float64":
        middle = cast(middle, "float32")
    return middle if keepdim else squeeze(middle, axis)


@op(inputs=("sorted_sequence", "values"))
def searchsorted(
    xp: ModuleType,
    sorted_sequence: Array,
    values: Array,
    out_int32: bool = False,
    right: bool = False,
) -> Array:
    """Insertion positions of `values` in a sequence sorted along its last axis: before equal
    elements, or after them if `right`.
    """
    side, dtype = "right" if right else "left", "int32" if out_int32 else "int64"
    if sorted_sequence.ndim == 1:
        return xp.searchsorted(sorted_sequence, values, side=side).astype(dtype)
    text = "all axes of the sorted rows and of the values but the last must be the same"
    require(sorted_sequence.shape[:-1] == values.shape[:-1], text)
    rows = (array.reshape(-1, array.shape[-1]) for array in (sorted_sequence, values))
    positions = [xp.searchsorted(row, wanted, side=side) for row, wanted in zip(*rows, strict=True)]
    return xp.stack(positions).reshape(values.shape).astype(dtype)


def bucketize(
    x: Tensor, sorted_sequence: Tensor, out_int32: bool = False, right: bool = False
) -> Tensor:
    """`searchsorted` of a sequence of one axis, with the arguments exchanged."""
    text = "bucketize(): sorted_sequence must be 1 dimension"
    require(sorted_sequence.ndim == 1, text, sorted_sequence)
    return searchsorted(sorted_sequence, x, out_int32, right)


def unique(
    x: Tensor,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    dtype: Any = "int64",
    sorted: bool = True,
) -> Any:
    """The distinct elements (or slices along `axis`) in order, and the requested positions and
    counts, as Tensors of `dtype`.
    """
    xp = XP[type(x.array)]
    requested = (return_index, return_inverse, return_counts)
    watchers.get().observer.left(x, "unique()")
    results = xp.unique(x.array, *requested, axis=axis)
    if not any(requested):
        return Tensor(results)
    return (Tensor(results[0]), *(cast(Tensor(extra.reshape(-1)), dtype) for extra in results[1:]))


@op(inputs=("x", "test_x"))
def isin(
    xp: ModuleType, x: Array, test_x: Array, assume_unique: bool = False, invert: bool = False
) -> Array:
    """Whether elements of `x` are in `test_x` (or are not, with `invert`)."""
    return xp.isin(x, test_x, invert=invert)


@op()
def one_hot(xp: ModuleType, x: Array, num_classes: Any = -1) -> Array:
    """Ones at the classes in `x` along a new last axis of size `num_classes`, by default the
    largest class plus one; float32.
    """
    least, largest = (x.min().item(), x.max().item()) if x.size else (0, -1)
    classes = largest + 1 if int(num_classes) == -1 else int(num_classes)
    text = "Illegal index value, Input(input) value should be at least 0 and less than Input(depth)"
    text = f"{text}, but the input runs from {least} to {largest} and the depth is {classes}"
    require(least >= 0 and largest < classes, text)
    return (x[..., None] == xp.arange(classes)).astype("float32")
