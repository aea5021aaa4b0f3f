"""Reductions: sums, means, extremes, products and compositions of these; also cumulative ones and
integrals along an axis.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from pylayer.ops.arguments import (
    axes_of,
    drop_axes,
    kept_shape,
    normal_axis,
    require,
    vector_shape,
)
from pylayer.ops.creation import arange
from pylayer.ops.elementwise import (
    check_same_dtype,
    logaddexp,
    maximum,
    minimum,
    multiply,
    sqrt,
    square,
    subtract,
)
from pylayer.ops.indexing import along, where_
from pylayer.ops.joining import concat
from pylayer.ops.positions import take_along_axis
from pylayer.ops.shape import astype, cast, clone, flat_or_along, reshape, transpose
from pylayer.ops.sorting import index_dtype, mark_as_dependent
from pylayer.tape.op import Operation, composed, op
from pylayer.tensor.array import Array
from pylayer.tensor.dtype import as_dtype
from pylayer.tensor.invalid import as_floating
from pylayer.tensor.tensor import Tensor


def _spread_cotangent(g: Any, F: Any, x_shape: Sequence[int], axis: Any) -> Any:
    """The cotangent of a reduction, of the input's shape."""
    return F.broadcast_view(F.reshape(g, kept_shape(x_shape, axis)), list(x_shape))


def _sum_vjp(g: Any, F: Any, x_shape: tuple[int, ...], x_dtype: Any, axis: Any, dtype: Any) -> Any:
    gradient = _spread_cotangent(g, F, x_shape, axis)
    return gradient if dtype is None else F.cast(gradient, x_dtype)


_SUMMED_AS_INT64 = (np.dtype("bool"), np.dtype("int32"))


@op(x=_sum_vjp)
def sum(
    xp: ModuleType, x: Array, axis: Any = None, dtype: Any = None, keepdim: bool = False
) -> Array:
    """The sum over `axis`; bools and int32 give int64."""
    usual = np.dtype("int64") if x.dtype in _SUMMED_AS_INT64 else x.dtype
    wanted = usual if dtype is None else as_dtype(dtype).numpy
    return x.sum(axis=axes_of(axis, x.ndim), dtype=wanted, keepdims=keepdim)


@op(
    x=lambda g, F, x_shape, axis: (
        _spread_cotangent(g, F, x_shape, axis)
        / math.prod([x_shape[k] for k in axes_of(axis, len(x_shape))])
    )
)
def mean_(xp: ModuleType, x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    """The mean over `axis`; integers give an integer (observed rule 77); without elements it is
    NaN, with NumPy's warning.
    """
    axes = axes_of(axis, x.ndim)
    if x.size or x.dtype.kind in "iub":
        return x.mean(axis=axes, keepdims=keepdim).astype(x.dtype)
    return xp.sum(x, axis=axes, keepdims=keepdim).astype(x.dtype) * x.dtype.type(math.nan)


mean = composed(
    "mean",
    lambda x, axis=None, keepdim=False, *, dtype=None: mean_(
        x if dtype is None else cast(x, dtype), axis, keepdim
    ),
)


def _at_extreme(g: Any, F: Any, x: Any, out: Any, axis: Any) -> Any:
    """The cotangent, shared evenly by the elements that equal the extreme."""
    is_extreme = F.cast(x == F.reshape(out, kept_shape(x.shape, axis)), g.dtype)
    return _spread_cotangent(g, F, x.shape, axis) * is_extreme / F.sum(is_extreme, axis, None, True)


def _reduction(name: str, **vjps: Any) -> Operation:
    """The array's reduction of that name over `axis`."""

    def forward(xp: ModuleType, x: Array, axis: Any = None, keepdim: bool = False) -> Array:
        return getattr(x, name)(axis=axes_of(axis, x.ndim), keepdims=keepdim)

    return op(**vjps)(composed(name, forward))


all, any = _reduction("all"), _reduction("any")
max, min = _reduction("max", x=_at_extreme), _reduction("min", x=_at_extreme)
amax, amin = max, min  # both share the gradient of equal elements in Paddle 3.3.1


@op(
    floating=True,
    x=lambda g, F, x, out, axis: (
        _spread_cotangent(g, F, x.shape, axis) * F.exp(x - _spread_cotangent(out, F, x.shape, axis))
    ),
)
def logsumexp(xp: ModuleType, x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    """log Σ exp(x) over `axis`, with the largest element subtracted first; −∞ if there are no
    elements.
    """
    axes = axes_of(axis, x.ndim)
    if not x.size:
        return xp.log(xp.sum(x, axis=axes, keepdims=keepdim))
    largest = xp.max(x, axis=axes, keepdims=True)
    largest = xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest))
    result = xp.log(xp.sum(xp.exp(x - largest), axis=axes, keepdims=True)) + largest
    return result if keepdim else result.reshape(drop_axes(x.shape, axes))


