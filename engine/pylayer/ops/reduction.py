"""Reductions: sums, means, extremes, products, and what is made of them; running ones, and integrals, along an axis."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from pylayer.ops.arguments import axes_of, kept, normal_axis, require
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
from pylayer.ops.shape import astype, cast, clone, reshape, transpose
from pylayer.ops.sorting import index_dtype, of_graph
from pylayer.tape.op import Operation, composed, op
from pylayer.tensor.array import Array
from pylayer.tensor.dtype import as_dtype
from pylayer.tensor.invalid import as_floating
from pylayer.tensor.tensor import Tensor


def _spread(g: Any, F: Any, x_shape: Sequence[int], axis: Any) -> Any:
    """The cotangent of a reduction, of the input's shape."""
    return F.broadcast_view(F.reshape(g, kept(x_shape, axis)), list(x_shape))


def _sum_vjp(g: Any, F: Any, x_shape: tuple[int, ...], x_dtype: Any, axis: Any, dtype: Any) -> Any:
    gradient = _spread(g, F, x_shape, axis)
    return gradient if dtype is None else F.cast(gradient, x_dtype)


_SUMMED_AS_INT64 = (np.dtype("bool"), np.dtype("int32"))


@op(x=_sum_vjp)
def sum(
    xp: ModuleType, x: Array, axis: Any = None, dtype: Any = None, keepdim: bool = False
) -> Array:
    """The sum over `axis`, of bools and int32 as int64."""
    usual = np.dtype("int64") if x.dtype in _SUMMED_AS_INT64 else x.dtype
    wanted = usual if dtype is None else as_dtype(dtype).numpy
    return xp.sum(x, axis=axes_of(axis, x.ndim), dtype=wanted, keepdims=keepdim)


@op(
    x=lambda g, F, x_shape, axis: (
        _spread(g, F, x_shape, axis) / math.prod([x_shape[k] for k in axes_of(axis, len(x_shape))])
    )
)
def mean_(xp: ModuleType, x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    """The mean over `axis`; of integers, an integer (observed rule 77); of nothing NaN, of which NumPy warns."""
    if not x.size and x.dtype.kind not in "iub":
        return xp.sum(x, axis=axes_of(axis, x.ndim), keepdims=keepdim).astype(
            x.dtype
        ) * x.dtype.type(math.nan)
    return xp.mean(x, axis=axes_of(axis, x.ndim), keepdims=keepdim).astype(x.dtype)


mean = composed(
    "mean",
    lambda x, axis=None, keepdim=False, *, dtype=None: mean_(
        x if dtype is None else cast(x, dtype), axis, keepdim
    ),
)


def _at_extreme(g: Any, F: Any, x: Any, out: Any, axis: Any) -> Any:
    """The cotangent, shared evenly by the elements that reach the extreme."""
    there = F.cast(x == F.reshape(out, kept(x.shape, axis)), g.dtype)
    return _spread(g, F, x.shape, axis) * there / F.sum(there, axis, None, True)


def _reduction(name: str, **vjps: Any) -> Operation:
    """The array module's reduction of that name over `axis`."""

    def forward(xp: ModuleType, x: Array, axis: Any = None, keepdim: bool = False) -> Array:
        return getattr(xp, name)(x, axis=axes_of(axis, x.ndim), keepdims=keepdim)

    return op(**vjps)(composed(name, forward))


all, any = _reduction("all"), _reduction("any")
max, min = _reduction("max", x=_at_extreme), _reduction("min", x=_at_extreme)
amax, amin = max, min  # both share the gradient of equal elements in Paddle 3.3.1


@op(
    floating=True,
    x=lambda g, F, x, out, axis: (
        _spread(g, F, x.shape, axis) * F.exp(x - _spread(out, F, x.shape, axis))
    ),
)
def logsumexp(xp: ModuleType, x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    """log Σ exp(x) over `axis`, the largest element taken out first; −∞ where there is nothing to sum."""
    axes = axes_of(axis, x.ndim)
    if not x.size:
        return xp.log(xp.sum(x, axis=axes, keepdims=keepdim))
    largest = xp.max(x, axis=axes, keepdims=True)
    largest = xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest))
    result = xp.log(xp.sum(xp.exp(x - largest), axis=axes, keepdims=True)) + largest
    return (
        result if keepdim else result.reshape([n for k, n in enumerate(x.shape) if k not in axes])
    )


