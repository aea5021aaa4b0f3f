"""The rounding errors of a function: by perturbation where its results can be changed, else from close values alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradcheck.checking.arrays import EPS, EPSILON, FEW, MANY, Array, flat, module_of
from gradcheck.checking.derivative import BRIEF
from gradcheck.checking.line import RATIO, USUAL, Line, moved
from gradcheck.checking.point import Point
from gradcheck.checking.precision import Change, Measured


def noise_by_perturbation(
    point: Point, direction: Sequence[Array | None], reach: float, random: np.random.Generator
) -> tuple[Array, list[Sequence[Array]]]:
    """η of the change of every flat real output between the point and `reach` along a direction, and the outputs at
    that distance ahead and behind."""
    ahead, behind = (moved(point.x, direction, t) for t in (reach, -reach))
    known = None
    if point.tape is not None:
        known = [point.outputs.arrays[k] for k in point.outputs.active], point.tape.choices
    here, there = (perturbed_outputs(point, x, random, plain) for x, plain in ((point.x, known), (ahead, None)))
    bounds, farther = (flat(measured.bounds(absolute=True)) for measured in (here, there))
    # outside of the domain nothing is known, and nothing asked
    bounds = np.maximum(bounds, module_of(farther).where(np.isfinite(farther), farther, 0.0))
    bounds = bounds.repeat(2) if point.outputs.complex else bounds
    return 2 * bounds, [there.plain, point.forward(behind)]  # of a change both ends are rounded


def perturbed_outputs(
    point: Point,
    x: Sequence[Array],
    random: np.random.Generator,
    known: tuple[Sequence[Array], Sequence[Array]] | None,
) -> Measured:
    """The outputs at some inputs, and how far each may be off."""

    def compute(change: Change) -> list[Array]:
        inputs = [a.copy() for a in x]
        for a in inputs:  # what an operation computes from them inside is rounded as well, as in an elimination
            change("input", a, -1)
        return point.forward(inputs, change)

    measured = Measured(compute, point.epsilon, random, known)
    measured.draw()
    point.opaque |= point.reruns is None or bool(point.reruns.leaks)
    return measured


# --------------------------------------------------------------------------- from close values
DEVIATIONS = 6.0
"""What differences estimate is the standard deviation of the error. Rounding to a grid is off by 1.7 of them at most;
an estimate from so few values is low by a factor of 3 once in some hundred."""
ONE_SIDED = 16.0
"""Estimates from both sides of the point that differ by a larger factor see a kink or a jump on one side: of 100,000
pairs from the same noise 0.1 % (near) and 0.7 % (far) do."""
COARSEST = FEW * EPSILON["bfloat16"]
"""Rounding is no larger share of the values: what is, is the function's structure."""
NEAR_SPACING, FAR_SPACING = RATIO ** USUAL[0], RATIO ** BRIEF[0]
"""How far apart values are, relative to the scale of the inputs: as the smallest steps (2^-34) and the first that are
taken (2^-18). So near smooth functions are straight lines, and x + t·d is rounded: numbers as large as x are usual on
the way, so that error counts. Farther, up to 2^-15 of the scale, sixth differences still do not see functions of that
scale (2^-90), but rounding to float32 (2^-23), which is constant between close values."""
NODES = np.arange(1, 13) + 0.5 * (np.sqrt((2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)) % 1)
"""Where they are, in units of these: no grid meets two alike, as the roots of primes are independent over the rational
numbers. Rounding to a grid would hide in multiples of one number."""
ORDERS = range(6, 9)


def weights_of(order: int) -> Array:
    """Those of divided differences of an order, of unit length, one row per window of nodes: 0 for polynomials of a
    lower degree, the standard deviation of independent errors (ECNoise, Moré and Wild 2011)."""
    rows = np.zeros((NODES.size - order, NODES.size))
    for first, row in enumerate(rows):
        window = NODES[first : first + order + 1]
        weights = 1 / (window[:, None] - window[None, :] + np.eye(order + 1)).prod(axis=1)
        row[first : first + order + 1] = weights / np.sqrt((weights**2).sum())
    return rows


WEIGHTS = [weights_of(order) for order in ORDERS]


def from_close_values(line: Line, thoroughly: bool, epsilon: float = EPS) -> Array:
    """A bound of the rounding error of every row, which is no less than an `epsilon` of its size. `thoroughly`: from
    both sides, finer structure than 2^-15 of the inputs' scale counting as rounding too."""
    xp = module_of(line.outputs)
    if not thoroughly:
        return xp.maximum(epsilon * line.sizes, of_values(line, close_values(line, NEAR_SPACING, 1.0)))
    near, far = ([close_values(line, spacing, sign) for sign in (1.0, -1.0)] for spacing in (NEAR_SPACING, FAR_SPACING))
    noise = xp.maximum(epsilon * line.sizes, of_both([of_values(line, table) for table in near]))
    hidden = of_both([DEVIATIONS * standard_deviation(table) for table in far])
    reach = xp.maximum(*(abs(table).max(axis=0) for table in far))
    size = xp.maximum(line.sizes, xp.where(xp.isfinite(reach), reach, 0.0))
    noise = xp.where((hidden > noise) & (hidden <= COARSEST * size), hidden, noise)
    # of numbers on the way some rounding may hide, however small the output is (a GELU at -8 is x · (1 − 1) / 2)
    return xp.maximum(noise, MANY * EPS * line.on_the_way)


def close_values(line: Line, spacing: float, sign: float) -> Array:
    """The changes of all rows ahead or behind: where there may be a jump, on one side alone."""
    return module_of(line.outputs).stack([line.at(sign * t).change for t in (spacing * NODES).tolist()])


def of_values(line: Line, table: Array) -> Array:
    """The rounding error of every row between the closest values; where most of them are equal, that of numbers of
    size 1 that may hide it (1 + x at 1e-17)."""
    xp = module_of(table)
    level = (table[1:] == table[:-1]).mean(axis=0) > 0.5
    found = xp.where(level, EPS * xp.maximum(line.sizes, 1.0), DEVIATIONS * standard_deviation(table))
    return xp.where(xp.isfinite(found), found, xp.inf)


def standard_deviation(table: Array) -> Array:
    """The standard deviation of the errors in every column of values."""
    xp, unit = module_of(table), abs(table).max(axis=0)
    unit = xp.where(unit > 0, unit, 1.0)  # squares of small numbers underflow
    return unit * xp.sqrt(xp.stack([((xp.asarray(w) @ (table / unit)) ** 2).mean(axis=0) for w in WEIGHTS]).max(axis=0))


def of_both(sides: Sequence[Array]) -> Array:
    """The larger of estimates of the same noise; the lesser where only one side sees structure."""
    low, high = np.minimum(*sides), np.maximum(*sides)
    return module_of(low).where(high <= ONE_SIDED * low, high, low)
