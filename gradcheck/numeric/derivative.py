"""One directional derivative with an error bar for every output, in a number of evaluations that does not depend on
size.

Central differences at steps h_k = 4^-k / 4 are extrapolated once (Richardson: D4_k = (16 D2(h_k) - D2(4 h_k)) / 15).
Two errors are read off the sequence itself: truncation from the change between neighbours, rounding from the scatter
of the smaller steps. Each output takes the step at which the sum of both is least. Fixed steps and absolute tolerances,
which other checkers use, are wrong wherever the scale of x or f is not 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

Array = Any
Function = Callable[[Sequence[Array]], list[Array]]

STEPS = 17
FIRST_STEP = 0.25
RATIO = 4.0
NOISE_SHARE = 1e-2
"""Scatter of more than this share of the largest change of an output means noise at every scale: no value."""
ROUNDING_UNITS = 16
"""Scatter within so many units in the last place of the output is rounding, whatever its share."""
FLAT_STEPS = 6
"""An output that is exactly constant at so many of the smallest steps is flat there: its derivative is 0."""


def module_of(array: Array) -> Any:
    """The array module (NumPy, CuPy) of an array."""
    return np if isinstance(array, np.ndarray) else import_module(type(array).__module__.partition(".")[0])


@dataclass(frozen=True)
class Derivative:
    """The derivative of a flat vector of outputs along one direction.

    `value` and `bar` have one element per output element; the truth lies within ``value ± bar``. Where no step gives a
    value that can be trusted, `bar` is inf and `value` is 0.
    """

    value: Array
    bar: Array
    step: Array
    """Which step each output took."""
    evaluations: int


def scale_of(x: Array) -> Array:
    """The natural scale of every element of `x`: the power of two below |x|, and for zeros that of the tensor.

    Powers of two make x ± h·scale·v exact for v of few bits, so that no step is off by rounding.
    """
    xp = module_of(x)
    size = xp.abs(x)
    usable = (size > 0) & xp.isfinite(size)
    own = xp.where(usable, size, 1.0)
    power = 2.0 ** xp.clip(xp.floor(xp.log2(own)), -1000, 1000)
    count = int(usable.sum())
    typical = float(2.0 ** np.floor(np.log2(float(size[usable].mean())))) if count else 1.0
    return xp.where(usable, power, typical)


def flat(arrays: Sequence[Array]) -> Array:
    """All elements of `arrays` in one vector; complex if one of them is."""
    xp = module_of(arrays[0])
    return xp.concatenate([a.reshape(-1) for a in arrays]) if len(arrays) > 1 else arrays[0].reshape(-1)


class Line:
    """A function along a line through a point: what the differences are taken of.

    `only`, if given, is the one output element that matters.
    """

    def __init__(
        self, f: Function, x: Sequence[Array], direction: Sequence[Array | None], only: int | None = None
    ) -> None:
        self.f, self.x, self.only = f, x, only
        self.moves = [(k, d) for k, d in enumerate(direction) if d is not None]
        self.eps = 0.0
        """The coarsest spacing of the outputs' dtypes."""
        self.evaluations = 0

    def at(self, h: float) -> Array:
        """The outputs at x + h · direction, flat and in double precision."""
        self.evaluations += 1
        point = list(self.x)
        for k, d in self.moves:
            x = self.x[k]
            point[k] = module_of(x).asarray(x + (h * d).astype(x.dtype))
        outputs = self.f(point)
        self.eps = max([self.eps, *(spacing(o) for o in outputs)])
        values = flat(outputs)
        if self.only is not None:
            values = values[self.only : self.only + 1]
        return values.astype("complex128" if values.dtype.kind == "c" else "float64", copy=False)


def spacing(array: Array) -> float:
    """The relative spacing of an array's floating dtype."""
    return 2.0**-7 if array.dtype.kind == "V" else float(np.finfo(array.dtype).eps)


