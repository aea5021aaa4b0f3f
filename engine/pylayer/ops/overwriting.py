"""Copies with a part written anew: slices, diagonals, masked elements, sums at positions."""

from __future__ import annotations

import builtins
import math
from typing import Any

from pylayer.array import XP
from pylayer.invalid import invalid
from pylayer.op import composed
from pylayer.ops.arguments import normal_axis
from pylayer.ops.diagonal import _diagonal, diag
from pylayer.ops.indexing import getitem, setitem, where_
from pylayer.ops.rearranging import _slices
from pylayer.ops.scattering import put_along_axis
from pylayer.ops.shape import broadcast_shape, broadcast_to, moveaxis, reshape
from pylayer.tensor import Tensor


def select_scatter(x: Tensor, values: Tensor, axis: int, index: int) -> Tensor:
    """A copy of `x` with `values` as slice `index` along `axis`.

    Raises:
        RuntimeError: the shape of `values` is another.
    """
    at = normal_axis(axis, x.ndim)
    expected = [n for k, n in enumerate(x.shape) if k != at]
    if list(values.shape) != expected:
        raise RuntimeError(
            f"expected values to have shape {expected}, but got {list(values.shape)}: x.shape is {list(x.shape)}"
        )
    return setitem(x, (*(builtins.slice(None),) * at, index), values)


def slice_scatter(x: Tensor, value: Tensor, axes: Any, starts: Any, ends: Any, strides: Any) -> Tensor:
    """A copy of `x` with `value` at the places that `strided_slice` reads."""
    return setitem(x, _slices(x, axes, starts, ends, strides), value)


def fill_diagonal_tensor(x: Tensor, y: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of `x` with `y` along a diagonal of two axes."""
    moved = moveaxis(x, [dim1, dim2], [-2, -1])
    written = setitem(moved, _diagonal(offset, *moved.shape[-2:]), y)
    return moveaxis(written, [-2, -1], [normal_axis(dim1, x.ndim), normal_axis(dim2, x.ndim)])


def fill_diagonal(x: Tensor, value: float, offset: int = 0, wrap: bool = False) -> Tensor:
    """A copy of `x` with the number `value` along the diagonal of all axes.

    Args:
        offset: of a matrix, which diagonal: those above the main one are positive.
        wrap: of a matrix with more rows than columns, begin again below, a row further down.

    Raises:
        ValueError: there is one axis, or there are more than two that are not equally long.
    """
    sizes = x.shape
    if len(sizes) < 2 or (len(sizes) > 2 and len(set(sizes)) > 1):
        raise invalid("fill_diagonal_", f"x should be a matrix, or equally long on all axes, but is {sizes}")
    xp = XP[type(x.array)]
    width = sizes[1]
    step = builtins.sum(math.prod(sizes[k + 1 :]) for k in range(len(sizes)))
    last = x.size if wrap or len(sizes) > 2 else builtins.min(x.size, width * width)
    places = [i + offset for i in range(0, last, step) if len(sizes) > 2 or 0 <= i % width + offset < width]
    mask = xp.zeros(x.size, bool)
    mask[places] = True
    return where_(Tensor(mask.reshape(sizes)), float(value), x)


def diagonal_scatter(x: Tensor, y: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """`fill_diagonal_tensor` by its other name."""
    return fill_diagonal_tensor(x, y, offset, axis1, axis2)


diagflat = composed("diagflat", lambda x, offset=0: diag(reshape(x, [-1]), offset))


def masked_scatter(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """A copy of `x` with the elements of `value`, in order, where `mask` holds.

    Raises:
        AssertionError: `value` has too few or another dtype, the mask is not bool, or does not broadcast to `x`.
    """
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
    return setitem(x, mask, getitem(reshape(value, [-1]), builtins.slice(count)))


_REDUCTIONS = {"sum": "add", "prod": "mul", "mean": "mean", "amin": "amin", "amax": "amax"}


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`put_along_axis` without broadcasting, and with `reduce` one of sum, prod, mean, amin and amax.

    Raises:
        ValueError: another `reduce`.
    """
    if reduce not in _REDUCTIONS:
        raise ValueError(f"scatter_reduce(): reduce is one of {', '.join(_REDUCTIONS)}, but got {reduce!r}.")
    return put_along_axis(input, index, src, dim, _REDUCTIONS[reduce], include_self, False)


scatter_add = composed("scatter_add", lambda input, dim, index, src: scatter_reduce(input, dim, index, src, "sum"))
