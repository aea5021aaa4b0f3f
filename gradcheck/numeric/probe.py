"""Random projections of the Jacobian, analytic beside numeric, and the search for the entries behind a disagreement.

One vjp gives uᵀJ, one directional derivative gives J·d: both give the number uᵀJ d, whatever the size of J. Where they disagree
by more than their bars, halving u finds the wrong outputs (a vjp a step), and halving d the wrong inputs of each (a directional
derivative a step), down to single entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradcheck.numeric.derivative import Array, Derivative, Function, directional, flat, module_of, scale_of

Vjp = Callable[[Array], list[Array]]
"""A flat cotangent of all outputs to one gradient per moved input."""

MAGNITUDES = np.arange(8, 16) / 8
"""Of a direction's elements, relative to the inputs' scale: few bits, so that steps are exact; many values, so that errors in
one row do not cancel."""
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

    def along(self, direction: Sequence[Array | None]) -> Derivative:
        """The derivative of all outputs along a direction."""
        derivative = directional(self.function, self.inputs, direction)
        self.evaluations += derivative.evaluations
        return derivative

    def random_direction(self, random: np.random.Generator) -> list[Array]:
        """A direction with random signs and magnitudes, scaled to the inputs; complex where they are."""
        return [self.random_signs(x, scale, random) for x, scale in zip(self.inputs, self.scales, strict=True)]

    def random_signs(self, x: Array, scale: Array, random: np.random.Generator) -> Array:
        """As `random_direction`, for one input."""
        xp = module_of(x)

        def draw() -> Any:
            return random.choice(MAGNITUDES, x.shape) * random.choice([-1.0, 1.0], x.shape)

        values = draw() + 1j * draw() if x.dtype.kind == "c" else draw()
        return xp.asarray(values) * scale


def weights(derivative: Derivative, outputs: Array, random: np.random.Generator) -> Array:
    """A cotangent with random signs and magnitudes under which every output counts alike, whatever its size."""
    xp = module_of(outputs)
    size = xp.maximum(xp.abs(derivative.value), 1e-3 * xp.abs(outputs))
    known = xp.isfinite(derivative.bar)
    size = xp.maximum(size, xp.where(known, 1e3 * derivative.bar, 0.0))
    positive = size[size > 0]
    typical = float(positive.mean()) if positive.size else 1.0
    size = xp.where(size > 0, size, typical)
    drawn = random.uniform(0.5, 1.5, outputs.shape) * random.choice([-1.0, 1.0], outputs.shape)
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
    bars = xp.where(cotangent == 0, 0.0, xp.abs(cotangent) * derivative.bar)
    bar = float(bars.sum()) + ROUNDING * size + rtol * max(abs(analytic), abs(numeric))
    return Comparison(analytic, numeric, bar)


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
    """Single entries whose derivatives disagree by more than their bars, worst outputs first come; at most the product."""

    def outputs_disagree(mask: Array) -> bool:
        part = cotangent * mask
        return compare(part, derivative, point.vjp(part), direction, rtol).ratio > 1

    xp = module_of(cotangent)
    for output in halved(xp, cotangent.size, outputs_disagree, most_outputs):
        one = xp.zeros_like(cotangent)
        one[output] = cotangent[output]
        yield from wrong_inputs(point, one, output, direction, rtol, most_inputs)


def wrong_inputs(
    point: Point, cotangent: Array, output: int, direction: Sequence[Array], rtol: float, most: int
) -> Iterator[Entry]:
    """The wrong entries of the row of one output; `cotangent` is zero but there."""
    xp = module_of(cotangent)
    gradients = point.vjp(cotangent)
    whole = flat(direction)
    found: dict[int, Comparison] = {}

    def inputs_disagree(mask: Array) -> bool:
        part = unflat(whole * mask, direction)
        comparison = compare(cotangent, point.along(part), gradients, part, rtol)
        chosen = xp.flatnonzero(mask)
        if chosen.size == 1:
            found[int(chosen[0])] = comparison
        return comparison.ratio > 1

    ends = np.cumsum([d.size for d in direction])
    unit = complex(cotangent[output])
    for index in halved(xp, whole.size, inputs_disagree, most):
        comparison = found[index]
        step = complex(whole[index])
        divisor = (unit * step).real if not unit.imag and not step.imag else abs(unit) * abs(step)
        number = int(np.searchsorted(ends, index, side="right"))
        yield Entry(
            input=number,
            index=index - int(ends[number] - direction[number].size),
            output=output,
            analytic=comparison.analytic / divisor,
            numeric=comparison.numeric / divisor,
            bar=comparison.bar / abs(divisor),
        )


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
