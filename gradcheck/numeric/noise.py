"""The rounding errors of a function, measured: what η is where no tape tells it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcheck.numeric.line import Array, Line, module_of
from gradcheck.numeric.scan import EPS, RATIO, Scan

NEAR = 2.0**-33
"""The spacing of the values, relative to the scale of the inputs: smooth functions are straight lines there."""
NODES = np.arange(1, 8) + 0.5 * ((np.arange(1, 8) * 0.5 * (5**0.5 - 1)) % 1)
"""Where the values are taken, in units of the spacing: at distances that are no multiples of anything, or rounding to a grid would
hide in multiples of it. So x + t·d is rounded, and that error counts: numbers as large as x are usual on the way. All lie on one side
of the point, where there may be a jump."""
ORDERS = range(3, 7)
"""Of the differences, as Moré and Wild take them: those of order 3 no longer see the function, 7 values allow 6."""
COARSER = 2.0**6
FINEST = -6
"""Structure finer than 4^-6 of an input's scale is noise (the spacing of float16 is 2^-11), coarser is the function. A row that does
not change between close values, but does on both sides of the point by then, is rounded: it is looked at with `COARSER` times the
spacing up to there. (Beside a kink it changes on one side alone.)"""
DEVIATIONS = 4.0
"""What differences estimate is the standard deviation of the error; 4 of them bound it, as none of 4,000 random compositions of
elementary functions shows (tests/bench/compositions.py)."""


def annihilators(order: int) -> np.ndarray[Any, Any]:
    """Per window of order + 1 nodes, the weights of unit length that give 0 for polynomials of lower degree.

    They are those of the divided difference; applied to independent errors they give their standard deviation.
    """
    rows = np.zeros((len(NODES) - order, len(NODES)))
    for first, row in enumerate(rows):
        window = NODES[first : first + order + 1]
        gaps = window[:, None] - window[None, :] + np.eye(order + 1)
        weights = 1 / gaps.prod(axis=1)
        row[first : first + order + 1] = weights / np.sqrt((weights**2).sum())
    return rows


ANNIHILATORS = [annihilators(order) for order in ORDERS]


def measured(scan: Scan) -> Array:
    """A bound of the rounding error of every row.

    High differences of close values (ECNoise, Moré and Wild 2011), at nodes that are not equally spaced. Of values so close that
    some do not change, the least change is the distance of the numbers that they are rounded to. Where none changes at all, numbers
    of size 1 on the way may hide it (1 + x at 1e-17).
    """
    line = scan.line
    xp, size = module_of(line.outputs), line.sizes
    table = close_values(xp, line, NEAR)
    noise, changes = deviation(xp, table), abs(table[1:] - table[:-1])
    flat = (changes == 0).mean(axis=0) > 0.5
    rounded = (changes == 0).any(axis=0)
    quantum = xp.where(rounded, least(xp, changes), xp.inf)
    if bool(flat.any()):
        scan.extend([FINEST])
        ahead, behind = scan.samples[FINEST]
        undecided = flat & (ahead.change != 0) & (behind.change != 0)
        flat &= ~undecided
        spacing = COARSER * NEAR
        while bool(undecided.any()) and spacing <= RATIO**FINEST:
            table = close_values(xp, line, spacing)
            changes = abs(table[1:] - table[:-1])
            noise = xp.where(undecided, deviation(xp, table), noise)
            quantum = xp.where(undecided, xp.minimum(quantum, least(xp, changes)), quantum)
            undecided &= (changes == 0).mean(axis=0) > 0.5
            spacing *= COARSER
        flat |= undecided
    bound = xp.maximum(DEVIATIONS * noise, EPS * size)
    bound = xp.maximum(bound, xp.where(xp.isfinite(quantum), quantum, 0.0))
    bound = xp.where(flat, EPS * xp.maximum(size, 1.0), bound)
    return xp.where(xp.isfinite(bound), bound, xp.inf)


def close_values(xp: Any, line: Line, spacing: float) -> Array:
    """The rows at all nodes."""
    return xp.stack([line.at(node * spacing).change for node in NODES.tolist()])


def least(xp: Any, changes: Array) -> Array:
    """The least change that there is; inf if there is none."""
    return xp.where(changes > 0, changes, xp.inf).min(axis=0)


def deviation(xp: Any, table: Array) -> Array:
    """The standard deviation of the errors in every column of values."""
    unit = abs(table).max(axis=0)
    unit = xp.where(unit > 0, unit, 1.0)  # squares of small numbers underflow
    found: Any = 0.0
    for weights in ANNIHILATORS:
        found = xp.maximum(found, ((xp.asarray(weights) @ (table / unit)) ** 2).mean(axis=0))
    return unit * xp.sqrt(found)
