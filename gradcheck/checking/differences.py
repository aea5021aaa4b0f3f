"""Estimate a function's derivative along a line by differences: one derivative per row, from steps
of all sizes.

At step h the difference D(h), extrapolated once (Richardson 1911), lies within η / h of the
derivative, plus a bias that shrinks with h. The largest step that agrees with every smaller one is
taken, from the smallest up (Lepski 1991). Truncation, a kink or a jump nearby, a pole, the edge of
the domain, overflow and the wrong scale are all "no longer agrees here". The difference of the
slopes on both sides, which a kink leaves, is estimated in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.checking.precision import EPS, EPSILON, FEW, MANY

Function = Callable[[Sequence[Array]], Array]
"""A function from arrays like the inputs to the flat real outputs."""

Direction = Sequence[Array | None]
"""One array per moved input; None for an input that is kept fixed."""

RATIO = 4.0
"""The ratio of one step to the next: a power of two, so that steps are exact, and coarse enough for
16 decades in 28 steps.
"""
USUAL = range(-17, 0)
"""Steps are RATIO ** k, relative to the scale of the inputs. x + h·d is exact in float64 down to
-17; up to 1/4 the function is sampled at the scale of its inputs.
"""
BRIEF = range(-9, -4)
"""The first steps, at which rounding and truncation are both about 1e-12 for a function that varies
on the scale of its inputs.
"""
QUICK = BRIEF[len(BRIEF) // 2]
"""The exponent of the first of two steps of a quick derivative, unless a better one is known."""
FAR_BARS = 4.0
"""Error bounds are estimates: a right gradient is never off by this many of them. A gradient that
is off by more is excluded even if the resolution is too low, as the differences show its error;
one-sided slopes that are farther apart are a kink.
"""
DIRECTION_BITS = round(-np.log2(EPS * RATIO ** -USUAL[0])) - 2
"""A direction's elements are 1 to 2 times a power of two in steps of 2^-16, so that rounding cannot
hide in multiples of the step. The step is 2^-16 because that many of the 52 bits are left below the
smallest step, less one for d up to 2 and one for a carry: x + h·d is exact in float64 for all
steps.
"""


# ------------------------------------------ a line, and samples on it
def scale_of(x: Array) -> Array:
    """The natural scale of every element of `x`: the power of two below |x|, and for zeros that of
    the tensor, or 1.

    Powers of two make x + h·scale·v exact for v of few bits, so that no step is off by rounding.
    """
    size = np.abs(x)
    usable = (size > 0) & np.isfinite(size)
    power = np.ldexp(1.0, (np.frexp(np.where(usable, size, 1.0))[1] - 1).clip(-1000, 1000))
    if usable.all():
        return power
    typical = (
        min(1.0, float(2.0 ** np.floor(np.log2(float(size[usable].mean())))))
        if usable.any()
        else 1.0
    )
    return np.where(usable, power, typical)


def random_direction(x: Array, scale: Array, random: np.random.Generator) -> Array:
    """A direction with random signs, and magnitudes of 1 to 2 times the scale; complex where `x`
    is.
    """
    half = 2**DIRECTION_BITS

    def draw() -> Any:
        drawn = random.integers(-half, half, x.shape) / half
        return drawn + np.copysign(1.0, drawn)

    return (draw() + 1j * draw() if x.dtype.kind == "c" else draw()) * scale


def move_along(x: Sequence[Array], direction: Direction, t: float) -> list[Array]:
    """x + t · direction, in the dtypes of x."""
    return [
        a if d is None else np.asarray(a + (t * d).astype(a.dtype, copy=False))
        for a, d in zip(x, direction, strict=True)
    ]


class Sample(NamedTuple):
    """The change of every row at some t, and the sum of the absolute changes of its terms, on which
    its rounding depends.
    """

    change: Array
    size: Array


@dataclass(eq=False)
class Line:
    """``t -> rows of f(x + t·d) − f(x)``, in float64, with the samples at all steps taken so
    far.
    """

    f: Function
    """The function's values; NaN where it is not defined."""
    x: Sequence[Array]
    direction: Direction
    outputs: Array
    """f(x)."""
    weights: Array | None = None
    """One cotangent over the outputs, for a single row: their weighted sum. Without one, each
    output is a row.
    """
    samples: dict[int, tuple[Sample, Sample]] = field(default_factory=dict)
    """Samples ahead and behind, by the exponents of the steps."""

    def at(self, t: float) -> Sample:
        """The change of every row."""
        return self.of(self.f(move_along(self.x, self.direction, t)))

    def of(self, outputs: Array) -> Sample:
        """The change of every row, given the outputs."""
        change = outputs - self.outputs
        if self.weights is None:
            return Sample(change, abs(change))
        change *= self.weights
        # not the array's method sum, which makes one more call
        total = np.add.reduce
        return Sample(total(change, keepdims=True), total(abs(change), keepdims=True))

    def take(self, step: int, ahead: Array) -> None:
        """Take the samples at a step, given the outputs ahead."""
        self.samples[step] = self.of(ahead), self.at(-(RATIO**step))

    def extend(self, steps: Sequence[int]) -> None:
        """Take the samples at these steps."""
        for k in steps:
            if k not in self.samples:
                self.samples[k] = self.at(RATIO**k), self.at(-(RATIO**k))

    @property
    def sizes(self) -> Array:
        """The size of the function per row: |f(x)|, or the sum of its weighted absolute values."""
        size = abs(self.outputs)
        return size if self.weights is None else (abs(self.weights) * size).sum(keepdims=True)