def _reversed_cumsum(g: Any, F: Any, x_shape: tuple[int, ...], x_dtype: Any, axis: Any) -> Any:
    """The cumulative sum from the end; without an axis, of the flattened cotangent."""
    is_flat = axis is None or not x_shape
    k = 0 if is_flat else normal_axis(axis, len(x_shape))
    flipped = F.flip(F.reshape(g, [-1] if is_flat else x_shape), [k])
    return F.cast(F.reshape(F.flip(F.cumsum(flipped, k), [k]), list(x_shape)), x_dtype)


@op(x=_reversed_cumsum)
def cumsum(xp: ModuleType, x: Array, axis: Any = None, dtype: Any = None) -> Array:
    """The cumulative sum along `axis`; without an axis, of the flattened Tensor."""
    wanted = as_dtype(dtype).numpy if dtype else None
    if axis is None:
        return xp.cumsum(x, dtype=wanted)
    return xp.cumsum(x, axis=int(axis), dtype=wanted).reshape(x.shape)


@op(
    floating=True,
    x=lambda g, F, x, out, axis: (
        _spread_cotangent(g / F.where(out == 0, 1, out), F, x.shape, axis) * x
    ),
)
def norm_(xp: ModuleType, x: Array, axis: Any, keepdim: bool) -> Array:
    """The 2-norm over `axis`; its subgradient at 0 is 0, which the square root of a sum would make
    NaN.
    """
    return xp.sqrt(xp.sum(xp.abs(x) ** 2, axis=axes_of(axis, x.ndim), keepdims=keepdim))


# --------------------------------------------------------------------------- compositions
def at_the_end(x: Tensor, axis: Any) -> Tensor:
    """`x` with the reduced axes moved to the end and merged into one."""
    axes = axes_of(axis, x.ndim)
    shape = [*drop_axes(x.shape, axes), math.prod(x.shape[k] for k in axes)]
    return reshape(transpose(x, [*drop_axes(range(x.ndim), axes), *axes]), shape)


