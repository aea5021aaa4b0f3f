"""One directional derivative with an error bar for every output, in a number of evaluations that does not depend on
size.

Central differences at steps h_k = 4^-k / 4 are extrapolated once (Richardson: D4_k = (16 D2(h_k) - D2(4 h_k)) / 15).
Two errors are read off the sequence itself: truncation from the change between neighbours, rounding from the scatter
of the smaller steps. Each output takes the step at which the sum of both is least. Fixed steps and absolute tolerances,
which other checkers use, are wrong wherever the scale of x or f is not 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from gradcheck.numeric.scan import (
    BEYOND_FIRST,
    ENOUGH_SMALLER,
    FIRST_STEPS,
    LARGER_STEPS,
    RATIO,
    ROUNDING_UNITS,
    STEPS,
    UNRESOLVED,
    USUAL_STEP,
    USUAL_STEPS,
    Derivative,
    Scan,
    step_size,
)

SMALLER = 2
"""By so many steps the usual one is made smaller where one is enough."""

Array = Any
Function = Callable[[Sequence[Array]], list[Array]]


def module_of(array: Array) -> Any:
    """The array module (NumPy, CuPy) of an array."""
    return np if isinstance(array, np.ndarray) else import_module(type(array).__module__.partition(".")[0])


def scale_of(x: Array) -> Array:
    """The natural scale of every element of `x`: the power of two below |x|, and for zeros that of the tensor.

    Powers of two make x ± h·scale·v exact for v of few bits, so that no step is off by rounding.
    """
    xp = module_of(x)
    size = xp.abs(x)
    usable = (size > 0) & xp.isfinite(size)
    own = xp.where(usable, size, 1.0)
    power = xp.ldexp(1.0, xp.clip(xp.frexp(own)[1] - 1, -1000, 1000))
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

    def at(self, h: complex) -> Array:
        """The outputs at x + h · direction, flat and in double precision."""
        self.evaluations += 1
        point = list(self.x)
        for k, d in self.moves:
            x = self.x[k]
            step = h * d if isinstance(h, complex) else (h * d).astype(x.dtype, copy=False)
            point[k] = module_of(x).asarray(x + step)
        outputs = self.f(point)
        self.eps = max([self.eps, *(spacing(o) for o in outputs)])
        values = flat(outputs)
        if self.only is not None:
            values = values[self.only : self.only + 1]
        return values.astype("complex128" if values.dtype.kind == "c" else "float64", copy=False)


def spacing(array: Array) -> float:
    """The relative spacing of an array's floating dtype."""
    return _spacing(array.dtype)


@functools.cache
def _spacing(dtype: Any) -> float:
    return 2.0**-7 if dtype.kind == "V" else float(np.finfo(dtype).eps)


def at_one_step(
    f: Function, x: Sequence[Array], direction: Sequence[Array | None], step: int, only: int | None = None
) -> Derivative:
    """The derivative as by `directional`, from one step alone in 4 evaluations: the value as good, the bar wider.

    The bar is the difference between the steps h and 4 h: truncation and rounding of both are in it.
    """
    line = Line(f, x, direction, only)
    h = step_size(step)
    near, size = central(line, h)
    far, _ = central(line, RATIO * h)
    value = (RATIO * RATIO * near - far) / (RATIO * RATIO - 1)
    bar = 2 * (abs(near - far) + ROUNDING_UNITS * line.eps * size / h)
    return Derivative(value, bar, module_of(value).full(value.shape, step), line.evaluations)


def at_a_small_step(f: Function, x: Sequence[Array], direction: Sequence[Array | None], like: Derivative) -> Derivative:
    """The derivative of a function in 2 evaluations, where a brief look was enough along another direction.

    The step is smaller than the usual one, so that truncation does not count; `like` knows the rounding there.
    """
    line = Line(f, x, direction)
    h = step_size(USUAL_STEP + SMALLER)
    value, size = central(line, h)
    bar = 2 * (RATIO**SMALLER * like.bar + ROUNDING_UNITS * line.eps * size / h)
    return Derivative(value, bar, module_of(value).full(value.shape, USUAL_STEP), line.evaluations)


def central(line: Line, h: float) -> tuple[Array, Array]:
    """The central difference at one step, and the size of the outputs there."""
    ahead, behind = line.at(h), line.at(-h)
    return (ahead - behind) / (2 * h), module_of(ahead).maximum(abs(ahead), abs(behind))


def directional(
    f: Function, x: Sequence[Array], direction: Sequence[Array | None], only: int | None = None, briefly: bool = False
) -> Derivative:
    """The derivative of all outputs of `f` at `x` along `direction`, in 24 to 54 evaluations.

    Args:
        f: takes arrays like `x`, returns the outputs.
        x: the inputs, of the dtype that the differences are to be taken in.
        direction: one array per input, scaled to the inputs (see `scale_of`); None for inputs that stay as they are.
        only: the one output element that is wanted, if not all.
        briefly: make do with 12 evaluations where they give six digits of everything. Of a forward that is rounded to
            fewer digits than its dtype has, some of those bars are too small: look again before calling it wrong.
    """
    line = Line(f, x, direction, only)
    moves = [d for _, d in line.moves if d.size]
    scan = Scan(line, max(float(abs(d).max()) for d in moves), module_of(moves[0]))
    if briefly:
        scan.extend(USUAL_STEPS)
        good = scan.good()
        if good is not None:
            return good
    scan.extend(range(FIRST_STEPS))
    found = scan.best()
    enough = (found.bar <= UNRESOLVED * abs(found.value)) & (found.step < FIRST_STEPS - ENOUGH_SMALLER)
    if not bool(enough.all()) or scan.over_a_kink(FIRST_STEPS, BEYOND_FIRST):
        scan.extend(range(FIRST_STEPS, STEPS))
        found = scan.best()
    unresolved = scan.unresolved(found)
    if bool(unresolved.any()):
        scan.extend(range(-1, -LARGER_STEPS - 1, -1))
        found = scan.resolved(found, unresolved)
    return replace(found, kinked=scan.kinked(found, FIRST_STEPS))
