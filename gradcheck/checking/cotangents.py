"""Random cotangents: of one size over all outputs, or such that every output counts alike."""

from __future__ import annotations

import math

import numpy as np

from gradcheck.checking.arrays import SMALLEST, Array, module_of
from gradcheck.checking.derivative import Interval

STANDS_OUT = 1e6
"""An output counts in a projection as if its derivative were at least so many of its error bounds: all those lost in
noise together widen the bound by one millionth of their number."""
SMALLEST_SIZE = math.sqrt(SMALLEST["float64"])
"""Of an output in a projection: cotangents have to leave room for the derivatives."""


def even_weights(like: Array, random: np.random.Generator) -> Array:
    """Random signs and magnitudes from 1/2 to 3/2, in the shape of a vector."""
    drawn = random.uniform(-1, 1, like.shape)
    return module_of(like).asarray(drawn + np.copysign(0.5, drawn))


def equal_weights(found: Interval, slopes: Array, random: np.random.Generator) -> Array:
    """Random signs and magnitudes under which every output counts alike, whatever the size of its derivative.

    Args:
        found: the derivative of every output along one direction.
        slopes: how large the slope of every output is along others. A derivative that is small along one direction by
            chance would otherwise drown the rest, with its rounding.
    """
    xp, known = module_of(found.bar), abs(found.bar) < np.inf
    size = xp.maximum(xp.maximum(abs(found.value), slopes), STANDS_OUT * xp.where(known, found.bar, 0.0))
    weight = xp.where(known, 1 / xp.maximum(xp.where(size > 0, size, 1.0), SMALLEST_SIZE), 0.0)
    return even_weights(slopes, random) * weight
