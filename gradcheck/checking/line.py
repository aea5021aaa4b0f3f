"""A function along a line through a point, and its samples at steps of all sizes: what differences are taken of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcheck.checking.arrays import EPS, Array, flat_real, module_of

Function = Callable[[Sequence[Array]], list[Array]]
"""Arrays like the inputs to the outputs."""

RATIO = 4.0
"""Of one step to the next: a power of two, so that steps are exact, and coarse enough for 16 decades in 28 steps."""
USUAL = range(-17, 0)
"""Steps are RATIO ** k, relative to the scale of the inputs. x + h·d is exact in float64 down to -17; up to 1/4 the
function is seen at the scale of its inputs."""
MOST_ROWS = 2**14
"""Outputs up to which each gets a derivative of its own; of more, their weighted sum does. A scan keeps some 60 values
a row: 8 MB of these."""
DIRECTION_BITS = round(-np.log2(EPS * RATIO ** -USUAL[0])) - 2
"""A direction's elements are 1 to 2 times a power of two in steps of 2^-16, so that rounding cannot hide in multiples
of the step. So many bits are left of 52 below the smallest step, less one for d up to 2 and one for a carry: x + h·d
is exact in float64 for all steps."""


def moved(x: Sequence[Array], direction: Sequence[Array | None], t: float) -> list[Array]:
    """x + t · direction, in the dtypes of x."""
    return [
        a if d is None else np.add(a, (t * d).astype(a.dtype, copy=False), out=np.empty_like(a))
        for a, d in zip(x, direction, strict=True)
    ]


class Sample(NamedTuple):
    """The change of every row at some t, and the sum of absolute changes in it, on which its rounding depends."""

    change: Array
    size: Array


class Line:
    """``t -> rows of f(x + t·d) − f(x)``, in float64.

    Args:
        f: the function; NaN where it is not defined.
        x: its inputs.
        direction: one array per input, None for inputs that stay as they are.
        outputs: f(x).
        weights: one cotangent over the flat real outputs, for a single row: their weighted sum. Without, each output
            is a row.
    """

    def __init__(
        self,
        f: Function,
        x: Sequence[Array],
        direction: Sequence[Array | None],
        outputs: Array,
        weights: Array | None = None,
    ) -> None:
        self.f, self.x, self.outputs, self.weights = f, x, outputs, weights
        self.direction = direction

    def values(self, t: float) -> Array:
        """The flat real outputs at x + t · direction, in float64."""
        return flat_real(self.f(moved(self.x, self.direction, t)))

    def at(self, t: float) -> Sample:
        """The change of every row."""
        return self.sample(self.values(t))

    def sample(self, values: Array) -> Sample:
        """The change of every row at some flat real outputs, which it takes."""
        values -= self.outputs
        return self.rows(values)

    def rows(self, change: Array) -> Sample:
        """Every row of a change of the outputs."""
        if self.weights is None:
            return Sample(change, abs(change))
        terms = change * self.weights
        total = terms.sum(keepdims=True)
        return Sample(total, np.abs(terms, out=terms).sum(keepdims=True))

    @property
    def sizes(self) -> Array:
        """The size of the function per row: |f(x)|, or the sum of its weighted absolute values."""
        size = abs(self.outputs)
        return size if self.weights is None else (abs(self.weights) * size).sum(keepdims=True)

    @property
    def on_the_way(self) -> float:
        """How large numbers are that the function may compute with: 1, or as its inputs."""
        return max([1.0, *(float(abs(x).max()) for x in self.x if x.size)])


class Scan:
    """The samples of a line at all steps taken so far."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.samples: dict[int, tuple[Sample, Sample]] = {}
        """Ahead and behind, by the exponents of the steps."""

    def take(self, k: int, ahead: Sequence[Array], behind: Sequence[Array]) -> None:
        """The samples at a step where the outputs are known."""
        self.samples[k] = self.line.sample(flat_real(ahead)), self.line.sample(flat_real(behind))

    def extend(self, steps: Sequence[int]) -> None:
        """Take the samples at these steps."""
        for k in steps:
            if k not in self.samples:
                h = RATIO**k
                self.samples[k] = self.line.at(h), self.line.at(-h)


def scale_of(x: Array) -> Array:
    """The natural scale of every element of `x`: the power of two below |x|, and for zeros that of the tensor, or 1.

    Powers of two make x + h·scale·v exact for v of few bits, so that no step is off by rounding.
    """
    xp = module_of(x)
    size = xp.abs(x)
    usable = (size > 0) & xp.isfinite(size)
    own = xp.where(usable, size, 1.0)
    power = xp.ldexp(1.0, xp.clip(xp.frexp(own)[1] - 1, -1000, 1000))
    if bool(usable.all()):
        return power
    typical = min(1.0, float(2.0 ** np.floor(np.log2(float(size[usable].mean()))))) if bool(usable.any()) else 1.0
    return xp.where(usable, power, typical)


def random_direction(x: Array, scale: Array, random: np.random.Generator) -> Array:
    """A direction with random signs, and magnitudes of 1 to 2 times the scale; complex where `x` is."""
    xp, half = module_of(x), 2**DIRECTION_BITS

    def draw() -> Any:
        drawn = random.integers(-half, half, x.shape) / half
        return drawn + np.copysign(1.0, drawn)

    values = draw() + 1j * draw() if x.dtype.kind == "c" else draw()
    return xp.asarray(values) * scale
