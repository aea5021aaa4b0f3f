"""Putting Tensors together and taking them apart in other ways: compositions of joins, reshapes and indices."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from pylayer.invalid import invalid
from pylayer.op import composed
from pylayer.ops.arguments import as_ints, normal_axis
from pylayer.ops.complexes import as_complex, as_real
from pylayer.ops.creation import meshgrid, zeros
from pylayer.ops.gathering import take_along_axis
from pylayer.ops.indexing import getitem, nonzero
from pylayer.ops.joining import concat, hstack, stack, tensor_split, vstack
from pylayer.ops.shape import broadcast_shape, flip, moveaxis, reshape, swapaxes, transpose
from pylayer.ops.sorting import sort
from pylayer.tensor import Tensor

cat, concatenate, row_stack, swapdims, take_along_dim = concat, concat, vstack, swapaxes, take_along_axis
view_as_complex, view_as_real, reverse = as_complex, as_real, flip


# --------------------------------------------------------------------------- together
column_stack = composed("column_stack", lambda x: hstack([reshape(t, [t.size, 1]) if t.ndim < 2 else t for t in x]))


def block_diag(inputs: Sequence[Tensor]) -> Tensor:
    """Matrices, or less, along the diagonal of one, zeros elsewhere."""
    blocks = [atleast_2d(t) for t in inputs]
    if any(t.ndim != 2 for t in blocks):
        raise ValueError("Input tensors for block_diag must have at most 2 dimensions.")
    width = sum(t.shape[1] for t in blocks)
    rows, before = [], 0
    for t in blocks:
        left, right = (zeros([t.shape[0], n], t.dtype) for n in (before, width - before - t.shape[1]))
        rows.append(concat([left, t, right], 1))
        before += t.shape[1]
    return concat(rows, 0)


def cartesian_prod(x: Sequence[Tensor]) -> Tensor:
    """All ways to take one element of each 1-d Tensor, a row each."""
    if len(x) == 1:
        return x[0]
    return stack([reshape(t, [-1]) for t in meshgrid(list(x))], 1)


def combinations(x: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to take `r` elements of a 1-d Tensor (else a TypeError) in order, a row each."""
    if x.ndim != 1:
        raise TypeError(f"Expect a 1-D vector, but got x shape {x.shape}")
    if not isinstance(r, int) or r < 0:
        raise ValueError(f"Expect a non-negative int, but got r={r}")
    choose: Callable[..., Any] = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = [list(row) for row in choose(range(x.shape[0]), r)] if r else []
    return getitem(x, rows) if rows else zeros([0, r] if r else [0], x.dtype)


def multiplex(inputs: Sequence[Tensor], index: Tensor) -> Tensor:
    """Row k of the Tensor that `index` names for it."""
    rows = list(range(index.shape[0]))
    return getitem(stack(list(inputs), 0), (reshape(index, [-1]), rows))


def _at_least(ndim: int, shape: Callable[[list[int]], list[int]]) -> Callable[..., Any]:
    """The Tensors with at least `ndim` axes; a list of them, or the one."""

    def at_least(*inputs: Any) -> Any:
        given = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else inputs
        found = [reshape(t, shape(list(t.shape))) if t.ndim < ndim else t for t in given]
        return found[0] if len(inputs) == 1 and isinstance(inputs[0], Tensor) else found

    return composed(f"atleast_{ndim}d", at_least)


atleast_1d = _at_least(1, lambda shape: [1])
atleast_2d = _at_least(2, lambda shape: [1, *shape] if shape else [1, 1])
atleast_3d = _at_least(3, lambda shape: {0: [1, 1, 1], 1: [1, *shape, 1]}.get(len(shape), [*shape, 1]))
dstack = composed("dstack", lambda x: concat([atleast_3d(t) for t in x], 2))


# --------------------------------------------------------------------------- apart
def _split_along(name: str, axis: int, least: int) -> Callable[..., Any]:
    """Taken apart along an axis, the last if it has less; ValueError for less than `least` axes."""

    def split(x: Tensor, num_or_indices: Any) -> list[Tensor]:
        if x.ndim < least:
            raise ValueError(f"The input tensor's dimension must be greater than {least - 1}, but got {x.ndim}")
        return tensor_split(x, num_or_indices, builtins.min(axis, x.ndim - 1))

    return composed(name, split)


