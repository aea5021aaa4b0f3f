"""One-sided derivatives at two scales: a kink or a jump is where left and right stay apart as the step shrinks."""

from __future__ import annotations

from gradcheck.numeric.derivative import flat
from gradcheck.numeric.probe import Entry, Point

STEPS = (2.0**-14, 2.0**-20)
APART = 1e-2
"""Left and right differ by more than this share of the larger at both scales: not a matter of curvature or noise."""


def one_sided(point: Point, entry: Entry) -> tuple[float, float] | None:
    """The left and right derivative of one entry, or None if they agree as the step shrinks. Real inputs only."""
    if any(x.dtype.kind == "c" for x in point.inputs):
        return None
    scale = float(point.scales[entry.input].reshape(-1)[entry.index])

    def at(h: float) -> float:
        inputs = list(point.inputs)
        moved = inputs[entry.input].copy()
        moved.reshape(-1)[entry.index] += h
        inputs[entry.input] = moved
        point.evaluations += 1
        return float(flat(point.function(inputs))[entry.output].real)

    middle = at(0.0)
    sides = []
    for step in STEPS:
        h = step * scale
        left, right = (middle - at(-h)) / h, (at(h) - middle) / h
        if not abs(left - right) > APART * max(abs(left), abs(right)):
            return None
        sides.append((left, right))
    return sides[-1]
