"""What a hypothesis about a wrong gradient is held against: projections of one input's Jacobian, with error bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gradcheck.checker.problem import Array
from gradcheck.numeric.derivative import module_of
from gradcheck.numeric.probe import ROUNDING, Point, inner, weights

COTANGENTS = 2
DIRECTIONS = 3


@dataclass
class Evidence:
    """Cotangents u, directions d of one input, and Re⟨u, J d⟩ with bars for every pair."""

    x: Array
    """The input."""
    cotangents: list[Array]
    """Flat, over all outputs."""
    directions: list[Array]
    analytic: list[list[Array]]
    """Per cotangent, the gradients of all moved inputs as backward gives them."""
    numeric: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    bars: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    number: int
    """Which of the moved inputs."""

    @classmethod
    def gathered(
        cls, point: Point, number: int, vector: Array, vjp: Callable[[Array], list[Array]], random: np.random.Generator
    ) -> Evidence:
        """From scans along random directions of one input; `vector` holds the outputs at the point."""
        x, xp = point.inputs[number], module_of(vector)
        directions = [point.random_signs(x, point.scales[number], random) for _ in range(DIRECTIONS)]
        derivatives = []
        for d in directions:
            part: list[Array | None] = [None] * len(point.inputs)
            part[number] = d
            derivatives.append(point.along(part))
        cotangents = [weights(derivatives[0], vector, random) for _ in range(COTANGENTS)]
        numeric = [[inner(u, d.value) for d in derivatives] for u in cotangents]
        bars = [
            [float(xp.where(u == 0, 0.0, xp.abs(u) * d.bar).sum()) for d in derivatives] for u in cotangents
        ]  # fmt: skip
        gradients = [vjp(u) for u in cotangents]
        return cls(x, cotangents, directions, gradients, np.array(numeric), np.array(bars), number)

    @property
    def gradients(self) -> list[Array]:
        """Per cotangent, the gradient of this input as backward gives it."""
        return [found[self.number] for found in self.analytic]

    def holds(self, candidates: Sequence[Array]) -> bool:
        """Whether gradients, one per cotangent, reproduce every projection within its bar."""
        for u, candidate in enumerate(candidates):
            for k, d in enumerate(self.directions):
                bar = self.bars[u, k] + ROUNDING * float(abs(candidate * d).sum())
                if not abs(inner(candidate, d) - self.numeric[u, k]) <= bar:
                    return False
        return True

    def factor(self, candidates: Sequence[Array], rests: Sequence[Array] | None = None) -> float | None:
        """The c for which c · candidate (plus rest) reproduces everything; None if there is none."""
        rest = 0.0 if rests is None else inner(rests[0], self.directions[0])
        base = inner(candidates[0], self.directions[0])
        missing = self.numeric[0, 0] - rest
        if not base or not np.isfinite(base) or abs(missing) <= 4 * self.bars[0, 0]:
            return None
        if not np.isfinite(12 * missing / base):  # `nice` multiplies by up to 12
            return None
        c = nice(missing / base, self.bars[0, 0] / abs(base))
        made = [c * a if rests is None else c * a + rests[k] for k, a in enumerate(candidates)]
        return c if self.holds(made) else None


def nice(value: float, bar: float) -> float:
    """The simplest fraction with a small denominator within the bar of a value, or the value."""
    for denominator in range(1, 13):
        near = round(value * denominator) / denominator
        if near and abs(near - value) <= 4 * bar + 1e-9 * abs(value):
            return near
    return value


def shown(value: float) -> str:
    """A factor as a person would write it: 2, 1/3, 0.1234."""
    for denominator in range(1, 13):
        whole = round(value * denominator)
        if abs(whole - value * denominator) <= 1e-9 * abs(value * denominator) and abs(whole) < 10**6:
            return str(whole) if denominator == 1 else f"{whole}/{denominator}"
    return f"{value:.6g}"