# ----------------------------------------------------- the derivative
@dataclass(frozen=True)
class Interval:
    """A value and its error bound, per row; a bound of inf means that nothing is known."""

    value: Array
    bar: Array


@dataclass(frozen=True)
class Derivative(Interval):
    """The derivative by differences for every row; undefined for a row that is `kinked`."""

    gap: Array
    """The largest difference of the slopes on both sides that would not have shown as a kink."""
    kinked: Array
    """Rows whose slopes on both sides differ, or that jump at the point."""
    nearby: Array
    """The largest slope at any step that is above the noise; slopes at a stationary point are small
    compared with it.
    """
    largest: Array
    """The largest change of the row at any step."""
    noise: Array
    step: Array
    """The exponent of the step that the value is taken from."""


def derivative_of(line: Line, noise: Array) -> Derivative:
    """The derivative of every row, given the noise of every row, or a common one.

    A change is the sum of an odd and an even part of the step. The odd one over the step is the
    central difference. The even one over the step tends to the difference of the slopes on both
    sides: 0, unless there is a kink. Where the function jumps, the change itself does not tend to
    0.
    """
    steps = sorted(line.samples)
    h = np.array([[RATIO**k] for k in steps])
    table = np.array([line.samples[k] for k in steps])  # by step, side, and change or size
    ahead, behind = samples = table[:, :, 0].swapaxes(0, 1)
    noises = noise + FEW * EPS * np.fmax(table[:, 0, 1], table[:, 1, 1])
    sides = abs(samples)
    jumps = sides[:, 0] > FAR_BARS * (noises[0] + noises[1]) + abs(sides[:, 1] - sides[:, 0])
    changes, even = sides.max(axis=0), (ahead + behind) / h
    is_missing = np.isnan(samples).all(axis=1)
    if np.logical_or.reduce(is_missing, axis=None):  # at the edge of the domain there is one side
        ahead, behind = np.where(is_missing[:, None], -samples[::-1], samples)
    # the central difference and the distance of the slopes, next to each other
    values = np.array([(ahead - behind) / (2 * h), even]).swapaxes(0, 1)
    bars = np.array([noises / h, 2 * noises / h]).swapaxes(0, 1)
    interval, chosen = balance_errors(*extrapolate(values, GROWTH, bars))
    (value, kink), (bar, kink_bar) = interval.value, interval.bar
    # A derivative compatible with 0 is known no better than the rounding of the outputs divided by
    # the scale of the inputs: a right backward computes with numbers of that size, and their
    # rounding remains where they cancel (the sum of a softmax).
    bar = np.where(abs(value) <= bar, np.maximum(bar, FEW * noise), bar)
    nearby = ((changes - FAR_BARS * noises) / h)[[BRIEF[0] <= k <= BRIEF[-1] for k in steps]]
    return Derivative(
        value,
        bar,
        gap=abs(kink) + kink_bar,
        kinked=(abs(kink) > FAR_BARS * kink_bar) | jumps.any(axis=0),
        nearby=np.where(nearby > 0, nearby, 0.0).max(axis=0),
        largest=changes.max(axis=0),
        noise=noise + np.zeros(value.shape),
        step=np.array(steps)[chosen[0]],
    )


