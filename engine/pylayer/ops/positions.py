"""Reading and writing at lists of positions, including diagonals and segments, by the operations of
`indexing`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from pylayer.ops.arguments import (
    as_int,
    as_ints,
    check_tensor,
    drop_axes,
    normal_axis,
    one_of,
    require,
    vector_shape,
)
from pylayer.ops.creation import full, full_like, ones_like, zeros
from pylayer.ops.indexing import (
    add_at,
    along,
    getitem,
    parsed,
    places_of,
    setitem,
    turns,
    where_,
)
from pylayer.ops.joining import _slices
from pylayer.ops.shape import (
    broadcast_shape,
    broadcast_to,
    cast,
    flat_or_along,
    moveaxis,
    reshape,
)
from pylayer.tape.op import composed, op
from pylayer.tensor.array import Array
from pylayer.tensor.dtype import bool_
from pylayer.tensor.tensor import Tensor


def _index_at(x: Tensor, index: Any, axis: Any) -> tuple[Any, ...]:
    """The index of the slices `index` along `axis`."""
    return (*(slice(None),) * normal_axis(axis, x.ndim), index)


def _columns(index: Tensor) -> tuple[Any, ...]:
    """The coordinates in the last axis of `index`, one Tensor per axis of the indexed Tensor."""
    return tuple(getitem(index, (..., k)) for k in range(index.shape[-1]))


def index_select(x: Tensor, index: Any, axis: Any = None) -> Tensor:
    """The slices `index` along `axis`, by default 0; the two arguments may be exchanged.

    Raises:
        ValueError: `index` is not a Tensor of one axis, or of one axis followed by an axis of size
        1.
    """
    index, axis = (axis, index) if isinstance(index, int) else (index, axis or 0)
    text = "index_select() missing 1 required argument: 'index'"
    require(index is not None, text, error=TypeError)
    return getitem(x, _index_at(x, _as_column("index_select", index), axis))


def _as_column(name: str, index: Any) -> Tensor:
    """Positions as a Tensor of one axis, from such a Tensor or a column; otherwise a ValueError."""
    check_tensor(name, "index", 1, index)
    fits = index.ndim == 1 or (index.ndim == 2 and index.shape[1] == 1)
    require(fits, f"{name}(): the index should be 1-D, or 2-D with a second axis of size 1", index)
    return reshape(index, [-1]) if index.ndim > 1 else index


def gather(x: Tensor, index: Any, axis: Any = 0) -> Tensor:
    """The slices `index` along `axis`; with the axis as first argument, `take_along_axis`."""
    if isinstance(index, int):
        return take_along_axis(x, axis, index, broadcast=False)
    indices: Any = (
        index if isinstance(index, Tensor) and index.ndim == 0 else _as_column("gather", index)
    )
    return getitem(x, _index_at(x, indices, axis or 0))


gather_nd = composed("gather_nd", lambda x, index: getitem(x, _columns(index)))


def index_sample(x: Tensor, index: Tensor) -> Tensor:
    """The elements `index` of each row of a matrix."""
    check_tensor("index_sample", "index", 1, index)
    fits = x.ndim == index.ndim == 2 and x.shape[0] == index.shape[0]
    require(fits, "index_sample(): needs matrices with the same number of rows", x, index)
    return getitem(x, ([[k] for k in range(x.shape[0])], index))


def take(x: Tensor, index: Tensor, mode: str = "raise") -> Tensor:
    """The elements of the flattened Tensor at `index` (a TypeError unless it is of ints); `mode`
    for indices beyond the ends: raise, wrap, clip.
    """
    is_integer = index.dtype.name in ("int32", "int64")
    require(is_integer, "take(): `index` must be int32 or int64", index, error=TypeError)
    one_of("take(): `mode`", mode, "raise", "wrap", "clip")
    indices: Array = index.array
    if mode == "wrap":
        indices = indices % x.size
    elif mode == "clip":
        indices = indices.clip(0, x.size - 1)
    return getitem(reshape(x, [-1]), indices)


def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements where `mask` holds, as a Tensor of one axis."""
    require(mask.dtype is bool_, "masked_select(): the mask must be bool", mask)
    shape = broadcast_shape(x.shape, mask.shape)
    return getitem(broadcast_to(x, shape), broadcast_to(mask, shape))


