"""Concatenating, stacking and splitting Tensors, and compositions of these."""

from __future__ import annotations

import builtins
import functools
import itertools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from pylayer.ops.arguments import as_ints, axes_of, normal_axis, one_list, require
from pylayer.ops.indexing import along, getitem
from pylayer.ops.shape import broadcast_shape, clone, flip, reshape, swapaxes, transpose, view
from pylayer.tape.op import composed, op
from pylayer.tensor.array import Array
from pylayer.tensor.invalid import check_supported
from pylayer.tensor.tensor import Tensor


# --------------------------------------------------------------------------- together
def _bounds(tensors: Sequence[Any], axis: int) -> list[int]:
    """The begin and end of each part along `axis`."""
    return [0, *itertools.accumulate(tensor.shape[axis] for tensor in tensors)]


@op(
    many=True,
    x=lambda g, F, axis, bounds, i: F.getitem(
        g, (*(builtins.slice(None),) * axis, builtins.slice(bounds[i], bounds[i + 1]))
    ),
)
def concat_(xp: ModuleType, x: Sequence[Array], axis: int, bounds: Sequence[int]) -> Array:
    """Arrays joined along `axis`; `bounds` are the ends of the parts, so that backward need not
    keep the parts.
    """
    return xp.concatenate(x, axis)


def concat(x: Sequence[Tensor], axis: Any = 0) -> Tensor:
    """Tensors of one dtype joined along the existing axis `axis`."""
    is_list = isinstance(x, (list, tuple))
    for value in x if is_list else (x,):
        check_supported(value)
    kinds = sorted({type(t).__name__ for t in x}) if is_list else [type(x).__name__]
    fits = is_list and len(x) > 0 and all(isinstance(t, Tensor) for t in x)
    text = "concat(): argument 'x' (position 0) must be list of Tensors, but got"
    require(fits, f"{text} {', '.join(kinds) or 'an empty list'}")
    one_dtype = all(t.dtype is x[0].dtype for t in x)
    text = "concat(): The data_type of input tensor in list isn't consistent. Cast with astype()"
    require(one_dtype, text, *x)
    axis = normal_axis(axis, x[0].ndim)
    return concat_(list(x), axis, _bounds(x, axis))


@op(
    many=True,
    x=lambda g, F, axis, i: F.getitem(g, (builtins.slice(None),) * (int(axis) % g.ndim) + (i,)),
)
def stack(xp: ModuleType, x: Sequence[Array], axis: int = 0) -> Array:
    """Arrays joined along a new axis."""
    require(len({a.dtype for a in x}) == 1, "the Tensors must be of one dtype", *x)
    return xp.stack(x, axis=normal_axis(axis, x[0].ndim + 1))


def _at_least(ndim: int, shape: Callable[[list[int]], list[int]]) -> Callable[..., Any]:
    """The Tensors with at least `ndim` axes: a list, or a single Tensor if only one is given."""

    def at_least(*inputs: Any) -> Any:
        tensors = one_list(inputs)
        results = [reshape(t, shape(list(t.shape))) if t.ndim < ndim else t for t in tensors]
        return results[0] if len(inputs) == 1 and isinstance(inputs[0], Tensor) else results

    return composed(f"atleast_{ndim}d", at_least)


atleast_1d = _at_least(1, lambda shape: [1])
atleast_2d = _at_least(2, lambda shape: [1, *shape] if shape else [1, 1])
atleast_3d = _at_least(
    3, lambda shape: {0: [1, 1, 1], 1: [1, *shape, 1]}.get(len(shape), [*shape, 1])
)
vstack = composed("vstack", lambda x: concat([atleast_2d(t) for t in x], 0))


def hstack(x: Sequence[Tensor]) -> Tensor:
    """Tensors joined along the second axis, or along the first if it is the only one."""
    parts = [atleast_1d(t) for t in x]
    return concat(parts, 0 if parts[0].ndim == 1 else 1)


@op(many=True, terms=lambda g: g)
def add_n_(xp: ModuleType, terms: Sequence[Array]) -> Array:
    """The sum of arrays of one shape."""
    kinds = {(a.shape, a.dtype) for a in terms}
    require(len(kinds) == 1, "the Tensors must have one shape and one dtype")
    return functools.reduce(xp.add, terms) if len(terms) > 1 else terms[0].copy()


