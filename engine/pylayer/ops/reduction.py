"""Reductions: sums, means, extremes, products, and what is made of them; running ones, and integrals, along an axis."""

from __future__ import annotations

import builtins
import math
from types import ModuleType
from typing import Any

import numpy as np

from pylayer.array import Array
from pylayer.dtype import as_dtype
from pylayer.op import Operation, composed, op
from pylayer.ops.arguments import axes_of, kept, normal_axis
from pylayer.ops.elementwise import check_same_dtype, sqrt, square, subtract
from pylayer.ops.indexing import getitem
from pylayer.ops.joining import concat
from pylayer.ops.positions import take_along_axis
from pylayer.ops.shape import astype, cast, clone, reshape, transpose
from pylayer.ops.sorting import index_dtype, of_graph
from pylayer.tensor import Tensor


def _spread(g: Any, F: Any, x_shape: tuple[int, ...], axis: Any) -> Any:
    """The cotangent of a reduction, of the input's shape."""
    return F.broadcast_view(F.reshape(g, kept(x_shape, axis)), list(x_shape))


def _sum_vjp(g: Any, F: Any, x_shape: tuple[int, ...], x_dtype: Any, axis: Any, dtype: Any) -> Any:
    gradient = _spread(g, F, x_shape, axis)
    return gradient if dtype is None else F.cast(gradient, x_dtype)


_SUMMED_AS_INT64 = (np.dtype("bool"), np.dtype("int32"))


@op(x=_sum_vjp)
def sum(xp: ModuleType, x: Array, axis: Any = None, dtype: Any = None, keepdim: bool = False) -> Array:
    """The sum over `axis`, of bools and int32 as int64."""
    usual = np.dtype("int64") if x.dtype in _SUMMED_AS_INT64 else x.dtype
    wanted = usual if dtype is None else as_dtype(dtype).numpy
    return xp.sum(x, axis=axes_of(axis, x.ndim), dtype=wanted, keepdims=keepdim)


