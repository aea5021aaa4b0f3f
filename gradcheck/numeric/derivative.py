"""One directional derivative per row of a function, with a bar: steps 2 to 4 of the method (see the package)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradcheck.numeric.arrays import EPS, Array, module_of
from gradcheck.numeric.line import RATIO, USUAL, Line, Scan

BRIEF = range(-9, -4)
"""The first look: where the rounding and the truncation of a function of the scale of its inputs are both about
1e-12."""
BLIND = 2.0**-5
"""Noise of more than this share of the function, and of all that it does at the scale of its inputs, is structure that
no step resolves (a sine of 1e11, a chaotic recurrence): nothing is seen."""
RESOLVED = 1e-2
"""A derivative whose bar is a larger share of it, and of the slopes nearby, is not resolved: two digits are what a
verdict needs."""
TAIL = 2.0**-13
"""A smooth function that is flat up to rounding (saturated) may change by such a share of itself at a quarter of the
inputs' scale, along directions of up to twice the scale: exp(-x²) of 2^-52 is 2^-13 at x / 2. What changes by more is a
step function."""
QUICK = -7
"""The exponent of the first of two steps of a quick look, where nothing tells of a better one."""
SUM_ROUNDING = 4 * EPS
"""Of a difference of sums, relative to the sum of absolute values (pairwise summation: log2 of the number
of terms, over 8)."""
TO_ZERO = (64 / 45, -20 / 45, 1 / 45)
"""Lagrange's weights that extrapolate values at 1, 4 and 16 to 0."""
APART = 4.0
"""Sides whose distance is so many times the sum of their bars are disjoint: bars are estimates,
a kink stays at every step."""


CANCELLED = 4.0
"""A derivative that may be 0 is told to be near 0 to so many times the noise of the function, over the scale of the
inputs, though steps beyond that scale may see it to be nearer: a right backward computes with numbers as large as the
outputs, and where all of them cancel (the sum of a softmax) their rounding is left. In 240 checks of six functions that
are constant, in both precisions, 2 times were enough; 16 times hid a share of 1e-12 with a wrong gradient."""


@dataclass(frozen=True)
class Interval:
    """Per row, a value and how far the truth may be from it; a bar of inf knows nothing."""

    value: Array
    bar: Array


@dataclass(frozen=True)
class Derivative:
    """What the differences say of every row.

    `both` is from central differences; where a row is `kinked` it is not to be used, but `hull`.
    """

    both: Interval
    left: Interval
    right: Interval
    gap: Array
    """The smallest distance of both sides at any step."""
    kinked: Array
    """Where the sides are disjoint, or the function leaps at the point."""
    unclear: Array
    """Where the bar is wide beside the slopes nearby, and not from noise: a kink or a jump is too near. The hull is all
    that is known."""
    jumped: Array
    blind: Array
    """Where all that the function does is noise."""
    nearby: Array
    """The largest slope within a thousandth of the inputs' scale, as far as it stands out of the noise: what a
    stationary point is small beside."""
    around: Array
    """The same from a thousandth to a quarter of the inputs' scale."""
    stepped: Array
    """`around` where the function changes by more than `TAIL` of itself there; else `nearby`."""
    noise: Array
    step: Array
    """The exponent of the step that the value is taken from."""

    @property
    def resolved(self) -> Array:
        """Where the bar is small beside the derivative."""
        return self.both.bar <= RESOLVED * abs(self.both.value)

    @property
    def responds(self) -> bool:
        """Whether some row changes by more than its noise, up to a quarter of the inputs' scale."""
        return bool((self.around > 0).any())

    @property
    def hull(self) -> tuple[Array, Array]:
        """Lower and upper end of what either side allows."""
        xp = module_of(self.kinked)
        low = xp.minimum(self.left.value - self.left.bar, self.right.value - self.right.bar)
        return low, xp.maximum(self.left.value + self.left.bar, self.right.value + self.right.bar)


def derivative_of(scan: Scan, noise: Array) -> Derivative:
    """The derivative of every row, given the noise of every row, or one that all have."""
    xp, sizes, steps = module_of(noise), scan.line.sizes, sorted(scan.samples)
    usual = sum(k in USUAL for k in steps)
    # from here on, one row per step and one column per row of the function
    h = xp.asarray([[RATIO**k] for k in steps])
    ahead, behind = (xp.stack([scan.samples[k][side].change for k in steps]) for side in (0, 1))
    noise = xp.broadcast_to(noise, ahead[0].shape)
    noises = noise + SUM_ROUNDING * xp.stack([xp.maximum(*(sample.size for sample in scan.samples[k])) for k in steps])
    changes = xp.maximum(abs(ahead), abs(behind))
    if usual < len(steps):  # larger steps see another part of a function that is 0 all around
        flat = (changes[:usual] == 0).all(axis=0) & (sizes == 0)
        noises[usual:] = xp.where(flat | (changes[usual:] == 0), xp.inf, noises[usual:])

    central, bars = extrapolated((ahead - behind) / (2 * h), noises, h)
    both, chosen = balanced(central, bars)
    zero = abs(both.value) <= both.bar
    both = Interval(both.value, xp.where(zero, xp.maximum(both.bar, CANCELLED * noise), both.bar))
    right, left, gap, jumped = each_side(ahead, behind, noises, h)

    largest = xp.where(xp.isfinite(changes), changes, 0.0)[:usual].max(axis=0)
    blind = (largest > 0) & (noise > BLIND * xp.maximum(sizes, largest))
    both, left, right = (Interval(i.value, xp.where(blind, xp.inf, i.bar)) for i in (both, left, right))
    jumped &= ~blind  # noise leaps as well
    kinked = (abs(right.value - left.value) > APART * (right.bar + left.bar)) | jumped

    nearby, around = slopes_seen((changes - APART * noises) / h, steps)
    stepped = xp.where(around * RATIO ** USUAL[-1] > TAIL * sizes, xp.maximum(nearby, around), nearby)

    unclear = ~kinked & ~blind & (nearby > 0) & (both.bar > RESOLVED * xp.maximum(abs(both.value), nearby))
    unclear &= both.bar > 2 * APART * bars[chosen, xp.arange(noise.size)]
    step = xp.asarray(steps)[chosen]
    return Derivative(both, left, right, gap, kinked, unclear, jumped, blind, nearby, around, stepped, noise, step)