def repeat_interleave(x: Tensor, repeats: int | Tensor, axis: int | None = None) -> Tensor:
    """Each slice along `axis`, or each element of the flattened Tensor, repeated next to itself."""
    x, axis = flat_or_along(x, axis)
    size = x.shape[axis]
    counts = [repeats] * size if isinstance(repeats, int) else as_ints(repeats)
    fits = len(counts) == size and min(counts, default=0) >= 0
    require(fits, "repeat_interleave(): needs as many repeats as slices, none negative", x)
    return along(x, axis, np.repeat(np.arange(size), counts))


@op()
def positions(
    xp: ModuleType, indices: Array, shape: Sequence[int], axis: int, broadcast: bool
) -> list[Array]:
    """One index per axis: `indices` along `axis`, each element's own position along the others."""
    if broadcast:
        other_shape = [*shape[:axis], 1, *shape[axis + 1 :]]
        indices = xp.broadcast_to(indices, broadcast_shape(other_shape, indices.shape))
    ndim = len(shape)
    index = [xp.arange(n).reshape(vector_shape(k, ndim)) for k, n in enumerate(indices.shape)]
    index[axis] = indices
    return index


def _index_along(
    name: str, x: Tensor, indices: Tensor, axis: int, broadcast: bool
) -> tuple[Any, ...]:
    """The index of `indices` along `axis` and each element's own position along the others."""
    text = f"{name}(): both need the same number of dimensions"
    require(indices.ndim == x.ndim, text, indices, x)
    return tuple(positions(indices, x.shape, normal_axis(axis, x.ndim), broadcast))


def take_along_axis(arr: Tensor, indices: Tensor, axis: int, broadcast: bool = True) -> Tensor:
    """The elements whose position along `axis` is in `indices`, which is broadcast to the other
    axes of `arr`.
    """
    return getitem(arr, _index_along("take_along_axis", arr, indices, axis, broadcast))


take_along_dim = take_along_axis


# --------------------------------------------------------------------------- writing
def _same_dtype(name: str, x: Tensor, values: Any) -> None:
    if isinstance(values, Tensor):
        text = f"the values to write are {values.dtype.name}, the Tensor is {x.dtype.name}"
        require(values.dtype is x.dtype, f"{name}(): {text}. Cast one with astype()")


_EXTREMES = {"mul": "multiply", "multiply": "multiply", "amin": "minimum", "amax": "maximum"}


def _put_share(
    g: Any, F: Any, arr: Any, index: Any, values: Any, out: Any, kind: str, include_self: bool
) -> Any:
    """The gradient of `arr`: 0 at a position that was overwritten without including the old
    value.
    """
    gradient = g if include_self else F.setitem(g, index, 0)
    if kind == "multiply":
        return gradient * F.put_reduced(arr * 0 + 1, index, values, kind, include_self)
    return gradient * F.cast(arr == out, g.dtype)


def _put_values(g: Any, F: Any, index: Any, values: Any, out: Any, kind: str) -> Any:
    """The gradient of the values: times the product of the others, or complete for a value that is
    the extreme.
    """
    if kind == "multiply":
        return F.getitem(g * out, index) / values
    return F.getitem(g, index) * F.cast(F.getitem(out, index) == values, g.dtype)


@op(arr=_put_share, values=_put_values)
def put_reduced(
    xp: ModuleType, arr: Array, index: Any, values: Array, kind: str, include_self: bool
) -> Array:
    """A copy of `arr` with the product or an extreme of `values` at the positions `index`."""
    result, reduce = arr.flatten(), getattr(xp, kind)
    places = places_of(xp, arr.shape, parsed(xp, arr.shape, index))
    values, places = xp.broadcast_to(values, places.shape).ravel(), places.ravel()
    if not include_self:
        result[places] = 1 if kind == "multiply" else values
    turn = turns(xp, places)
    for k in range(places.size and turn.max().item() + 1):
        is_now = turn == k
        result[places[is_now]] = reduce(result[places[is_now]], values[is_now])
    return result.reshape(arr.shape)