def at_step(line: Line, step: int) -> float:
    """The real derivative of the one output of `line` at one step, found good before: 4 evaluations, no bar."""
    h = FIRST_STEP * RATIO**-step
    near, far = ((line.at(s) - line.at(-s)) / (2 * s) for s in (h, RATIO * h))
    return complex(((RATIO * RATIO * near - far) / (RATIO * RATIO - 1))[0])  # type: ignore[return-value]


def directional(
    f: Function, x: Sequence[Array], direction: Sequence[Array | None], only: int | None = None
) -> Derivative:
    """The derivative of all outputs of `f` at `x` along `direction`, in 2 · 17 evaluations.

    Args:
        f: takes arrays like `x`, returns the outputs.
        x: the inputs, of the dtype that the differences are to be taken in.
        direction: one array per input, scaled to the inputs (see `scale_of`); None for inputs that stay as they are.
        only: the one output element that is wanted, if not all.
    """
    line = Line(f, x, direction, only)
    steps = [FIRST_STEP * RATIO**-k for k in range(STEPS)]
    differences, sizes = [], []
    for h in steps:
        ahead, behind = line.at(h), line.at(-h)
        xp = module_of(ahead)
        differences.append(ahead - behind)
        sizes.append(xp.maximum(xp.abs(ahead), xp.abs(behind)))
    value, bar, step = best_step(module_of(differences[0]), np.array(steps), differences, sizes, line.eps)
    return Derivative(value, bar, step, line.evaluations)


def best_step(
    xp: Any, steps: np.ndarray[Any, Any], differences: list[Array], sizes: list[Array], eps: float
) -> tuple[Array, Array, Array]:
    """Value, bar and step per output from the differences f(x + h d) - f(x - h d) and the sizes of f at all steps."""
    square = RATIO * RATIO
    d = xp.stack(differences)
    h = xp.asarray(steps).reshape(-1, *[1] * (d.ndim - 1))
    second_order = d / (2 * h)
    fourth = xp.full_like(d, xp.nan)
    fourth[1:] = (square * second_order[1:] - second_order[:-1]) / (square - 1)
    change = xp.abs(d)
    finite = xp.isfinite(change)
    change = xp.where(finite, change, 0.0)
    largest = change.max(axis=0)
    smallest = xp.where(change > 0, change, xp.inf).min(axis=0)
    flat_somewhere = (finite & (change == 0)).any(axis=0)
    quantum = xp.where(flat_somewhere & xp.isfinite(smallest), smallest, 0.0)  # the forward is quantised
    usable = xp.isfinite(xp.abs(fourth))
    value = xp.zeros_like(d[0])
    bar = xp.full(d.shape[1:], xp.inf)
    step = xp.zeros(d.shape[1:], dtype="int64")
    for k in range(2, STEPS - 2):
        later = xp.abs(fourth[k + 1 :] - fourth[k]) * h[k + 1 :]
        later = xp.where(usable[k + 1 :], later, 0.0).max(axis=0)
        size = xp.abs(fourth[k])
        noise = xp.maximum(xp.maximum(later, eps * (sizes[k] + size)), quantum)
        truncation = 8 * xp.abs(fourth[k] - fourth[k - 1]) / (square * square - 1)
        candidate = 2 * (truncation + noise / steps[k] + 2 * eps * size)
        good = usable[k] & usable[k - 1] & usable[k + 1 :].any(axis=0)
        good &= noise <= xp.maximum(NOISE_SHARE * largest, ROUNDING_UNITS * eps * sizes[k])
        better = good & (candidate < bar)
        value = xp.where(better, fourth[k], value)
        bar = xp.where(better, candidate, bar)
        step = xp.where(better, k, step)
    flat_here = (finite & (change == 0))[-FLAT_STEPS:].all(axis=0) & ~xp.isfinite(bar)
    bar = xp.where(flat_here, 2 * eps * sizes[-1] / steps[-FLAT_STEPS], bar)
    return value, bar, step
