"""Operations that change the shape, order or type of a Tensor's elements, not their values.

Results of an operation that is a `view` share memory with their input where the layout allows it,
as in Paddle; all others are copies.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from pylayer.ops.arguments import Ints, accept_separate_ints, as_ints, normal_axis, require
from pylayer.tape.op import Operation, composed, op, unary
from pylayer.tape.vjp import OPS
from pylayer.tensor.array import XP, Array, owner
from pylayer.tensor.dtype import DType, as_dtype
from pylayer.tensor.size import Size
from pylayer.tensor.tensor import Tensor
from pylayer.watch import watchers
from pylayer.watch.casts import leaves_out


# --------------------------------------------------------------------------- dtype
@op(x=lambda g, F, x_dtype: F.cast(g, x_dtype))
def cast(xp: ModuleType, x: Array, dtype: Any) -> Array:
    """A copy in another dtype. Gradients pass through casts to integers too, as in Paddle (observed
    rule 75).
    """
    wanted = as_dtype(dtype).numpy
    if x.dtype.kind == "c" and wanted.kind != "c":
        x = x.real
    return x.copy() if leaves_out(x.dtype, wanted) else x.astype(wanted)


def astype(x: Tensor, dtype: Any) -> Tensor:
    """`x` in another dtype; `x` itself if it already has that dtype."""
    return x if x.dtype is as_dtype(dtype) else cast(x, dtype)


type_as = composed("type_as", lambda x, tensor: astype(x, tensor.dtype))


# --------------------------------------------------------------------------- shape
@op(view=True, x=lambda g, F, x_shape: F.reshape(g, x_shape))
def reshape_(xp: ModuleType, x: Array, shape: Ints) -> Array:
    """Reshape the elements: -1 means the remaining size, 0 the size that `x` has on that
    axis.
    """
    sizes = [
        x.shape[k] if n == 0 and x.size and k < x.ndim else n for k, n in enumerate(as_ints(shape))
    ]
    return x.reshape(sizes)


@accept_separate_ints
def reshape(x: Tensor, shape: Ints, name: str | None = None) -> Tensor:
    """Reshape like `reshape_`, sharing memory; return `x` itself if it already has that shape. A
    TypeError if a size is not an integer.
    """
    if isinstance(shape, (list, tuple)) and isinstance(x, Tensor) and x.array.shape == tuple(shape):
        return x
    reshaped = reshape_(x, shape)
    return reshaped if x.ndim else clone(reshaped)  # Paddle copies a 0-d Tensor


def whole_order(perm: Sequence[Any], ndim: int) -> tuple[int, ...]:
    """A permutation of all axes, completed if only the first ones are given."""
    order = tuple(as_ints(perm))
    first = sorted(order) == list(range(len(order)))
    return (*order, *range(len(order), ndim)) if first else order


def _inverse(perm: Sequence[Any], ndim: int) -> list[int]:
    order = [normal_axis(p, ndim) for p in whole_order(perm, ndim)]
    return sorted(range(ndim), key=order.__getitem__)


@op(view=True, view_gradient=True, x=lambda g, F, perm: F.transpose(g, _inverse(perm, g.ndim)))
def transpose_(xp: ModuleType, x: Array, perm: Sequence[Any]) -> Array:
    """`x` with its axes in the order `perm`; if it lists only the first axes, the others stay where
    they are, as in Paddle.
    """
    return xp.transpose(x, whole_order(perm, x.ndim))


def transpose(x: Tensor, perm: Any, dim1: Any = None, name: Any = None) -> Tensor:
    """`x` with its axes in the order `perm`, see `transpose_`; or with two axes exchanged:
    ``x.transpose(0, 1)``.
    """
    if dim1 is None or not isinstance(perm, int):
        return transpose_(x, perm)
    order = list(range(x.ndim))
    order[perm], order[dim1] = order[dim1], order[perm]
    return transpose_(x, order)


@op(view=True, x=lambda g: g)
def broadcast_view(xp: ModuleType, x: Array, shape: Sequence[int]) -> Array:
    """Broadcast an array without a copy: the cotangent of a reduction, which is never written
    to.
    """
    return xp.broadcast_to(x, tuple(shape))


@accept_separate_ints
@op(x=lambda g: g)
def broadcast_to(xp: ModuleType, x: Array, shape: Ints) -> Array:
    """`x` repeated along new leading axes and axes of size 1; -1 keeps a size. A copy, so that it
    may be written to.
    """
    sizes = as_ints(shape)
    extra = len(sizes) - x.ndim
    target = [x.shape[k - extra] if n == -1 and k >= extra else n for k, n in enumerate(sizes)]
    return xp.broadcast_to(x, tuple(target)).copy()


# A recorded gradient is handed to users, who may write to it.
OPS["broadcast_view"].function = broadcast_to
expand = composed("expand", lambda x, *shape, **kwargs: broadcast_to(x, *shape, **kwargs))
expand_as = composed("expand_as", lambda x, y: broadcast_to(x, y.shape))


def broadcast_shape(x_shape: Sequence[int], y_shape: Sequence[int]) -> list[int]:
    """The shape to which two shapes broadcast."""
    pairs = list(itertools.zip_longest(reversed(x_shape), reversed(y_shape), fillvalue=1))
    fits = all(n == m or 1 in (n, m) for n, m in pairs)
    require(fits, f"Broadcast dimension mismatch: {list(x_shape)} and {list(y_shape)}")
    return [m if n == 1 else n for n, m in reversed(pairs)]


def broadcast_tensors(input: Sequence[Tensor]) -> list[Tensor]:
    """All Tensors expanded to their common shape."""
    shape: list[int] = functools.reduce(broadcast_shape, (t.shape for t in input), Size())
    return [broadcast_to(t, shape) for t in input]


@op(view=True)
def view_dtype(xp: ModuleType, x: Array, dtype: Any) -> Array:
    """The bytes of `x` as numbers of another dtype; the last axis shrinks or grows accordingly."""
    return x.view(as_dtype(dtype).numpy)


def view(x: Tensor, shape_or_dtype: Any) -> Tensor:
    """`reshape`; or, given a dtype, the same memory read as numbers of that dtype, through which no
    gradient flows.
    """
    if isinstance(shape_or_dtype, (str, DType)):
        if as_dtype(shape_or_dtype) is x.dtype:
            return x
        # Numbers that are read from the same bits still depend on the values.
        watchers.get().observer.left(x, f".view('{as_dtype(shape_or_dtype).name}')")
        return view_dtype(x, shape_or_dtype)
    viewed = reshape(x, shape_or_dtype)
    computed = isinstance(x, Tensor) and isinstance(viewed, Tensor)  # not for Variables
    shares = not computed or owner(viewed.array) is owner(x.array)
    require(shares, "view(): The Tensor can not be viewed, please call reshape")
    return viewed


def squeeze(x: Tensor, axis: Ints | None = None) -> Tensor:
    """`x` without the axes of size 1, or, given `axis`, without those of size 1 among them."""
    named = [] if axis is None else as_ints(axis)
    axes = [normal_axis(a, x.ndim or 1) for a in named] if named else range(x.ndim)
    return reshape_(x, [n for k, n in enumerate(x.shape) if n != 1 or k not in axes])


def unsqueeze(x: Tensor, axis: Ints) -> Tensor:
    """`x` with new axes of size 1; each position in `axis` counts the axes inserted before it."""
    shape = list(x.shape)
    for a in as_ints(axis):
        shape.insert(normal_axis(a, len(shape) + 1), 1)
    return reshape_(x, shape)


def flatten(x: Tensor, start_axis: int = 0, stop_axis: int = -1) -> Tensor:
    """`x` with the axes from `start_axis` to `stop_axis`, inclusive, merged into one. A 0-d Tensor
    becomes one of shape [1].
    """
    shape = list(x.shape) or [1]
    first, last = normal_axis(start_axis, len(shape)), normal_axis(stop_axis, len(shape))
    if not x.ndim:
        return reshape(x, shape)
    text = f"flatten(): start_axis {start_axis} comes after stop_axis {stop_axis}"
    require(first <= last, text)
    return reshape_(x, [*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]])


def unflatten(x: Tensor, axis: int, shape: Ints) -> Tensor:
    """`x` with one axis split into several."""
    axis = normal_axis(axis, x.ndim)
    return reshape(x, [*x.shape[:axis], *as_ints(shape), *x.shape[axis + 1 :]])


def moveaxis(x: Tensor, source: Ints, destination: Ints) -> Tensor:
    """`x` with the axes `source` moved to `destination` (an AssertionError unless they are equally
    many), the others in order.
    """
    sources = [normal_axis(k, x.ndim) for k in as_ints(source)]
    destinations = [normal_axis(k, x.ndim) for k in as_ints(destination)]
    text = "'source' must have the same number of axes as 'destination'"
    require(len(sources) == len(destinations), text, error=AssertionError)
    order = [k for k in range(x.ndim) if k not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return transpose_(x, order)


def swapaxes(x: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two axes exchanged."""
    return transpose(x, normal_axis(axis0, x.ndim), normal_axis(axis1, x.ndim))


