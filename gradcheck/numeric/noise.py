"""The rounding errors of a function, measured: what η is where no tape tells it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcheck.numeric.line import Array, Line, module_of

EPS = 2.0**-52
NEAR = 2.0**-33
"""The spacing of the values, relative to the scale of the inputs: smooth functions are straight lines there."""
NODES = np.arange(1, 8) + 0.5 * ((np.arange(1, 8) * 0.5 * (5**0.5 - 1)) % 1)
"""Where the values are taken, in units of the spacing: at distances that are no multiples of anything, or rounding to a grid would
hide in multiples of it. So x + t·d is rounded, and that error counts: numbers as large as x are usual on the way. All lie on one side
of the point, where there may be a jump."""
ORDERS = range(3, 7)
"""Of the differences, as Moré and Wild take them: those of order 3 no longer see the function, 7 values allow 6."""
COARSER = 2.0**6
FINEST = 2.0**-12
"""Structure finer than this share of an input's scale is noise (the spacing of float16 is 2^-11), coarser is the function. Values
that do not change are looked at with `COARSER` times the spacing up to there."""
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


def measured(line: Line) -> Array:
    """A bound of the rounding error of every row.

    High differences of close values (ECNoise, Moré and Wild 2011), at nodes that are not equally spaced. Of values so close that
    some do not change, the least change is the distance of the numbers that they are rounded to. Where none changes at all, numbers
    of size 1 on the way may hide it (1 + x at 1e-17).
    """
    xp = module_of(line.outputs)
    size = line.sizes
    noise: Any = 0.0
    undecided: Any = True
    quantum = xp.full(size.shape, xp.inf)
    spacing = NEAR
    while spacing <= FINEST:
        table = xp.stack([line.at(node * spacing).change for node in NODES.tolist()])
        found: Any = 0.0
        unit = abs(table).max(axis=0)
        unit = xp.where(unit > 0, unit, 1.0)  # squares of small numbers underflow
        for weights in ANNIHILATORS:
            found = xp.maximum(found, ((xp.asarray(weights) @ (table / unit)) ** 2).mean(axis=0))
        changes = abs(table[1:] - table[:-1])
        rounded = undecided if spacing > NEAR else (changes == 0).any(axis=0)
        least = xp.where(changes > 0, changes, xp.inf).min(axis=0)
        quantum = xp.where(rounded, xp.minimum(quantum, least), quantum)
        noise = xp.where(undecided, unit * xp.sqrt(found), noise)
        undecided &= (changes == 0).mean(axis=0) > 0.5
        if not bool(undecided.any()):
            break
        spacing *= COARSER
    bound = xp.maximum(DEVIATIONS * noise, EPS * size)
    bound = xp.maximum(bound, xp.where(xp.isfinite(quantum), quantum, 0.0))
    bound = xp.where(undecided, EPS * xp.maximum(size, 1.0), bound)
    return xp.where(xp.isfinite(bound), bound, xp.inf)
