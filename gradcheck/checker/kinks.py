"""Where the function has no derivative: the gradient has to lie between the sides, and be right beside the point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradcheck.checker.decide import Decision
from gradcheck.checker.elsewhere import beside
from gradcheck.checker.look import Look, Looker
from gradcheck.checker.point import Entry, Point
from gradcheck.numeric.arrays import Array, inner, module_of, unflat
from gradcheck.numeric.derivative import APART, BRIEF, Derivative, derivative_of
from gradcheck.numeric.jacobian import halved
from gradcheck.numeric.line import Line, Scan

DIRECTIONS = 8
"""Along which a gradient has to lie in the hull of both sides: one that is outside for half of the directions, as where
both of two tied maxima take all, passes all of them once in 2^8."""
OFFSETS = 24
"""Points nearby at which the derivative is looked at. Of two pieces that meet both are seen but once in 2^23; of more,
what was not seen may lie beyond what was by as much as those seen are apart."""
MOST_OUTPUTS = 16
"""Kinked outputs that are looked at by themselves, drawn at random; of a diagonal Jacobian all are."""
MOST_NAMED = 3
"""Kinks that the result names."""
NEAR, STEP = 2.0**-20, 2.0**-26
"""How far off the points are at which the function is looked at for its derivatives nearby, and the step there,
relative to the inputs' scale: 64 times smaller, so that few steps reach over a kink."""
CLOSE = 1e-5
"""How far apart the derivatives of a smooth function may be at such points, relative to the slopes around: ten times
their distance."""

Masks = Sequence[Array | None]


@dataclass
class Kinks:
    """What was found: wrong entries, or where the kinks are, named; neither if there is none."""

    wrong: list[Entry]
    places: list[str]
    kinked: Array
    """The outputs that have one."""
    more: int = 0
    wrong_beside: Look | None = None

    @property
    def text(self) -> str:
        """Where the function has no derivative."""
        more = f" and {self.more} more" if self.more > 0 else ""
        return ", ".join(self.places) + more


def kinked_by_tape(point: Point) -> list[Array] | None:
    """Per moved input the elements that feed an operation at its kink, as the tape tells; None if none do."""
    tape = point.tape
    if tape is None or tape.smooth:
        return None
    kinks = tape.kinks()
    if not kinks:
        return None
    masks = [module_of(x).zeros(x.shape, dtype=bool) for x in point.x]
    for kink in kinks:
        for number, k in enumerate(point.moved):
            if kink.inputs[k] is not None:
                masks[number] |= kink.inputs[k]
    return masks if any(bool(m.any()) for m in masks) else None


def judged(looker: Looker, masks: Masks | None) -> Kinks:
    """Hold the gradient against the generalised derivative along random directions over the elements in `masks`.

    A gradient is one of many at a kink (an element of Clarke's subdifferential, 1983) only if its derivative along
    every direction is between those of the function at points as near as one likes, and on both sides of the point
    itself.
    """
    point = looker.point
    xp = module_of(point.outputs.vector)
    directions = [point.direction(looker.random, masks) for _ in range(DIRECTIONS)]
    offsets = [point.direction(looker.random, masks) for _ in range(OFFSETS)]
    ranges: list[Range] = []
    noise: Array | None = None
    for direction in directions:
        scan = Scan(point.line(direction))
        noise = looker.noise(scan, True) if noise is None else noise
        derivative = looker.scanned(scan, noise, True, BRIEF)
        ranges.append(Range.around(point, direction, offsets, derivative))
    kinked = xp.stack([r.kinked for r in ranges]).any(axis=0)
    which = xp.flatnonzero(kinked).tolist()
    wrong: list[Entry] = []
    for output, gradients in rows(point, drawn(looker, which)):
        for direction, r in zip(directions, ranges, strict=True):
            claim = sum(inner(g, d) for g, d in zip(gradients, direction, strict=True) if d is not None)
            low, high = r.ends(output)
            if not low <= claim <= high:
                wrong.append(in_direction(point, direction, gradients, (low, high), output, claim))
                break
    if wrong:
        return Kinks(wrong, [], kinked)
    if not which:
        return Kinks([], [], kinked)
    beside = beside_is_wrong(looker, masks)
    places = named(looker, masks, which[:MOST_NAMED])
    return Kinks([], places, kinked, len(which) - MOST_NAMED, beside)