# --------------------------------------------------------------------------- copies
clone = unary("clone", lambda g: g, lambda xp: lambda x: x.copy())


def strides(x: Tensor) -> list[int]:
    """The strides along the axes, in elements."""
    array, byte_strides = x.array, x.array.strides
    if not array.size:
        return list(array.shape)  # as in Paddle
    if array.base is None and array.flags.c_contiguous:
        return _dense_strides(array.shape)
    steps: list[int] = []
    reach = 1  # the stride that covers all following axes
    for size, stride in zip(reversed(array.shape), reversed(byte_strides), strict=True):
        step = stride // array.dtype.itemsize
        steps.append(step or reach if size == 1 else step)  # NumPy gives such an axis any stride
        reach = size * steps[-1]
    return steps[::-1]


def _dense_strides(shape: Sequence[int]) -> list[int]:
    """The strides of a newly made Tensor."""
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


def densely(array: Array) -> Array:
    """A contiguous view of the memory of an array from its first element on, with the same number
    of elements.
    """
    if not array.size:
        return array
    byte_strides = [step * array.dtype.itemsize for step in _dense_strides(array.shape)]
    view = XP[type(array)].lib.stride_tricks.as_strided
    return view(array, array.shape, byte_strides)


def is_contiguous(x: Tensor) -> bool:
    """Whether the strides are those of a newly made Tensor; as in Paddle, axes of size 1 count
    too.
    """
    steps = strides(x)
    return 0 in x.shape or steps == _dense_strides(x.shape)