def _reversed_cumsum(g: Any, F: Any, x_shape: tuple[int, ...], x_dtype: Any, axis: Any) -> Any:
    """The running sum from the end; without an axis of the flattened cotangent."""
    flat = F.reshape(g, [-1] if axis is None or not x_shape else x_shape)
    k = 0 if axis is None or not x_shape else normal_axis(axis, len(x_shape))
    return F.cast(F.reshape(F.flip(F.cumsum(F.flip(flat, [k]), k), [k]), list(x_shape)), x_dtype)


@op(x=_reversed_cumsum)
def cumsum(xp: ModuleType, x: Array, axis: Any = None, dtype: Any = None) -> Array:
    """The running sum along `axis`; of the flattened Tensor without one."""
    result = xp.cumsum(
        x, axis=None if axis is None else int(axis), dtype=as_dtype(dtype).numpy if dtype else None
    )
    return result if axis is None or x.ndim else result.reshape(())


@op(
    floating=True,
    x=lambda g, F, x, out, axis: _spread(g / F.where(out == 0, 1, out), F, x.shape, axis) * x,
)
def norm_(xp: ModuleType, x: Array, axis: Any, keepdim: bool) -> Array:
    """The 2-norm over `axis`; its subgradient at 0 is 0, which the square root of a sum would make NaN."""
    return xp.sqrt(xp.sum(xp.abs(x) ** 2, axis=axes_of(axis, x.ndim), keepdims=keepdim))


# --------------------------------------------------------------------------- compositions
def at_the_end(x: Tensor, axis: Any) -> Tensor:
    """`x` with the reduced axes moved to the end and made one."""
    axes = axes_of(axis, x.ndim)
    rest = [k for k in range(x.ndim) if k not in axes]
    shape = [*(x.shape[k] for k in rest), math.prod(x.shape[k] for k in axes)]
    return reshape(transpose(x, [*rest, *axes]), shape)


