"""Kinks and jumps: where the derivatives from the left and the right stay apart as the step shrinks.

Curvature also sets them apart, but shrinks with the step; rounding does, but grows as the step shrinks, within a bound
that is known. A kink stays; at a jump the difference quotient across it grows with 1/h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradcheck.numeric.derivative import Array, flat, module_of
from gradcheck.numeric.probe import Entry, Point, halved

MOST_JUMPS = 8
"""Outputs without a usable derivative that are looked at, and inputs of each, unless the Jacobian is diagonal."""
STEPS = (2.0**-12, 2.0**-18, 2.0**-24, 2.0**-30)
"""Relative to the scale of the input."""
NEARBY = 1e-2
"""The derivative at the point is that of one side if it differs by at most this share of the gap between both."""
VALUES = 1
"""Which step the values come from: curvature is 4e-6 there, rounding less."""
APART = 1e-2
"""At a kink, left and right differ by more than this share of the larger."""
STAYS = 0.5
"""Of the difference between left and right, how much is left at a step 64 times smaller, at a kink."""
STEADY = 0.25
"""At a kink, the two derivatives of a side, one a step further out, differ by at most this share of the gap: in noise
they do not agree."""
ROUNDING_UNITS = 16
"""Units in the last place of the output that may be off in one difference."""


@dataclass(frozen=True)
class Sides:
    """The derivatives from the left and from the right, where they differ; at a jump, those beside it."""

    left: float
    right: float
    jump: bool = False

    def hold(self, gradient: float) -> bool:
        """Whether a gradient lies between the two, both included."""
        low, high = sorted((self.left, self.right))
        return low - self.margin <= gradient <= high + self.margin

    @property
    def margin(self) -> float:
        """How far off the sides may be."""
        return 1e-5 * max(abs(self.left), abs(self.right))

    def beside(self, entry: Entry) -> Entry:
        """An entry whose gradient is not between the sides, with the nearer one for its derivative."""
        nearer = min(self.left, self.right, key=lambda side: abs(side - entry.analytic))
        return replace(entry, numeric=nearer, bar=self.margin)

    def nearby(self, entry: Entry) -> bool:
        """Whether there is none at the point: the derivative there is known, and that of one side.

        Across a jump no derivative is known; where one is, a rounded value changed from one number to the next.
        """
        if self.jump:
            return entry.bar < NEARBY * abs(entry.numeric)
        gap = abs(self.left - self.right)
        off = min(abs(entry.numeric - self.left), abs(entry.numeric - self.right))
        return entry.bar < NEARBY * gap and off <= entry.bar + NEARBY * gap

    def __str__(self) -> str:
        return f"left {self.left:.6g}, right {self.right:.6g}{', with a jump' if self.jump else ''}"


Kink = tuple[Entry, Sides]


def entries_without_derivative(point: Point, outputs: Array, which: Sequence[int]) -> list[Entry]:
    """The entries of the Jacobian at which outputs without a derivative may have a kink, and the gradient there.

    Args:
        outputs: all outputs at the point, flat.
        which: those of them without a derivative.
    """
    if len(point.inputs) == 1 and point.inputs[0].size == outputs.size:  # of a diagonal Jacobian, or no jump will show
        claimed = point.vjp(module_of(outputs).ones_like(outputs))[0].reshape(-1)
        return [Entry(0, i, i, float(claimed[i].real), float("nan"), float("inf")) for i in which]
    found = []
    for output in which[:MOST_JUMPS]:
        one = outputs * 0
        one[output] = 1
        gradients = point.vjp(one)
        for number, scale in enumerate(point.scales):
            for index in halved(module_of(scale), scale.size, _none_along(point, number, output), MOST_JUMPS):
                gradient = float(gradients[number].reshape(-1)[index].real)
                found.append(Entry(number, index, output, gradient, float("nan"), float("inf")))
    return found


def _none_along(point: Point, number: int, output: int) -> Callable[[Array], bool]:
    def none(mask: Array) -> bool:
        part: list[Array | None] = [None] * len(point.inputs)
        part[number] = mask.reshape(point.scales[number].shape) * point.scales[number]
        derivative = point.along(part, output)
        return derivative.kinked is not None or not np.isfinite(float(derivative.bar[0]))

    return none


def kinks_of(point: Point, outputs: Array, which: Sequence[int]) -> list[Kink]:
    """The kinks and jumps of outputs without a derivative, with the gradient there."""
    entries = entries_without_derivative(point, outputs, which)
    sides = one_sided(point, entries, len(entries) > 1)
    return [(entry, found) for entry, found in zip(entries, sides, strict=True) if found is not None]


def one_sided(point: Point, entries: Sequence[Entry], diagonal: bool) -> list[Sides | None]:
    """The left and right derivatives of entries; None for those where they do not stay apart.

    Entries of a `diagonal` Jacobian are independent and are all moved at once. Real inputs only; None for complex ones.
    """
    if any(x.dtype.kind == "c" for x in point.inputs):
        return [None] * len(entries)
    groups = [list(entries)] if diagonal else [[entry] for entry in entries]
    return [sides for group in groups if group for sides in _sides(point, group)]


def _sides(point: Point, entries: Sequence[Entry]) -> list[Sides | None]:
    number, where = entries[0].input, [entry.index for entry in entries]
    outputs = [entry.output for entry in entries]
    scale = np.asarray([float(s) for s in point.scales[number].reshape(-1)[where].tolist()])

    def at(h: float) -> Array:
        inputs = list(point.inputs)
        moved = inputs[number].reshape(-1).copy()
        moved[where] += h * point.scales[number].reshape(-1)[where]
        inputs[number] = moved.reshape(inputs[number].shape)
        point.evaluations += 1
        return np.asarray(flat(point.function(inputs))[outputs].real.tolist(), dtype="float64")

    middle = at(0.0)
    rounding = ROUNDING_UNITS * np.finfo("float64").eps
    rows: list[list[Array]] = [[], [], [], [], []]
    for step in STEPS:
        behind, ahead = at(-step), at(step)
        h = step * scale
        size = np.maximum(abs(behind), np.maximum(abs(middle), abs(ahead)))
        beside = (behind - at(-2 * step)) / h, (at(2 * step) - ahead) / h
        for row, values in zip(
            rows, ((middle - behind) / h, (ahead - middle) / h, rounding * size / h, *beside), strict=True
        ):
            row.append(values)
    return _judged(*(np.array(row) for row in rows))


def _judged(left: Array, right: Array, noise: Array, before: Array, after: Array) -> list[Sides | None]:
    """Kink, jump or neither, from the derivatives of each side, and those one step further out, at all steps."""
    gap = abs(left - right)
    clear = gap > np.maximum(4 * noise, APART * np.maximum(abs(left), abs(right)))
    found: list[Sides | None] = [None] * gap.shape[1]
    for k in np.flatnonzero((clear[1:] & clear[:-1]).any(axis=0)).tolist():
        for j in reversed(range(1, len(STEPS))):  # the smaller steps first
            if found[k] is not None or not (clear[j, k] and clear[j - 1, k]):
                continue
            growth = gap[j, k] / gap[j - 1, k]
            scatter = np.maximum(abs(left - before), abs(right - after))[[j - 1, j], k]
            beside = max(abs(side[j - 1, k] - side[j, k]) for side in (before, after))
            if abs(growth - STEPS[j - 1] / STEPS[j]) <= APART * growth and beside <= STEADY * gap[j, k]:
                # with 1/h, and beside it nothing happens: the same jump at both steps
                found[k] = Sides(float(before[VALUES, k]), float(after[VALUES, k]), jump=True)
            elif STAYS <= growth <= 1 / STAYS and bool((scatter <= STEADY * gap[[j - 1, j], k]).all()):
                found[k] = Sides(float(left[VALUES, k]), float(right[VALUES, k]))
    return found