def put_along_axis(
    arr: Tensor,
    indices: Tensor,
    values: Any,
    axis: int,
    reduce: str = "assign",
    include_self: bool = True,
    broadcast: bool = True,
) -> Tensor:
    """A copy of `arr` with `values` at `indices` along `axis`, reduced there, including the old
    values if `include_self`.
    """
    one_of("put_along_axis(): `reduce`", reduce, "assign", "add", "mean", *_EXTREMES)
    _same_dtype("put_along_axis", arr, values)
    index = _index_along("put_along_axis", arr, indices, axis, broadcast)
    values = values if isinstance(values, Tensor) else full_like(arr[index], values)
    if reduce == "assign":
        return setitem(arr, index, values)
    values = broadcast_to(values, index[normal_axis(axis, arr.ndim)].shape)
    if reduce in _EXTREMES:
        return put_reduced(arr, index, values, _EXTREMES[reduce], include_self)
    start, counts = arr, ones_like(arr)
    if not include_self:
        start, counts = setitem(arr, index, 0), setitem(counts, index, 0)
    total = add_at(start, index, values)
    if reduce == "add":
        return total
    return cast(total / add_at(counts, index, ones_like(values)), arr.dtype)


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`put_along_axis` without broadcasting, and with `reduce` one of sum, prod, mean, amin and
    amax.
    """
    one_of("scatter_reduce(): `reduce`", reduce, "sum", "prod", "mean", "amin", "amax")
    word = {"sum": "add", "prod": "mul"}.get(reduce, reduce)
    return put_along_axis(input, index, src, dim, word, include_self, False)


scatter_add = composed(
    "scatter_add", lambda input, dim, index, src: scatter_reduce(input, dim, index, src, "sum")
)


def scatter(x: Tensor, index: Tensor, updates: Tensor, overwrite: bool = True) -> Tensor:
    """A copy of `x` with the rows `index` replaced by `updates`: by the last one if there are
    several for a row, or by their sum.
    """
    _same_dtype("scatter", x, updates)
    text = "The index should be a 0D or 1D tensor when the index is not a 2D tensor, but we get"
    require(index.ndim <= 2, f"{text} {index.ndim}")
    fits = index.ndim < 2 or index.shape[1] == 1
    require(fits, "scatter(): The last dim of a 2D index should be 1", index)
    if not index.ndim:  # one row
        updates = reshape(updates, [1, *updates.shape])
    rows = reshape(index, [-1])
    fits = updates.shape == [rows.size, *x.shape[1:]]
    text = "scatter(): the updates should have as many rows as the index"
    require(fits, text, x, index, updates)
    return setitem(x, rows, updates) if overwrite else add_at(setitem(x, rows, 0), rows, updates)


def scatter_nd_add(x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    """A copy of `x` with `updates` (a TypeError for another dtype) added at the coordinates in the
    last axis of `index`.
    """
    text = "x and updates must have same data type"
    require(updates.dtype is x.dtype, text, x, updates, error=TypeError)
    sizes = [*index.shape[:-1], *x.shape[index.shape[-1] :]]
    fits = index.shape[-1] <= x.ndim and updates.shape == sizes
    require(fits, "scatter_nd_add(): the updates must fit the coordinates", x, index, updates)
    return add_at(x, _columns(index), updates)


scatter_nd = composed(
    "scatter_nd",
    lambda index, updates, shape: scatter_nd_add(zeros(shape, updates.dtype), index, updates),
)


def index_add(x: Tensor, index: Any, axis: Any, value: Tensor, alpha: float = 1) -> Tensor:
    """A copy of `x` with `alpha` times `value` added to the slices `index` along `axis`, the
    arguments may be `axis`, then `index`.
    """
    index, axis = (axis, index) if isinstance(index, int) else (index, axis)
    check_tensor("index_add", "index", 1, index)
    require(index.ndim == 1, "index_add(): the index must be a 1-D Tensor", index)
    _same_dtype("index_add", x, value)
    return add_at(x, _index_at(x, index, axis), value if alpha == 1 else value * alpha)


def index_put(
    x: Tensor, indices: Sequence[Tensor], value: Tensor, accumulate: bool = False
) -> Tensor:
    """A copy of `x` with `value` written at, or added to, ``x[indices]``."""
    _same_dtype("index_put", x, value)
    return add_at(x, tuple(indices), value) if accumulate else setitem(x, tuple(indices), value)


def index_fill(x: Tensor, index: Tensor, axis: int, value: Any) -> Tensor:
    """A copy of `x` with `value` in the slices `index` along `axis`; `index` is a Tensor of one or
    more axes.
    """
    fits = isinstance(index, Tensor) and index.ndim > 0
    require(fits, "index_fill(): index must be Tensor of one axis or more")
    filled: Tensor = setitem(x, _index_at(x, index, axis), value)
    return filled


def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value`, a number or a 0-d Tensor of the dtype of `x`, where `mask` holds; otherwise `x`."""
    value = value if isinstance(value, Tensor) else full([], value, x.dtype)
    _same_dtype("masked_fill", x, value)
    return where_(mask, value, x)


def select_scatter(x: Tensor, values: Tensor, axis: int, index: int) -> Tensor:
    """A copy of `x` with `values` as slice `index` along `axis`; a RuntimeError if their shape
    differs.
    """
    axis = normal_axis(axis, x.ndim)
    fits = list(values.shape) == drop_axes(x.shape, [axis])
    text = "select_scatter(): expected values to have the shape of a slice"
    require(fits, text, x, values, error=RuntimeError)
    return setitem(x, _index_at(x, index, axis), values)


