"""Statistics: means and medians that ignore NaN, quantiles, mode, covariance, counts."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

from pylayer.ops.arguments import kept_shape, normal_axis, one_of, require
from pylayer.ops.creation import full_like, ones, to_tensor
from pylayer.ops.elementwise import clip, divide, isnan, lerp, logical_not, sqrt
from pylayer.ops.indexing import where_
from pylayer.ops.joining import stack
from pylayer.ops.linalg import matmul
from pylayer.ops.positions import diagonal, take_along_axis
from pylayer.ops.reduction import at_the_end
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import astype, moveaxis, reshape, squeeze, transpose, unsqueeze
from pylayer.ops.sorting import argmax, sort
from pylayer.tape.op import composed, op
from pylayer.tensor.array import Array
from pylayer.tensor.tensor import Tensor

# --------------------------------------------------------------------------- without NaN
nansum = composed(
    "nansum",
    lambda x, axis=None, dtype=None, keepdim=False: total(
        where_(isnan(x), full_like(x, 0), x), axis, dtype, keepdim
    ),
)


def nanmean(x: Tensor, axis: Any = None, keepdim: bool = False) -> Tensor:
    """The mean of the elements that are not NaN."""
    counts = total(astype(logical_not(isnan(x)), x.dtype), axis, None, keepdim)
    return divide(nansum(x, axis, None, keepdim), counts)


# --------------------------------------------------------------------------- quantiles
def _interpolate(ordered: Tensor, place: Tensor, interpolation: str) -> Tensor:
    """Interpolate at a position between two elements along the last axis."""
    low, high = place.floor(), place.ceil()

    def element(position: Tensor) -> Tensor:
        return take_along_axis(ordered, astype(position, "int64"), -1)

    if interpolation in ("lower", "higher", "nearest"):
        return element({"lower": low, "higher": high, "nearest": place.round()}[interpolation])
    if interpolation == "midpoint":
        return (element(low) + element(high)) / 2
    return lerp(element(low), element(high), place - low)


INTERPOLATIONS = ("linear", "lower", "higher", "nearest", "midpoint")


def _quantile(
    x: Tensor, q: Any, axis: Any, keepdim: bool, interpolation: str, ignore_nan: bool
) -> Tensor:
    """The `q`-quantiles over `axis`; several are along a new first axis; a TypeError for
    integers.
    """
    one_of("quantile(): `interpolation`", interpolation, *INTERPOLATIONS)
    q = q.tolist() if isinstance(q, Tensor) else q
    several = isinstance(q, (list, tuple))
    shares = list(q) if several else [q]
    require(bool(shares), "q should not be empty")
    require(all(0 <= share <= 1 for share in shares), "q should be in range [0, 1]")
    require(x.dtype.rank > 1, "quantile(): needs floating-point numbers", x, error=TypeError)
    flat = at_the_end(x, axis)
    count = flat.shape[-1]
    ordered = sort(flat, -1)  # NaN at the end
    missing = total(astype(isnan(flat), "int64"), -1, None, True)
    valid = count - missing if ignore_nan else full_like(missing, count)
    undefined = valid == 0 if ignore_nan else missing > 0
    shape = kept_shape(tuple(x.shape), axis) if keepdim else flat.shape[:-1]
    quantiles = []
    for share in shares:
        position = clip(astype(valid - 1, x.dtype) * share, 0.0, float(max(count - 1, 0)))
        value = where_(undefined, math.nan, _interpolate(ordered, position, interpolation))
        quantiles.append(reshape(value, shape))
    return stack(quantiles, 0) if several else quantiles[0]


quantile = composed(
    "quantile",
    lambda x, q, axis=None, keepdim=False, interpolation="linear", *, out=None: _quantile(
        x, q, axis, keepdim, interpolation, False
    ),
)
nanquantile = composed(
    "nanquantile",
    lambda x, q, axis=None, keepdim=False, interpolation="linear": _quantile(
        x, q, axis, keepdim, interpolation, True
    ),
)


def nanmedian(x: Tensor, axis: Any = None, keepdim: bool = False, mode: str = "avg") -> Any:
    """The median of the elements that are not NaN: the mean of the two middle ones, or the smaller
    with mode ``min``; along one axis also its position, -1 if all are NaN.
    """
    one_of("nanmedian(): `mode`", mode, "avg", "min")
    if mode == "avg" or not isinstance(axis, int):
        return _quantile(x, 0.5, axis, keepdim, "midpoint" if mode == "avg" else "lower", True)
    medians = _quantile(x, 0.5, axis, True, "lower", True)
    place = where_(isnan(medians), -1, argmax(astype(x == medians, "int64"), axis, True))
    return (medians, place) if keepdim else (squeeze(medians, axis), squeeze(place, axis))


# --------------------------------------------------------------------------- the most frequent
@op()
def mode_positions(xp: ModuleType, x: Array) -> Array:
    """The last position, along the last axis, of the most frequent element (the smallest of
    several).
    """
    counts = (x[..., :, None] == x[..., None, :]).sum(-1)
    frequent = counts == counts.max(-1, keepdims=True)
    last = math.inf if x.dtype.kind == "f" else x.max()  # not the largest element, which may be NaN
    smallest = xp.where(frequent, x, last).min(-1, keepdims=True)
    return xp.where(frequent & (x == smallest), xp.arange(x.shape[-1]), -1).max(-1, keepdims=True)


def mode(x: Tensor, axis: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The most frequent element along `axis` (of several, the smallest) and its last position."""
    axis = normal_axis(axis, x.ndim or 1)
    if not x.ndim:
        return x + 0, to_tensor(0)
    positions = moveaxis(mode_positions(moveaxis(x, axis, -1)), -1, axis)
    value = take_along_axis(x, positions, axis)
    return (value, positions) if keepdim else (squeeze(value, axis), squeeze(positions, axis))


