"""One directional derivative per row of a function, with an error bound, from its changes at steps of all sizes.

At step h the difference D(h), extrapolated once (Richardson 1911), lies within η / h of the derivative but for a bias
that shrinks with h. The largest step that agrees with every smaller one is taken, from the smallest up (Lepski 1991).
Truncation, a kink or a jump nearby, a pole, the edge of the domain, overflow and the wrong scale are all "no longer
agrees here". The same is done on the left and on the right: where the two sides are disjoint there is a kink.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradcheck.checking.arrays import EPS, FEW, Array
from gradcheck.checking.decide import FAR_BARS
from gradcheck.checking.line import RATIO, Line, Scan

BRIEF = range(-9, -4)
"""The first steps: where rounding and truncation of a function of the scale of its inputs are both about 1e-12."""
QUICK = BRIEF[len(BRIEF) // 2]
"""The exponent of the first of two steps of a quick derivative, where nothing tells of a better one."""
TO_ZERO = (64 / 45, -20 / 45, 1 / 45)
"""Lagrange's weights that extrapolate values at 1, 4 and 16 to 0."""


@dataclass(frozen=True)
class Interval:
    """Per row, a value and its error bound; one of inf knows nothing."""

    value: Array
    bar: Array


@dataclass(frozen=True)
class Derivative:
    """What the differences say of every row. `both` is from central differences, of no use where it is `kinked`."""

    both: Interval
    gap: Array
    """The smallest distance of both sides at any step: a kink of that size would not have shown."""
    kinked: Array
    """Where the sides are disjoint, or the function jumps at the point."""
    nearby: Array
    """The largest slope at any step, as far as it stands out of the noise: what a stationary point is small beside."""
    largest: Array
    """The largest change of the row at any step."""
    noise: Array
    step: Array
    """The exponent of the step that the value is taken from."""


def derivative_of(scan: Scan, noise: Array) -> Derivative:
    """The derivative of every row, given the noise of every row, or one that all have."""
    steps = sorted(scan.samples)
    ahead, behind, noises, h = tables(scan, noise)
    noise = np.broadcast_to(noise, ahead[0].shape)
    central, bars = extrapolated((ahead - behind) / (2 * h), noises, h)
    both, chosen = balanced(central, bars)
    # A derivative compatible with 0 is no better known than the outputs, over the scale of the inputs: a right backward
    # computes with numbers as large, and where they cancel (the sum of a softmax) their rounding is left. In 240 checks
    # of six constant functions 2 times the noise were enough; 16 hid a share of 1e-12 with a wrong gradient.
    zero = abs(both.value) <= both.bar
    both = Interval(both.value, np.where(zero, np.maximum(both.bar, FEW * noise), both.bar))
    right, left, gap, jumped = each_side(ahead, behind, noises, h)
    for side, outside in ((right, behind), (left, ahead)):  # at the edge of the domain there is one side
        edge = np.isnan(outside).all(axis=0)
        both = Interval(np.where(edge, side.value, both.value), np.where(edge, side.bar, both.bar))
    kinked = (abs(right.value - left.value) > FAR_BARS * (right.bar + left.bar)) | jumped
    changes = np.maximum(abs(ahead), abs(behind))
    slopes = (changes - FAR_BARS * noises) / h
    nearby = np.where(slopes > 0, slopes, 0.0)[[k in range(BRIEF[0], BRIEF[-1] + 1) for k in steps]].max(axis=0)
    largest, step = changes.max(axis=0), np.asarray(steps, like=noise)[chosen]
    return Derivative(both, gap, kinked, nearby, largest, noise, step)


def tables(scan: Scan, noise: Array) -> tuple[Array, Array, Array, Array]:
    """The changes ahead and behind, their noise, and the steps: a row per step, a column per row of the function."""
    steps = sorted(scan.samples)
    ahead, behind = (np.stack([scan.samples[k][side].change for k in steps]) for side in (0, 1))
    sizes = np.stack([np.fmax(*(sample.size for sample in scan.samples[k])) for k in steps])
    return ahead, behind, noise + FEW * EPS * sizes, np.asarray([[RATIO**k] for k in steps], like=noise)


def extrapolated(central: Array, noises: Array, h: Array) -> tuple[Array, Array]:
    """Central differences extrapolated once (Richardson 1911), and how far noise alone may put each off: both ends of
    2 h, RATIO² times over, and of 2 · RATIO h."""
    square = RATIO * RATIO
    bars = (square + 1 / RATIO) / (square - 1) * np.maximum(noises[:-1], noises[1:]) / h[:-1]
    return (square * central[:-1] - central[1:]) / (square - 1), bars


