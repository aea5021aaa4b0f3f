"""Primitives of JAX expressed in operations of the bundled engine: a table.

A row takes the operands as Tensors and the primitive's parameters by name, and gives the result, or
a list of results. A row that does not cover some parameters raises `Unplayed`; then, and for
primitives without a row, JAX computes the result and its vjp.

`tests/backends/jax/test_primitives.py` compares every row with JAX.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pylayer.paddle as paddle
from gradcheck.backends.played import Unplayed
from pylayer.tensor.tensor import Tensor

functional = paddle.nn.functional
PrimitiveRow = Callable[..., Any]


def require(is_covered: Any) -> None:
    """Raise Unplayed unless a row covers the primitive's parameters."""
    if not is_covered:
        raise Unplayed


def without_parameters(function: Callable[..., Any]) -> PrimitiveRow:
    """The row of a function that takes only the operands."""
    return lambda *operands, **_: function(*operands)


def of_floats(function: Callable[..., Any]) -> PrimitiveRow:
    """A row for a function that agrees with JAX on floating and complex operands only."""

    def row(*operands: Tensor, **_: Any) -> Any:
        require(all(x.array.dtype.kind in "fcV" for x in operands))
        return function(*operands)

    return row


def over_axes(function: Callable[..., Any]) -> PrimitiveRow:
    """The row of a reduction."""
    return lambda x, axes, **_: function(x, list(axes)) if axes else x


# --------------------------------------------------------------------------- shapes
def broadcast_in_dim(
    x: Tensor, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any
) -> Any:
    """Axes of length 1 inserted, then repeated."""
    inner = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, x.array.shape, strict=True):
        inner[axis] = size
    if inner != list(x.array.shape):
        x = paddle.reshape(x, inner)
    return paddle.broadcast_to(x, list(shape)) if inner != list(shape) else x


def reshape(x: Tensor, *, new_sizes: Sequence[int], dimensions: Any = None, **_: Any) -> Any:
    """Reshape an operand to new sizes."""
    require(dimensions is None)
    return paddle.reshape(x, list(new_sizes))


def slice_(
    x: Tensor, *, start_indices: Any, limit_indices: Any, strides: Any = None, **_: Any
) -> Any:
    """A slice with constant bounds."""
    steps = strides or [1] * len(start_indices)
    return x[tuple(map(slice, start_indices, limit_indices, steps))]


def pad(x: Tensor, value: Tensor, *, padding_config: Any, **_: Any) -> Any:
    """Constants put around an array."""
    require(all(low >= 0 and high >= 0 and not inner for low, high, inner in padding_config))
    require(x.array.ndim and x.array.dtype.kind in "fcV" and value.stop_gradient)
    pairs = [size for low, high, _ in padding_config for size in (low, high)]
    return functional.pad(x, pairs, value=value.array.item())


def split_row(x: Tensor, *, sizes: Sequence[int], axis: int, **_: Any) -> Any:
    """The parts of an array, split along an axis."""
    return list(paddle.split(x, list(sizes), axis))


def slice_at(
    starts: Sequence[Tensor], sizes: Sequence[int], shape: Sequence[int]
) -> tuple[slice, ...]:
    """The part of an array that a dynamic slice selects; an index out of range is clamped."""
    bounds = zip(starts, sizes, shape, strict=True)
    firsts = [min(max(int(start.array), 0), length - size) for start, size, length in bounds]
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes, strict=True))


def dynamic_slice(x: Tensor, *starts: Tensor, slice_sizes: Sequence[int], **_: Any) -> Any:
    """A slice whose bounds are values."""
    return x[slice_at(starts, slice_sizes, x.array.shape)]


def dynamic_update_slice(x: Tensor, update: Tensor, *starts: Tensor, **_: Any) -> Any:
    """An array with one slice replaced."""
    changed = paddle.clone(x)
    changed[slice_at(starts, update.array.shape, x.array.shape)] = update
    return changed


