"""Whether a recorded call is a search, whose values are selected by comparisons: a bisection, a
golden section, entmax.

Each comparison halves a bracket, and the outputs are its ends: the inputs determine only which end
is taken. The tape differentiates that end as a constant; the function is a staircase whose slope
consists of steps. A continuous function changes along a line by the mean of its slopes (also across
kinks). If the outputs change in proportion to the step, at steps of several sizes, but not by the
mean of the tape's slopes, the change consists of jumps, and the tape is not the derivative of the
computed function.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.checking.differences import RATIO, Line

FEWEST = 10
"""The fewest comparisons of a search: ten reduce a bracket to a thousandth. With fewer, the
function is a step function, whose derivative is 0.
"""
STEPS = (-5, -4, -3)
"""The exponents of the steps at which the outputs must change in proportion. If the stairs are
wider than 2^-11 of the inputs' scale, these steps resolve single stairs.
"""
IN_PROPORTION = 1 / 4
"""The largest allowed difference between the slopes over two steps: one stair at either end, 2^-11
compared with 2^-9. A single jump, or one on both sides, makes the slope over the next step 4 times
less.
"""
SLOPES = 8
"""The number of the tape's slopes taken between the ends of the smallest step. Over such a step a
smooth function's slope is linear to 2^-20, so that the mean is exact; for a function with kinks,
the mean is within the range of the slopes.
"""
MISSED = 1e-2
"""The share of a row's change that the tape must fail to explain."""


def jumps_carry(
    line: Line, slope: Callable[[float, Array], float], random: np.random.Generator
) -> bool:
    """Whether the change of some outputs along a line consists of jumps.

    Args:
        line: one row per output.
        slope: computes the tape's slope, at a position on the line, of a weighted sum of the rows.
    """
    line.extend(STEPS)
    quotients = [
        (line.samples[k][0].change - line.samples[k][1].change) / (2 * RATIO**k) for k in STEPS
    ]
    even = np.isfinite(quotients).all(axis=0) & (quotients[0] != 0)
    for fine, coarse in itertools.pairwise(quotients):
        even &= abs(fine - coarse) <= IN_PROPORTION * np.fmax(abs(fine), abs(coarse))
    if not even.any():
        return False
    # every row counts about equally, and unexplained changes of different rows do not cancel
    weights = np.where(
        even, random.uniform(0.5, 1.5, even.size) / np.where(even, quotients[0], 1.0), 0.0
    )
    places = (2 * np.arange(SLOPES) + 1) / SLOPES - 1
    slopes = np.array([slope(place * RATIO ** STEPS[0], weights) for place in places.tolist()])
    missed = abs(float((weights * quotients[0])[even].sum()) - slopes.mean())
    return bool(missed > np.ptp(slopes) + MISSED * np.sqrt(even.sum()))