def contiguous(x: Tensor) -> Tensor:
    """`x` itself, moved to new memory first unless it is contiguous, as in Paddle."""
    if not is_contiguous(x):
        x.array = x.array.copy()
    return x


@op(x=lambda g, F, x_shape, repeat_times: _sum_repeats(g, F, x_shape, as_ints(repeat_times)))
def tile(xp: ModuleType, x: Array, repeat_times: Ints) -> Array:
    """`x` repeated along each axis; the shorter of shape and `repeat_times` is padded by leading
    ones.
    """
    return xp.tile(x, tuple(as_ints(repeat_times)))


def flat_or_along(x: Tensor, axis: int | None) -> tuple[Tensor, int]:
    """A Tensor and one of its axes, counted from the front; for None, the flattened Tensor and its
    only axis.
    """
    return (reshape(x, [-1]), 0) if axis is None else (x, normal_axis(axis, x.ndim))


def _sum_repeats(g: Any, F: Any, shape: Sequence[int], times: Sequence[int]) -> Any:
    times = [1] * (len(shape) - len(times)) + list(times)
    sizes = [n // r if r else 0 for n, r in zip(g.shape, times, strict=True)]
    split_shape = [n for pair in zip(times, sizes, strict=True) for n in pair]
    return F.sum(F.reshape(g, split_shape), [*range(0, len(split_shape), 2)]) if split_shape else g


@op(x=lambda g, F, axis: F.flip(g, axis))
def flip(xp: ModuleType, x: Array, axis: Ints) -> Array:
    """`x` reversed along `axis`."""
    return xp.flip(x, tuple(as_ints(axis))).copy()


@op(x=lambda g, F, shifts, axis: F.roll(g, [-n for n in as_ints(shifts)], axis))
def roll(xp: ModuleType, x: Array, shifts: Ints, axis: Ints | None = None) -> Array:
    """`x` rolled by `shifts` along `axis`; elements beyond the end reappear at the front. Without
    axes, the Tensor is flattened first.
    """
    steps = as_ints(shifts)
    axes = None if axis is None else as_ints(axis)
    text = f"the shifts {steps} and the axes {axes} must be equally many"
    require(len(steps) == len(axes or [0]), text)
    return xp.roll(x, steps if axes else steps[0], axes)


def _triangle(name: str) -> Operation:
    """Keep one side of the given diagonal, and set the other to zero."""

    def forward(xp: ModuleType, x: Array, diagonal: int = 0) -> Array:
        # NumPy would turn fewer axes into a matrix
        require(x.ndim > 1, f"Input(X)'s rank must be at least 2 in TrilTriuOp, but is {x.ndim}")
        return getattr(xp, name)(x, diagonal)

    return op(x=lambda g, F, diagonal: getattr(F, name)(g, diagonal))(composed(name, forward))


tril, triu = _triangle("tril"), _triangle("triu")


# --------------------------------------------------------------------------- views by strides
def _view_by_strides(
    xp: ModuleType, x: Array, shape: Sequence[int], stride: Sequence[int], offset: int
) -> Array:
    """The view of contiguous memory by `shape` and `stride`, both in elements."""
    flat = x.reshape(-1)
    last = offset + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    fits = 0 in shape or (min(offset, *stride) >= 0 and last < flat.size)
    text = f"shape {list(shape)}, stride {list(stride)} and offset {offset}"
    require(fits, f"{text} reach beyond the {flat.size} elements")
    strides = [s * x.dtype.itemsize for s in stride]
    return xp.lib.stride_tricks.as_strided(flat[offset:], shape, strides)


def first_element(offset: int, dtype: Any) -> int:
    """The index of the element at `offset` bytes; a ValueError between two elements."""
    index, rest = divmod(offset, dtype.itemsize)
    text = f"the offset of {offset} bytes is not at an element of {dtype.itemsize} bytes"
    require(not rest, text)
    return int(index)


def _strided_vjp(
    g: Any, F: Any, x_shape: tuple[int, ...], shape: Any, stride: Any, offset: int
) -> Any:
    """Zeros with each element of `g` added at the position from which `as_strided` took it."""
    size = math.prod(x_shape)
    places = _view_by_strides(
        np, np.arange(size), as_ints(shape), as_ints(stride), first_element(offset, g.dtype)
    ).reshape(-1)
    return F.reshape(F.scatter_sum(F.reshape(g, [-1]), [size], places.tolist()), list(x_shape))


@op(view=True, x=_strided_vjp)
def as_strided(
    xp: ModuleType, x: Array, shape: Sequence[int], stride: Sequence[int], offset: int = 0
) -> Array:
    """The elements of a contiguous Tensor at `offset`, in bytes, plus multiples of `stride`, in
    elements; a view.
    """
    return _view_by_strides(
        xp, xp.ascontiguousarray(x), as_ints(shape), as_ints(stride), first_element(offset, x.dtype)
    )