@op(
    x=lambda g, F, x_shape, axis: (
        _spread(g, F, x_shape, axis) / math.prod([x_shape[k] for k in axes_of(axis, len(x_shape))])
    )
)
def mean(xp: ModuleType, x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    """The mean over `axis`; of integers, an integer (observed rule 77)."""
    return xp.mean(x, axis=axes_of(axis, x.ndim), keepdims=keepdim).astype(x.dtype)


def _at_extreme(g: Any, F: Any, x: Any, out: Any, axis: Any) -> Any:
    """The cotangent, shared evenly by the elements that reach the extreme."""
    shape = tuple(x.shape)
    there = F.cast(x == F.reshape(out, kept(shape, axis)), g.dtype)
    return _spread(g, F, shape, axis) * there / F.sum(there, axis, None, True)


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
        _spread(g, F, tuple(x.shape), axis) * F.exp(x - F.reshape(out, kept(tuple(x.shape), axis)))
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
    return result if keepdim else result.reshape([n for k, n in enumerate(x.shape) if k not in axes])


def _reversed_cumsum(g: Any, F: Any, x_shape: tuple[int, ...], x_dtype: Any, axis: Any) -> Any:
    """The running sum from the end; without an axis of the flattened cotangent."""
    flat = F.reshape(g, [-1] if axis is None or not x_shape else x_shape)
    k = 0 if axis is None or not x_shape else normal_axis(axis, len(x_shape))
    return F.cast(F.reshape(F.flip(F.cumsum(F.flip(flat, [k]), k), [k]), list(x_shape)), x_dtype)


@op(x=_reversed_cumsum)
def cumsum(xp: ModuleType, x: Array, axis: Any = None, dtype: Any = None) -> Array:
    """The running sum along `axis`; of the flattened Tensor without one."""
    result = xp.cumsum(x, axis=None if axis is None else int(axis), dtype=as_dtype(dtype).numpy if dtype else None)
    return result if axis is None or x.ndim else result.reshape(())


@op(floating=True, x=lambda g, F, x, out, axis: _spread(g / F.where(out == 0, 1, out), F, tuple(x.shape), axis) * x)
def norm_(xp: ModuleType, x: Array, axis: Any, keepdim: bool) -> Array:
    """The 2-norm over `axis`; its subgradient at 0 is 0, which the square root of a sum would make NaN."""
    return xp.sqrt(xp.sum(xp.abs(x) ** 2, axis=axes_of(axis, x.ndim), keepdims=keepdim))


# --------------------------------------------------------------------------- compositions
def at_the_end(x: Tensor, axis: Any) -> Tensor:
    """`x` with the reduced axes moved to the end and made one."""
    axes = axes_of(axis, x.ndim)
    rest = [k for k in range(x.ndim) if k not in axes]
    shape = [*(x.array.shape[k] for k in rest), math.prod(x.array.shape[k] for k in axes)]
    return reshape(transpose(x, [*rest, *axes]), shape)


def prod(x: Tensor, axis: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The product over `axis`: halves times halves, so that zeros do no harm to any derivative."""
    x = x if dtype is None else cast(x, dtype)
    shape = (
        kept(x.array.shape, axis) if keepdim else [n for k, n in enumerate(x.shape) if k not in axes_of(axis, x.ndim)]
    )
    flat = at_the_end(x, axis)
    while (n := flat.array.shape[-1]) != 1:
        if n == 0:
            empty = sum(flat, -1, x.dtype, False)  # not just ones: a gradient flows, of no elements
            return reshape(empty, shape) + 1
        rest = flat[..., n - 1 :] if n % 2 else None
        flat = flat[..., : n // 2] * flat[..., n // 2 : n - n % 2]
        if rest is not None:
            flat = concat([flat, rest], -1)
    return reshape(flat, shape)


def cumprod(x: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The running product along `dim`, by doubling strides: no division, so zeros do no harm."""
    x = x if dtype is None else cast(x, dtype)
    x = reshape(x, [-1]) if dim is None else x
    if axes_of(dim, x.ndim) == ():
        return clone(x)
    k = normal_axis(dim or 0, x.ndim)
    before = (slice(None),) * k
    stride = 1
    while stride < x.array.shape[k]:
        head, tail = x[(*before, slice(None, stride))], x[(*before, slice(stride, None))]
        x = concat([head, tail * x[(*before, slice(None, -stride))]], k)
        stride *= 2
    return x


def var(x: Tensor, axis: Any = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """The variance over `axis`, with n − 1 in the denominator if `unbiased`."""
    count = math.prod(x.array.shape[k] for k in axes_of(axis, x.ndim))
    centred = subtract(x, mean(x, axis, True))
    total = sum(square(centred), axis, None, keepdim)
    variance = total / (float(count - unbiased) if count > unbiased else float("nan"))
    return variance if x.dtype.is_differentiable else cast(variance, x.dtype)


std = composed("std", lambda x, axis=None, unbiased=True, keepdim=False: sqrt(var(x, axis, unbiased, keepdim)))


# --------------------------------------------------------------------------- not differentiable
@op()
def count_nonzero_(xp: ModuleType, x: Array, axis: Any, keepdim: bool) -> Array:
    """How many elements over `axis` are not zero."""
    return xp.sum(x != 0, axis=axes_of(axis, x.ndim), keepdims=keepdim, dtype="int64")


count_nonzero = composed(
    "count_nonzero", lambda x, axis=None, keepdim=False: of_graph(x, count_nonzero_(x, axis, keepdim))
)


# --------------------------------------------------------------------------- running extremes and integrals
@op()
def extreme_positions(xp: ModuleType, x: Array, axis: int, largest: bool, dtype: Any) -> Array:
    """The position of the extreme so far, of equal ones the last, and the first NaN stays: by doubling strides."""
    best = xp.moveaxis(x, axis, -1)
    n = best.shape[-1]
    found = xp.broadcast_to(xp.arange(n), best.shape)
    stride = 1
    while stride < n:
        earlier, later = best[..., :-stride], best[..., stride:]
        better = (later >= earlier) if largest else (later <= earlier)
        keep = (better | (later != later)) & (earlier == earlier)
        chosen = xp.where(keep, found[..., stride:], found[..., :-stride])
        found = xp.concatenate([found[..., :stride], chosen], -1)
        best = xp.concatenate([best[..., :stride], xp.where(keep, later, earlier)], -1)
        stride *= 2
    return xp.moveaxis(found, -1, axis).astype(index_dtype(dtype))


def _extreme(x: Tensor, axis: int | None, dtype: Any, largest: bool) -> tuple[Tensor, Tensor]:
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    at = normal_axis(axis, x.ndim)
    found = extreme_positions(x, at, largest, dtype)
    return take_along_axis(x, found, at), found


cummax = composed("cummax", lambda x, axis=None, dtype="int64": _extreme(x, axis, dtype, True), "tuple")
cummin = composed("cummin", lambda x, axis=None, dtype="int64": _extreme(x, axis, dtype, False), "tuple")


def _logcumsumexp_vjp(g: Any, F: Any, x: Any, out: Any, axis: int) -> Any:
    """Σ over later places of g · exp(x − out), in doubling strides; no factor exp(outᵢ − outⱼ) is more than 1."""
    before = (slice(None),) * (axis % x.ndim)
    total, stride = g, 1
    while stride < x.shape[axis]:
        here, there = (*before, slice(None, -stride)), (*before, slice(stride, None))
        far = F.exp(F.getitem(out, here) - F.getitem(out, there)) * F.getitem(total, there)
        total = total + F.getitem_adjoint(far, total.shape, here)
        stride *= 2
    return F.exp(x - out) * total


@op(floating=True, x=_logcumsumexp_vjp)
def logcumsumexp_(xp: ModuleType, x: Array, axis: int) -> Array:
    """log Σ exp of the elements so far, without overflow."""
    out = xp.moveaxis(x, axis, -1)
    stride = 1
    while stride < out.shape[-1]:
        out = xp.concatenate([out[..., :stride], xp.logaddexp(out[..., stride:], out[..., :-stride])], -1)
        stride *= 2
    return xp.moveaxis(out, -1, axis).copy()


def logcumsumexp(x: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    """log Σ exp of the elements so far along `axis`, or in the flat Tensor."""
    x = x if dtype is None else astype(x, dtype)
    if not x.ndim and axis in (0, -1):
        return reshape(logcumsumexp(x), [])
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    return logcumsumexp_(x, normal_axis(axis, x.ndim))


def diff(x: Tensor, n: int = 1, axis: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Differences of neighbours along `axis`, `n` times over; bools give whether they differ."""
    if n < 1:
        raise ValueError(f"The n should be greater than or equal to 1, but got {n}.")
    at = normal_axis(axis, x.ndim)
    parts = [t for t in (prepend, x, append) if t is not None]
    x = concat(parts, at) if len(parts) > 1 else x
    before = (slice(None),) * at
    for _ in range(builtins.min(n, x.shape[at])):  # beyond, nothing is left
        later, earlier = getitem(x, (*before, slice(1, None))), getitem(x, (*before, slice(None, -1)))
        x = later != earlier if x.dtype.name == "bool" else later - earlier
    return x


def _slabs(y: Tensor, x: Tensor | None, dx: float | None, axis: int) -> tuple[Tensor, int]:
    """The areas between neighbours along `axis`."""
    if x is not None and dx is not None:
        raise ValueError("Not permitted to specify both x and dx input args.")
    if y.dtype.rank < 2:
        raise TypeError(f"The data type of input must be one of ['float16', 'float32', 'float64'], but got {y.dtype}")
    at = normal_axis(axis, y.ndim)
    before = (slice(None),) * at
    sums = getitem(y, (*before, slice(1, None))) + getitem(y, (*before, slice(None, -1)))
    if x is None:
        return sums * (1.0 if dx is None else dx) / 2.0, at
    check_same_dtype("trapezoid", (y, x))
    steps = diff(x) if x.ndim == 1 else diff(x, axis=axis)
    if x.ndim == 1:
        steps = reshape(steps, [-1 if k == at else 1 for k in range(y.ndim)])
    return sums * steps / 2.0, at


def trapezoid(y: Tensor, x: Tensor | None = None, dx: float | None = None, axis: int = -1) -> Tensor:
    """The integral of `y` along `axis`, by straight lines between points `x`, or points `dx` apart, 1 unless given."""
    slabs, at = _slabs(y, x, dx, axis)
    return sum(slabs, at)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, dx: float | None = None, axis: int = -1) -> Tensor:
    """The integral from the start to each later point; see `trapezoid`."""
    slabs, at = _slabs(y, x, dx, axis)
    return cumsum(slabs, at)
