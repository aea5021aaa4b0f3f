"""One directional derivative with an error bar for every output, in a number of evaluations that does not depend on
size.

Central differences at steps h_k = 4^-k / 4 are extrapolated once (Richardson: D4_k = (16 D2(h_k) - D2(4 h_k)) / 15).
Two errors are read off the sequence itself: truncation from the change between neighbours, rounding from the scatter
of the smaller steps. Each output takes the step at which the sum of both is least. Fixed steps and absolute tolerances,
which other checkers use, are wrong wherever the scale of x or f is not 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

Array = Any
Function = Callable[[Sequence[Array]], list[Array]]

STEPS = 17
FIRST_STEPS = 12
"""So many first; the smaller ones only if some output's best step is among the last `ENOUGH_SMALLER` of them."""
ENOUGH_SMALLER = 6
LARGER_STEPS = 10
"""So many larger steps for outputs whose derivative the others could not resolve: cos at 1e-6, say."""
UNRESOLVED = 1e-4
"""A bar of more than this share of its value."""
FIRST_STEP = 0.25
RATIO = 4.0
SAFETY = 3
"""Between the sum of both errors as read and the bar: of 2,000 compositions, one or two lie outside with 2."""
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


def at_one_step(
    f: Function, x: Sequence[Array], direction: Sequence[Array | None], step: int, only: int | None = None
) -> Derivative:
    """The derivative as by `directional`, from one step alone in 4 evaluations: the value as good, the bar wider.

    It is the difference between the two orders of extrapolation, which is the error of the lower one.
    """
    line = Line(f, x, direction, only)
    h = FIRST_STEP * RATIO**-step
    ahead, behind = line.at(h), line.at(-h)
    near, far = (ahead - behind) / (2 * h), (line.at(RATIO * h) - line.at(-RATIO * h)) / (2 * RATIO * h)
    value = (RATIO * RATIO * near - far) / (RATIO * RATIO - 1)
    xp = module_of(value)
    size = xp.maximum(xp.abs(ahead), xp.abs(behind))
    bar = 2 * (xp.abs(value - near) + ROUNDING_UNITS * line.eps * size / h)
    return Derivative(value, bar, xp.full(value.shape, step), line.evaluations)


def directional(
    f: Function, x: Sequence[Array], direction: Sequence[Array | None], only: int | None = None
) -> Derivative:
    """The derivative of all outputs of `f` at `x` along `direction`, in 24 to 54 evaluations.

    Args:
        f: takes arrays like `x`, returns the outputs.
        x: the inputs, of the dtype that the differences are to be taken in.
        direction: one array per input, scaled to the inputs (see `scale_of`); None for inputs that stay as they are.
        only: the one output element that is wanted, if not all.
    """
    line = Line(f, x, direction, only)
    scan = Scan(line, max(float(abs(d).max()) for _, d in line.moves if d.size))
    scan.extend(range(FIRST_STEPS))
    found = scan.best()
    if not bool((scan.xp.isfinite(found.bar) & (found.step <= FIRST_STEPS - ENOUGH_SMALLER)).all()):
        scan.extend(range(FIRST_STEPS, STEPS))
        found = scan.best()
    unresolved = scan.unresolved(found)
    if bool(unresolved.any()):
        scan.extend(range(-1, -LARGER_STEPS - 1, -1))
        found = scan.resolved(found, unresolved)
    return found


