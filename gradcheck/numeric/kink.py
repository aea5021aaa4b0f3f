"""One-sided derivatives at two scales: a kink or a jump is where left and right stay apart as the step shrinks."""

from __future__ import annotations

from collections.abc import Sequence

from gradcheck.numeric.derivative import flat
from gradcheck.numeric.probe import Entry, Point

STEPS = (2.0**-14, 2.0**-20)
"""Relative to the scale of the input."""
APART = 1e-2
"""Left and right differ by more than this share of the larger at both scales: not a matter of curvature or noise."""

Sides = tuple[float, float]


def one_sided(point: Point, entries: Sequence[Entry], diagonal: bool) -> list[Sides | None]:
    """The left and right derivatives of entries, None for those where they agree as the step shrinks.

    Entries of a `diagonal` Jacobian are independent and are all moved at once. Real inputs only; None for complex ones.
    """
    if any(x.dtype.kind == "c" for x in point.inputs):
        return [None] * len(entries)
    if diagonal:
        return _sides(point, entries)
    return [side for entry in entries for side in _sides(point, [entry])]


def _sides(point: Point, entries: Sequence[Entry]) -> list[Sides | None]:
    number, where = entries[0].input, [entry.index for entry in entries]
    outputs = [entry.output for entry in entries]
    scale = point.scales[number].reshape(-1)[where]

    def at(h: float) -> list[float]:
        inputs = list(point.inputs)
        moved = inputs[number].reshape(-1).copy()
        moved[where] += h * scale
        inputs[number] = moved.reshape(inputs[number].shape)
        point.evaluations += 1
        return flat(point.function(inputs))[outputs].real.tolist()  # type: ignore[no-any-return]

    middle = at(0.0)
    found: list[Sides | None] = [(0.0, 0.0)] * len(entries)
    for step in STEPS:
        behind, ahead = at(-step), at(step)
        for k, h in enumerate((step * scale).tolist()):
            left, right = (middle[k] - behind[k]) / h, (ahead[k] - middle[k]) / h
            apart = abs(left - right) > APART * max(abs(left), abs(right))
            found[k] = (left, right) if apart and found[k] is not None else None
    return found