def iota(*, dtype: Any, shape: Sequence[int], dimension: int, **_: Any) -> Any:
    """Whole numbers along an axis."""
    other_axes = [axis for axis in range(len(shape)) if axis != dimension]
    numbers = np.expand_dims(np.arange(shape[dimension], dtype=dtype), other_axes)
    return Tensor(np.array(np.broadcast_to(numbers, shape)))


# --------------------------------------------------------------------------- products
def dot_general(x: Tensor, y: Tensor, *, dimension_numbers: Any, **_: Any) -> Any:
    """A matrix product as the engine's ``matmul`` if its axes allow it, otherwise as an einsum."""
    (of_x, of_y), (batch_x, batch_y) = dimension_numbers
    dims, count = (x.array.ndim, y.array.ndim), len(batch_x)
    leading = tuple(range(count))
    has_matmul_axes = dimension_numbers == (((dims[0] - 1,), (count,)), (leading, leading))
    if has_matmul_axes and dims[1] == count + 2 and (not count or dims[0] == dims[1]):
        return paddle.matmul(x, y)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    names_x, names_y = [""] * dims[0], [""] * dims[1]
    for axis_x, axis_y in [*zip(batch_x, batch_y, strict=True), *zip(of_x, of_y, strict=True)]:
        names_x[axis_x] = names_y[axis_y] = next(letters)
    names_x = [name or next(letters) for name in names_x]
    names_y = [name or next(letters) for name in names_y]
    names_out = [names_x[axis] for axis in batch_x]
    names_out += [name for axis, name in enumerate(names_x) if axis not in (*batch_x, *of_x)]
    names_out += [name for axis, name in enumerate(names_y) if axis not in (*batch_y, *of_y)]
    return paddle.einsum(f"{''.join(names_x)},{''.join(names_y)}->{''.join(names_out)}", x, y)


def convolution(
    x: Tensor, w: Tensor, *, padding: Sequence[tuple[int, int]], **parameters: Any
) -> Any:
    """A convolution with equal padding on both sides; its gradients have the axes in another
    order.
    """
    dims = x.array.ndim
    require(dims in (3, 4, 5) and parameters["batch_group_count"] == 1)
    require(set(parameters["lhs_dilation"]) == {1})
    require(all(low == high >= 0 for low, high in padding))
    conv = {3: functional.conv1d, 4: functional.conv2d, 5: functional.conv3d}[dims]
    of_x, of_w, of_out = parameters["dimension_numbers"]
    result = conv(
        in_order(x, of_x),
        in_order(w, of_w),
        stride=list(parameters["window_strides"]),
        padding=[low for low, _ in padding],
        dilation=list(parameters["rhs_dilation"]),
        groups=parameters["feature_group_count"],
    )
    return in_order(result, np.argsort(of_out).tolist())


def in_order(x: Tensor, axes: Sequence[int]) -> Tensor:
    """An array with its axes in an order."""
    return x if list(axes) == sorted(axes) else paddle.transpose(x, list(axes))


# --------------------------------------------------------------------------- choices
def select_n(which: Tensor, *cases: Tensor, **_: Any) -> Any:
    """A choice by a mask."""
    require(len(cases) == 2 and which.array.dtype == bool)
    if which.array.shape != cases[0].array.shape:
        which = paddle.broadcast_to(which, list(cases[0].array.shape))
    return paddle.where(which, cases[1], cases[0])


def clamp_row(low: Tensor, x: Tensor, high: Tensor, **_: Any) -> Any:
    """Values clamped to bounds."""
    return paddle.minimum(paddle.maximum(x, low), high)


