"""The scan behind a derivative: differences at many steps, and the step at which each output is best read off.

The steps are 4^-k / 4 of the inputs' scale. Truncation is read from the change between neighbours, rounding from the
scatter of the smaller steps. For many outputs, the step that is best for a sample is tried on all of them first; only
those for which it is not good enough are looked at step by step.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gradcheck.numeric.derivative import Line

Array = Any

STEPS = 17
FIRST_STEPS = 12
"""So many first; the smaller ones only if some output's best step is among the last `ENOUGH_SMALLER` of them."""
ENOUGH_SMALLER = 6
USUAL_STEP = 6
"""A good step for most smooth functions: the best ones are larger, but rounding is easier to read there."""
USUAL_STEPS = range(USUAL_STEP - 2, USUAL_STEP + 4)
"""What it takes to judge that step."""
LARGER_STEPS = 10
"""So many larger steps for outputs whose derivative the others could not resolve: cos at 1e-6, say."""
UNRESOLVED = 1e-4
"""A bar of more than this share of its value."""
FIRST_STEP = 0.25
RATIO = 4.0
SAFETY = 3
"""Between the sum of both errors as read and the bar: of 2,000 compositions, one or two lie outside with 2."""
FIRST_ORDER = 1.5
"""So many times the change to the next step is the error of values that converge slowly."""
NOISE_SHARE = 1e-2
"""Scatter of more than this share of the largest change of an output means noise at every scale: no value."""
ALIASED = 0.25
"""If the smallest steps still change an output by this share of its largest change, no step is small enough for it."""
ROUNDING_UNITS = 16
"""Scatter within so many units in the last place of the output is rounding, whatever its share."""
FLAT_STEPS = 6
"""An output that is exactly constant at so many of the smallest steps is flat there: its derivative is 0."""
PLATEAU, CLIFF, ONE_SIDE = 0.1, 20.0, 0.1
"""How steady the rest of the differences is over a kink nearby, by how much it falls on this side of it, and how much
of the change may be on the other side."""
BEYOND, BEYOND_FIRST, FIRST_REST = 5, 3, 3
"""So many steps there have to be on this side, of all and of the first ones, and after so many it can be told."""
SMALL = -3
"""The step that stands for the smallest ones; the last are those with the most rounding."""
SAMPLE = 256
"""So many outputs choose the step that is tried on all."""
GOOD = 1e-6
"""Bars of at most this share of their values are good for a brief look."""
GOOD_ENOUGH = 1e-8
"""A bar of at most this share of its value needs no better step."""


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
    kinked: Array | None = None
    """Which outputs have a kink at the point itself, along the direction; None if nobody looked, or none has."""
    brief: bool = False
    """Whether a brief look was enough: the function is smooth here."""


