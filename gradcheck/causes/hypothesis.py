"""What hypotheses about a wrong gradient are made from, and how they are held against the right one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from gradcheck.checking.arrays import SMALLEST, Array, module_of, wide
from gradcheck.checking.outputs import Outputs
from gradcheck.result import Diagnosis

FEW = 1000
"""Elements, about, on which a factor is tried before all are."""
SIMPLE = 12
"""Factors that are fractions of numbers up to this are simple."""


@dataclass
class Subject:
    """What hypotheses about one input are made from; one gradient of all inputs per cotangent, one right gradient of
    this input."""

    number: int
    names: Sequence[str]
    inputs: Sequence[Array]
    outputs: Outputs
    cotangents: Sequence[Array]
    claimed: Sequence[Sequence[Array]]
    truth: Sequence[Array]
    bars: Sequence[Array]
    vjp: Callable[[Array], list[Array]]
    wrong: Sequence[int] = ()
    """The inputs whose gradients are wrong."""

    @property
    def x(self) -> Array:
        return self.inputs[self.number]

    @property
    def name(self) -> str:
        return self.names[self.number]

    @property
    def gradients(self) -> list[Array]:
        """Of this input, as backward gives them."""
        return [gradients[self.number] for gradients in self.claimed]

    @property
    def single_output(self) -> Array | None:
        """The one output, if there is only one."""
        return self.outputs.arrays[self.outputs.active[0]] if len(self.outputs.active) == 1 else None

    def shaped(self, shape: tuple[int, ...]) -> list[Array]:
        """The cotangents of the one output in its shape."""
        parts = [self.outputs.split(u)[self.outputs.active[0]] for u in self.cotangents]
        return [wide(part).reshape(shape) for part in parts if part is not None]

    def thinned(self) -> Subject:
        """About `FEW` elements of everything that has the input's shape, with bars that leave room for a factor of
        these alone: what does not hold for them, element by element, does not for all."""
        step = 1 + self.x.size // FEW

        def thin(arrays: Sequence[Array]) -> list[Array]:
            return [a.reshape(-1)[::step] if a.shape == self.x.shape else a for a in arrays]

        return replace(
            self,
            inputs=thin(self.inputs),
            outputs=Outputs(thin(self.outputs.arrays), self.outputs.active),
            claimed=[thin(gradients) for gradients in self.claimed],
            truth=thin(self.truth),
            bars=[2 * bar for bar in thin(self.bars)],
        )

    def holds(self, candidates: Sequence[Array]) -> bool:
        """Whether gradients, one per cotangent, are the right ones."""
        return all(bool((abs(c - t) <= b).all()) for c, t, b in zip(candidates, self.truth, self.bars, strict=True))

    def digits(self, values: Array) -> float:
        """How many digits of values of the right gradient's size are known, those of one element left out: a factor
        fits that."""
        xp = module_of(values)
        known = xp.log10(xp.maximum(abs(values) / xp.maximum(self.bars[0], SMALLEST["float64"]), 1.0))
        return float(known.sum() - known.max())

    def factor(self, candidates: Sequence[Array], rests: Sequence[Array] | None = None) -> float | None:
        """The simple factor c for which c · candidate (plus rest) is right; None if there is none."""
        rests = [0 * a for a in candidates] if rests is None else rests
        place = int(abs(candidates[0]).argmax())
        base, wanted = (complex(a.reshape(-1)[place]) for a in (candidates[0], self.truth[0] - rests[0]))
        if not base or not np.isfinite(abs(base)) or not np.isfinite(abs(wanted)):
            return None
        ratio = (wanted / base).real
        bar = float(self.bars[0].reshape(-1)[place]) / abs(base)
        if abs(ratio) <= 4 * bar:
            return None
        if not np.isfinite(ratio):  # of numbers that are finite themselves, where the base is subnormal
            return None
        c = nice(ratio, bar)

        def fits(step: int) -> bool:
            """Whether every so many elements are right."""
            arrays = zip(candidates, rests, self.truth, self.bars, strict=True)
            flat = ([v.reshape(-1)[::step] for v in four] for four in arrays)
            return all(bool((abs(c * a + r - t) <= b).all()) for a, r, t, b in flat)

        return c if fits(1 + self.x.size // FEW) and fits(1) else None

    def diagnosis(self, code: str, text: str) -> Diagnosis:
        return Diagnosis.of(code, f"{self.name}: {text}", (self.name,))


def nice(value: float, bar: float) -> float:
    """The simplest fraction with a small denominator within the bar of a value, or the value."""
    for denominator in range(1, SIMPLE + 1):
        near = round(value * denominator) / denominator
        if near and abs(near - value) <= 4 * bar + 1e-9 * abs(value):
            return near
    return value


def shown(value: float) -> str:
    """A factor as a person would write it: 2, 1/3, 0.1234."""
    fraction = Fraction(value).limit_denominator(SIMPLE)
    return str(fraction) if abs(float(fraction) - value) <= 1e-9 * abs(value) else f"{value:.6g}"