@dataclass
class Range:
    """Per output, the derivatives along a direction on both sides of the point and at points nearby."""

    low: Array
    high: Array
    kinked: Array

    @classmethod
    def around(
        cls,
        point: Point,
        direction: Sequence[Array | None],
        offsets: Sequence[Sequence[Array | None]],
        found: Derivative,
    ) -> Range:
        """From the derivative at the point, and differences at points `NEAR` off."""
        xp = module_of(found.kinked)
        slopes, rounding = [], xp.zeros(found.noise.shape)
        for offset in offsets:
            moved = [
                x if d is None or o is None else x + NEAR * o
                for x, d, o in zip(point.x, direction, offset, strict=True)
            ]
            line = Line(point.forward, moved, direction, point.outputs.vector)
            slopes.append((line.at(STEP).change - line.at(-STEP).change) / (2 * STEP))
        rounding = found.noise / STEP
        values = xp.stack(slopes)
        values = xp.where(xp.isfinite(values), values, found.both.value)
        low, high = values.min(axis=0), values.max(axis=0)
        sided = found.kinked | found.unclear
        left, right = found.hull
        size = xp.maximum(xp.maximum(abs(low), abs(high)), found.around)
        kinked = sided | (high - low > APART * (rounding + CLOSE * size))
        known = sided & xp.isfinite(left) & xp.isfinite(right)
        low, high = xp.where(known, xp.minimum(low, left), low), xp.where(known, xp.maximum(high, right), high)
        ordered = xp.sort(values, axis=0)
        pieces = (ordered[1:] - ordered[:-1] > APART * (rounding + CLOSE * size)).sum(axis=0) + 1
        margin = 2 * rounding + CLOSE * size + xp.where(pieces > 2, (high - low) / (pieces - 1), 0.0)
        smooth = ~kinked & xp.isfinite(found.both.bar)
        value, bar = found.both.value, found.both.bar + CLOSE * abs(found.both.value)
        return cls(xp.where(smooth, value - bar, low - margin), xp.where(smooth, value + bar, high + margin), kinked)

    @property
    def size(self) -> Array:
        """How large the derivative of every output may be."""
        return module_of(self.low).maximum(abs(self.low), abs(self.high))

    def ends(self, output: int) -> tuple[float, float]:
        """Between which the derivative of an output may be."""
        return float(self.low[output]), float(self.high[output])


def drawn(looker: Looker, which: Sequence[int]) -> list[int]:
    """At most so many of the outputs, at random."""
    if len(which) <= MOST_OUTPUTS:
        return list(which)
    return sorted(looker.random.choice(np.asarray(which), MOST_OUTPUTS, replace=False).tolist())


def rows(point: Point, outputs: Sequence[int]) -> list[tuple[int, list[Array]]]:
    """Rows of the Jacobian that backward claims."""
    return [(output, point.vjp(point.outputs.unit(output))) for output in outputs]


def in_direction(
    point: Point,
    direction: Sequence[Array | None],
    gradients: Sequence[Array],
    ends: tuple[float, float],
    output: int,
    claim: float,
) -> Entry:
    """The entry that carries most of a gradient that lies outside of both sides; its derivative is the nearer side."""
    low, high = ends
    nearer = low if claim < low else high
    shares = [
        abs(g * d).reshape(-1) if d is not None else abs(g).reshape(-1) * 0
        for g, d in zip(gradients, direction, strict=True)
    ]
    number = max(range(len(shares)), key=lambda k: float(shares[k].max()) if shares[k].size else -1.0)
    index = int(shares[number].argmax())
    d = direction[number]
    assert d is not None
    step = float(d.reshape(-1)[index].real)
    own = float(gradients[number].reshape(-1)[index].real)
    return Entry(
        number,
        index,
        point.outputs.element(output),
        own,
        own + (nearer - claim) / step,
        abs(high - low) / abs(step) / 2,
    )


def beside_is_wrong(looker: Looker, masks: Masks | None) -> Look | None:
    """A look at a point beside at which backward is wrong, if there is one."""
    for _ in range(2):
        try:
            there = beside(looker, masks)
            look = there.look(by_rows=True)
            if look.decision is Decision.FAIL:
                look = there.look(by_rows=True, whole=True)
                if look.decision is Decision.FAIL:
                    return look
        except Exception:  # it is not asked to work elsewhere
            return None
    return None


def named(looker: Looker, masks: Masks | None, outputs: Sequence[int]) -> list[str]:
    """For some kinked outputs, an input element that has the kink, and the derivatives on both its sides."""
    point, places = looker.point, list[str]()
    whole = np.concatenate(
        [
            np.asarray((s if masks is None else s * (0 if m is None else m)).reshape(-1).tolist())
            for s, m in zip(point.scales, masks or point.scales, strict=True)
        ]
    )
    xp = module_of(point.outputs.vector)
    diagonal = len(point.x) == 1 and point.x[0].size == point.outputs.vector.size

    def derivative_along(mask: Array) -> Derivative | None:
        part = unflat(xp.asarray(whole) * mask, point.scales)
        if all(d is None for d in part):
            return None
        scan = Scan(point.line(part))
        scan.extend(BRIEF)
        return derivative_of(scan, scan.line.sizes * 2.0**-50)

    for output in outputs:

        def kinked(mask: Array, output: int = output) -> bool:
            found = derivative_along(mask)
            return found is not None and bool(found.kinked[output])

        candidates = [output] if diagonal else list(halved(xp, whole.size, kinked, 1))
        for index in candidates:
            mask = xp.zeros(whole.size)
            mask[index] = 1
            found = derivative_along(mask)
            if found is None:
                continue
            number, start = 0, 0
            while index >= start + point.x[number].size:
                start += point.x[number].size
                number += 1
            scale = float(point.scales[number].reshape(-1)[index - start])
            left, right = (float(side.value[output]) / scale + 0.0 for side in (found.left, found.right))
            place = point.place(Entry(number, index - start, 0, 0.0, 0.0, 0.0))
            jump = ", with a jump" if bool(found.jumped[output]) else ""
            places.append(f"{place} (left {left:.6g}, right {right:.6g}{jump})")
    return places or ["points that no single input element shows"]
