"""Operations that put Tensors together, take them apart, and pad them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.op import op
from pylayer.ops.indexing import getitem, index_select
from pylayer.ops.shape import as_ints, normal_axis, reshape
from pylayer.tensor import Tensor

METHODS = ("chunk", "concat", "pad", "repeat_interleave", "split", "stack", "tensor_split", "unbind", "unstack")
"""The functions that are methods of Tensor as well."""


# --------------------------------------------------------------------------- together
def _between(ndim: int, axis: int, start: int, stop: int) -> tuple[slice, ...]:
    """The index of the elements from `start` to `stop` along `axis`."""
    return (slice(None),) * axis + (slice(start, stop),) + (slice(None),) * (ndim - axis - 1)


def _bounds(parts: Sequence[Any], axis: int) -> list[int]:
    """Where each part begins and ends along `axis`."""
    return [0, *itertools.accumulate(part.shape[axis] for part in parts)]


@op(many=True, x=lambda g, F, axis, bounds, i: F.getitem(g, _between(g.ndim, axis, bounds[i], bounds[i + 1])))
def concat_(xp: ModuleType, x: Sequence[Array], axis: int, bounds: Sequence[int]) -> Array:
    """Joined along `axis`; `bounds` are the ends of the parts, so that backward need not keep them."""
    return xp.concatenate(x, axis)


def concat(x: Sequence[Tensor], axis: Any = 0, name: str | None = None) -> Tensor:
    """Joined along the existing axis `axis`.

    Raises:
        ValueError: `x` is not a list of Tensors of one dtype, or their shapes differ elsewhere.
    """
    at = normal_axis(axis, _checked("concat", x))
    return concat_(list(x), at, _bounds(x, at))  # type: ignore[no-any-return]


def _checked(name: str, x: Any) -> int:
    """The number of dimensions of the first of `x`, a list of Tensors of one dtype."""
    if not isinstance(x, (list, tuple)) or not x or not all(isinstance(t, Tensor) for t in x):
        kinds = "an empty list" if isinstance(x, (list, tuple)) and not x else type(x).__name__
        if isinstance(x, (list, tuple)) and x:
            kinds = "a list of " + ", ".join(sorted({type(t).__name__ for t in x}))
        raise ValueError(f"(InvalidArgument) {name}(): argument 'x' (position 0) must be list of Tensors, but got {kinds}.")
    for k, tensor in enumerate(x):
        if tensor.dtype is not x[0].dtype:
            raise ValueError(
                f"(InvalidArgument) {name}(): The data_type of input tensor in list isn't consistent, the first tensor is "
                f"{x[0].dtype.name}, but {k}th tensor is {tensor.dtype.name}. Cast one with astype()."
            )
    return x[0].ndim  # type: ignore[no-any-return]


@op(many=True, x=lambda g, F, axis, i: F.getitem(g, (slice(None),) * (int(axis) % g.ndim) + (i,)))
def stack(xp: ModuleType, x: Sequence[Array], axis: int = 0) -> Array:
    """Joined along a new axis."""
    kinds = {a.dtype for a in x}
    if len(kinds) > 1:
        raise ValueError(f"the Tensors must be of one dtype, but are {', '.join(sorted(map(str, kinds)))}")
    return xp.stack(x, axis=normal_axis(axis, x[0].ndim + 1))


def vstack(x: Sequence[Tensor], name: str | None = None) -> Tensor:
    """Joined as rows."""
    return concat([reshape(t, [1, -1]) if t.ndim < 2 else t for t in x], 0)


def hstack(x: Sequence[Tensor], name: str | None = None) -> Tensor:
    """Joined along the second axis; along the first if there is one only."""
    parts = [reshape(t, [1]) if not t.ndim else t for t in x]
    return concat(parts, 0 if parts[0].ndim == 1 else 1)


# --------------------------------------------------------------------------- apart
@op(x=lambda g, F, axis: F.concat(list(g), axis, _bounds(g, axis)))
def split_(xp: ModuleType, x: Array, ends: Sequence[int], axis: int) -> list[Array]:
    """The parts between the given ends, copied."""
    return [part.copy() for part in xp.split(x, list(ends), axis)]


def split(x: Tensor, num_or_sections: int | Sequence[Any], axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """Taken apart along `axis` into equal parts, or into parts of the given sizes, one of which may be -1: what is left.

    Raises:
        ValueError: the size of `x` there is not divisible, or not the sum of the sizes.
    """
    at = normal_axis(axis, x.ndim)
    size = x.shape[at]
    if isinstance(num_or_sections, int):
        if num_or_sections < 1 or size % num_or_sections:
            raise ValueError(
                f"(InvalidArgument) split(): The input's size along the split dimension must be evenly divisible by "
                f"Attr(num_or_sections). But {size} is not divisible by {num_or_sections} (shape {x.shape}, axis {at})."
            )
        sections = [size // num_or_sections] * num_or_sections
    else:
        sections = as_ints(num_or_sections)
        sections = [size - sum(sections) - 1 if n == -1 else n for n in sections] if sections.count(-1) == 1 else sections
        if sum(sections) != size or min(sections, default=0) < 0:
            raise ValueError(
                f"(InvalidArgument) split(): Sum of Attr(num_or_sections) must be equal to the input's size along the split "
                f"dimension. But received {as_ints(num_or_sections)} for a size of {size} (shape {x.shape}, axis {at})."
            )
    return split_(x, list(itertools.accumulate(sections))[:-1], at)  # type: ignore[no-any-return]


def chunk(x: Tensor, chunks: int, axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """`split` into equal parts."""
    return split(x, chunks, axis)


def tensor_split(x: Tensor, num_or_indices: int | Sequence[int], axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """Taken apart at the given indices, or into parts as equal as can be, the larger ones first."""
    at = normal_axis(axis, x.ndim)
    size = x.shape[at]
    if isinstance(num_or_indices, int):
        least, larger = divmod(size, num_or_indices)
        ends = [least * k + min(k, larger) for k in range(1, num_or_indices)]
    else:
        ends = as_ints(num_or_indices)
    return split_(x, ends, at)  # type: ignore[no-any-return]


@op(input=lambda g, F, axis: F.stack(list(g), axis))
def unbind(xp: ModuleType, input: Array, axis: int = 0) -> list[Array]:
    """The slices along `axis`, which share memory with the input."""
    moved = xp.moveaxis(input, normal_axis(axis, input.ndim), 0)
    return [moved[k, ...] for k in range(len(moved))]


def unstack(x: Tensor, axis: int = 0, num: int | None = None) -> list[Tensor]:
    """`unbind`.

    Raises:
        ValueError: `num` is given and is not the size along `axis`.
    """
    if num is not None and num != x.shape[axis]:
        raise ValueError(f"(InvalidArgument) unstack(): num is {num}, but the size along axis {axis} is {x.shape[axis]}.")
    return unbind(x, axis)  # type: ignore[no-any-return]


def repeat_interleave(x: Tensor, repeats: int | Tensor, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each element along `axis`, or of the flat Tensor, repeated in place."""
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    counts = as_ints(repeats)  # type: ignore[arg-type]
    size = x.shape[axis]
    counts = counts * size if len(counts) == 1 else counts
    chosen = [k for k, n in zip(range(size), counts, strict=True) for _ in range(n)]
    return index_select(x, chosen, axis)


