"""A claimed gradient beside the tape's, entry by entry, and what follows for a projection of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gradcheck.checker.decide import POWER, Heard
from gradcheck.checker.low_precision import BACKWARD_UNITS, UNASKED, saturated_size, strays_from_tape
from gradcheck.checker.point import Point
from gradcheck.numeric.arrays import EPS, FLOAT32, RANDOM_SIGNS, Array, module_of, root_of_squares, shares

Masks = Sequence[Array | None]
Beyond = Callable[[Sequence[Array]], list[Array]]
"""Per moved input, the elements in which claim and tape differ by more than given bars."""

ROUNDING = 64 * EPS
"""Rounding granted to a backward in float64 unasked, relative to an entry, or to the sum of the absolute shares of a
projection: 6 bits for some dozen operations whose errors do not cancel. The rounding of claim and tape is measured only
where they differ by more: that takes two more backwards if they agree, and a dozen if not."""
HEARD = 0.5
"""A tape of whose gradient more than this share is rounding (a chaotic recurrence) is not heard."""


@dataclass
class BesideTape:
    """The gradients claimed for one cotangent beside the tape's; everything per moved input."""

    gradients: Sequence[Array]
    """The tape's."""
    apart: Sequence[Array]
    """The entries in which both differ by more than is granted unasked."""
    rounding: Sequence[Array] = ()
    """How far both may be apart by rounding; none where that was not asked, and no more than was needed where they
    agree."""
    rejected: list[Array] | None = None
    """The entries in which both differ by more; None if there are none."""
    unsure: list[Array] | None = None
    """The entries in which both differ by less, where that is more than `POWER` of them; None if there are none."""
    strayed: Sequence[float] = ()
    """How far the entries of a backward off the tape were seen to be rounded; none where that was not asked."""

    def heard(self, direction: Masks, scales: Sequence[Array]) -> Heard | None:
        """What the tape says of the projection on a direction; None where its gradient is mostly rounding."""
        parts = [shares(t, d) for t, d in zip(self.gradients, direction, strict=True) if d is not None]
        value = sum(float(part.real.sum()) for part in parts)
        if not self.rounding:
            return Heard(value, rejects=False)
        bars = [module_of(b).where(mask, b, 0.0) for b, mask in zip(self.rounding, self.apart, strict=True)]
        lost = (abs(shares(t, s * (b > abs(t)))) for t, s, b in zip(self.gradients, scales, bars, strict=True))
        if not sum(float(a.sum()) for a in lost) <= HEARD * sum(float(abs(part).sum()) for part in parts):
            return None
        bar = sum(float(abs(shares(b, d)).sum()) for b, d in zip(bars, direction, strict=True) if d is not None)
        return Heard(value, self.rejected is not None, bar)

    def rounded(self, direction: Masks) -> float:
        """What the claimed projection on a direction may be off by the rounding that was seen."""
        strayed = zip(self.strayed, direction, strict=False)
        return RANDOM_SIGNS * math.hypot(*(by * root_of_squares(d) for by, d in strayed if d is not None))


def beside_tape(
    point: Point, cotangent: Array, claimed: Sequence[Array], masks: Masks | None, rtol: float
) -> BesideTape:
    """The gradients `claimed` for a cotangent beside the tape's, which rejects entries in `masks` alone."""
    taped = point.by_tape(cotangent)
    doubted = []
    for k, (g, t) in enumerate(zip(claimed, taped, strict=True)):
        mask = apart(point, g, t, rtol) & module_of(g).isfinite(t)  # where the tape is not finite it is not heard
        if masks is not None:
            own = masks[k]
            mask = mask & (own if own is not None else False)
        doubted.append(mask)
    if not some(doubted):
        return BesideTape(taped, doubted)

    def beyond(bars: Sequence[Array]) -> list[Array]:
        return [m & ~(abs(g - t) <= b) for m, g, t, b in zip(doubted, claimed, taped, bars, strict=True)]

    bars: Sequence[Array] = point.rounding(cotangent, enough=lambda bars: not some(beyond(bars)))
    bars = [module_of(b).where(b == b, b, float("inf")) for b in bars]  # NaN knows nothing
    bars = [b + of_constants(point) * largest_of(t) for b, t in zip(bars, taped, strict=True)]
    room: Sequence[Array] = bars
    strayed: Sequence[float] = ()
    assert point.tape is not None
    if some(beyond(bars)) and point.tape.replays.leaks:
        own, strayed = off_the_tape(point, cotangent, taped, bars, beyond)
        bars = [b + s for b, s in zip(own, strayed, strict=True)]
        room = [b * (s == 0) for b, s in zip(own, strayed, strict=True)]  # what is rounded is right up to rounding
    rejected = beyond(bars)
    unsure = [
        m & (abs(g - t) <= b) & (b > POWER * abs(t)) for m, g, t, b in zip(doubted, claimed, taped, room, strict=True)
    ]
    return BesideTape(
        taped, doubted, bars, rejected if some(rejected) else None, unsure if some(unsure) else None, strayed
    )


def off_the_tape(
    point: Point, cotangent: Array, taped: Sequence[Array], own: Sequence[Array], beyond: Beyond
) -> tuple[Sequence[Array], Sequence[float]]:
    """The bars of a backward that takes values off the tape, as what it computes from them is not moved; and per input
    what it is seen to stray from the tape between points close by, 0 where that is not asked.

    Granted unasked are a few operations of the forward's precision on numbers that may cancel, and of what is seen a
    few operations in float32 or the inputs' dtype. Where these limits reject the same entries it is not measured.
    """
    assert point.tape is not None
    outputs = saturated_size(point, cotangent)
    sizes = [max(largest_of(t), outputs) for t in taped]
    most = [max(UNASKED * point.coarsest, BACKWARD_UNITS * FLOAT32) * size for size in sizes]
    bars = [b + BACKWARD_UNITS * point.tape.coarsest * size for b, size in zip(own, sizes, strict=True)]
    limits = zip(beyond(bars), beyond([b + m for b, m in zip(bars, most, strict=True)]), strict=True)
    if all(bool((a == b).all()) for a, b in limits):
        return bars, [0.0 for _ in bars]
    strayed = strays_from_tape(point, cotangent, np.random.default_rng(point.spent.vjps))
    return bars, [min(s, m) for s, m in zip(strayed, most, strict=True)]


def apart(point: Point, claimed: Array, taped: Array, rtol: float) -> Array:
    """The elements in which a claimed gradient and the tape's differ by more than is granted unasked."""
    granted = unasked(point) + rtol
    return ~(abs(claimed - taped) <= granted * module_of(claimed).maximum(abs(claimed), abs(taped)))


def unasked(point: Point) -> float:
    """The rounding granted to a claim wherever it is compared, relative to an entry: see `ROUNDING`, `of_constants`."""
    return ROUNDING + of_constants(point)


def of_constants(point: Point) -> float:
    """The rounding of numbers that either side may hold in float32 (a table, a mask, 0.1), where the inputs were given
    in that or less; relative to the largest entry. It is the same between points close by."""
    return UNASKED * FLOAT32 if point.coarsest > EPS else 0.0


def largest_of(gradient: Array) -> float:
    """The largest size of an entry that is finite; 0 if there is none."""
    sizes = abs(gradient)
    return float(module_of(sizes).where(np.isfinite(sizes), sizes, 0.0).max(initial=0.0))


def some(masks: Sequence[Array]) -> bool:
    """Whether any element is in some mask."""
    return any(bool(mask.any()) for mask in masks)