def gather(
    x: Tensor, places: Tensor, *, dimension_numbers: Any, slice_sizes: Sequence[int], **_: Any
) -> Any:
    """Indexing by arrays of whole numbers along some axes, with whole slices along the others; or
    indexing of single elements, like ``take_along_axis``.
    """
    axes, shape = tuple(dimension_numbers.start_index_map), x.array.shape
    index = places.array
    arrays = dict(zip(axes, indices_within(index, [shape[axis] for axis in axes]), strict=True))
    if rows := dimension_numbers.operand_batching_dims:
        require(not dimension_numbers.offset_dims)
        grid = np.indices(index.shape[:-1])
        for axis, batch_axis in zip(
            rows, dimension_numbers.start_indices_batching_dims, strict=True
        ):
            arrays[axis] = Tensor(grid[batch_axis])
        return x[tuple(arrays[axis] for axis in range(len(shape)))]
    require(axes and axes == tuple(range(axes[0], axes[0] + len(axes))))
    require(tuple(dimension_numbers.collapsed_slice_dims) == axes)
    taken = [size if k not in axes else 1 for k, size in enumerate(shape)]
    require(list(slice_sizes) == taken)
    # the axes of the indices take the place of the indexed axes
    before = list(range(axes[0]))
    after = [k + index.ndim - 1 - len(axes) for k in range(axes[-1] + 1, len(shape))]
    require(list(dimension_numbers.offset_dims) == [*before, *after])
    return x[(*[slice(None)] * axes[0], *arrays.values())]


def scatter_add(
    x: Tensor, places: Tensor, updates: Tensor, *, dimension_numbers: Any, **_: Any
) -> Any:
    """An array with whole slices added at positions along its first axes."""
    axes, index = tuple(dimension_numbers.scatter_dims_to_operand_dims), places.array
    require(axes == tuple(range(len(axes))) == tuple(dimension_numbers.inserted_window_dims))
    require(x.array.dtype.kind in "fcV" and not dimension_numbers.operand_batching_dims)
    window = tuple(range(index.ndim - 1, index.ndim - 1 + x.array.ndim - len(axes)))
    require(tuple(dimension_numbers.update_window_dims) == window)
    indices = indices_within(index, x.array.shape[: len(axes)])
    return paddle.scatter_nd_add(x, paddle.stack(indices, -1), updates)


def indices_within(index: np.ndarray[Any, Any], limits: Sequence[int]) -> list[Tensor]:
    """The indices along each indexed axis, with JAX's rules for indices out of bounds."""
    require(bool(((index >= 0) & (index < np.array(limits, "int64"))).all()))
    return [Tensor(np.array(index[..., k], "int64")) for k in range(len(limits))]


def rem(x: Tensor, y: Tensor, **_: Any) -> Any:
    """The remainder of whole numbers, with the sign of the first."""
    require(x.array.dtype.kind in "iu" and bool(y.array.all()))
    return Tensor(np.fmod(x.array, y.array))


def sort_row(*operands: Tensor, dimension: int, num_keys: int, **_: Any) -> Any:
    """One array sorted, or several in the sorted order of the first."""
    require(num_keys == 1)
    if len(operands) == 1:
        return [paddle.sort(operands[0], dimension)]
    order = paddle.argsort(operands[0], dimension, stable=True)
    return [paddle.take_along_axis(x, order, dimension) for x in operands]


def position_of(function: Callable[..., Tensor]) -> PrimitiveRow:
    """The row of argmax or argmin."""

    def row(x: Tensor, *, axes: Sequence[int], index_dtype: Any, **_: Any) -> Any:
        require(len(axes) == 1)
        return paddle.cast(function(x, axes[0]), np.dtype(index_dtype).name)

    return row


def cumulative(function: Callable[..., Tensor]) -> PrimitiveRow:
    """The row of a scan such as cumsum."""

    def row(x: Tensor, *, axis: int, reverse: bool, **_: Any) -> Any:
        result = function(paddle.flip(x, [axis]) if reverse else x, axis)
        return paddle.flip(result, [axis]) if reverse else result

    return row


def convert(x: Tensor, *, new_dtype: Any, **_: Any) -> Any:
    """A cast."""
    return paddle.cast(x, np.dtype(new_dtype).name)