def slopes_seen(slopes: Array, steps: Sequence[int]) -> tuple[Array, Array]:
    """The largest slopes within a thousandth of the inputs' scale, and from there to a quarter; 0 below the noise."""
    slopes = module_of(slopes).where(slopes > 0, slopes, 0.0)
    first, last, usual = (sum(k < end for k in steps) for end in (BRIEF[0], BRIEF[-1], USUAL.stop))
    nearby = slopes[first : last + 1].max(axis=0)
    return nearby, slopes[last:usual].max(axis=0) if last < usual else 0 * nearby


def extrapolated(central: Array, noises: Array, h: Array) -> tuple[Array, Array]:
    """Central differences extrapolated once (Richardson 1911), and how far noise alone may put each off: both ends of
    2 h, RATIO² times over, and of 2 · RATIO h."""
    square = RATIO * RATIO
    bars = (square + 1 / RATIO) / (square - 1) * module_of(h).maximum(noises[:-1], noises[1:]) / h[:-1]
    return (square * central[:-1] - central[1:]) / (square - 1), bars


def each_side(ahead: Array, behind: Array, noises: Array, h: Array) -> tuple[Interval, Interval, Array, Array]:
    """The derivatives on the right and on the left, the smallest distance of both at any step, and whether the function
    leaps at the point.

    Slopes are between points strictly beside 0: at a jump the value at 0 belongs to neither side. They are extrapolated
    once. Noise alone may put each off by (4 · 5/3 + 5/12) / 3 times itself over the step: both ends of 3 h and of 12 h.
    """
    xp, rows = module_of(h), noises.shape[1]
    values = xp.concatenate([ahead, -behind], axis=1)
    slopes = (values[1:] - values[:-1]) / (h[1:] - h[:-1])
    slopes = (RATIO * slopes[:-1] - slopes[1:]) / (RATIO - 1)
    bars = (RATIO * 5 / 3 + 5 / 12) / 3 * xp.maximum(noises[:-2], noises[2:]) / h[:-2]
    sided = balanced(slopes, xp.concatenate([bars, bars], axis=1))[0]
    right, left = (Interval(sided.value[of], sided.bar[of]) for of in (slice(rows), slice(rows, None)))
    gaps = abs(slopes[:, :rows] - slopes[:, rows:]) + 2 * bars
    leap = leaps(values, xp.concatenate([noises, noises], axis=1))
    return right, left, xp.where(xp.isfinite(gaps), gaps, xp.inf).min(axis=0), leap[:rows] | leap[rows:]


def leaps(values: Array, noises: Array) -> Array:
    """Whether the limit at 0 of values on one side, which are changes from 0, is not 0.

    The limit is that of the parabola through three points; what the next three give tells how far off it is. Three
    alone tell nothing.
    """
    if len(values) < 4:
        return noises[0] < 0
    weights = module_of(values).asarray(TO_ZERO)
    nearer, farther = weights @ values[:3], weights @ values[1:4]
    return abs(nearer) > APART * (abs(weights) @ noises[:3]) + abs(farther - nearer)


def balanced(values: Array, bars: Array) -> tuple[Interval, Array]:
    """Lepski's balancing: of each row the value whose error is least among those that agree with all of smaller steps.

    Its bar is twice its noise and half of the change to the next step, as a bias that shrinks at least threefold from
    step to step shows in that change. A row starts at its first finite value; a value that is not finite no longer
    agrees, one with a bar of inf always does.

    Args:
        values, bars: one row per step, the smallest first.
    """
    xp, shape = module_of(values), values[0].shape
    low, high = xp.full(shape, -xp.inf), xp.full(shape, xp.inf)
    alive, started = xp.ones(shape, dtype=bool), xp.zeros(shape, dtype=bool)
    value, bar, step = xp.zeros(shape), xp.full(shape, xp.inf), xp.zeros(shape, dtype="int64")
    for k, (v, b) in enumerate(zip(values, bars, strict=True)):
        finite = xp.isfinite(v)
        if k:
            change = abs(v - values[k - 1])
            error = 2 * bars[k - 1] + 0.5 * xp.where(xp.isfinite(change), change, xp.inf)
            agrees = alive & started & finite & (v - b <= high) & (v + b >= low)
            # also the change to a step that disagrees is an error of the first
            first = alive & started & ~xp.isfinite(bar)
            better = (agrees | first) & (error < bar)
            value, bar = xp.where(better, values[k - 1], value), xp.where(better, error, bar)
            step = xp.where(better, k - 1, step)
            alive = agrees | ~started
        low = xp.where(alive & finite, xp.maximum(low, v - b), low)
        high = xp.where(alive & finite, xp.minimum(high, v + b), high)
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
    xp, square = module_of(noise), RATIO * RATIO
    first, second = [(a.change - b.change) / (2 * h) for h, (a, b) in ((fine, near), (coarse, far))]
    value = (square * first - second) / (square - 1)
    rounding = (noise + SUM_ROUNDING * xp.maximum(far[0].size, far[1].size)) / fine
    return Interval(value, 4 * rounding + 2 * abs(value - first) + 4 * EPS * abs(value))
