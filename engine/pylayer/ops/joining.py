"""Operations that put Tensors together and take them apart."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.invalid import invalid
from pylayer.op import composed, op
from pylayer.ops.arguments import as_ints, normal_axis
from pylayer.ops.shape import reshape
from pylayer.tensor import Tensor


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


def concat(x: Sequence[Tensor], axis: Any = 0) -> Tensor:
    """Tensors of one dtype joined along the existing axis `axis`."""
    at = normal_axis(axis, _checked("concat", x))
    return concat_(list(x), at, _bounds(x, at))


def _checked(name: str, x: Any) -> int:
    """The number of dimensions of the first of `x`, a list of Tensors of one dtype."""
    if not isinstance(x, (list, tuple)) or not x or not all(isinstance(t, Tensor) for t in x):
        kinds = "an empty list" if isinstance(x, (list, tuple)) and not x else type(x).__name__
        if isinstance(x, (list, tuple)) and x:
            kinds = "a list of " + ", ".join(sorted({type(t).__name__ for t in x}))
        raise invalid(f"{name}(): argument 'x' (position 0) must be list of Tensors, but got {kinds}")
    for k, tensor in enumerate(x):
        if tensor.dtype is not x[0].dtype:
            raise invalid(
                f"{name}(): The data_type of input tensor in list isn't consistent, the first tensor "
                f"is {x[0].dtype.name}, but {k}th tensor is {tensor.dtype.name}. Cast one with astype()"
            )
    return x[0].ndim  # type: ignore[no-any-return]


@op(many=True, x=lambda g, F, axis, i: F.getitem(g, (slice(None),) * (int(axis) % g.ndim) + (i,)))
def stack(xp: ModuleType, x: Sequence[Array], axis: int = 0) -> Array:
    """Joined along a new axis."""
    kinds = {a.dtype for a in x}
    if len(kinds) > 1:
        raise ValueError(f"the Tensors must be of one dtype, but are {', '.join(sorted(map(str, kinds)))}")
    return xp.stack(x, axis=normal_axis(axis, x[0].ndim + 1))


vstack = composed("vstack", lambda x: concat([reshape(t, [1, -1]) if t.ndim < 2 else t for t in x], 0))


def hstack(x: Sequence[Tensor]) -> Tensor:
    """Joined along the second axis; along the first if there is one only."""
    parts = [reshape(t, [1]) if not t.ndim else t for t in x]
    return concat(parts, 0 if parts[0].ndim == 1 else 1)


@op(many=True, terms=lambda g: g)
def add_n_(xp: ModuleType, terms: Sequence[Array]) -> Array:
    """The sum of arrays of one shape."""
    if len({a.shape for a in terms}) > 1 or len({a.dtype for a in terms}) > 1:
        raise ValueError("the Tensors must have one shape and one dtype")
    return functools.reduce(xp.add, terms) if len(terms) > 1 else terms[0].copy()


def add_n(inputs: Tensor | Sequence[Tensor]) -> Tensor:
    """The sum of Tensors of one shape and dtype."""
    return add_n_([inputs] if isinstance(inputs, Tensor) else list(inputs))


# --------------------------------------------------------------------------- apart
@op(x=lambda g, F, axis: F.concat(list(g), axis, _bounds(g, axis)))
def split_(xp: ModuleType, x: Array, ends: Sequence[int], axis: int) -> list[Array]:
    """The parts between the given ends, copied."""
    return [part.copy() for part in xp.split(x, list(ends), axis)]


def split(x: Tensor, num_or_sections: int | Sequence[Any], axis: Any = 0) -> list[Tensor]:
    """Taken apart along `axis` into equal parts, or parts of the given sizes, one of which may be -1: what is left."""
    at = normal_axis(axis, x.ndim)
    size = x.shape[at]
    if isinstance(num_or_sections, int):
        if num_or_sections < 1 or size % num_or_sections:
            raise invalid(
                f"split(): The input's size along the split dimension must be evenly divisible by "
                f"Attr(num_or_sections). But {size} is not divisible by {num_or_sections} (shape {x.shape}, axis {at})"
            )
        sections = [size // num_or_sections] * num_or_sections
    else:
        sections = as_ints(num_or_sections)
        if sections.count(-1) == 1 and sum(sections) + 1 >= size:
            raise invalid(
                f"split(): Sum of Attr(num_or_sections) other than unknown section must be less than "
                f"the input's size along the split dimension. But received {sections} for {size} (axis {at})"
            )
        sections = (
            [size - sum(sections) - 1 if n == -1 else n for n in sections] if sections.count(-1) == 1 else sections
        )
        if sum(sections) != size or min(sections, default=0) < 0:
            raise invalid(
                f"split(): Sum of Attr(num_or_sections) must be equal to the input's size along the "
                f"split dimension. But received {as_ints(num_or_sections)} for {size} (shape {x.shape}, axis {at})"
            )
    return split_(x, list(itertools.accumulate(sections))[:-1], at)  # type: ignore[return-value]


chunk = composed("chunk", lambda x, chunks, axis=0: split(x, chunks, axis), "list")


def tensor_split(x: Tensor, num_or_indices: int | Sequence[int], axis: Any = 0) -> list[Tensor]:
    """Taken apart at the given indices, or into parts as equal as can be, the larger ones first."""
    at = normal_axis(axis, x.ndim)
    size = x.shape[at]
    if isinstance(num_or_indices, int):
        least, larger = divmod(size, num_or_indices)
        ends = [least * k + min(k, larger) for k in range(1, num_or_indices)]
    else:
        ends = as_ints(num_or_indices)
    return split_(x, ends, at)  # type: ignore[return-value]


@op(input=lambda g, F, axis: F.stack(list(g), axis))
def unbind(xp: ModuleType, input: Array, axis: int = 0) -> list[Array]:
    """The slices along `axis`, which share memory with the input."""
    moved = xp.moveaxis(input, normal_axis(axis, input.ndim), 0)
    return [moved[k, ...] for k in range(len(moved))]


def unstack(x: Tensor, axis: int = 0, num: int | None = None) -> list[Tensor]:
    """`unbind`; `num`, if given, is the size along `axis`."""
    axis = normal_axis(axis, x.ndim)
    if num is not None and num != x.shape[axis]:
        raise invalid(f"unstack(): num is {num}, but the size along axis {axis} is {x.shape[axis]}")
    return unbind(x, axis)  # type: ignore[return-value]