slice_scatter = composed(
    "slice_scatter",
    lambda x, value, axes, starts, ends, strides: setitem(
        x, _slices(x, axes, starts, ends, strides), value
    ),
)


def masked_scatter(x: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """A copy of `x` with the elements of `value`, in order, where `mask` holds; AssertionErrors if
    the shapes do not match.
    """
    require(mask.dtype is bool_, "The mask must be bool", mask, error=AssertionError)
    text = "x and value must have the same dtype"
    require(value.dtype is x.dtype, text, x, value, error=AssertionError)
    fits = broadcast_shape(x.shape, mask.shape) == list(x.shape)
    require(fits, "the mask should broadcast to x", x, mask, error=AssertionError)
    mask = broadcast_to(mask, x.shape)
    count = int(mask.array.sum().item())
    text = f"mask true nums, {count}, must be <= value size"
    require(count <= value.size, text, value, error=AssertionError)
    return setitem(x, mask, getitem(reshape(value, [-1]), slice(count)))


# --------------------------------------------------------------------------- diagonals
def _diagonal(offset: int, rows: int, columns: int) -> tuple[Any, ...]:
    """The index of a diagonal of the last two axes."""
    first = max(-offset, 0)
    count = max(0, min(rows - first, columns - max(offset, 0)))
    return ..., range(first, first + count), range(first + offset, first + offset + count)


def _diagonal_written(
    g: Any, F: Any, x_shape: Sequence[int], offset: int, axis1: int, axis2: int
) -> Any:
    """Zeros with `g` on the diagonal."""
    ndim = len(x_shape)
    order = [*drop_axes(range(ndim), [axis1, axis2]), axis1, axis2]
    moved = [x_shape[k] for k in order]
    placed = F.scatter_sum(g, moved, _diagonal(offset, *moved[-2:]))
    return F.transpose(placed, sorted(range(ndim), key=order.__getitem__))


@op(view=True, x=_diagonal_written)
def diagonal_(xp: ModuleType, x: Array, offset: int, axis1: int, axis2: int) -> Array:
    """A diagonal of two axes, as the last axis of a view."""
    moved = xp.moveaxis(x, (axis1, axis2), (-2, -1))
    *_, rows, columns = _diagonal(offset, *moved.shape[-2:])
    corner = moved[..., rows.start :, columns.start :]
    strides = (*corner.strides[:-2], sum(corner.strides[-2:]))
    return xp.lib.stride_tricks.as_strided(corner, (*corner.shape[:-2], len(rows)), strides)


def diagonal(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """A diagonal of two axes, as the last axis of a view."""
    return diagonal_(x, offset, normal_axis(axis1, x.ndim), normal_axis(axis2, x.ndim))


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last axis as a diagonal of two axes, zeros elsewhere."""
    places = [normal_axis(dim1, input.ndim + 1), normal_axis(dim2, input.ndim + 1)]
    text = f"diag_embed(): diagonal dimensions should not be identical, {dim1} vs {dim2}"
    require(len(set(places)) == 2, text)
    size = input.shape[-1] + abs(offset)
    zero = full([*input.shape[:-1], size, size], 0, input.dtype)
    return moveaxis(setitem(zero, _diagonal(offset, size, size), input), [-2, -1], places)


def diag(x: Tensor, offset: int = 0, padding_value: Any = 0) -> Tensor:
    """The diagonal of a matrix, or a matrix with the given diagonal and `padding_value`
    elsewhere.
    """
    if x.ndim == 2:
        return getitem(x, _diagonal(offset, *x.shape))  # a copy
    require(x.ndim < 2, "diag(): the input must be at most 2-D", x)
    size = x.size + abs(offset)
    return setitem(
        full([size, size], padding_value, x.dtype), _diagonal(offset, size, size), reshape(x, [-1])
    )


diagflat = composed("diagflat", lambda x, offset=0: diag(reshape(x, [-1]), offset))


def fill_diagonal_tensor(
    x: Tensor, y: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """A copy of `x` with `y` along a diagonal of two axes."""
    moved = moveaxis(x, [dim1, dim2], [-2, -1])
    written = setitem(moved, _diagonal(offset, *moved.shape[-2:]), y)
    return moveaxis(written, [-2, -1], [normal_axis(dim1, x.ndim), normal_axis(dim2, x.ndim)])


def fill_diagonal(x: Tensor, value: float, offset: int = 0, wrap: bool = False) -> Tensor:
    """A copy of `x` (a matrix, or with equal sizes on all axes) with the number `value` on its
    diagonal.

    `offset` selects a diagonal of a matrix: those above the main one are positive. With `wrap` it
    restarts one row below its end, if there are more rows than columns.
    """
    sizes, is_matrix = x.shape, x.ndim == 2
    fits = is_matrix or (x.ndim > 2 and len(set(sizes)) == 1)
    require(fits, "fill_diagonal_(): x should be a matrix, or equally long on all axes", x)
    width = sizes[1]
    step = sum(math.prod(sizes[k + 1 :]) for k in range(x.ndim))
    places = np.arange(0, x.size, step)
    if is_matrix:
        column = places % width + offset
        ends = wrap or places < width * width
        places = places[ends & (column >= 0) & (column < width)]
    return reshape(setitem(reshape(x, [-1]), places + offset, float(value)), sizes)


diagonal_scatter = composed(
    "diagonal_scatter",
    lambda x, y, offset=0, axis1=0, axis2=1: fill_diagonal_tensor(x, y, offset, axis1, axis2),
)


# --------------------------------------------------------------------- segments: `paddle.geometric`
def _pool_rows(kind: str, x: Tensor, rows: Tensor, count: int) -> Tensor:
    """The sum, mean or extreme of the rows of `x` with the same number in `rows`; zeros for a
    number without rows.
    """
    nothing = zeros([count, *x.shape[1:]], x.dtype)
    if kind == "sum":
        return add_at(nothing, rows, x)
    counts = add_at(zeros([count], x.dtype), rows, full([rows.size], 1, x.dtype))
    counts = reshape(counts, [-1, *[1] * (x.ndim - 1)])
    if kind == "mean":
        return add_at(nothing, rows, x) / where_(counts == 0, counts + 1, counts)
    extremes = put_reduced(nothing, rows, x, {"min": "minimum", "max": "maximum"}[kind], False)
    return where_(counts == 0, nothing, extremes)


def _segment(kind: str) -> Callable[..., Tensor]:
    """The sums (or means or extremes) of rows with equal ids, given in ascending order; zeros for
    an id without rows.
    """

    def segment(data: Tensor, segment_ids: Tensor) -> Tensor:
        count = as_int(segment_ids.array[-1]) + 1 if segment_ids.size else 0
        return _pool_rows(kind, data, segment_ids, count)

    return composed(f"segment_{kind}", segment)


segment_sum, segment_mean, segment_min, segment_max = map(_segment, ("sum", "mean", "min", "max"))

_MESSAGES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
}  # fmt: skip


def _message(kind: str, a: Tensor, b: Tensor) -> Tensor:
    one_of("`message_op`", kind, *_MESSAGES)
    require(
        a.shape[0] == b.shape[0],
        f"a message for each edge needs equally many rows, not {a.shape[0]}, {b.shape[0]}",
    )
    return _MESSAGES[kind](
        *(reshape(values, [-1, 1]) if values.ndim == 1 else values for values in (a, b))
    )


def _reduce_messages(
    messages: Tensor, dst_index: Tensor, reduce_op: str, out_size: Any, rows: int
) -> Tensor:
    one_of("`reduce_op`", reduce_op, "sum", "mean", "min", "max")
    count = rows if out_size is None or as_int(out_size) <= 0 else as_int(out_size)
    return _pool_rows(reduce_op, messages, dst_index, count)


# Along the edges of a graph, the rows `src_index` of x brought to the rows `dst_index` and reduced
# there; and those
# rows combined with those of the edges, y, by add, sub, mul or div.
send_u_recv = composed(
    "send_u_recv",
    lambda x, src_index, dst_index, reduce_op="sum", out_size=None: _reduce_messages(
        getitem(x, src_index), dst_index, reduce_op, out_size, x.shape[0]
    ),
)
send_ue_recv = composed(
    "send_ue_recv",
    lambda x, y, src_index, dst_index, message_op="add", reduce_op="sum", out_size=None: (
        _reduce_messages(
            _message(message_op, getitem(x, src_index), y),
            dst_index,
            reduce_op,
            out_size,
            x.shape[0],
        )
    ),
)


def send_uv(
    x: Tensor, y: Tensor, src_index: Tensor, dst_index: Tensor, message_op: str = "add"
) -> Tensor:
    """The row `src_index` of `x` combined with the row `dst_index` of `y`, for each edge, as in
    `send_ue_recv`.
    """
    return _message(message_op, getitem(x, src_index), getitem(y, dst_index))
