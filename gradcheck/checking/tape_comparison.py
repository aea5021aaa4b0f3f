"""The analytic gradients beside the tape's, entry by entry: they agree up to the rounding of both, or one is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradcheck.checking.arrays import CLEAR, FEW, FLOAT32, MANY, Array, distance, module_of, shares
from gradcheck.checking.decide import POWER, Heard
from gradcheck.checking.point import Point
from gradcheck.checking.precision import draws

Masks = Sequence[Array | None]

MOST_DRAWS = 8
"""Perturbed runs at most until a disagreement counts. In fewer than one check of 1e15 all of an entry's are small by
chance."""


@dataclass
class Comparison:
    """The gradients claimed for one cotangent beside the tape's; everything per moved input."""

    claimed: Sequence[Array]
    taped: Sequence[Array]
    bounds: Sequence[Array] = ()
    """How far both may be apart by rounding, inf where no digit is known; none where they agree without measuring."""
    of_claim: Sequence[Array] = ()
    of_tape: Sequence[Array] = ()
    """How far each may be off by its own rounding, finite where no digit is known as well."""
    wrong: Sequence[Array] | None = None
    """The entries in which both differ by more; None if there are none."""
    unsure: Sequence[Array] | None = None
    """The entries in which both differ by less, where an error of `POWER` would not show; None if there are none."""
    mostly_rounding: bool = False
    """Whether more of the whole gradient may be rounding than not, as that of a chaotic recurrence."""

    @property
    def rounding(self) -> list[Array]:
        """How far both may be apart by rounding, finite where no digit is known as well: a number that cancels to 0 has
        no digit, and is no large one."""
        return [a + b for a, b in zip(self.of_claim, self.of_tape, strict=True)] or [0 * abs(t) for t in self.taped]

    @property
    def blank(self) -> bool:
        """Whether of some input's gradient no entry is known to any digit."""
        rows = zip(self.claimed, self.taped, self.bounds, strict=False)
        return any(c.size and bool((b >= np.fmax(abs(c), abs(t))).all()) for c, t, b in rows)

    def heard(self, direction: Masks) -> Heard | None:
        """What the tape says of the projection on a direction; None where its gradient is mostly rounding."""
        parts = [shares(t, d) for t, d in zip(self.taped, direction, strict=True) if d is not None]
        value = sum(float(part.real.sum()) for part in parts)
        if not self.bounds:
            return Heard(value, rejects=False)
        if self.wrong is None and self.mostly_rounding:
            return None
        own, of_claim = (
            sum(float(abs(shares(b, d)).sum()) for b, d in zip(bounds, direction, strict=True) if d is not None)
            for bounds in (self.of_tape, self.of_claim)
        )
        return Heard(value, self.wrong is not None, own, of_claim)


def granted(point: Point, claimed: Array, taped: Array, rtol: float) -> Array:
    """How far both may be apart without measuring, relative to themselves; 0 where one is not finite."""
    found = (MANY * point.epsilon + rtol) * np.maximum(abs(claimed), abs(taped))
    return np.where(np.isfinite(found), found, 0.0)


def tape_diff(point: Point, cotangent: Array, claimed: Sequence[Array], masks: Masks | None, rtol: float) -> Comparison:
    """The gradients `claimed` for a cotangent beside the tape's; entries in `masks` alone can be wrong."""
    taped = point.by_tape(cotangent)
    doubted = [~(distance(c, t) <= granted(point, c, t, rtol)) for c, t in zip(claimed, taped, strict=True)]
    if masks is not None:
        doubted = [d & m if m is not None else d & False for d, m in zip(doubted, masks, strict=True)]
    if point.held:  # there the gradient is infinite, and was held against the slopes
        doubted = [d & ~h for d, h in zip(doubted, point.held, strict=True)]
    if not some(doubted):
        return Comparison(claimed, taped)
    random = np.random.default_rng(point.spent.vjps)
    parts = point.outputs.split(cotangent)
    assert point.tape is not None
    measured = [point.measured_claim(parts, random), point.measured_tape(point.tape, parts, taped, random)]
    largest = [float(module_of(t).where(np.isfinite(t), abs(t), 0.0).max(initial=0.0)) for t in taped]
    bounds: list[Array] = []
    wrong: list[Array] = []

    def clear() -> bool:
        """Whether nothing is wrong by less than far: else a disagreement does not count after one draw."""
        return not some(
            [w & (distance(c, t) <= CLEAR * b) for w, c, t, b in zip(wrong, claimed, taped, bounds, strict=True)]
        )

    for _ in draws(measured, MOST_DRAWS, clear):
        of_claim, of_tape = (m.bounds() for m in measured)
        # a claim that is not finite has no digits to lose: only the tape may be unknown there
        of_claim = [module_of(c).where(np.isfinite(c), b, 0.0) for c, b in zip(claimed, of_claim, strict=True)]
        both = zip(of_claim, of_tape, doubted, taped, strict=True)
        bounds = [module_of(d).where(d, np.fmax(a + b + rtol * abs(t), a + b), 0.0) for a, b, d, t in both]
        besides = [unmeasured(point) * size for size in largest]
        bounds = [b + more for b, more in zip(bounds, besides, strict=True)]
        wrong = [d & ~(distance(c, t) <= b) for d, c, t, b in zip(doubted, claimed, taped, bounds, strict=True)]
    unsure = [
        d & ~w & (b > POWER * np.fmax(abs(c), abs(t)))
        for d, w, b, c, t in zip(doubted, wrong, bounds, claimed, taped, strict=True)
    ]
    of_claim, of_tape = (m.bounds(absolute=True) for m in measured)
    of_claim = [b + more for b, more in zip(of_claim, besides, strict=True)]
    found_wrong, found_unsure = (mask if some(mask) else None for mask in (wrong, unsure))
    rounding = mostly_rounding(point, taped, bounds)
    return Comparison(claimed, taped, bounds, of_claim, of_tape, found_wrong, found_unsure, rounding)


def mostly_rounding(point: Point, taped: Sequence[Array], bounds: Sequence[Array]) -> bool:
    """Whether more of gradients may be rounding than not, every element moved by its scale."""
    whole = lost = 0.0
    for t, b, scale in zip(taped, bounds, point.scales, strict=True):
        size = scale * module_of(t).where(np.isfinite(t), abs(t), 0.0)
        whole += float(size.sum())
        lost += float(np.minimum(size, scale * b).sum())
    return not (whole and 2 * lost <= whole)


def unmeasured(point: Point) -> float:
    """The rounding, relative to the largest entry, of what is not perturbed: operations of a backward that nothing
    sees, and constants that either side may hold in a dtype of fewer digits (a table, 0.1), where the layer was given
    such inputs or casts to such dtypes."""
    unseen = MANY * point.epsilon if point.reruns is not None and point.reruns.leaks else 0.0
    return unseen + (FEW * FLOAT32 if point.casts_left_out or point.may_round else 0.0)


def some(masks: Sequence[Array]) -> bool:
    """Whether any element is in some mask."""
    return any(bool(mask.any()) for mask in masks)