def power(x: Tensor, *, y: int, **_: Any) -> Any:
    """A power by a whole number."""
    require(x.array.dtype.kind in "fcV" or y >= 0)
    return x**y


SAME_NAME = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "conj", "cos", "cosh", "digamma", "erf",
    "exp", "expm1", "imag", "lgamma", "log", "log1p", "real", "rsqrt", "sin", "sinh", "sqrt", "tan",
    "tanh", "abs", "atan2", "ceil", "complex", "floor", "sign",
]  # fmt: skip
"""Primitives of floating operands that the engine has under the same name."""

PRIMITIVES: dict[str, PrimitiveRow] = {
    **{name: of_floats(getattr(paddle, name)) for name in SAME_NAME},
    "add": without_parameters(operator.add),
    "add_any": without_parameters(operator.add),
    "and": without_parameters(paddle.bitwise_and),
    "argmax": position_of(paddle.argmax),
    "argmin": position_of(paddle.argmin),
    "bessel_i0e": of_floats(paddle.i0e),
    "bessel_i1e": of_floats(paddle.i1e),
    "broadcast_in_dim": broadcast_in_dim,
    "clamp": clamp_row,
    "concatenate": lambda *xs, dimension, **_: paddle.concat(list(xs), dimension),
    "conv_general_dilated": convolution,
    "convert_element_type": convert,
    "copy": without_parameters(paddle.clone),
    "copy_p": without_parameters(paddle.clone),
    "cumlogsumexp": cumulative(paddle.logcumsumexp),
    "cummax": cumulative(lambda x, axis: paddle.cummax(x, axis)[0]),
    "cummin": cumulative(lambda x, axis: paddle.cummin(x, axis)[0]),
    "cumprod": cumulative(paddle.cumprod),
    "cumsum": cumulative(paddle.cumsum),
    "div": of_floats(operator.truediv),
    "dot_general": dot_general,
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "eq": without_parameters(operator.eq),
    "erf_inv": of_floats(paddle.erfinv),
    "gather": gather,
    "ge": without_parameters(operator.ge),
    "gt": without_parameters(operator.gt),
    "integer_pow": power,
    "iota": iota,
    "is_finite": of_floats(paddle.isfinite),
    "le": without_parameters(operator.le),
    "logistic": of_floats(functional.sigmoid),
    "lt": without_parameters(operator.lt),
    "max": without_parameters(paddle.maximum),
    "min": without_parameters(paddle.minimum),
    "mul": without_parameters(operator.mul),
    "ne": without_parameters(operator.ne),
    "neg": without_parameters(operator.neg),
    "not": without_parameters(paddle.bitwise_not),
    "optimization_barrier": lambda *xs, **_: list(xs),
    "or": without_parameters(paddle.bitwise_or),
    "pad": pad,
    "pow": of_floats(operator.pow),
    "reduce_and": over_axes(paddle.all),
    "reduce_max": over_axes(paddle.max),
    "reduce_min": over_axes(paddle.min),
    "reduce_or": over_axes(paddle.any),
    "reduce_prod": over_axes(paddle.prod),
    "reduce_sum": over_axes(paddle.sum),
    "rem": rem,
    "reshape": reshape,
    "rev": lambda x, dimensions, **_: paddle.flip(x, list(dimensions)),
    "scatter-add": scatter_add,
    "select_n": select_n,
    "sharding_constraint": without_parameters(lambda x: x),
    "slice": slice_,
    "sort": sort_row,
    "split": split_row,
    "square": without_parameters(lambda x: x * x),
    "squeeze": lambda x, dimensions, **_: paddle.squeeze(x, list(dimensions)),
    "stop_gradient": without_parameters(lambda x: x),
    "sub": without_parameters(operator.sub),
    "transpose": lambda x, permutation, **_: paddle.transpose(x, list(permutation)),
}
"""The engine's operations, by the primitive's name.

stop_gradient is the identity: it affects only JAX's own differentiation, not the values of the
function.
"""
