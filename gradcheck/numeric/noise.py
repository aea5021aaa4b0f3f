"""The rounding errors of a function, measured: what η is where no tape tells it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcheck.numeric.arrays import EPS, EPSILON, FLOAT32, Array, flat, module_of, real
from gradcheck.numeric.line import USUAL, Line, Scan

DEVIATIONS = 6.0
"""What differences estimate is the standard deviation of the error. Rounding to a grid is off by 1.7 of them at most;
an estimate from so few values is low by a factor of 3 once in some hundred."""


ONE_SIDED = 16.0
"""Estimates from both sides of the point that differ by a larger factor see a kink or a jump on one side: of 100,000
pairs from the same noise 0.1 % (near) and 0.7 % (far) do."""


class Table:
    """High differences of values at some nodes: weights of unit length that give 0 for polynomials of a lower degree.

    They are those of divided differences; applied to independent errors they give their standard deviation (ECNoise,
    Moré and Wild 2011). The nodes are not equally spaced, nor by multiples of one number: rounding to a grid would hide
    in multiples of either.

    Args:
        count: of nodes, at about 1, 2, 3 … times the spacing.
        spacing: relative to the scale of the inputs.
        orders: of the differences.
    """

    def __init__(self, count: int, spacing: float, orders: Sequence[int]) -> None:
        self.nodes = spacing * (np.arange(1, count + 1) + 0.5 * (np.sqrt(PRIMES[:count]) % 1))
        self.weights = [self.of_order(order) for order in orders]

    def of_order(self, order: int) -> np.ndarray[Any, Any]:
        """One row per window of order + 1 nodes."""
        rows = np.zeros((len(self.nodes) - order, len(self.nodes)))
        for first, row in enumerate(rows):
            window = self.nodes[first : first + order + 1] / self.nodes[0]
            gaps = window[:, None] - window[None, :] + np.eye(order + 1)
            weights = 1 / gaps.prod(axis=1)
            row[first : first + order + 1] = weights / np.sqrt((weights**2).sum())
        return rows

    def values(self, line: Line, sign: float) -> Array:
        """The rows at all nodes, ahead or behind: on one side of the point alone, where there may be a jump."""
        return module_of(line.outputs).stack([line.at(sign * node).change for node in self.nodes.tolist()])

    def deviation(self, table: Array) -> Array:
        """The standard deviation of the errors in every column of values."""
        xp = module_of(table)
        unit = abs(table).max(axis=0)
        unit = xp.where(unit > 0, unit, 1.0)  # squares of small numbers underflow
        found: Any = 0.0
        for weights in self.weights:
            found = xp.maximum(found, ((xp.asarray(weights) @ (table / unit)) ** 2).mean(axis=0))
        return unit * xp.sqrt(found)


@functools.cache
def high(spacing: float) -> Table:
    """12 values and sixth to eighth differences, which no longer see what is smooth over that distance."""
    return Table(12, spacing, range(6, 9))


PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
"""Their square roots are independent over the rational numbers: no grid meets two nodes alike."""
NEAR = Table(7, 2.0**-33, range(3, 7))
"""So close that smooth functions are straight lines, and x + t·d is rounded: numbers as large as x are usual on the
way, so that error counts. 7 values and differences from the third on, as Moré and Wild take them."""
FAR = high(2.0**-18)
"""Up to 2^-15 of the scale, finer than which structure may be rounding: that of float32 is (2^-23), a quantiser of 12
bits is not. There sixth differences no longer see functions of that scale (2^-90)."""
FINER = high(2.0**-23)
"""What rounds to float32 is as noisy there, between values that are about one spacing of float32 apart."""
FLOAT32_AT_LEAST = 2.0**10
"""Units of float64 that rounding is more than if float32 makes it, whose are 2^29 times as large."""
ON_THE_WAY = 16.0
"""Units of rounding of numbers on the way that may hide in an output, however small it is (a GELU at -8 is
x · (1 − 1) / 2): a few operations."""
OF_FLOAT32 = ON_THE_WAY * FLOAT32
"""The same where a function computes in float32, relative to the largest output, or 1."""
SHARED = 0.25
"""Of the rounding error that half of the rows have, relative to themselves and as it is, so much is granted to each: it
is the same function, and a few values may agree by chance. Relative alone, rows of which little but rounding is left
would stand for the others."""
LAST_DIGIT = 1 / 8
"""Of numbers that are rounded to a dtype half need its last digit, or fewer after a product with a short number."""
FEW = 16.0
"""Units of rounding that stairs may be high, or parts of one that they may be low, after a few operations."""
STAIRS = -8
"""The exponent of the least step at which stairs are looked for, 2^-16: finer ones show in high differences."""
COARSEST = 2.0**-5
"""Rounding is no larger share of the values (the spacing of bfloat16 is 2^-7): what is, is the function's structure."""