add_n = composed(
    "add_n", lambda inputs: add_n_([inputs] if isinstance(inputs, Tensor) else list(inputs))
)
column_stack = composed(
    "column_stack", lambda x: hstack([reshape(t, [t.size, 1]) if t.ndim < 2 else t for t in x])
)


dstack = composed("dstack", lambda x: concat([atleast_3d(t) for t in x], 2))


# --------------------------------------------------------------------------- apart
@op(x=lambda g, F, axis: F.concat(list(g), axis, _bounds(g, axis)))
def split_(xp: ModuleType, x: Array, ends: Sequence[int], axis: int) -> list[Array]:
    """Copies of the parts between the given ends."""
    return [section.copy() for section in xp.split(x, list(ends), axis)]


def split(x: Tensor, num_or_sections: int | Sequence[Any], axis: Any = 0) -> list[Tensor]:
    """`x` split along `axis` into equal parts, or parts of the given sizes, one of which may be -1
    for the rest.
    """
    axis = normal_axis(axis, x.ndim)
    size = x.shape[axis]
    if isinstance(num_or_sections, int):
        fits = num_or_sections > 0 and not size % num_or_sections
        text = f"split(): The size along axis {axis} must be evenly divisible by num_or_sections"
        require(fits, f"{text}, and {size} is not by {num_or_sections}")
        sections = [size // num_or_sections] * num_or_sections
    else:
        sections = as_ints(num_or_sections)
        rest = size - sum(sections) - 1
        if sections.count(-1) == 1 and rest > 0:
            sections[sections.index(-1)] = rest
        fits = sum(sections) == size and min(sections, default=0) >= 0
        text = f"must be equal to the input's size on axis {axis}, {size}"
        text = f"split(): Sum of Attr(num_or_sections) {text}, but got {num_or_sections}"
        require(fits, text)
    return split_(x, list(itertools.accumulate(sections))[:-1], axis)  # type: ignore[return-value]


chunk = composed("chunk", lambda x, chunks, axis=0: split(x, chunks, axis), "list")


def tensor_split(x: Tensor, num_or_indices: int | Sequence[int], axis: Any = 0) -> list[Tensor]:
    """`x` split at the given indices, or into parts of nearly equal size, the larger ones first."""
    axis = normal_axis(axis, x.ndim)
    size = x.shape[axis]
    if isinstance(num_or_indices, int):
        least, larger = divmod(size, num_or_indices)
        ends = [least * k + min(k, larger) for k in range(1, num_or_indices)]
    else:
        ends = as_ints(num_or_indices)
    return split_(x, ends, axis)  # type: ignore[return-value]


@op(view=True, input=lambda g, F, axis: F.stack(list(g), axis))
def unbind(xp: ModuleType, input: Array, axis: int = 0) -> list[Array]:
    """The slices along `axis`, which share memory with the input."""
    moved = xp.moveaxis(input, normal_axis(axis, input.ndim), 0)
    return [moved[k, ...] for k in range(len(moved))]


def unstack(x: Tensor, axis: int = 0, num: int | None = None) -> list[Tensor]:
    """The slices along `axis`, copied; `num`, if given, is the size along it."""
    axis = normal_axis(axis, x.ndim)
    text = f"unstack(): num is {num}, and not the size along axis {axis}"
    require(num in (None, x.shape[axis]), text, x)
    return [clone(piece) for piece in unbind(x, axis)]


def _split_along(name: str, axis: int, least: int) -> Callable[..., Any]:
    """`x` split along an axis, or along the last one if there are fewer; a ValueError for fewer
    than `least` axes.
    """

    def split(x: Tensor, num_or_indices: Any) -> list[Tensor]:
        text = f"{name}(): The input tensor's dimension must be greater than {least - 1}"
        require(x.ndim >= least, text, x)
        return tensor_split(x, num_or_indices, min(axis, x.ndim - 1))

    return composed(name, split)


hsplit = _split_along("hsplit", 1, 1)
vsplit = _split_along("vsplit", 0, 2)
dsplit = _split_along("dsplit", 2, 3)


def _slices(x: Tensor, axes: Any, starts: Any, ends: Any, strides: Any = None) -> tuple[Any, ...]:
    """The index from `starts` to `ends` along `axes`, in steps of `strides`."""
    index: list[Any] = [builtins.slice(None)] * x.ndim
    named = as_ints(axes)
    steps = [1] * len(named) if strides is None else as_ints(strides)
    for axis, start, end, step in zip(named, as_ints(starts), as_ints(ends), steps, strict=True):
        before_the_start = step < 0 and end < -x.shape[axis]
        index[normal_axis(axis, x.ndim)] = builtins.slice(
            start, None if before_the_start else end, step
        )
    return tuple(index)


slice = composed(
    "slice", lambda input, axes, starts, ends: getitem(input, _slices(input, axes, starts, ends))
)
strided_slice = composed(
    "strided_slice",
    lambda x, axes, starts, ends, strides: getitem(x, _slices(x, axes, starts, ends, strides)),
)


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` slices along `dim`, from `start` on."""
    axis = normal_axis(dim, input.ndim)
    first = int(start) + (input.shape[axis] if int(start) < 0 else 0)
    return along(input, axis, builtins.slice(first, first + length))


def _fold_back(g: Any, F: Any, x_shape: Sequence[int], axis: int, size: int, step: int) -> Any:
    """Zeros with the elements of all windows added at their origins."""
    windows = [list(range(k, k + size)) for k in range(0, x_shape[axis] - size + 1, step)]
    axes = [*range(g.ndim - 1)]
    transposed = F.transpose(g, [*axes[: axis + 1], g.ndim - 1, *axes[axis + 1 :]])
    return F.scatter_sum(transposed, x_shape, (*(builtins.slice(None),) * axis, windows))


@op(view=True, x=_fold_back)
def tensor_unfold(xp: ModuleType, x: Array, axis: int, size: int, step: int) -> Array:
    """All windows of `size` along `axis`, `step` apart, along a new last axis: a view."""
    count = max(0, (x.shape[axis] - size) // step + 1)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :], size)
    strides = (*x.strides[:axis], x.strides[axis] * step, *x.strides[axis + 1 :], x.strides[axis])
    return xp.lib.stride_tricks.as_strided(x, shape, strides)


def unfold(x: Tensor, axis: int, size: int, step: int) -> Tensor:
    """All windows of `size` along `axis`, `step` apart, along a new last axis: a view."""
    axis = normal_axis(axis, x.ndim)
    text = f"unfold(): size({size}) must be less than shape[axis]({x.shape[axis]})"
    require(size <= x.shape[axis], text, x)
    return tensor_unfold(x, axis, size, step)


# --------------------------------------------------------------------------- order
def rot90(x: Tensor, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """`x` rotated by `k` quarter turns, from the first of `axes` towards the second."""
    first, second = axes_of(list(axes), x.ndim) if len(axes) == 2 else (0, 0)
    text = f"rot90(): expected total rotation axes == 2 of different axes, not {list(axes)}"
    require(first != second, text, x)
    for _ in range(k % 4):
        x = swapaxes(flip(x, second), first, second)
    return x


permute = composed("permute", lambda input, *dims: transpose(input, list(one_list(dims))))
cat, concatenate, row_stack, swapdims, reverse = concat, concat, vstack, swapaxes, flip
ravel = composed("ravel", lambda input: reshape(input, [-1]))
view_as = composed("view_as", lambda x, other: view(x, other.shape))


def reduce_as(x: Tensor, target: Tensor) -> Tensor:
    """`x` summed to the shape of `target`, which broadcasts to that of `x`."""
    reaches = broadcast_shape(x.shape, target.shape) == list(x.shape)
    require(reaches, "reduce_as(): the target should broadcast to x", x, target)
    sizes = [1] * (x.ndim - target.ndim) + list(target.shape)
    axes = [k for k, n in enumerate(sizes) if n != x.shape[k]]
    return reshape(x.sum(axes, keepdim=True) if axes else clone(x), target.shape)