hsplit, vsplit, dsplit = _split_along("hsplit", 1, 1), _split_along("vsplit", 0, 2), _split_along("dsplit", 2, 3)


def _slices(x: Tensor, axes: Any, starts: Any, ends: Any, strides: Any = None) -> tuple[Any, ...]:
    """The index from `starts` to `ends` along `axes`, in steps of `strides`."""
    index: list[Any] = [builtins.slice(None)] * x.ndim
    named = as_ints(axes)
    steps = [1] * len(named) if strides is None else as_ints(strides)
    for axis, start, end, step in zip(named, as_ints(starts), as_ints(ends), steps, strict=True):
        before_the_start = step < 0 and end < -x.shape[axis]
        index[normal_axis(axis, x.ndim)] = builtins.slice(start, None if before_the_start else end, step)
    return tuple(index)


slice = composed("slice", lambda input, axes, starts, ends: getitem(input, _slices(input, axes, starts, ends)))
strided_slice = composed(
    "strided_slice", lambda x, axes, starts, ends, strides: getitem(x, _slices(x, axes, starts, ends, strides))
)


def crop(x: Tensor, shape: Any = None, offsets: Any = None) -> Tensor:
    """The part of size `shape` from `offsets` on; -1 stands for what is left."""
    first = [0] * x.ndim if offsets is None else as_ints(offsets)
    sizes = list(x.shape) if shape is None else as_ints(shape)
    last = [n if wanted == -1 else f + wanted for n, f, wanted in zip(x.shape, first, sizes, strict=True)]
    return getitem(x, tuple(builtins.slice(f, e) for f, e in zip(first, last, strict=True)))


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` slices along `dim`, from `start` on."""
    at = normal_axis(dim, input.ndim)
    first = int(start) + (input.shape[at] if int(start) < 0 else 0)
    return getitem(input, (*(builtins.slice(None),) * at, builtins.slice(first, first + length)))


def unfold(x: Tensor, axis: int, size: int, step: int) -> Tensor:
    """All windows of `size` along `axis`, `step` apart, along a new last axis."""
    at = normal_axis(axis, x.ndim)
    windows = [list(range(k, k + size)) for k in range(0, x.shape[at] - size + 1, step)]
    return moveaxis(getitem(x, (*(builtins.slice(None),) * at, windows)), at + 1, -1)


# --------------------------------------------------------------------------- order
def rot90(x: Tensor, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Turned by `k` quarters, from the first of `axes` to the second."""
    if len(axes) != 2 or x.ndim < 2 or normal_axis(axes[0], x.ndim) == normal_axis(axes[1], x.ndim):
        raise ValueError(f"expected total rotation axes == 2 of different axes of the Tensor, but got {list(axes)}.")
    first, second = axes
    if k % 4 == 0:
        return x
    if k % 4 == 2:
        return flip(x, [first, second])
    return swapaxes(flip(x, second), first, second) if k % 4 == 1 else flip(swapaxes(x, first, second), second)


def permute(input: Tensor, *dims: Any) -> Tensor:
    """`transpose` by its other name; the axes may be separate arguments."""
    return transpose(input, list(dims[0] if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else dims))


ravel = composed("ravel", lambda input: reshape(input, [-1]))
view_as = composed("view_as", lambda x, other: reshape(x, other.shape))
msort = composed("msort", lambda input, *, out=None: sort(input, 0))
argwhere = composed("argwhere", lambda input: nonzero(input))


def reduce_as(x: Tensor, target: Tensor) -> Tensor:
    """`x` summed to the shape of `target`, which broadcasts to that of `x`."""
    if broadcast_shape(x.shape, target.shape) != list(x.shape):
        raise invalid(f"reduce_as(): {target.shape} does not broadcast to {x.shape}")
    extra = x.ndim - target.ndim
    axes = [*range(extra), *(k + extra for k, n in enumerate(target.shape) if n == 1 != x.shape[k + extra])]
    return reshape(x.sum(axes, keepdim=True), target.shape) if axes else x