# --------------------------------------------------------------------------- covariance
def cov(
    x: Tensor,
    rowvar: bool = True,
    ddof: bool = True,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariances of rows (or columns), divided by n − 1, or by n without `ddof`; with weights
    `fweights` · `aweights`.
    """
    require(x.ndim in (1, 2), "Input(x) only support N-D (1<=N<=2) tensor in cov", x)
    rows = reshape(x, [1, -1]) if x.ndim == 1 else x
    rows = rows if rowvar or rows.shape[0] == 1 else transpose(rows, [1, 0])
    counts, shares = (
        ones([1], x.dtype) if w is None else astype(w, x.dtype) for w in (fweights, aweights)
    )
    weights = counts * shares * ones([rows.shape[1]], x.dtype)
    size = total(weights)
    centred = rows - total(rows * weights, 1, None, True) / size
    lost = total(weights * shares) / size
    product = matmul(centred, (centred * weights).conj(), transpose_y=True)
    return squeeze(product / (size - int(ddof) * lost))


def corrcoef(x: Tensor, rowvar: bool = True) -> Tensor:
    """The coefficients of correlation of variables, one per row (or column)."""
    covariances = cov(x, rowvar)
    if not covariances.ndim:
        return covariances / covariances
    deviation = sqrt(diagonal(covariances))
    return clip(covariances / unsqueeze(deviation, 1) / unsqueeze(deviation, 0), -1.0, 1.0)


# --------------------------------------------------------------------------- counts
@op()
def bincount(xp: ModuleType, x: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    """How often each integer from 0 on occurs in a 1-d Tensor (otherwise a TypeError), or the sum
    of its `weights`.
    """
    is_integer = x.dtype.kind in "iu"
    require(is_integer, "Elements in Input(x) should all be integers", error=TypeError)
    counts = xp.bincount(x, weights, minlength)
    if weights is None:
        return counts.astype("int64")
    return counts.astype(weights.dtype if weights.dtype.kind == "f" else "float64")


@op()
def histogram(
    xp: ModuleType,
    input: Array,
    bins: int = 100,
    min: float = 0.0,
    max: float = 0.0,
    weight: Array | None = None,
    density: bool = False,
) -> Array:
    """The number of elements in each of `bins` between `min` and `max`, or between the extremes of
    the elements if both are 0.
    """
    text = f"max must be larger or equal to min. But received max is {max}, min is {min}"
    require(min <= max, text)
    low, high = min, max
    if low == high == 0 and input.size:
        low, high = float(input.min().item()), float(input.max().item())
    if low == high:
        low, high = low - 1.0, high + 1.0
    flat = input.reshape(-1).astype("float64")
    inside = (flat >= low) & (flat <= high)
    places = xp.minimum(((flat[inside] - low) * bins / (high - low)).astype("int64"), bins - 1)
    weights = None if weight is None else weight.reshape(-1)[inside].astype("float64")
    counts = xp.bincount(places, weights, bins)
    if density:
        return (counts / (counts.sum() * ((high - low) / bins))).astype("float32")
    return counts.astype("int64" if weight is None else weight.dtype)