class Scan:
    """The differences along a line, step by step, and what they say.

    `reach` is the largest element of the direction: where all outputs are 0 all along, it is the only scale there is.
    """

    def __init__(self, line: Line, reach: float, xp: Any) -> None:
        self.line = line
        self.reach = reach
        self.xp = xp
        self.differences: dict[int, Array] = {}
        """f(x + h d) − f(x − h d) by the number of the step."""
        self.sums: dict[int, Array] = {}
        """f(x + h d) + f(x − h d): with the difference, it gives the larger of both."""

    def extend(self, steps: Iterable[int]) -> None:
        """Evaluate at further steps; those that were made are not repeated."""
        for k in steps:
            if k in self.differences:
                continue
            ahead, behind = self.line.at(step_size(k)), self.line.at(-step_size(k))
            self.differences[k] = ahead - behind
            self.sums[k] = ahead + behind

    def best(self) -> Derivative:
        """Value, bar and step of every output."""
        count = self.differences[0].size
        if count <= 2 * SAMPLE or min(self.differences) < 0:
            return Derivative(*self.by_steps(slice(None)), self.line.evaluations)
        xp = self.xp
        step = int(np.median(np.asarray(self.by_steps(slice(0, count, count // SAMPLE))[2].tolist())))
        value, bar = self.at_step(max(step, 2))
        found = Derivative(value, bar, xp.full(count, max(step, 2)), self.line.evaluations)
        left = xp.flatnonzero(~(bar <= GOOD_ENOUGH * abs(value)))
        if left.size:
            for whole, part in zip((found.value, found.bar, found.step), self.by_steps(left), strict=True):
                whole[left] = part
        return found

    def good(self) -> Derivative | None:
        """Value and bar at the usual step, if that is good for all outputs and no kink may be nearby."""
        value, bar = self.at_step(USUAL_STEP)
        if not bool((bar <= GOOD * abs(value)).all()) or self.over_a_kink(
            USUAL_STEPS.stop, USUAL_STEPS.stop - USUAL_STEP - 2
        ):
            return None
        found = Derivative(value, bar, self.xp.full(value.size, USUAL_STEP), self.line.evaluations, brief=True)
        return replace(found, kinked=self.kinked(found, USUAL_STEPS.stop))

    def over_a_kink(self, count: int, beyond: int) -> bool:
        """Whether for some output all but `beyond` of the first `count` steps may reach over a kink or a jump."""
        last = count - beyond - 1
        differences = [self.differences[k] for k in range(last - FIRST_REST, last + 1)]
        steady, _ = steady_rest(self.xp, differences, abs(self.sums[last]), self.line.eps)
        return bool(steady.any())

    def kinked(self, found: Derivative, count: int) -> Array | None:
        """The outputs with a kink at the point itself, by the last of the first `count` steps; None if there is none.

        f(x + h d) + f(x − h d) is 2 f(x) + c h at a kink, and 2 f(x) + c h² along a curve.
        """
        xp, last = self.xp, count - 1
        falls = [self.sums[k - 1] - self.sums[k] for k in (last, last - 1, last - 2)]
        kinked = abs(falls[0]) > CLIFF * ROUNDING_UNITS * self.line.eps * abs(self.sums[last])
        if not bool(kinked.any()):
            return None
        for near, far in itertools.pairwise(falls):
            kinked &= abs(far - RATIO * near) <= PLATEAU * abs(far)
        kinked &= xp.isfinite(falls[-1]) & (found.step < count - BEYOND_FIRST)  # else it is nearby
        return kinked if bool(kinked.any()) else None

    def at_step(self, k: int) -> tuple[Array, Array]:
        """Value and bar of all outputs at one step; NaN where a smaller step shows no change at all."""
        xp, d, h, square = self.xp, self.differences, step_size(k), RATIO * RATIO

        def fourth(j: int) -> Array:
            return (d[j] - d[j - 1] / RATIO**3) * (square / (square - 1) / 2 / step_size(j))

        value = fourth(k)
        size = abs(value)
        noise = self.line.eps * ((abs(self.sums[k]) + abs(d[k])) / 2 + size)
        changes = d[k] != 0
        for j in range(k + 1, max(d) + 1):
            noise = xp.maximum(noise, abs(fourth(j) - value) * step_size(j))
            changes &= d[j] != 0
        truncation = abs(value - fourth(k - 1)) * (8 / (square * square - 1))
        bar = SAFETY * (truncation + noise / h + 2 * self.line.eps * size)
        bar = xp.maximum(bar, first_order(xp, *(fourth(j) for j in range(k - 1, k + 3))))
        return value, xp.where(changes, bar, xp.nan)

    def by_steps(self, which: Any) -> tuple[Array, Array, Array]:
        """Value, bar and step of some outputs, each at its own best step."""
        order = sorted(self.differences)
        steps = np.array([step_size(k) for k in order])
        differences = [self.differences[k][which] for k in order]
        sums = [self.sums[k][which] for k in order]
        complete, larger = order[-1] == STEPS - 1, -order[0]
        value, bar, step = best_step(self.xp, steps, differences, sums, self.line.eps, self.reach, complete, larger)
        return value, bar, step + order[0]

    def unresolved(self, found: Derivative) -> Array:
        """The outputs that change too little for their rounding: their scale may be larger than the input's.

        Of many outputs, those that do not change at all count only if none is resolved.
        """
        changes = [abs(d) for d in self.differences.values()]
        sizes = [abs(s) for s in self.sums.values()]
        wide = self.xp.isfinite(found.bar) & (found.bar > UNRESOLVED * abs(found.value))
        wide &= self.xp.stack(changes).max(axis=0) + self.xp.stack(sizes).max(axis=0) > 0
        if wide.size > SAMPLE and bool(wide.any()) and not bool(wide.all()):
            wide &= sum(d != 0 for d in self.differences.values()) > 0
        return wide

    def resolved(self, found: Derivative, wanted: Array) -> Derivative:
        """With the values of larger steps where those are wanted, better, and agree with what smaller steps found."""
        further = self.best()
        better = wanted & (further.bar < found.bar) & (abs(further.value - found.value) <= found.bar)
        value, bar, step = (
            self.xp.where(better, b, a)
            for a, b in ((found.value, further.value), (found.bar, further.bar), (found.step, further.step))
        )
        return Derivative(value, bar, step, self.line.evaluations)


def step_size(k: int) -> float:
    """The size of a step, relative to the direction."""
    return FIRST_STEP * RATIO**-k


def beside_a_kink(xp: Any, d: Array, sums: Array, h: Array, eps: float, beyond: int) -> Array:
    """The differences, NaN at steps that reach over a kink or a jump nearby: they do not know the derivative.

    Where the rest of the differences (see `steady_rest`) stays the same and then falls by `CLIFF` at the next steps,
    those, at least `beyond` of them, are on this side of the kink; so they are if they show no change at all. The first
    steps have no rest to look at. A kink is on one side; a forward that is quantised changes on both. Where the
    smallest steps show no change, what there is may be the rounding of numbers of size 1.
    """
    count = len(d)
    first = xp.zeros(d.shape[1:], dtype="int64")
    flat = (d[FIRST_REST:] == 0).all(axis=0)
    size = xp.abs(sums[SMALL])
    size = xp.where(d[SMALL] == 0, xp.maximum(size, 1.0), size)
    if bool(flat.any()):
        for k in range(FIRST_REST):  # the smallest step that shows a change decides
            jumped = xp.abs(d[k]) > CLIFF * ROUNDING_UNITS * eps * size
            first = xp.where(flat & jumped, xp.where(on_one_side(xp, d, sums, h, k), FIRST_REST, 0), first)
    for k in range(FIRST_REST, count - beyond):
        dead = (d[k + 1 :] == 0).all(axis=0) & (xp.abs(d[k]) > CLIFF * ROUNDING_UNITS * eps * size)
        if bool(dead.any()):
            for j in (k - 1, k):  # a rounded value that changes to the next number does so alike at both
                dead &= on_one_side(xp, d, sums, h, j) & (xp.abs(d[j - 1]) > 2 * xp.abs(d[j]))
            first = xp.where(dead, k + 1, first)
        steady, rest = steady_rest(xp, d[k - FIRST_REST : k + 1], size, eps)
        if bool(steady.any()):
            later = xp.abs(RATIO * d[k + 2 :] - d[k + 1 : -1]).max(axis=0) / (RATIO - 1)
            beside = CLIFF * later <= rest
            for j in (k - 1, k):
                beside &= on_one_side(xp, d, sums, h, j)
            first = xp.where(steady & beside, k + 1, first)
    if not bool(first.any()):
        return d
    index = xp.arange(count).reshape(-1, *[1] * (d.ndim - 1))
    return xp.where(index < first, xp.nan, d)


def first_order(xp: Any, before: Array, here: Array, after: Array, next_after: Array) -> Array:
    """The error of values at four steps that converge with h alone, as where the second derivative jumps; else 0.

    softsign at 0 is such a function: what a smooth one loses from step to step is less, and rounding grows.
    """
    changes = [abs(a - b) for a, b in ((before, here), (here, after), (after, next_after))]
    slow = (changes[0] > 2 * changes[1]) & (changes[1] > 2 * changes[2])
    return xp.where(slow, FIRST_ORDER * changes[1], 0.0)


def on_one_side(xp: Any, d: Array, sums: Array, h: Array, k: int) -> Array:
    """Whether the outputs at step k have left the line of the smallest steps ahead or behind, but not both."""
    straight = d[SMALL] * (h[k] / h[SMALL])
    off, even = d[k] - straight, sums[k] - sums[-1]
    ahead, behind = xp.abs(even + off), xp.abs(even - off)
    return xp.minimum(ahead, behind) <= ONE_SIDE * xp.maximum(ahead, behind)


def steady_rest(xp: Any, d: Sequence[Array], size: Array, eps: float) -> tuple[Array, Array]:
    """Whether the differences at four steps have the same rest, and its size.

    Over a kink nearby, f(x + h d) − f(x − h d) is 2 m h + c, and beside a jump too: the rest c stays the same from step
    to step, whereas that of a curve falls with h³, and that of rounding scatters.
    """
    rests = [(RATIO * here - before) / (RATIO - 1) for before, here in itertools.pairwise(d)]
    rest = xp.abs(rests[-1])
    steady = rest > CLIFF * ROUNDING_UNITS * eps * size
    for other in rests[:-1]:
        steady &= xp.abs(other - rests[-1]) <= PLATEAU * rest
    return steady, rest


def best_step(
    xp: Any,
    steps: np.ndarray[Any, Any],
    differences: list[Array],
    sums: list[Array],
    eps: float,
    reach: float,
    complete: bool,
    larger: int,
) -> tuple[Array, Array, Array]:
    """Value, bar and step per output from the differences f(x + h d) − f(x − h d), and the sums, at all steps.

    `reach` is the largest element of d: where all outputs are 0 all along, it is the only scale there is. Only a
    `complete` scan, down to the smallest step, can show that an output is flat; of another, the last steps serve to
    judge the others alone. The first `larger` steps exceed the scale of the input.
    """
    square = RATIO * RATIO
    d, h = xp.stack(differences), xp.asarray(steps).reshape(-1, *[1] * differences[0].ndim)
    sizes = [(abs(s) + abs(change)) / 2 for s, change in zip(sums, differences, strict=True)]
    d = beside_a_kink(xp, d, xp.stack(sums), h, eps, BEYOND if complete else BEYOND_FIRST)
    change = xp.abs(d)
    finite = xp.isfinite(change)
    all_finite = bool(finite.all())
    if not all_finite:
        change = xp.where(finite, change, 0.0)
    largest = change.max(axis=0)
    zero = change == 0
    quantum: Any = 0.0
    if bool((zero & finite).any()):  # the forward is quantised
        smallest = xp.where(zero, xp.inf, change).min(axis=0)
        flat_somewhere = (finite & zero).any(axis=0)
        quantum = xp.where(flat_somewhere & xp.isfinite(smallest), smallest, 0.0)
    second_order = d / (2 * h)
    fourth = (square * second_order[1:] - second_order[:-1]) / (square - 1)  # of steps 1 and on
    usable = None if all_finite else xp.isfinite(xp.abs(fourth))
    largest_size = max(float(size.max()) for size in sizes) if d[0].size else 0.0
    if largest_size < ROUNDING_UNITS * ROUNDING_UNITS * eps:  # what there is may be the rounding of numbers of size 1
        least = eps * max(reach, 1.0)
    else:
        least = eps * min(reach, largest_size)  # the rounding of an output that is 0 all along
    value = xp.zeros_like(d[0])
    bar = xp.full(d.shape[1:], xp.inf)
    step = xp.zeros(d.shape[1:], dtype="int64")
    for k in range(2, len(steps) - (2 if complete else ENOUGH_SMALLER - 1)):
        here, before, after = fourth[k - 1], fourth[k - 2], fourth[k:]
        later = xp.abs(after - here)
        later *= h[k + 1 :]
        if usable is not None:
            later = xp.where(usable[k:], later, 0.0)
        size = xp.abs(here)
        rounding = (
            eps * (sizes[k] + size) if least == 0 else xp.maximum(eps * (sizes[k] + size), least * (sizes[k] == 0))
        )
        noise = xp.maximum(xp.maximum(later.max(axis=0), rounding), quantum)
        truncation = xp.abs(here - before) * (8 / (square * square - 1))
        if 2 < k < larger:
            truncation = xp.maximum(truncation, xp.abs(before - fourth[k - 3]) / 256)
        candidate = SAFETY * (truncation + noise / steps[k] + 2 * eps * size)
        candidate = xp.maximum(candidate, first_order(xp, before, here, after[0], after[1]))
        better = candidate < bar
        better &= noise <= xp.maximum(NOISE_SHARE * largest, ROUNDING_UNITS * xp.maximum(eps * sizes[k], least))
        apart = xp.abs(here - value)  # from what larger steps saw: numbers of size 1 on the way may not change here
        better &= ~((apart > bar + candidate) & (apart * (2 * steps[k]) <= ROUNDING_UNITS * eps * max(reach, 1.0)))
        if usable is not None:
            better &= usable[k - 1] & usable[k - 2] & usable[k:].any(axis=0)
        if (
            larger and k < larger + 2
        ):  # far from the point, no change says nothing: it may have jumped over all there is
            better &= (change[k - 2 : k + 1] > 0).all(axis=0)
        if bool(better.all()):
            value, bar, step = here, candidate, xp.full(step.shape, k)
        else:
            value, bar, step = (
                xp.where(better, here, value),
                xp.where(better, candidate, bar),
                xp.where(better, k, step),
            )
    if complete:
        bar = xp.where(change[-3:].max(axis=0) > ALIASED * largest, xp.inf, bar)
        flat = finite & zero
        flat_here = flat[-FLAT_STEPS:].all(axis=0) & ~xp.isfinite(bar)
        reached = xp.where(flat.all(axis=0), steps[0], steps[-FLAT_STEPS])
        bar = xp.where(flat_here, 2 * xp.maximum(eps * sizes[-1], least) / reached, bar)
    return value, bar, step
