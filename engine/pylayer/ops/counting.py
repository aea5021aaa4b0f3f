"""Counts: of values, in bins, of what is in a set, of what repeats."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pylayer.array import XP, Array
from pylayer.invalid import invalid
from pylayer.op import op
from pylayer.ops.arguments import normal_axis
from pylayer.tensor import Tensor
from pylayer.watch import tell_left, watching


@op()
def bincount_(xp: ModuleType, x: Array, minlength: int) -> Array:
    """How often each number occurs."""
    return xp.bincount(x, minlength=minlength).astype("int64")


@op(inputs=("x", "weights"))
def bincount_weighted(xp: ModuleType, x: Array, weights: Array, minlength: int) -> Array:
    """The sum of the weights of each number."""
    return xp.bincount(x, weights, minlength).astype(weights.dtype if weights.dtype.kind == "f" else "float64")


def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each integer from 0 on occurs in a 1-d Tensor (else a TypeError), or the sum of its `weights`."""
    if x.dtype.rank != 1:
        raise TypeError("Elements in Input(x) should all be integers")
    if x.size and int(x.array.min().item()) < 0:
        raise invalid("The elements in input tensor must be non-negative ints")
    return bincount_(x, minlength) if weights is None else bincount_weighted(x, weights, minlength)


def _bounds(x: Tensor, low: float, high: float) -> tuple[float, float]:
    """Where the bins begin and end: at the extremes if both numbers are 0."""
    if low == high == 0 and x.size:
        low, high = float(x.array.min().item()), float(x.array.max().item())
    return (low - 1, high + 1) if low == high else (low, high)


def histogram_bin_edges(input: Tensor, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    """The edges of the bins that `histogram` counts in, float32."""
    low, high = _bounds(input, min, max)
    return Tensor(XP[type(input.array)].linspace(low, high, bins + 1).astype("float32"))


@op(inputs=("x",))
def histogram_(xp: ModuleType, x: Array, bins: int, low: float, high: float, weight: Any, density: bool) -> Array:
    """How many elements lie in each of equal bins, the last closed."""
    flat = x.reshape(-1).astype("float64")
    inside = (flat >= low) & (flat <= high)
    places = xp.minimum(((flat[inside] - low) * bins / (high - low)).astype("int64"), bins - 1)
    weights = None if weight is None else weight.reshape(-1)[inside].astype("float64")
    counts = xp.bincount(places, weights, bins)
    if density:
        return (counts / (counts.sum() * ((high - low) / bins))).astype("float32")
    return counts.astype("int64" if weight is None else weight.dtype)


def histogram(
    input: Tensor,
    bins: int = 100,
    min: float = 0.0,
    max: float = 0.0,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tensor:
    """How many elements lie in each of `bins` between `min` and `max`, or between the extremes if both are 0."""
    if max < min:
        raise ValueError(
            f"(InvalidArgument) max must be larger or equal to min. But received max is {max}, min is {min}"
        )
    return histogram_(input, bins, *_bounds(input, min, max), weight, density)


@op(inputs=("x", "test_x"))
def isin(xp: ModuleType, x: Array, test_x: Array, assume_unique: bool = False, invert: bool = False) -> Array:
    """Whether elements of `x` are in `test_x` (or are not, with `invert`)."""
    return xp.isin(x, test_x, invert=invert)


def unique_consecutive(
    x: Tensor, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None, dtype: Any = "int64"
) -> Any:
    """The elements (or slices along `axis`) that differ from the one before, and what else is asked for."""
    if watching:
        tell_left(x, "unique_consecutive()")
    xp = XP[type(x.array)]
    at = 0 if axis is None else normal_axis(axis, x.ndim)
    array: Array = x.array.reshape(-1) if axis is None else xp.moveaxis(x.array, at, 0)
    n = array.shape[0]
    new = xp.ones((n,), bool)
    if n > 1:
        new[1:] = (array[1:] != array[:-1]).reshape(n - 1, -1).any(-1)
    starts = xp.nonzero(new)[0]
    found = [Tensor(xp.moveaxis(array[new], 0, at))]
    if return_inverse:
        found.append(Tensor((xp.cumsum(new.astype("int64")) - 1).astype(dtype)))
    if return_counts:
        ends = xp.concatenate([starts[1:], xp.asarray([n])])
        found.append(Tensor((ends - starts).astype(dtype)))
    return found[0] if len(found) == 1 else tuple(found)
