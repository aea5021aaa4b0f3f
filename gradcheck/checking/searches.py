"""Whether the values of a recorded call come through its comparisons: a bisection, a golden
section, entmax.

Each comparison halves a bracket, and the outputs are its ends: what depends on the inputs is which
end was taken. The tape differentiates the end that was taken as the constant that it is; the
function is a staircase whose slope consists of steps. A continuous function changes along a line by
the mean of its slopes (also across kinks). Where the outputs change in proportion to the step, at
steps of several sizes, by something else than the mean of the tape's slopes, it is their jumps that
carry the change, and the tape is not the derivative of what is computed."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.checking.differences import RATIO, Line

FEWEST = 10
"""Comparisons of a search: ten halve a bracket to a thousandth of it. Fewer comparisons leave the
steps of a step function, in which the derivative is 0."""
STEPS = (-5, -4, -3)
"""The exponents of the steps at which the outputs have to change in proportion. If the steps of a
staircase are wider than 2^-11 of the inputs' scale, they see single steps."""
IN_PROPORTION = 1 / 4
"""The largest allowed difference between the slopes over two steps: one step of the staircase at
either end: 2^-11 compared with 2^-9. A single jump, or one on both sides, makes the slope over the
next step 4 times less."""
SLOPES = 8
"""The tape's slopes that are taken between the ends of the smallest step. Over so small a part a
smooth function's slope is straight to 2^-20, and its mean is met; of a function with kinks it is
met within the range of the slopes."""
MISSED = 1e-2
"""The share of a row's change that the tape has to miss."""


def jumps_carry(
    line: Line, slope: Callable[[float, Array], float], random: np.random.Generator
) -> bool:
    """Whether the change of some outputs along a line consists of jumps.

    Args:
        line: one row per output.
        slope: gives the tape's slope at a place on the line, of the rows' sum with some weights.
    """
    line.extend(STEPS)
    quotients = [
        (line.samples[k][0].change - line.samples[k][1].change) / (2 * RATIO**k) for k in STEPS
    ]
    even = np.isfinite(quotients).all(axis=0) & (quotients[0] != 0)
    for fine, coarse in itertools.pairwise(quotients):
        even &= abs(fine - coarse) <= IN_PROPORTION * np.fmax(abs(fine), abs(coarse))
    if not bool(even.any()):
        return False
    # every row counts alike, and no share that is missed cancels another
    weights = np.where(
        even, random.uniform(0.5, 1.5, even.size) / np.where(even, quotients[0], 1.0), 0.0
    )
    places = (2 * np.arange(SLOPES) + 1) / SLOPES - 1
    slopes = np.array([slope(place * RATIO ** STEPS[0], weights) for place in places.tolist()])
    missed = abs(float((weights * quotients[0])[even].sum()) - slopes.mean())
    return bool(missed > np.ptp(slopes) + MISSED * np.sqrt(even.sum()))