class Scan:
    """The differences along a line, step by step, and what they say."""

    def __init__(self, line: Line, reach: float) -> None:
        self.line = line
        self.reach = reach
        self.differences: dict[int, Array] = {}
        """f(x + h d) − f(x − h d) by the number of the step."""
        self.sizes: dict[int, Array] = {}
        self.xp: Any = np

    def extend(self, steps: Iterable[int]) -> None:
        """Evaluate at further steps."""
        for k in steps:
            h = FIRST_STEP * RATIO**-k
            ahead, behind = self.line.at(h), self.line.at(-h)
            self.xp = module_of(ahead)
            self.differences[k] = ahead - behind
            self.sizes[k] = self.xp.maximum(self.xp.abs(ahead), self.xp.abs(behind))

    def best(self) -> Derivative:
        """Value, bar and step of every output."""
        order = sorted(self.differences)
        steps = np.array([FIRST_STEP * RATIO**-k for k in order])
        differences, sizes = [self.differences[k] for k in order], [self.sizes[k] for k in order]
        value, bar, step = best_step(
            self.xp, steps, differences, sizes, self.line.eps, self.reach, order[-1] == STEPS - 1, -order[0]
        )
        return Derivative(value, bar, step + order[0], self.line.evaluations)

    def unresolved(self, found: Derivative) -> Array:
        """The outputs that change, but too little for their rounding: their scale may be larger than the input's."""
        changed = sum((abs(d) > 0) for d in self.differences.values()) > 0
        return changed & self.xp.isfinite(found.bar) & (found.bar > UNRESOLVED * self.xp.abs(found.value))

    def resolved(self, found: Derivative, wanted: Array) -> Derivative:
        """With the values of larger steps where those are wanted, better, and agree with what smaller steps found."""
        further = self.best()
        better = wanted & (further.bar < found.bar) & (abs(further.value - found.value) <= found.bar)
        value, bar, step = (
            self.xp.where(better, b, a)
            for a, b in ((found.value, further.value), (found.bar, further.bar), (found.step, further.step))
        )
        return Derivative(value, bar, step, self.line.evaluations)


def best_step(
    xp: Any,
    steps: np.ndarray[Any, Any],
    differences: list[Array],
    sizes: list[Array],
    eps: float,
    reach: float,
    complete: bool,
    larger: int,
) -> tuple[Array, Array, Array]:
    """Value, bar and step per output from the differences f(x + h d) - f(x - h d) and the sizes of f at all steps.

    `reach` is the largest element of d: where all outputs are 0 all along, it is the only scale there is. Only a
    `complete` scan, down to the smallest step, can show that an output is flat. The first `larger` steps exceed the
    scale of the input.
    """
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
    largest_size = max(float(size.max()) for size in sizes) if d[0].size else 0.0
    least = eps * (min(reach, largest_size) if 0 < largest_size < np.inf else reach)  # of an output that is 0 all along
    usable = xp.isfinite(xp.abs(fourth))
    value = xp.zeros_like(d[0])
    bar = xp.full(d.shape[1:], xp.inf)
    step = xp.zeros(d.shape[1:], dtype="int64")
    for k in range(2, len(steps) - 2):
        later = xp.abs(fourth[k + 1 :] - fourth[k]) * h[k + 1 :]
        later = xp.where(usable[k + 1 :], later, 0.0).max(axis=0)
        size = xp.abs(fourth[k])
        noise = xp.maximum(xp.maximum(later, xp.where(sizes[k] > 0, eps * (sizes[k] + size), least)), quantum)
        truncation = 8 * xp.abs(fourth[k] - fourth[k - 1]) / (square * square - 1)
        if 2 < k < larger:
            truncation = xp.maximum(truncation, xp.abs(fourth[k - 1] - fourth[k - 2]) / 256)
        candidate = SAFETY * (truncation + noise / steps[k] + 2 * eps * size)
        good = usable[k] & usable[k - 1] & usable[k + 1 :].any(axis=0)
        if k < larger:  # far from the point, no change says nothing: it may have jumped over all there is
            good &= (change[k - 2 : k + 1] > 0).all(axis=0)
        good &= noise <= xp.maximum(NOISE_SHARE * largest, ROUNDING_UNITS * xp.maximum(eps * sizes[k], least))
        better = good & (candidate < bar)
        value = xp.where(better, fourth[k], value)
        bar = xp.where(better, candidate, bar)
        step = xp.where(better, k, step)
    if complete:
        flat_here = (finite & (change == 0))[-FLAT_STEPS:].all(axis=0) & ~xp.isfinite(bar)
        bar = xp.where(flat_here, 2 * xp.maximum(eps * sizes[-1], least) / steps[-FLAT_STEPS], bar)
    return value, bar, step