def prod(x: Tensor, axis: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The product over `axis`: halves times halves, so that zeros do no harm to any derivative."""
    x = x if dtype is None else cast(x, dtype)
    shape = (
        kept(x.shape, axis)
        if keepdim
        else [n for k, n in enumerate(x.shape) if k not in axes_of(axis, x.ndim)]
    )
    flat = at_the_end(x, axis)
    while (n := flat.shape[-1]) != 1:
        if n == 0:
            empty = sum(flat, -1, x.dtype, False)  # not just ones: a gradient flows, of no elements
            return reshape(empty, shape) + 1
        rest = flat[..., n - 1 :] if n % 2 else None
        flat = flat[..., : n // 2] * flat[..., n // 2 : n - n % 2]
        if rest is not None:
            flat = concat([flat, rest], -1)
    return reshape(flat, shape)


def _running(combine: Callable[[Tensor, Tensor], Tensor], x: Tensor, at: int) -> Tensor:
    """Each element along an axis combined with all before it, by doubling strides: to any order of derivatives."""
    if x.shape[at] < 2:
        return clone(x)
    stride = 1
    while stride < x.shape[at]:
        earlier, later = along(x, at, slice(None, -stride)), along(x, at, slice(stride, None))
        x = concat([along(x, at, slice(stride)), combine(later, earlier)], at)
        stride *= 2
    return x


def cumprod(x: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The running product along `dim`: no division, so zeros do no harm."""
    x = x if dtype is None else cast(x, dtype)
    x = reshape(x, [-1]) if dim is None else x
    return (
        clone(x)
        if axes_of(dim, x.ndim) == ()
        else _running(multiply, x, normal_axis(dim or 0, x.ndim))
    )


def var(x: Tensor, axis: Any = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """The variance over `axis`, with n − 1 in the denominator if `unbiased`."""
    count = math.prod(x.shape[k] for k in axes_of(axis, x.ndim))
    centred = subtract(x, mean(x, axis, True))
    total = sum(square(centred), axis, None, keepdim)
    variance = total / (float(count - unbiased) if count > unbiased else float("nan"))
    return variance if x.dtype.is_differentiable else cast(variance, x.dtype)


std = composed(
    "std", lambda x, axis=None, unbiased=True, keepdim=False: sqrt(var(x, axis, unbiased, keepdim))
)


count_nonzero = composed(
    "count_nonzero",
    lambda x, axis=None, keepdim=False: of_graph(x, sum(x != 0, axis, None, keepdim)),
)


# --------------------------------------------------------------------------- running extremes and integrals
def _flat_or_along(x: Tensor, axis: int | None) -> tuple[Tensor, int]:
    """A Tensor and one of its axes; the flat Tensor and its only one for None."""
    return (reshape(x, [-1]), 0) if axis is None else (x, normal_axis(axis, x.ndim))


def _extreme(
    x: Tensor, axis: int | None, dtype: Any, pick: Callable[..., Tensor]
) -> tuple[Tensor, Tensor]:
    """The extremes so far along an axis, and their positions: of equal ones the last, and the first NaN stays."""
    x, at = _flat_or_along(x, axis)
    values = x.detach()
    missing = values != values
    reached = (values == _running(pick, values, at)) | (missing & (cumsum(missing, at) == 1))
    places = reshape(arange(x.shape[at]), [-1 if k == at else 1 for k in range(x.ndim)])
    found = astype(_running(maximum, where_(reached, places, 0), at), index_dtype(dtype))
    return take_along_axis(x, found, at), found


cummax = composed(
    "cummax", lambda x, axis=None, dtype="int64": _extreme(x, axis, dtype, maximum), "tuple"
)
cummin = composed(
    "cummin", lambda x, axis=None, dtype="int64": _extreme(x, axis, dtype, minimum), "tuple"
)


def logcumsumexp(x: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """log Σ exp of the elements so far along `axis`, or in the flat Tensor, without overflow."""
    x = as_floating(x) if dtype is None else astype(x, dtype)
    if not x.ndim and axis in (0, -1):
        return reshape(logcumsumexp(x), [])
    return _running(logaddexp, *_flat_or_along(x, axis))


def diff(
    x: Tensor,
    n: int = 1,
    axis: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours along `axis`, `n` times over; bools give whether they differ."""
    require(n > 0, f"The n should be greater than or equal to 1, but got {n}")
    at = normal_axis(axis, x.ndim)
    parts = [t for t in (prepend, x, append) if t is not None]
    x = concat(parts, at) if len(parts) > 1 else x
    for _ in range(builtins.min(n, x.shape[at])):  # beyond, nothing is left
        earlier, later = _neighbours(x, at)
        x = later != earlier if x.dtype.name == "bool" else later - earlier
    return x


def _neighbours(x: Tensor, at: int) -> tuple[Tensor, Tensor]:
    """All elements along an axis but the last, and all but the first."""
    return along(x, at, slice(None, -1)), along(x, at, slice(1, None))


def _slabs(y: Tensor, x: Tensor | None, dx: float | None, axis: int) -> tuple[Tensor, int]:
    """The areas between neighbours along `axis`."""
    require(x is None or dx is None, "Not permitted to specify both x and dx input args")
    require(y.dtype.rank > 1, "trapezoid(): needs floating-point numbers", y, error=TypeError)
    at = normal_axis(axis, y.ndim)
    earlier, later = _neighbours(y, at)
    if x is None:
        return (later + earlier) * (1.0 if dx is None else dx) / 2.0, at
    check_same_dtype("trapezoid", (y, x))
    steps = diff(x, axis=axis if x.ndim > 1 else 0)
    if x.ndim == 1:
        steps = reshape(steps, [-1 if k == at else 1 for k in range(y.ndim)])
    return (later + earlier) * steps / 2.0, at


# The integral of y by straight lines between the points x, or points dx apart, 1 unless given; and that to each point.
trapezoid = composed("trapezoid", lambda y, x=None, dx=None, axis=-1: sum(*_slabs(y, x, dx, axis)))
cumulative_trapezoid = composed(
    "cumulative_trapezoid", lambda y, x=None, dx=None, axis=-1: cumsum(*_slabs(y, x, dx, axis))
)
