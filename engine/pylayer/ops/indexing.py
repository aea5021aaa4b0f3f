"""Reading and writing at an index.

Three operations do the work: `getitem`, `setitem` (out of place) and
`add_at`. An index is interpreted like Paddle's: ints, slices and None first, then arrays.
So ``x[0, :, [0, 1]]`` has the shape [3, 2] where x has the shape [2, 3, 4].
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from types import EllipsisType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from pylayer.ops.arguments import OutOfRangeError, require
from pylayer.ops.creation import to_tensor
from pylayer.ops.shape import astype, reshape
from pylayer.tape.op import composed, op
from pylayer.tensor.array import Array
from pylayer.tensor.dtype import common_dtype
from pylayer.tensor.invalid import invalid
from pylayer.tensor.tensor import Tensor


# --------------------------------------------------------------------------- an index
class Index(NamedTuple):
    """An index in two steps: ``x[basic]`` is a view, also of a single element, and
    ``x[basic][advanced]`` a copy.
    """

    basic: tuple[Any, ...]
    advanced: tuple[Any, ...] | None


def parsed(xp: ModuleType, shape: Sequence[int], index: Any) -> Index:
    """`index` into an array of `shape`; a ValueError if it is not an index, an IndexError if it is
    out of range.
    """
    parts = [_part(xp, part) for part in (index if type(index) is tuple else (index,))]
    widths = list(map(_axes_used, parts))
    free = len(shape) - sum(widths)
    if free < 0:
        raise OutOfRangeError(f"too many indices: {sum(widths)} for {len(shape)} axes")
    first = [*map(type, parts), EllipsisType].index(EllipsisType)
    parts[first : first + 1] = [slice(None)] * free
    widths[first : first + 1] = [1] * free
    basic: list[Any] = []
    advanced: list[Any] = []
    axis, has_arrays = 0, False
    for part, width in zip(parts, widths, strict=True):
        end = axis + width
        if hasattr(part, "dtype"):
            has_arrays = True
            _check_array(part, shape[axis:end], axis)
            basic += [slice(None)] * width
            advanced.append(part)
        elif isinstance(part, int):
            _check_range(part, part, shape[axis], axis)
            basic.append(part)
        else:
            basic.append(part)
            advanced.append(slice(None))
        axis = end
    return Index((*basic, Ellipsis), tuple(advanced) if has_arrays else None)


def _part(xp: ModuleType, part: Any) -> Any:
    """One part of an index as an int, a slice, None, Ellipsis, or an array of ints or bools."""
    if part is None or part is Ellipsis or type(part) is int:
        return part
    if isinstance(part, slice):
        ends = (part.start, part.stop, part.step)
        return slice(*[None if n is None else int(n) for n in ends])
    if isinstance(part, (list, tuple, range)):
        part = xp.asarray(list(part), dtype=None if len(part) else "int64")
    elif isinstance(part, bool) or hasattr(part, "dtype"):
        part = xp.asarray(part)
    elif isinstance(part, numbers.Integral):
        return int(part)
    dtype: Any = getattr(part, "dtype", type(part).__name__)
    if getattr(dtype, "kind", "") not in ("b", "i", "u"):
        text = "an index only allows ints, bools, slices, Ellipsis, None, and lists or Tensors of"
        raise invalid(f"{text} these, but got {dtype}")
    return int(part) if not part.ndim and dtype.kind != "b" else part


def _axes_used(part: Any) -> int:
    """The number of axes of the array that a part of an index consumes."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if hasattr(part, "dtype") and part.dtype.kind == "b" else 1


def _check_array(part: Array, sizes: Sequence[int], axis: int) -> None:
    """Check that an array of bools has the sizes of its axes, or that positions are within the size
    of their axis.
    """
    if part.dtype.kind == "b":
        text = f"did not match indexed tensor {list(sizes)} along axis {axis}"
        text = f"The shape of boolean index {list(part.shape)} {text}"
        require(part.shape == tuple(sizes), text, error=IndexError)
    elif part.size:
        _check_range(part.min().item(), part.max().item(), sizes[0], axis)


def _check_range(least: int, largest: int, size: int, axis: int) -> None:
    """Check that positions are within an axis; a message is made only if it is needed, as loops
    call this often.
    """
    if least < -size or largest >= size:
        wrong = least if least < -size else largest
        text = f"the index {wrong} is out of bounds for axis {axis}"
        raise OutOfRangeError(f"(OutOfRange) {text}, it should be in [{-size}, {size})")


# --------------------------------------------------------------------------- the three operations
@op(view=True, x=lambda g, F, x_shape, index: F.scatter_sum(g, x_shape, index))
def getitem(xp: ModuleType, x: Array, index: Any) -> Array:
    """``x[index]``, which shares memory with `x` unless there is an array in the index."""
    basic, advanced = parsed(xp, x.shape, index)
    selected = x[basic]
    if advanced is None:
        return selected
    return xp.asarray(selected[advanced], order="C")  # for views to share memory


def along(x: Tensor, axis: int, part: Any) -> Tensor:
    """Index with `part` along an axis, counted from the front."""
    return getitem(x, (*(slice(None),) * axis, part))


