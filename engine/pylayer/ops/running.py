"""Running extremes, sums and integrals along an axis."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.op import composed, op
from pylayer.ops.arguments import normal_axis
from pylayer.ops.gathering import take_along_axis
from pylayer.ops.indexing import getitem
from pylayer.ops.joining import concat
from pylayer.ops.logic import check_same_dtype
from pylayer.ops.reduction import cumsum
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import astype, reshape
from pylayer.ops.sorting import index_dtype
from pylayer.tensor import Tensor


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
    for _ in range(min(n, x.shape[at])):  # beyond, nothing is left
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
    return total(slabs, at)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, dx: float | None = None, axis: int = -1) -> Tensor:
    """The integral from the start to each later point; see `trapezoid`."""
    slabs, at = _slabs(y, x, dx, axis)
    return cumsum(slabs, at)