def prod(x: Tensor, axis: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The product over `axis`: computed from halves, without division, so that zeros are harmless
    in every derivative.
    """
    x = x if dtype is None else cast(x, dtype)
    shape = kept_shape(x.shape, axis) if keepdim else drop_axes(x.shape, axes_of(axis, x.ndim))
    flat = at_the_end(x, axis)
    if not flat.shape[-1]:  # not `ones`: the result has a gradient, without elements
        return reshape(sum(flat, -1, x.dtype, False), shape) + 1
    while (n := flat.shape[-1]) > 1:
        pairs = flat[..., : n // 2] * flat[..., n // 2 : n - n % 2]
        flat = concat([pairs, flat[..., n - 1 :]], -1) if n % 2 else pairs
    return reshape(flat, shape)


def _running(combine: Callable[[Tensor, Tensor], Tensor], x: Tensor, axis: int) -> Tensor:
    """Each element along an axis combined with all earlier ones, by doubling strides;
    differentiable to any order.
    """
    if x.shape[axis] < 2:
        return clone(x)
    stride = 1
    while stride < x.shape[axis]:
        earlier, later = along(x, axis, slice(None, -stride)), along(x, axis, slice(stride, None))
        x = concat([along(x, axis, slice(stride)), combine(later, earlier)], axis)
        stride *= 2
    return x


def cumprod(x: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The cumulative product along `dim`, without division, so that zeros are harmless."""
    x = x if dtype is None else cast(x, dtype)
    if not x.ndim and dim is not None:
        normal_axis(dim, 1)
        return clone(x)
    return _running(multiply, *flat_or_along(x, dim))


def var(x: Tensor, axis: Any = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """The variance over `axis`, with n − 1 in the denominator if `unbiased`."""
    count = math.prod(x.shape[k] for k in axes_of(axis, x.ndim))
    centred = subtract(x, mean(x, axis, True))
    total = sum(square(centred), axis, None, keepdim)
    variance = total / (float(count - unbiased) if count > unbiased else math.nan)
    return variance if x.dtype.is_differentiable else cast(variance, x.dtype)


std = composed(
    "std", lambda x, axis=None, unbiased=True, keepdim=False: sqrt(var(x, axis, unbiased, keepdim))
)


count_nonzero = composed(
    "count_nonzero",
    lambda x, axis=None, keepdim=False: mark_as_dependent(x, sum(x != 0, axis, None, keepdim)),
)


# ------------------------------------------------------------------- running extremes and integrals
def _extreme(
    x: Tensor, axis: int | None, dtype: Any, pick: Callable[..., Tensor]
) -> tuple[Tensor, Tensor]:
    """The cumulative extremes along an axis and their positions; the last of equal ones; NaN from
    the first NaN on.
    """
    x, axis = flat_or_along(x, axis)
    values = x.detach()
    missing = values != values
    reached = (values == _running(pick, values, axis)) | (missing & (cumsum(missing, axis) == 1))
    places = reshape(arange(x.shape[axis]), vector_shape(axis, x.ndim))
    positions = astype(_running(maximum, where_(reached, places, 0), axis), index_dtype(dtype))
    return take_along_axis(x, positions, axis), positions


cummax = composed(
    "cummax", lambda x, axis=None, dtype="int64": _extreme(x, axis, dtype, maximum), "tuple"
)
cummin = composed(
    "cummin", lambda x, axis=None, dtype="int64": _extreme(x, axis, dtype, minimum), "tuple"
)


def logcumsumexp(x: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """log Σ exp of the elements so far along `axis`, or in the flattened Tensor, without
    overflow.
    """
    x = as_floating(x) if dtype is None else astype(x, dtype)
    if not x.ndim and axis in (0, -1):
        return reshape(logcumsumexp(x), [])
    return _running(logaddexp, *flat_or_along(x, axis))


def diff(
    x: Tensor,
    n: int = 1,
    axis: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours along `axis`, taken `n` times; for bools, whether they differ."""
    require(n > 0, f"The n should be greater than or equal to 1, but got {n}")
    axis = normal_axis(axis, x.ndim)
    parts = [t for t in (prepend, x, append) if t is not None]
    x = concat(parts, axis) if len(parts) > 1 else x
    for _ in range(builtins.min(n, x.shape[axis])):  # after that, no element is left
        earlier, later = _neighbours(x, axis)
        x = later != earlier if x.dtype.name == "bool" else later - earlier
    return x


def _neighbours(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """All elements along an axis except the last, and all except the first."""
    return along(x, axis, slice(None, -1)), along(x, axis, slice(1, None))


def _slabs(y: Tensor, x: Tensor | None, dx: float | None, axis: int) -> tuple[Tensor, int]:
    """The areas between neighbours along `axis`."""
    require(x is None or dx is None, "Not permitted to specify both x and dx input args")
    require(y.dtype.rank > 1, "trapezoid(): needs floating-point numbers", y, error=TypeError)
    y_axis = normal_axis(axis, y.ndim)
    earlier, later = _neighbours(y, y_axis)
    if x is None:
        return (later + earlier) * (1.0 if dx is None else dx) / 2.0, y_axis
    check_same_dtype("trapezoid", (y, x))
    steps = diff(x, axis=axis if x.ndim > 1 else 0)
    if x.ndim == 1:
        steps = reshape(steps, vector_shape(y_axis, y.ndim))
    return (later + earlier) * steps / 2.0, y_axis


# The integral of y by straight lines between the points x, or points dx apart (1 unless given); and
# the integral up to each point.
trapezoid = composed("trapezoid", lambda y, x=None, dx=None, axis=-1: sum(*_slabs(y, x, dx, axis)))
cumulative_trapezoid = composed(
    "cumulative_trapezoid", lambda y, x=None, dx=None, axis=-1: cumsum(*_slabs(y, x, dx, axis))
)