@op(g=lambda h, F, index: F.getitem(h, index))
def scatter_sum(xp: ModuleType, g: Array, shape: Sequence[int], index: Any) -> Array:
    """Zeros of `shape` with `g` added at `index`."""
    out = xp.zeros(shape, g.dtype)
    basic, advanced = parsed(xp, shape, index)
    if advanced is None:
        out[basic] = g
    else:
        xp.add.at(out[basic], advanced, g)
    return out


@op(
    x=lambda g, F, index: F.setitem(g, index, 0), value=lambda g, F, index: F.scattered_at(g, index)
)
def setitem_(xp: ModuleType, x: Array, index: Any, value: Array) -> Array:
    """A copy of `x` with `value` at `index`; of several values for one position the last counts."""
    out = x.copy()
    at = parsed(xp, x.shape, index)
    if at.advanced is None or xp is np:
        out[at.basic][at.advanced or ...] = value
        return out
    places = places_of(xp, x.shape, at)
    last = is_last(xp, places)
    out.ravel()[places[last]] = xp.broadcast_to(xp.asarray(value), places.shape)[last]
    return out


@op(g=lambda h, F, g_shape, index: F.setitem(F.scatter_sum(h * 0, g_shape, index), index, h))
def scattered_at(xp: ModuleType, g: Array, index: Any) -> Array:
    """``g[index]``, but zero for the values that `setitem` overwrites with later ones."""
    at = parsed(xp, g.shape, index)
    if at.advanced is None:
        return g[at.basic]
    selected = g[at.basic][at.advanced]
    last = is_last(xp, places_of(xp, g.shape, at))
    return xp.where(last, selected, xp.zeros_like(selected))


def places_of(xp: ModuleType, shape: Sequence[int], at: Index) -> Array:
    """The positions in the flattened array of `shape` that an index with arrays selects."""
    return xp.arange(math.prod(shape)).reshape(shape)[at.basic][at.advanced]


def turns(xp: ModuleType, places: Array) -> Array:
    """For each element of the flat `places`, how many earlier ones are equal; writes with the same
    count never collide. A GPU writes in any order.
    """
    order = xp.argsort(places, kind="stable")
    ordered = places[order]
    found = xp.empty_like(order)
    found[order] = xp.arange(places.size) - xp.searchsorted(ordered, ordered)
    return found


def is_last(xp: ModuleType, places: Array) -> Array:
    """For each element of `places`, whether no later one is equal."""
    return (turns(xp, places.ravel()[::-1])[::-1] == 0).reshape(places.shape)


# `value` is added once for each time that `index` contains a position
add_at = composed("add_at", lambda x, index, value: x + scatter_sum(value, x.shape, index))


@op(
    promote=True,
    x=lambda g, F, condition: F.where(condition, g, 0),
    y=lambda g, F, condition: F.where(condition, 0, g),
)
def where_(xp: ModuleType, condition: Array, x: Array, y: Array) -> Array:
    """The elements of `x` where `condition` holds, otherwise those of `y`."""
    require(condition.dtype.kind == "b", f"the condition must be bool, but is {condition.dtype}")
    # For a number next to bfloat16, which is not a dtype of NumPy itself, NumPy's where gives
    # float64.
    if getattr(x, "dtype", condition.dtype).kind == "V":
        y = xp.asarray(y, x.dtype)
    elif getattr(y, "dtype", condition.dtype).kind == "V":
        x = xp.asarray(x, y.dtype)
    return xp.where(condition, x, y)


# -------------------------------------------------------------------------- public functions
def setitem(x: Tensor, index: Any, value: Any) -> Tensor:
    """A copy of `x` with `value`, cast to its dtype, at `index`; ``x[index] = value`` is its
    in-place form.
    """
    if hasattr(value, "dtype") and not isinstance(value, Tensor):
        value = to_tensor(value)
    text = "The assign value allows Tensor, numpy.ndarray, integer, float, complex or bool"
    text = f"setitem(): Value type error. {text}, but received {type(value).__name__}"
    require(isinstance(value, (Tensor, int, float, complex)), text)
    if isinstance(value, Tensor):
        value = astype(value, x.dtype)
        extra = next((k for k, n in enumerate(value.shape) if n != 1), value.ndim)
        if extra:  # leading axes of size 1 that the place may not have
            value = reshape(value, value.shape[extra:])
    return setitem_(x, index, value)


def where(condition: Tensor, x: Any = None, y: Any = None) -> Any:
    """The elements of `x` where `condition` holds, otherwise those of `y`; given only the
    condition, `nonzero` as a tuple.

    A number becomes a Tensor of its kind's usual dtype, and 0-d Tensors count like others for the
    dtype of the result. A TypeError if the dtypes differ, unless both are floating or one is
    complex.
    """
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    require(x is not None and y is not None, "where(): x and y must both be given, or neither")
    given = [v if isinstance(v, Tensor) else to_tensor(v) for v in (x, y)]
    dtypes = {t.dtype for t in given}
    if len(dtypes) > 1:
        given = [astype(t, common_dtype("where", dtypes, set())) for t in given]
    return where_(condition, *given)


@op()
def nonzero(xp: ModuleType, x: Array, as_tuple: bool = False) -> Any:
    """The positions of the nonzero elements: a row for each, or a Tensor of shape [n] per axis."""
    require(x.ndim > 0, "the Tensor needs at least one dimension. Reshape it to [1]")
    columns = xp.nonzero(x)
    return tuple(columns) if as_tuple else xp.stack(columns, 1)


argwhere = composed("argwhere", lambda input: nonzero(input))
