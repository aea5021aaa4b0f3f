"""Random projections of the Jacobian, analytic beside numeric, and the search for the entries behind a disagreement.

One vjp gives uᵀJ, one directional derivative gives J·d: both give the number uᵀJ d, whatever the size of J. Where
they disagree by more than their bars, halving u finds the wrong outputs (a vjp a step), and halving d the wrong
inputs of each (a directional derivative a step), down to single entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gradcheck.numeric.complex_step import by_complex_step
from gradcheck.numeric.derivative import (
    Array,
    Function,
    at_a_small_step,
    at_one_step,
    directional,
    flat,
    module_of,
    scale_of,
)
from gradcheck.numeric.scan import Derivative

Vjp = Callable[[Array], list[Array]]
"""A flat cotangent of all outputs to one gradient per moved input."""

MAGNITUDES = 8
"""So many sizes, from 1 to 2, have a direction's elements, relative to the inputs' scale: few bits, so that steps are
exact; different ones, so that errors in one row do not cancel."""
LENGTHS = [1 + k / 16 for k in range(16)]
"""Of the directions whose derivatives are averaged: few bits, too."""
SPREADS, LEAST_SHARE = 6.0, 8.0
"""The bar of a mean is so many standard deviations, and at least that share of the least bar."""
ROUNDING = 64 * 2.0**-52
"""Relative rounding error granted to the backward itself, in float64."""


@dataclass
class Entry:
    """One entry of the Jacobian: input element, output element, and both derivatives."""

    input: int
    index: int
    output: int
    analytic: float
    numeric: float
    bar: float


@dataclass
class Point:
    """A function at a point: what there is to evaluate, and how often that was done."""

    function: Function
    vjp: Vjp
    inputs: Sequence[Array]
    """The inputs that are moved, float64 or complex128."""
    evaluations: int = 0
    scales: list[Array] = field(init=False)

    def __post_init__(self) -> None:
        self.scales = [scale_of(x) for x in self.inputs]

    def along(self, direction: Sequence[Array | None], only: int | None = None, briefly: bool = False) -> Derivative:
        """The derivative along a direction, of all outputs or of one; see `directional`."""
        derivative = directional(self.function, self.inputs, direction, only, briefly)
        self.evaluations += derivative.evaluations
        return derivative

    def averaged(self, direction: Sequence[Array | None]) -> Derivative:
        """As `along`, from many scans of directions that differ in length: for what hardly stands out of its rounding.

        The errors of the scans are those of different roundings: the mean is known better than each, from their spread.
        """
        scans = [self.along([None if d is None else d * m for d in direction]) for m in LENGTHS]
        xp = module_of(scans[0].value)
        values = xp.stack([scan.value / m for scan, m in zip(scans, LENGTHS, strict=True)])
        bars = xp.stack([scan.bar / m for scan, m in zip(scans, LENGTHS, strict=True)])
        mean = values.mean(axis=0)
        spread = (abs(values - mean) ** 2).sum(axis=0) / (len(LENGTHS) - 1) / len(LENGTHS)
        bar = xp.maximum(SPREADS * xp.sqrt(spread), bars.min(axis=0) / LEAST_SHARE)
        return replace(scans[0], value=mean, bar=xp.where(xp.isfinite(bars.max(axis=0)), bar, xp.inf))

    def by_complex_step(self, direction: Sequence[Array]) -> Derivative | None:
        """As `along`, where differences see nothing; None if the complex step cannot tell either."""
        derivative = by_complex_step(self.function, self.inputs, direction)
        self.evaluations += derivative.evaluations if derivative else 0
        return derivative

    def as_along(self, direction: Sequence[Array | None], like: Derivative) -> Derivative:
        """As `along`, by what was good enough for another direction, with a wider bar."""
        if not like.brief:
            return self.quickly(direction, usual_step(like))
        derivative = at_a_small_step(self.function, self.inputs, direction, like)
        self.evaluations += derivative.evaluations
        return derivative

    def quickly(self, direction: Sequence[Array | None], step: int, only: int | None = None) -> Derivative:
        """As `along`, at one step that was found good before, with a wider bar."""
        derivative = at_one_step(self.function, self.inputs, direction, step, only)
        self.evaluations += derivative.evaluations
        return derivative

    def random_direction(self, random: np.random.Generator) -> list[Array]:
        """A direction with random signs and magnitudes, scaled to the inputs; complex where they are."""
        return [self.random_signs(x, scale, random) for x, scale in zip(self.inputs, self.scales, strict=True)]

    def random_signs(self, x: Array, scale: Array, random: np.random.Generator) -> Array:
        """As `random_direction`, for one input."""
        xp = module_of(x)

        def draw() -> Any:
            drawn = random.integers(-MAGNITUDES, MAGNITUDES, x.shape)
            return (drawn + np.where(drawn < 0, -MAGNITUDES, MAGNITUDES)) / MAGNITUDES

        values = draw() + 1j * draw() if x.dtype.kind == "c" else draw()
        return xp.asarray(values) * scale


def usual_step(derivative: Derivative) -> int:
    """The step that was best for most outputs, of those small enough for all."""
    xp = module_of(derivative.bar)
    known = derivative.step[xp.isfinite(derivative.bar)]
    return int(xp.bincount(known.clip(0), minlength=1).argmax()) or 4


def weights(derivative: Derivative, outputs: Array, random: np.random.Generator) -> Array:
    """A cotangent with random signs and magnitudes under which every output counts alike, whatever its size."""
    xp = module_of(outputs)
    size = xp.maximum(xp.abs(derivative.value), 1e-3 * xp.abs(outputs))
    known = xp.isfinite(derivative.bar)
    positive = size[size > 0]
    typical = float(positive.mean()) if positive.size else 1.0
    size = xp.where(size > 0, size, typical)  # not by its bar alone: of dead outputs each would widen the whole
    size = xp.maximum(size, xp.where(known, 1e3 * derivative.bar, 0.0))
    drawn = random.uniform(-1, 1, outputs.shape)
    drawn += np.copysign(0.5, drawn)
    if outputs.dtype.kind == "c":
        drawn = drawn * np.exp(2j * np.pi * random.uniform(size=outputs.shape))
    return xp.where(known, xp.asarray(drawn) / size, 0.0)


def inner(a: Array, b: Array) -> float:
    """Re Σ conj(a)·b: what a gradient and a direction, or a cotangent and a derivative, give together."""
    return float((a.conj() * b).real.sum())


@dataclass
class Comparison:
    """uᵀJ d from both sides; `bar` covers numeric and rounding errors."""

    analytic: float
    numeric: float
    bar: float

    @property
    def ratio(self) -> float:
        """|analytic − numeric| over the bar: at most 1 where they agree."""
        difference = abs(self.analytic - self.numeric)
        if not difference < np.inf:
            return float("inf")
        return 0.0 if difference == 0 else difference / self.bar if self.bar else float("inf")


def compare(
    cotangent: Array, derivative: Derivative, gradients: Sequence[Array], direction: Sequence[Array | None], rtol: float
) -> Comparison:
    """Both sides of uᵀJ d."""
    moved = [(g, d) for g, d in zip(gradients, direction, strict=True) if d is not None]
    numeric = inner(cotangent, derivative.value)
    analytic = sum(inner(g, d) for g, d in moved)
    size = sum(float(abs(g * d).sum()) for g, d in moved)
    xp = module_of(cotangent)
    bars = xp.abs(cotangent) * xp.where(cotangent == 0, 0.0, derivative.bar)
    bar = float(bars.sum()) + ROUNDING * size + rtol * max(abs(analytic), abs(numeric))
    return Comparison(analytic, numeric, bar)


@dataclass
class Probe:
    """One look at the Jacobian from both sides: J d along a direction, and uᵀJ for a cotangent."""

    direction: Sequence[Array]
    derivative: Derivative
    cotangent: Array
    gradients: list[Array]

    def ratio(self, rtol: float) -> float:
        """The disagreement of both sides over its bar."""
        return compare(self.cotangent, self.derivative, self.gradients, self.direction, rtol).ratio


def diagonal(first: Probe, second: Probe, rtol: float) -> tuple[bool, bool] | None:
    """Of a diagonal Jacobian of a single input, whether all entries are known, and whether one is wrong.

    None if there are several inputs, or the probes show another Jacobian.
    """
    u, v = first.cotangent, second.cotangent
    d, other = (probe.direction[0].reshape(-1) for probe in (first, second))
    if len(first.direction) != 1 or u.size != d.size or "c" in (u.dtype.kind, d.dtype.kind):
        return None
    xp = module_of(u)
    known = xp.isfinite(first.derivative.bar) & (u != 0)
    value, bar = first.derivative.value / d, first.derivative.bar / abs(d)
    again, again_bar = second.derivative.value / other, second.derivative.bar / abs(other)
    claimed = first.gradients[0].reshape(-1) / xp.where(u == 0, 1.0, u)
    claimed_again = second.gradients[0].reshape(-1) / xp.where(v == 0, 1.0, v)
    apart = abs(value - again) > bar + again_bar
    uneven = abs(claimed - claimed_again) > ROUNDING * abs(claimed)
    if bool(((apart | uneven) & known).any()):
        return None
    bar = bar + (ROUNDING + rtol) * xp.maximum(abs(claimed), abs(value))
    return bool(known.all()), bool(((abs(claimed - value) > bar) & known).any())


# --------------------------------------------------------------------------- the search
def wrong_entries(
    point: Point,
    cotangent: Array,
    direction: Sequence[Array],
    derivative: Derivative,
    rtol: float,
    most_outputs: int = 4,
    most_inputs: int = 8,
) -> Iterator[Entry]:
    """Single entries whose derivatives disagree by more than their bars; at most the product of the two limits."""

    def outputs_disagree(mask: Array) -> bool:
        part = cotangent * mask
        return compare(part, derivative, point.vjp(part), direction, rtol).ratio > 1

    xp = module_of(cotangent)
    for output in halved(xp, cotangent.size, outputs_disagree, most_outputs):
        one = xp.zeros_like(cotangent)
        one[output] = cotangent[output]
        yield from wrong_inputs(point, one, output, direction, derivative, rtol, most_inputs)


def wrong_inputs(
    point: Point,
    cotangent: Array,
    output: int,
    direction: Sequence[Array],
    derivative: Derivative,
    rtol: float,
    most: int,
) -> Iterator[Entry]:
    """The wrong entries of the row of one output; `cotangent` is zero but there.

    The halves are judged at the step that was good for the whole row; what remains in the end gets a scan of its own.
    """
    xp = module_of(cotangent)
    gradients = point.vjp(cotangent)
    whole, weight = flat(direction), complex(cotangent[output])
    bar, step = 2 * abs(weight) * float(derivative.bar[output]), int(derivative.step[output])

    def inputs_disagree(mask: Array) -> bool:
        part = unflat(whole * mask, direction)
        if all(d is None for d in part):
            return False
        moved = [(g, d) for g, d in zip(gradients, part, strict=True) if d is not None]
        analytic = sum(inner(g, d) for g, d in moved)
        numeric = (weight.conjugate() * complex(point.quickly(part, step, output).value[0])).real
        rounding = ROUNDING * sum(float(abs(g * d).sum()) for g, d in moved)
        return not abs(analytic - numeric) <= bar + rounding + rtol * max(abs(analytic), abs(numeric))

    for index in halved(xp, whole.size, inputs_disagree, most):
        entry = single_entry(point, gradients, whole, index, output, weight, direction, rtol)
        if entry is not None:
            yield entry


def single_entry(
    point: Point,
    gradients: Sequence[Array],
    whole: Array,
    index: int,
    output: int,
    weight: complex,
    direction: Sequence[Array],
    rtol: float,
) -> Entry | None:
    """One entry with a scan of its own; None if it agrees within its bar after all."""
    xp = module_of(whole)
    mask = xp.zeros(whole.size)
    mask[index] = 1
    part = unflat(whole * mask, direction)
    derivative = point.along(part, output)
    cotangent = xp.asarray([weight if whole.dtype.kind == "c" or weight.imag else weight.real])
    comparison = compare(cotangent, derivative, gradients, part, rtol)
    if comparison.ratio <= 1:
        return None
    step = complex(whole[index])
    divisor = (weight * step).real if not weight.imag and not step.imag else abs(weight) * abs(step)
    ends = np.cumsum([d.size for d in direction])
    number = int(np.searchsorted(ends, index, side="right"))
    return Entry(
        input=number,
        index=index - int(ends[number] - direction[number].size),
        output=output,
        analytic=comparison.analytic / divisor,
        numeric=comparison.numeric / divisor,
        bar=comparison.bar / abs(divisor),
    )


def diagonal_entries(
    point: Point, number: int, cotangent: Array, direction: Sequence[Array], rtol: float, random: np.random.Generator
) -> list[Entry] | None:
    """All wrong entries of an input whose Jacobian is diagonal, from both sides; None if it is not.

    It is if two directions give the same J d / d and two cotangents the same uᵀJ / u, element by element. The two
    derivatives and two vjps then hold every entry. Real inputs and outputs only.
    """
    x, d = point.inputs[number], direction[number].reshape(-1)
    if x.size != cotangent.size or x.size < 2 or "c" in (x.dtype.kind, cotangent.dtype.kind):
        return None
    xp = module_of(x)
    other = point.random_signs(x, point.scales[number], random).reshape(-1)
    derivatives = []
    for v in (d, other):
        part: list[Array | None] = [None] * len(point.inputs)
        part[number] = v.reshape(x.shape)
        found = point.along(part)
        derivatives.append((found.value / v, found.bar / abs(v)))
    (numeric, bar), (again, again_bar) = derivatives
    if not bool((abs(numeric - again) <= bar + again_bar).all()):
        return None
    analytic = []
    for u in (cotangent, cotangent * xp.asarray(random.uniform(0.5, 1.5, cotangent.shape))):
        used = xp.where(u == 0, 1.0, u)
        analytic.append(point.vjp(used)[number].reshape(-1) / used)
    if not bool((abs(analytic[0] - analytic[1]) <= ROUNDING * abs(analytic[0])).all()):
        return None
    rounding = (ROUNDING + rtol) * xp.maximum(abs(analytic[0]), abs(numeric))
    bar, again_bar = bar + rounding, again_bar + rounding
    wrong = xp.flatnonzero(~(abs(analytic[0] - numeric) <= bar) & ~(abs(analytic[0] - again) <= again_bar))
    return [
        Entry(number, int(i), int(i), float(analytic[0][i]), float(numeric[i]), float(bar[i])) for i in wrong.tolist()
    ]


def halved(xp: Any, size: int, disagree: Callable[[Array], bool], most: int) -> Iterator[int]:
    """The single elements of a mask over `size` for which `disagree` holds, found by halving; at most `most`."""
    stack = [(0, size)]
    found = 0
    while stack and found < most:
        start, stop = stack.pop()
        mask = xp.zeros(size)
        mask[start:stop] = 1
        if not disagree(mask):
            continue
        if stop - start == 1:
            found += 1
            yield start
        else:
            middle = (start + stop) // 2
            stack += [(middle, stop), (start, middle)]


def unflat(vector: Array, like: Sequence[Array]) -> list[Array | None]:
    """A flat vector cut into arrays like those given; None for those that are zero throughout."""
    parts: list[Array | None] = []
    start = 0
    for array in like:
        part = vector[start : start + array.size].reshape(array.shape)
        parts.append(part if bool(abs(part).any()) else None)
        start += array.size
    return parts
