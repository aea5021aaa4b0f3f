"""Diagonals, and views by strides."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from pylayer.array import XP, Array
from pylayer.invalid import invalid
from pylayer.op import composed, op
from pylayer.ops.arguments import AxisError, as_ints, normal_axis
from pylayer.ops.creation import full
from pylayer.ops.indexing import getitem, setitem, where_
from pylayer.ops.reduction import sum
from pylayer.ops.shape import moveaxis, reshape
from pylayer.tensor import Tensor


def _diagonal(offset: int, rows: int, columns: int) -> tuple[Any, ...]:
    """The index of a diagonal of the last two axes."""
    first = max(-offset, 0)
    count = max(0, min(rows - first, columns - max(offset, 0)))
    return ..., range(first, first + count), range(first + offset, first + offset + count)


def diagonal(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """A diagonal of two axes, as the last axis of a copy."""
    moved = moveaxis(x, [axis1, axis2], [-2, -1])
    return getitem(moved, _diagonal(offset, *moved.shape[-2:]))


def trace(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of a diagonal of two axes; an AxisError if there are less."""
    if x.ndim < 2:
        raise AxisError(f"(OutOfRange) trace(): the Tensor needs at least 2 dimensions, but has shape {x.shape}.")
    return sum(diagonal(x, offset, axis1, axis2), -1)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last axis as a diagonal of two axes, zeros elsewhere."""
    if normal_axis(dim1, input.ndim + 1) == normal_axis(dim2, input.ndim + 1):
        raise invalid(f"diag_embed(): diagonal dimensions should not be identical, {dim1} vs {dim2}")
    size = input.shape[-1] + abs(offset)
    zeros = full([*input.shape[:-1], size, size], 0, input.dtype)
    embedded = setitem(zeros, _diagonal(offset, size, size), input)
    return moveaxis(embedded, [-2, -1], [normal_axis(dim1, zeros.ndim), normal_axis(dim2, zeros.ndim)])


def diag(x: Tensor, offset: int = 0, padding_value: Any = 0) -> Tensor:
    """The diagonal of a matrix, or a matrix with the given diagonal and `padding_value` elsewhere."""
    if x.ndim == 2:
        return diagonal(x, offset)
    if not x.ndim:
        x = reshape(x, [1])
    if x.ndim != 1:
        raise invalid(f"diag(): the input must be at most 2-D, but has shape {x.shape}")
    size = x.size + abs(offset)
    return setitem(full([size, size], padding_value, x.dtype), _diagonal(offset, size, size), x)


diagflat = composed("diagflat", lambda x, offset=0: diag(reshape(x, [-1]), offset))


# --------------------------------------------------------------------------- copies with a diagonal written anew
def fill_diagonal_tensor(x: Tensor, y: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of `x` with `y` along a diagonal of two axes."""
    moved = moveaxis(x, [dim1, dim2], [-2, -1])
    written = setitem(moved, _diagonal(offset, *moved.shape[-2:]), y)
    return moveaxis(written, [-2, -1], [normal_axis(dim1, x.ndim), normal_axis(dim2, x.ndim)])


def fill_diagonal(x: Tensor, value: float, offset: int = 0, wrap: bool = False) -> Tensor:
    """A copy of `x`, equally long on all its axes or a matrix, with the number `value` along the diagonal of all of
    them.

    Of a matrix, `offset` says which diagonal: those above the main one are positive. With `wrap` it begins again below,
    a row further down, where there are more rows than columns.
    """
    sizes = x.shape
    if len(sizes) < 2 or (len(sizes) > 2 and len(set(sizes)) > 1):
        raise invalid(f"fill_diagonal_(): x should be a matrix, or equally long on all axes, but is {sizes}")
    xp = XP[type(x.array)]
    width = sizes[1]
    step = builtins.sum(math.prod(sizes[k + 1 :]) for k in range(len(sizes)))
    last = x.size if wrap or len(sizes) > 2 else builtins.min(x.size, width * width)
    places = [i + offset for i in range(0, last, step) if len(sizes) > 2 or 0 <= i % width + offset < width]
    mask = xp.zeros(x.size, bool)
    mask[places] = True
    return where_(Tensor(mask.reshape(sizes)), float(value), x)


diagonal_scatter = composed(
    "diagonal_scatter", lambda x, y, offset=0, axis1=0, axis2=1: fill_diagonal_tensor(x, y, offset, axis1, axis2)
)


# --------------------------------------------------------------------------- views by strides
def _strided(xp: ModuleType, x: Array, shape: Sequence[int], stride: Sequence[int], offset: int) -> Array:
    """The view of contiguous memory by `shape` and `stride`, both in elements."""
    flat = x.reshape(-1)
    last = offset + builtins.sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    if all(shape) and not (offset >= 0 and all(s >= 0 for s in stride) and last < flat.size):
        raise ValueError(
            f"shape {list(shape)}, stride {list(stride)} and offset {offset} reach beyond the {flat.size} elements"
        )
    strides = [s * x.dtype.itemsize for s in stride]
    return xp.lib.stride_tricks.as_strided(flat[offset:], shape, strides)


@op(x=lambda g, F, x_shape, shape, stride, offset: F.as_strided_adjoint(g, x_shape, shape, stride, offset))
def as_strided(xp: ModuleType, x: Array, shape: Sequence[int], stride: Sequence[int], offset: int = 0) -> Array:
    """The elements of a contiguous Tensor at `offset` plus multiples of `stride`, both in elements. Shares memory."""
    return _strided(xp, xp.ascontiguousarray(x), as_ints(shape), as_ints(stride), offset)


@op(g=lambda h, F, shape, stride, offset: F.as_strided(h, shape, stride, offset))
def as_strided_adjoint(
    xp: ModuleType, g: Array, x_shape: Sequence[int], shape: Sequence[int], stride: Sequence[int], offset: int
) -> Array:
    """Zeros of `x_shape` with each element of `g` added where `as_strided` took it from."""
    out = xp.zeros(x_shape, g.dtype)
    positions = _strided(xp, xp.arange(out.size), as_ints(shape), as_ints(stride), offset)
    xp.add.at(out.reshape(-1), positions, g)
    return out
