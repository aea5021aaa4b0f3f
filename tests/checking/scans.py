"""A function of one array, looked at along a line: the derivative with its bar, and the noise it was measured with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcheck.checking.differences import (
    BRIEF,
    USUAL,
    Derivative,
    Line,
    derivative_of,
    from_close_values,
    random_direction,
    scale_of,
)
from gradcheck.checking.point import flat_real

Array = Any
Function = Callable[[Array], Array]


def line_of(f: Function, x: Array, direction: Array | None = None, weights: Array | None = None) -> Line:
    """The line through `x` along a direction, of the inputs' scale if none is given."""
    point = np.asarray(x, dtype=float)
    d = scale_of(point) if direction is None else np.asarray(direction, dtype=float)
    return Line(lambda v: flat_real([np.asarray(f(v[0]))]), [point], [d], flat_real([np.asarray(f(point))]), weights)


@dataclass(frozen=True)
class Looked:
    """A look at every output of an elementwise function; the derivatives are those by the elements themselves."""

    derivative: Derivative
    direction: Array

    @classmethod
    def at(cls, line: Line, noise: Array) -> Looked:
        """What the samples on a line say."""
        return cls(derivative_of(line, noise), line.direction[0])

    @property
    def value(self) -> Array:
        """The derivative of every output."""
        return self.derivative.value / self.direction.reshape(-1)

    @property
    def bar(self) -> Array:
        """How far off it may be."""
        return self.derivative.bar / abs(self.direction.reshape(-1))

    @property
    def sides(self) -> tuple[Array, Array]:
        """The derivatives on both sides of a kink, the lesser first."""
        half = self.derivative.gap / 2 / abs(self.direction.reshape(-1))
        return self.value - half, self.value + half

    def holds(self, true: Array, rounding: float = 0.0) -> bool:
        """Whether what is true is within all bars; `rounding` is that of what is called true, relative to it."""
        return bool((abs(self.value - true) <= self.bar + rounding * abs(np.asarray(true))).all())

    def allows(self, true: Array) -> bool:
        """Whether it is not excluded: at a kink by both sides, elsewhere by the bar and a kink that would not show."""
        found, d = self.derivative, self.direction.reshape(-1)
        beside = np.where(found.kinked, found.gap / 2, found.gap)
        return bool((abs(true * d - found.value) <= found.bar + beside).all())


def look(f: Function, x: Any, *, seed: int | None = None, hidden: bool = True) -> Looked:
    """The derivative of every output of `f`, elementwise at `x`, by a scan over all steps.

    Args:
        seed: of a random direction; without one it is the scale of the inputs.
        hidden: whether structure finer than the least that is the function's counts as noise.
    """
    point = np.atleast_1d(np.asarray(x, dtype=float))
    scale = scale_of(point)
    d = scale if seed is None else random_direction(point, scale, np.random.default_rng(seed))
    line = line_of(f, point, d)
    noise = from_close_values(line, hidden)
    line.extend(USUAL)
    return Looked.at(line, noise)


def brief(f: Function, x: Any) -> Looked:
    """The first look: some dozen evaluations."""
    point = np.atleast_1d(np.asarray(x, dtype=float))
    line = line_of(f, point)
    noise = from_close_values(line, thoroughly=False)
    line.extend(BRIEF)
    return Looked.at(line, noise)