# --------------------------------------------------------------------------- padding
@op(x=lambda g, F, x_shape, widths: F.getitem(g, tuple(slice(w[0], w[0] + n) for w, n in zip(widths, x_shape, strict=True))))
def pad_(xp: ModuleType, x: Array, widths: Sequence[tuple[int, int]], value: float) -> Array:
    """`value` put around: for each axis how many before and after, none negative."""
    return xp.pad(x, widths, constant_values=value)


_SOURCE = {
    "reflect": lambda k, n: abs(k) if k < n else 2 * (n - 1) - k,
    "replicate": lambda k, n: min(max(k, 0), n - 1),
    "circular": lambda k, n: k % n,
}
"""Per mode, the element that fills position k of an axis of n elements."""


def pad(
    x: Tensor,
    pad: Any,
    mode: str = "constant",
    value: float = 0.0,
    data_format: str | None = None,
    pad_from_left_axis: bool = True,
    name: str | None = None,
) -> Tensor:
    """Elements put around `x`, or taken away where a number is negative.

    Args:
        pad: pairs (before, after): for each axis in order if there are as many pairs as axes (from the last axis backwards if
            not `pad_from_left_axis`), else for the last spatial axes, from the last backwards.
        mode: constant, reflect, replicate or circular.
        data_format: names the spatial axes: C last (``NHWC``) means that the last axis is none of them.

    Raises:
        ValueError: an unknown mode, an odd or too large number of numbers, or more to reflect than there is.
    """
    numbers = as_ints(pad)
    pairs = list(zip(numbers[::2], numbers[1::2], strict=False))
    if len(numbers) % 2 or len(pairs) > x.ndim:
        raise ValueError(f"(InvalidArgument) pad(): {x.ndim} axes take up to {x.ndim} pairs of numbers, but got {numbers}.")
    if mode != "constant" and mode not in _SOURCE:
        raise ValueError(f"(InvalidArgument) pad(): mode must be one of constant, {', '.join(_SOURCE)}, but got {mode!r}.")
    full = len(pairs) == x.ndim
    last = x.ndim - 2 if not full and data_format is not None and data_format.endswith("C") else x.ndim - 1
    if full and mode == "constant" and pad_from_left_axis:
        axes = list(range(x.ndim))
    else:
        axes = [last - k for k in range(len(pairs))]
    widths = [(0, 0)] * x.ndim
    for axis, pair in zip(axes, pairs, strict=True):
        widths[axis] = pair
    if any(n < 0 for pair in widths for n in pair):
        kept = tuple(slice(max(-b, 0), n - max(-a, 0)) for (b, a), n in zip(widths, x.shape, strict=True))
        x = getitem(x, kept)
        widths = [(max(b, 0), max(a, 0)) for b, a in widths]
    if mode == "constant":
        return pad_(x, widths, value)  # type: ignore[no-any-return]
    for axis, (before, after) in enumerate(widths):
        size = x.shape[axis]
        if mode == "reflect" and max(before, after) >= max(size, 1):
            raise ValueError(f"(InvalidArgument) pad(): reflect needs less than the {size} elements of axis {axis}, but got {(before, after)}.")
        if before or after:
            x = index_select(x, [_SOURCE[mode](k, size) for k in range(-before, size + after)], axis)
    return x
