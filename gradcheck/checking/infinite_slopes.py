"""Gradients that are not finite: right only where the slope of the function grows without bound, as of √x at 0."""

from __future__ import annotations

import numpy as np

from gradcheck.checking.arrays import Array, module_of
from gradcheck.checking.found import Found, listed
from gradcheck.checking.kinks import MOST_LOOKED_AT
from gradcheck.checking.line import RATIO, USUAL, Scan
from gradcheck.checking.point import SUM_OF_OUTPUTS, Entry
from gradcheck.checking.probe import SMALL, Prober
from gradcheck.result import Diagnosis, Status

SMALL_STEPS = USUAL[: len(USUAL) // 2 + 1]
"""The smaller half: the shape of a function at an element that is 0 shows there, whatever the size of the others."""
GROWS = 0.9
"""The slope grows without bound if from step to step it grows by no less than this times what it grew before. With
steps of ratio 4 that is 4^(1 − p) beside a power p: more than 1 for p < 1, and 1 for a logarithm, but less where the
slope has a limit (1/2 for x^1.5, 1/4 for what is smooth). Powers from 1 to 1.07 are taken for logarithms."""


def infinite(prober: Prober) -> Found | None:
    """FAIL, or the KINK, of the elements at which the gradient is not finite; None if it is finite everywhere.

    From then on these elements are held.
    """
    point, claim = prober.point, prober.claimed()
    prober.claims.append(claim)
    if all(bool(np.isfinite(g).all()) for g in claim[1]):
        return None
    cotangent = SMALL * abs(claim[0])  # of one sign: what is said of the slopes then holds for the outputs
    gradients = point.vjp(cotangent)
    elements = [~np.isfinite(g) for g in gradients]
    places = [(k, int(i)) for k, mask in enumerate(elements) for i in module_of(mask).flatnonzero(mask).tolist()]
    if not places:
        return None
    drawn = sorted(prober.random.permutation(len(places))[:MOST_LOOKED_AT].tolist())
    right, wrong = list[str](), list[Entry]()
    for number, index in [places[k] for k in drawn]:
        value = complex(gradients[number].reshape(-1)[index]).real
        sides = slopes(prober, number, index, cotangent / SMALL)
        slope, bar = next((side for side in sides.values() if np.isfinite(side[0])), (np.nan, np.nan))
        entry = Entry(number, index, SUM_OF_OUTPUTS, value, slope, bar)
        if value in (slope for slope, _ in sides.values()):
            unbounded = ", ".join(f"{side} {slope:g}" for side, (slope, _) in sides.items() if np.isinf(slope))
            right.append(f"{point.place(entry)} ({unbounded})")
        else:
            wrong.append(entry)
    if wrong:
        names = listed([point.place(entry) for entry in wrong], len(wrong))
        text = f"backward gives {wrong[0].analytic:g} at {names}, as the slope on neither side does"
        exhaustive = len(drawn) == len(places)
        return Found(Status.FAIL, wrong=wrong, exhaustive=exhaustive, diagnosis=(Diagnosis.of("GC124", text),))
    point.held = elements
    return Found(Status.KINK, f"the slope grows without bound at {listed(right, len(places))}, as backward says")


def slopes(prober: Prober, number: int, index: int, cotangent: Array) -> dict[str, tuple[float, float]]:
    """The slopes of the weighted outputs on both sides along one element: ±inf where they grow without bound, else
    those at the smallest step, and how far they are from those at the next."""
    point = prober.point
    size = float(point.scales[number].reshape(-1)[index])
    scan = Scan(point.line(point.along_element(number, index, size), cotangent))
    scan.extend(SMALL_STEPS)
    found = {}
    for name, side, sign in (("left", 1, -1.0), ("right", 0, 1.0)):
        values = np.array([sign * float(scan.samples[k][side].change[0]) / (size * RATIO**k) for k in SMALL_STEPS])
        growth = values[:-1] - values[1:]
        unbounded = bool((growth[:-1] / growth[1:] >= GROWS).all())
        slope = float(np.copysign(np.inf, growth[0])) if unbounded else float(values[0]) + 0.0  # no −0
        found[name] = slope, float(abs(growth[0]))
    return found
