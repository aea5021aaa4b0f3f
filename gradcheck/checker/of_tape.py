"""What the tape says of a claim: entry by entry, beyond the rounding of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradcheck.checker.decide import Heard
from gradcheck.checker.low_precision import UNITS, epsilon_seen, natural_size
from gradcheck.checker.point import Point
from gradcheck.numeric.arrays import EPS, Array, module_of, shares

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


def rounding_off_tape(point: Point, cotangent: Array, claimed: Sequence[Array], taped: Sequence[Array]) -> list[float]:
    """Per moved input, how far a backward may be off that takes values off the tape, as what it computes from them is
    not moved: a few operations of the coarsest precision that it is seen to have, or that forward has, on numbers that
    may cancel."""
    assert point.tape is not None
    epsilon = max(point.tape.coarsest, epsilon_seen(point, cotangent, claimed, np.random.default_rng(point.vjps)))
    sizes = [max(float(abs(t).max(initial=0.0)), natural_size(point, k, cotangent)) for k, t in enumerate(taped)]
    return [UNITS * epsilon * size for size in sizes]


def apart(claimed: Array, taped: Array, rtol: float) -> Array:
    """The elements in which a claimed gradient and the tape's differ by more than is granted unasked."""
    return ~(abs(claimed - taped) <= (ROUNDING + rtol) * module_of(claimed).maximum(abs(claimed), abs(taped)))


def of_tape(
    point: Point, direction: Masks, cotangent: Array, claimed: Sequence[Array], masks: Masks | None, rtol: float
) -> OfTape:
    """What the tape says of the gradients `claimed` for a cotangent, and of their projection; it rejects entries in
    `masks` alone."""
    taped = point.by_tape(cotangent)
    masked = []
    for k, (g, t) in enumerate(zip(claimed, taped, strict=True)):
        mask = apart(g, t, rtol) & module_of(g).isfinite(t)  # where the tape is not finite it is not heard
        if masks is not None:
            own = masks[k]
            mask = mask & (own if own is not None else False)
        masked.append(mask)
    parts = [shares(taped[k], d) for k, d in enumerate(direction) if d is not None]
    value = sum(float(part.real.sum()) for part in parts)
    if not any(bool(mask.any()) for mask in masked):
        return OfTape(Heard(value, False), None, taped)

    def beyond(bars: Sequence[Array]) -> list[Array] | None:
        found = [m & ~(abs(g - t) <= b) for m, g, t, b in zip(masked, claimed, taped, bars, strict=True)]
        return found if any(bool(mask.any()) for mask in found) else None

    bars = point.rounding(cotangent, enough=lambda bars: beyond(bars) is None)
    bars = [module_of(b).where(b == b, b, float("inf")) for b in bars]  # NaN knows nothing
    rejected = beyond(bars)
    assert point.tape is not None
    if rejected is not None and point.tape.replays.leaks:
        bars = [b + r for b, r in zip(bars, rounding_off_tape(point, cotangent, claimed, taped), strict=True)]
        rejected = beyond(bars)
    lost = sum(
        float(abs(shares(t, scale * (m & (b > abs(t))))).sum())
        for m, t, b, scale in zip(masked, taped, bars, point.scales, strict=True)
    )
    known = lost <= HEARD * sum(float(abs(part).sum()) for part in parts)
    return OfTape(Heard(value, rejected is not None) if known else None, rejected, taped, bars)