def measured(scan: Scan, both_sides: bool = False) -> Array:
    """A bound of the rounding error of every row, if all structure that is seen is the function's.

    Of both sides the larger counts unless it is so much larger that it sees a kink or a jump there. Where nothing
    changes at all, numbers of size 1 on the way may hide it (1 + x at 1e-17).
    """
    line = scan.line
    xp, size = module_of(line.outputs), line.sizes
    found: list[Array] = []
    for sign in (1.0, -1.0) if both_sides else (1.0,):
        table = NEAR.values(line, sign)
        level = (table[1:] == table[:-1]).mean(axis=0) > 0.5
        bound = xp.maximum(DEVIATIONS * NEAR.deviation(table), EPS * size)
        bound = xp.where(level, EPS * xp.maximum(size, 1.0), bound)
        found.append(xp.where(xp.isfinite(bound), bound, xp.inf))
    return xp.maximum(of_both(*found), stairs(scan)) if both_sides else found[0]


def of_both(ahead: Array, behind: Array) -> Array:
    """The larger of two estimates of the same noise; the lesser where only one side sees structure."""
    xp = module_of(ahead)
    low, high = xp.minimum(ahead, behind), xp.maximum(ahead, behind)
    return xp.where(high <= ONE_SIDED * low, high, low)


def with_hidden(scan: Scan, noise: Array) -> tuple[Array, Array]:
    """A bound of the rounding error of every row, if all structure finer than 2^-15 of the inputs' scale is rounding;
    and what of it is rounding for sure, being that of a dtype coarser than float64.

    Rounding to a grid far coarser than float64's (a cast to float32, a sum that cancels) hides between close values,
    where the function is a straight line, or constant. It shows on both sides of the point; a kink or a jump nearby
    shows on one.
    """
    xp, line, low = module_of(noise), scan.line, of_low_precision(scan)
    if low is not None:
        low = xp.maximum(noise, low)
        return low, low
    tables = [FAR.values(line, sign) for sign in (1.0, -1.0)]
    hidden = of_both(*(DEVIATIONS * FAR.deviation(table) for table in tables))
    reach = xp.maximum(*(abs(table).max(axis=0) for table in tables))
    inside = xp.isfinite(reach)  # the others lead out of the domain
    size = xp.maximum(line.sizes, xp.where(inside, reach, 0.0))
    found = xp.where((hidden > noise) & (hidden <= COARSEST * size), hidden, noise)
    known = inside & xp.isfinite(found) & (size > 0)
    if bool(known.any()):
        usual = xp.minimum(lower_median(found[known] / size[known]) * size, lower_median(found[known]))
        found = xp.where(known, xp.maximum(found, SHARED * usual), found)
    white = hidden > FLOAT32_AT_LEAST * xp.maximum(noise, EPS * size)
    if bool(white.any()):
        tables = [FINER.values(line, sign) for sign in (1.0, -1.0)]
        finer = [DEVIATIONS * FINER.deviation(table) for table in tables]
        # where the function is 0, rounding is as small as its changes are
        share = xp.maximum(line.sizes, xp.maximum(*(abs(table).max(axis=0) for table in tables))) / size
        white &= ONE_SIDED * xp.minimum(*finer) >= share * hidden
        white &= xp.maximum(*finer) <= ONE_SIDED * share * hidden
    return found, xp.where(white, found, 0.0)


