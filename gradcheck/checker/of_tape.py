"""What the tape says of a claim: entry by entry, beyond the rounding of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradcheck.checker.decide import Heard
from gradcheck.checker.low_precision import UNITS, gradient_rounding
from gradcheck.checker.point import Point
from gradcheck.numeric.arrays import EPS, EPSILON, Array, module_of, shares

Masks = Sequence[Array | None]

ROUNDING = 64 * EPS
"""Rounding granted to a backward in float64 unasked, relative to an entry, or to the sum of the absolute shares of a
projection: 6 bits for some dozen operations whose errors do not cancel. The rounding of claim and tape is measured only
where they differ by more: that takes two more backwards if they agree, and a dozen if not."""
HEARD = 0.5
"""A tape of whose gradient more than this share is rounding (a chaotic recurrence) is not heard."""


@dataclass
class OfTape:
    """What the tape says for one cotangent."""

    heard: Heard | None
    """None where the gradient is mostly rounding."""
    rejected: list[Array] | None
    """Per moved input, the entries in which claim and tape differ by more than both round; None if there are none."""
    gradients: Sequence[Array]
    """Per moved input."""
    rounding: Sequence[Array] = ()
    """Per moved input, how far both may be apart by rounding; none where they agree so well that it was not
    asked, and no more than was needed where they agree."""


def rounding_off_tape(
    point: Point, cotangent: Array, claimed: Sequence[Array], taped: Sequence[Array]
) -> Sequence[Array | float]:
    """Per moved input, the rounding of a backward that computes in float32 beside the tape, if it may be no more."""
    most = [UNITS * max(point.coarsest, EPSILON["float32"]) * float(abs(t).max(initial=0.0)) for t in taped]
    if not all(float(abs(g - t).max(initial=0.0)) <= m for g, t, m in zip(claimed, taped, most, strict=True)):
        return [0.0 for _ in taped]
    rounding = gradient_rounding(point, cotangent, np.random.default_rng(point.vjps))
    bars = []
    for t, r, m in zip(taped, rounding, most, strict=True):
        seen = float(r.max(initial=0.0)) / (float(abs(t).max(initial=0.0)) or 1.0)  # by chance an element shows less
        bars.append(module_of(r).minimum(module_of(r).maximum(r, seen * abs(t)), m))
    return bars


def of_tape(
    point: Point, direction: Masks, cotangent: Array, claimed: Sequence[Array], masks: Masks | None, rtol: float
) -> OfTape:
    """What the tape says of the gradients `claimed` for a cotangent, and of their projection; it rejects entries in
    `masks` alone."""
    taped = point.by_tape(cotangent)
    apart = []
    for k, (g, t) in enumerate(zip(claimed, taped, strict=True)):
        mask = ~(abs(g - t) <= (ROUNDING + rtol) * module_of(g).maximum(abs(g), abs(t)))
        mask &= module_of(g).isfinite(t)  # where the tape is not finite it is not heard
        if masks is not None:
            own = masks[k]
            mask = mask & (own if own is not None else False)
        apart.append(mask)
    parts = [shares(taped[k], d) for k, d in enumerate(direction) if d is not None]
    value = sum(float(part.real.sum()) for part in parts)
    if not any(bool(mask.any()) for mask in apart):
        return OfTape(Heard(value, False), None, taped)

    def beyond(bars: Sequence[Array]) -> list[Array] | None:
        found = [m & ~(abs(g - t) <= b) for m, g, t, b in zip(apart, claimed, taped, bars, strict=True)]
        return found if any(bool(mask.any()) for mask in found) else None

    bars = point.rounding(cotangent, enough=lambda bars: beyond(bars) is None)
    bars = [module_of(b).where(b == b, b, float("inf")) for b in bars]  # NaN knows nothing
    rejected = beyond(bars)
    if rejected is not None:  # values that leave the tape are not moved: what backward rounds there is measured
        bars = [b + r for b, r in zip(bars, rounding_off_tape(point, cotangent, claimed, taped), strict=True)]
        rejected = beyond(bars)
    lost = sum(
        float(abs(shares(t, scale * (m & (b > abs(t))))).sum())
        for m, t, b, scale in zip(apart, taped, bars, point.scales, strict=True)
    )
    known = lost <= HEARD * sum(float(abs(part).sum()) for part in parts)
    return OfTape(Heard(value, rejected is not None) if known else None, rejected, taped, bars)