GROWTH = np.array([[RATIO * RATIO], [RATIO]])
"""From each step to the next, the growth of the bias of a central difference, and of a distance of
slopes.
"""


def extrapolate(values: Array, ratio: Array, bars: Array) -> tuple[Array, Array]:
    """Extrapolated values: without the part of the error that grows by `ratio` from each step to
    the next; and their error bounds.
    """
    bars = (ratio * bars[:-1] + bars[1:]) / (ratio - 1)
    return (ratio * values[:-1] - values[1:]) / (ratio - 1), bars


def balance_errors(values: Array, bars: Array) -> tuple[Interval, Array]:
    """Lepski's balancing: for each row, the value with the smallest error bound among those that
    agree with all values of smaller steps, and the index of its step.

    A value's bar is twice its noise plus half of the change to the next step: a bias that shrinks
    at least threefold per step shows in that change. A row starts at its first finite value; a
    value that is not finite does not agree, one with a bar of inf always does. If no two values
    agree, nothing is known.

    Args:
        values, bars: one row per step, the smallest first.
    """
    finite = np.isfinite(values)
    lows = np.where(finite, values - bars, -np.inf)
    highs = np.where(finite, values + bars, np.inf)
    # The intersection of the intervals of all smaller steps, and whether any of them has a value.
    low, high = np.maximum.accumulate(lows)[:-1], np.minimum.accumulate(highs)[:-1]
    started = np.logical_or.accumulate(finite)[:-1]
    overlaps = finite[1:] & (lows[1:] <= high) & (highs[1:] >= low)
    agrees = started & np.logical_and.accumulate(overlaps | ~started)
    errors = np.full(values.shape, np.inf)
    change = abs(values[1:] - values[:-1])
    np.copyto(errors[:-1], 2 * bars[:-1] + 0.5 * change, where=agrees)
    step, bar = errors.argmin(axis=0), errors.min(axis=0)
    value = np.take_along_axis(values, step[None], axis=0)[0]
    value = np.where(bar < np.inf, value, 0.0)
    return Interval(value, bar + 4 * EPS * abs(value)), step


def quick(line: Line, noise: Array, step: int = QUICK) -> Interval:
    """The derivative from 4 evaluations, at steps that another direction has verified; the bound
    includes the whole change by extrapolation.

    Args:
        step: the exponent of the smaller step.
    """
    line.extend((step, step + 1))
    fine, coarse = RATIO**step, RATIO ** (step + 1)
    (a, b), (far, behind) = line.samples[step], line.samples[step + 1]
    first, second = (a.change - b.change) / (2 * fine), (far.change - behind.change) / (2 * coarse)
    value = (RATIO * RATIO * first - second) / (RATIO * RATIO - 1)
    rounding = (noise + FEW * EPS * np.maximum(far.size, behind.size)) / fine
    return Interval(value, 4 * rounding + 2 * abs(value - first) + 4 * EPS * abs(value))