def each_side(ahead: Array, behind: Array, noises: Array, h: Array) -> tuple[Interval, Interval, Array, Array]:
    """The derivatives on the right and on the left, the smallest distance of both at any step, and whether the function
    leaps at the point.

    Slopes are between points strictly beside 0: at a jump the value at 0 belongs to neither side. They are extrapolated
    once. Noise alone may put each off by (4 · 5/3 + 5/12) / 3 times itself over the step: both ends of 3 h and of 12 h.
    """
    rows = noises.shape[1]
    values = np.concatenate([ahead, -behind], axis=1)
    slopes = (values[1:] - values[:-1]) / (h[1:] - h[:-1])
    slopes = (RATIO * slopes[:-1] - slopes[1:]) / (RATIO - 1)
    bars = (RATIO * 5 / 3 + 5 / 12) / 3 * np.maximum(noises[:-2], noises[2:]) / h[:-2]
    sided = balanced(slopes, np.concatenate([bars, bars], axis=1))[0]
    right, left = (Interval(sided.value[of], sided.bar[of]) for of in (slice(rows), slice(rows, None)))
    gaps = abs(slopes[:, :rows] - slopes[:, rows:]) + 2 * bars
    leap = leaps(values, np.concatenate([noises, noises], axis=1))
    return right, left, np.where(np.isfinite(gaps), gaps, np.inf).min(axis=0), leap[:rows] | leap[rows:]


def leaps(values: Array, noises: Array) -> Array:
    """Whether the limit at 0 of values on one side, which are changes from 0, is not 0.

    The limit is that of the parabola through three points; what the next three give tells how far off it is. Three
    alone tell nothing.
    """
    if len(values) < 4:
        return noises[0] < 0
    weights = np.asarray(TO_ZERO, like=values)
    nearer, farther = weights @ values[:3], weights @ values[1:4]
    return abs(nearer) > FAR_BARS * (abs(weights) @ noises[:3]) + abs(farther - nearer)


def balanced(values: Array, bars: Array) -> tuple[Interval, Array]:
    """Lepski's balancing: of each row the value whose error is least among those that agree with all of smaller steps.

    Its bar is twice its noise and half of the change to the next step, as a bias that shrinks at least threefold from
    step to step shows in that change. A row starts at its first finite value; a value that is not finite no longer
    agrees, one with a bar of inf always does. Where no two agree nothing is known.

    Args:
        values, bars: one row per step, the smallest first.
    """
    low, high = np.full_like(values[0], -np.inf), np.full_like(values[0], np.inf)
    alive, started = np.ones_like(low, dtype=bool), np.zeros_like(low, dtype=bool)
    value, bar, step = np.zeros_like(low), high, np.zeros_like(low, dtype="int64")
    for k, (v, b) in enumerate(zip(values, bars, strict=True)):
        finite = np.isfinite(v)
        if k:
            change = abs(v - values[k - 1])
            error = 2 * bars[k - 1] + 0.5 * np.where(np.isfinite(change), change, np.inf)
            agrees = alive & started & finite & (v - b <= high) & (v + b >= low)
            better = agrees & (error < bar)
            value, bar = np.where(better, values[k - 1], value), np.where(better, error, bar)
            step = np.where(better, k - 1, step)
            alive = agrees | ~started
        low = np.where(alive & finite, np.maximum(low, v - b), low)
        high = np.where(alive & finite, np.minimum(high, v + b), high)
        started |= finite
        if not bool(alive.any()):
            break
    return Interval(value, bar + 4 * EPS * abs(value)), step


def quick(line: Line, noise: Array, step: int = QUICK) -> Interval:
    """The derivative in 4 evaluations where a look along another direction was enough; its bar holds all that
    extrapolation changed.

    Args:
        step: the exponent of the lesser step.
    """
    steps = RATIO**step, RATIO ** (step + 1)
    (fine, near), (coarse, far) = [(h, (line.at(h), line.at(-h))) for h in steps]
    square = RATIO * RATIO
    first, second = [(a.change - b.change) / (2 * h) for h, (a, b) in ((fine, near), (coarse, far))]
    value = (square * first - second) / (square - 1)
    rounding = (noise + FEW * EPS * np.maximum(far[0].size, far[1].size)) / fine
    return Interval(value, 4 * rounding + 2 * abs(value - first) + 4 * EPS * abs(value))
