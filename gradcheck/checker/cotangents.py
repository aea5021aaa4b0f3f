"""Random cotangents: of one size over all outputs, or such that every output counts alike."""

from __future__ import annotations

import numpy as np

from gradcheck.checker.decide import POWER
from gradcheck.numeric.arrays import Array, module_of
from gradcheck.numeric.derivative import Interval

STANDS_OUT = 1e6
"""An output counts in a projection as if its derivative were at least so many of its bars: all those lost in noise
together widen the bar by one millionth of their number."""
SMALLEST_SIZE, MOST_WEIGHT, LEAST_WEIGHT = 2.0**-1000, 2.0**500, 2.0**-1000
"""Of an output in a projection. Larger weights are all made smaller alike, as cotangents have to leave room for the
derivatives, but none so small that it vanishes: an output that would need more is then a small share, which is looked
at by itself."""


def even_weights(like: Array, random: np.random.Generator) -> Array:
    """Random signs and magnitudes from 1/2 to 3/2."""
    drawn = random.uniform(-1, 1, like.shape)
    return module_of(like).asarray(drawn + np.copysign(0.5, drawn))


def known_less(found: Interval, slopes: Array) -> Array:
    """The outputs that respond, but count for less in a projection than their size asks for, as they do not stand out
    of their bar enough."""
    xp, size = module_of(slopes), abs(found.value)
    responds = (size > found.bar) | (slopes > 0)
    return responds & xp.isfinite(found.bar) & (STANDS_OUT * found.bar > xp.maximum(size, slopes))


def equal_weights(found: Interval, slopes: Array, random: np.random.Generator) -> Array:
    """Random signs and magnitudes under which every output counts alike, whatever the size of its derivative.

    Args:
        found: the derivative of every output along one direction.
        slopes: how large the slope of every output is along others. A derivative that is small along one direction by
            chance would otherwise drown the rest, with its rounding.
    """
    xp, bar = module_of(slopes), found.bar
    size = xp.maximum(abs(found.value), slopes)
    known = xp.isfinite(bar)
    seen = known & (bar <= POWER * size)
    if bool(seen.any()):  # what is not seen counts as one that is: by its own size it would drown the others
        size = xp.where(seen, size, float(size[seen].mean()))
    size = xp.maximum(size, STANDS_OUT * xp.where(known, bar, 0.0))
    size = xp.where(size > 0, size, 1.0)
    weight = xp.where(known, 1 / xp.maximum(size, SMALLEST_SIZE), 0.0)
    largest = float(weight.max(initial=0.0))
    if largest > MOST_WEIGHT:
        least = float(weight[weight > 0].min())
        weight = xp.minimum(weight * max(MOST_WEIGHT / largest, LEAST_WEIGHT / least), MOST_WEIGHT)
    return even_weights(slopes, random) * weight