# ---------------------------------------- rounding, from close values
DEVIATIONS = 6.0
"""High differences estimate the standard deviation of the error. Rounding to a grid is off by at
most 1.7 standard deviations; an estimate from so few values is too low by a factor of 3 about once
in a hundred.
"""
COARSEST = FEW * EPSILON["bfloat16"]
"""The largest share of a value that counts as rounding: a larger change is the function's
structure.
"""
NEAR_SPACING, FAR_SPACING = RATIO ** USUAL[0], RATIO ** BRIEF[0]
"""Distances between sampled values, relative to the scale of the inputs: like the smallest steps
(2^-34) and the first ones taken (2^-18). At such distances smooth functions are straight lines, and
x + t·d is rounded; intermediate values are usually as large as x, so that this rounding counts. At
up to 2^-15 of the scale, sixth differences of a function that varies on that scale still vanish
(2^-90), while they show rounding to float32 (2^-23), which is constant between closer values.
"""
STAIRS_SPACING = RATIO**-6
"""`SPACING` if the function is known to be a staircase: up to 2^-8 of the scale, sixth differences
of a function that varies on that scale also vanish (2^-54).
"""
NODES = np.arange(1, 13) + 0.5 * (np.sqrt((2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)) % 1)
"""Positions of the nodes, in units of their spacing. Square roots of primes are independent over
the rational numbers, so that no grid is aligned with two of them. If all
positions were multiples of one number, rounding to a grid could go unnoticed.
"""
ORDERS = range(6, 9)


def weights_of(order: int) -> Array:
    """Weights of divided differences of an order, of unit length, one row per window of nodes: 0
    for polynomials of a lower degree, the standard deviation of independent errors (ECNoise, Moré
    and Wild 2011).
    """
    rows = np.zeros((NODES.size - order, NODES.size))
    for first, row in enumerate(rows):
        window = NODES[first : first + order + 1]
        weights = 1 / (window[:, None] - window[None, :] + np.eye(order + 1)).prod(axis=1)
        row[first : first + order + 1] = weights / np.sqrt((weights**2).sum())
    return rows


WEIGHTS = [weights_of(order) for order in ORDERS]


def from_close_values(
    line: Line, thoroughly: bool, epsilon: float = EPS, stairs: bool = False
) -> Array:
    """A bound on the rounding error of every row, at least an `epsilon` of its size. With
    `thoroughly`, both sides are sampled, because one may meet a kink or the edge of the domain, and
    structure finer than 2^-15 of the inputs' scale counts as rounding too (2^-8 if the function is
    known to be `stairs`).
    """
    near = []
    for sign in (1.0, -1.0) if thoroughly else (1.0,):
        table = close_values(line, sign * NEAR_SPACING)
        level = (table[1:] == table[:-1]).mean(
            axis=0
        ) > 0.5  # equal values: a constant of size 1 may hide changes (1 + x at 1e-17)
        noise = np.where(
            level, EPS * np.maximum(line.sizes, 1.0), DEVIATIONS * standard_deviation(table)
        )
        near.append(np.where(np.isfinite(noise), noise, np.inf))
    noise = np.maximum(epsilon * line.sizes, np.stack(near).min(axis=0))
    if not thoroughly:
        return noise
    spacings = (FAR_SPACING, STAIRS_SPACING) if stairs else (FAR_SPACING,)
    far = [close_values(line, sign * spacing) for spacing in spacings for sign in (1.0, -1.0)]
    deviations = np.stack([standard_deviation(table) for table in far]).reshape(
        len(spacings), 2, -1
    )
    hidden = DEVIATIONS * deviations.min(axis=1).max(axis=0)
    largest = abs(np.concatenate(far)).max(axis=0)
    size = np.maximum(line.sizes, np.where(np.isfinite(largest), largest, 0.0))
    noise = np.where((hidden > noise) & (hidden <= COARSEST * size), hidden, noise)
    # Some rounding of intermediate values may not be visible, however small the output is (a GELU
    # at -8 is x · (1 − 1) / 2).
    return np.maximum(
        noise, MANY * EPS * max([1.0, *(float(abs(x).max()) for x in line.x if x.size)])
    )


def close_values(line: Line, spacing: float) -> Array:
    """The changes of all rows on one side: if there may be a jump, values on the two sides are
    unrelated.
    """
    return np.stack([line.at(t).change for t in (spacing * NODES).tolist()])


def standard_deviation(table: Array) -> Array:
    """The standard deviation of the errors in every column of values."""
    unit = abs(table).max(axis=0)
    unit = np.where(unit > 0, unit, 1.0)  # squares of small numbers underflow
    return unit * np.sqrt(
        np.stack([((weights @ (table / unit)) ** 2).mean(axis=0) for weights in WEIGHTS]).max(
            axis=0
        )
    )