def lower_median(values: Array) -> float:
    """The largest of the lesser half (np.median imports numpy.ma, in every case's process anew: 8 ms)."""
    return sorted(values.tolist())[(values.size - 1) // 2]  # type: ignore[no-any-return]


def of_low_precision(scan: Scan) -> Array | None:
    """The rounding error of every row, where the outputs are rounded to a dtype coarser than float64; None where they
    are not.

    All structure up to the height of their stairs is rounding then, and outputs that are no larger than the rounding
    of other numbers on the way may be nothing else.
    """
    line, xp = scan.line, module_of(scan.line.outputs)
    for epsilon in (EPSILON["bfloat16"], EPSILON["float16"], FLOAT32):
        if not bool((xp.frexp(line.outputs)[0] * (2 / epsilon) % 1 == 0).all()):
            continue
        table = high(FEW * epsilon)
        values = [table.values(line, sign) for sign in (1.0, -1.0)]
        if line.weights is None:
            nearby = xp.concatenate(values) + line.outputs
        else:
            nearby = xp.stack([line.values(t) for t in table.nodes.tolist()])
        relative = rounded_to(epsilon, nearby)
        heights = least_change(scan)
        unit = float(heights.max()) / (FEW * line.on_the_way)  # stairs as low as float64's are no others
        fine = epsilon == FLOAT32 and EPS < unit <= epsilon
        if relative is None or not (relative or fine):
            continue
        changes = abs(xp.concatenate(values))
        size = xp.maximum(line.sizes, xp.where(xp.isfinite(changes), changes, 0.0).max(axis=0))
        bound = of_both(*(DEVIATIONS * table.deviation(v) for v in values))
        bound = xp.where(heights <= COARSEST * size, xp.maximum(bound, heights), bound)
        if not relative:  # an output that stands still is rounded to no finer numbers than the others
            return xp.maximum(bound, heights[heights > 0].min())
        least = ON_THE_WAY * epsilon * max(1.0, float(size.max()))
        return xp.maximum(bound, xp.where(size <= least, least, epsilon * size))
    return None


def rounded_to(epsilon: float, values: Array) -> bool | None:
    """Whether numbers of the dtype of this spacing are rounded to it: some need its last digit, also of those far
    smaller than the largest. None if some are no such numbers.

    The steps of a quantiser, or of a difference that cancels, are as high for small numbers: these need fewer digits.
    """
    xp = module_of(values)
    digits, powers = xp.frexp(values[np.isfinite(values) & (values != 0)])
    digits = digits * (2 / epsilon)
    if not digits.size or bool((digits % 1 != 0).any()):
        return None
    smaller = digits[powers < powers.max() - 1]
    return smaller.size > 0 and float((smaller % 2 == 1).mean()) >= LAST_DIGIT


def stairs(scan: Scan) -> Array:
    """The height of the stairs that rounding makes of every row, and 0 where it makes none.

    A function that is constant between close values and changes farther off does so in stairs. They are its own (a
    quantiser), or the rounding of a number on the way, as in log|log √(1 + 1e-12)|. Those of float64 that are wide
    enough to be seen are 2²⁹ times as high in float32, so that nothing is left there; a quantiser gives the same.
    """
    xp, least = module_of(scan.line.outputs), least_change(scan)
    found = least > 0
    if bool(found.any()):
        found &= xp.stack([sample.change == 0 for sample in scan.samples[STAIRS]]).any(axis=0)
    if bool(found.any()):
        found &= lost_in_float32(scan.line)
    return xp.where(found, least, 0.0)


def least_change(scan: Scan) -> Array:
    """The least change of every row up to the inputs' scale, the height of its stairs if it has any.

    0 if there is none on one of the sides, unless it leads out of the domain: rounding shows on both, a kink nearby on
    one.
    """
    scan.extend(USUAL)
    xp = module_of(scan.line.outputs)
    found = []
    for side in range(2):
        changes = abs(xp.stack([pair[side].change for pair in scan.samples.values()]))
        finite = xp.isfinite(changes)
        least = xp.where(finite & (changes > 0), changes, xp.inf).min(axis=0)
        found.append(xp.where(finite.all(axis=0) | (least < xp.inf), least, 0.0))
    least = xp.maximum(*found)
    return xp.where(xp.isfinite(least), least, 0.0)


def lost_in_float32(line: Line) -> Array:
    """The rows of which float32 loses nearly all digits on the way."""
    moved = [k for k, d in enumerate(line.direction) if d is not None and d.size and line.x[k].dtype.name == "float64"]
    point = [x.astype("float32") if k in moved else x for k, x in enumerate(line.x)]
    change, size = abs(line.rows(real(flat(line.f(point))) - line.outputs).change), line.sizes
    return change > COARSEST * size
