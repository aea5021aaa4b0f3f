"""Where the function has no derivative: the gradient has to lie between the sides, and be right beside the point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gradcheck.checker.decide import Decision
from gradcheck.checker.elsewhere import MOST_NAMED, beside, listed
from gradcheck.checker.look import Look, Looker
from gradcheck.checker.point import Point
from gradcheck.numeric.arrays import Array, flat, inner, module_of, place_in, unflat
from gradcheck.numeric.derivative import APART, BRIEF, Derivative, derivative_of
from gradcheck.numeric.jacobian import Entry, halved
from gradcheck.numeric.line import Line, Scan, moved

DIRECTIONS = 8
"""Along which a gradient has to lie in the hull of both sides: one that is outside for half of the directions, as where
both of two tied maxima take all, passes all of them once in 2^8."""
ONE_SIGN = 2
"""More of them in which all elements move the same way: along these the shares that tied elements have add up, so that
a gradient which gives all of it to each, or nothing to any, is outside whatever the magnitudes drawn."""
OFFSETS, MORE_OFFSETS = 24, 192
"""Points nearby at which the derivative is looked at. Of two pieces that meet both are seen but once in 2^23; of more,
what was not seen may lie beyond what was by as much as those seen are apart, and a gradient is outside only if it is so
with the larger number too: of 30 pieces (a sort of 30 equal numbers) one is not seen then once in 700."""
MOST_OUTPUTS = 16
"""Kinked outputs that are looked at by themselves, drawn at random; of a diagonal Jacobian all are."""
NEAR, STEP = 2.0**-20, 2.0**-30
"""How far off the points are at which the function is looked at for its derivatives nearby, and the step there,
relative to the inputs' scale: 1,024 times smaller, so that few steps reach over a kink where 30 pieces meet."""
CLOSE = 1e-5
"""How far apart the derivatives of a smooth function may be at such points, relative to the slopes around: ten times
their distance."""

FINEST = 2.0**-50
"""Noise, relative to the outputs, where a kink is known and only its place is looked for."""

Masks = Sequence[Array | None]


@dataclass
class Kinks:
    """What was found: wrong entries, or where the kinks are, named; neither if there is none."""

    wrong: list[Entry]
    places: list[str]
    kinked: Array
    """The outputs that have one."""
    wrong_beside: tuple[Looker, Look] | None = None
    """A look from a point beside, at which backward is wrong."""

    @property
    def text(self) -> str:
        """Where the function has no derivative."""
        return listed(self.places, int(self.kinked.sum()))


def kinked_by_tape(point: Point) -> list[Array] | None:
    """Per moved input the elements that feed an operation at its kink, as the tape tells; None if none do."""
    tape = point.tape
    if tape is None:
        return None
    kinks = tape.kinks
    if not kinks:
        return None
    masks = [module_of(x).zeros(x.shape, dtype=bool) for x in point.x]
    for kink in kinks:
        for number, k in enumerate(point.moved):
            if kink.inputs[k] is not None:
                masks[number] |= kink.inputs[k]
    masks = [m & ~h for m, h in zip(masks, point.held, strict=True)] if point.held else masks
    return masks if any(bool(m.any()) for m in masks) else None


def judged(looker: Looker, masks: Masks | None) -> Kinks:
    """Hold the gradient against the generalised derivative along random directions over the elements in `masks`.

    A gradient is one of many at a kink (an element of Clarke's subdifferential, 1983) only if its derivative along
    every direction is between those of the function at points as near as one likes, and on both sides of the point
    itself.
    """
    point, xp = looker.point, module_of(looker.point.outputs.vector)
    directions = [point.direction(looker.random, masks) for _ in range(DIRECTIONS)]
    for _ in range(ONE_SIGN):
        directions.append([d if d is None else abs(d) for d in point.direction(looker.random, masks)])
    derivatives: list[Derivative] = []
    noise: Array | None = None
    for direction in directions:
        scan = Scan(point.line(direction))
        noise = looker.noise(scan, True) if noise is None else noise
        derivatives.append(looker.scanned(scan, noise, True, BRIEF))
    for count in (OFFSETS, MORE_OFFSETS):
        offsets = [point.direction(looker.random, masks) for _ in range(count)]
        ranges = [range_around(point, d, offsets, found) for d, found in zip(directions, derivatives, strict=True)]
        kinked = xp.stack([r.kinked for r in ranges]).any(axis=0)
        which = xp.flatnonzero(kinked).tolist()
        some = which
        if len(which) > MOST_OUTPUTS:
            some = sorted(looker.random.choice(np.asarray(which), MOST_OUTPUTS, replace=False).tolist())
        wrong = outsiders(point, directions, ranges, some)
        if not (wrong and any(r.several for r in ranges)):
            break
    if wrong or not which:
        return Kinks(wrong, [], kinked)
    beside = beside_is_wrong(looker, masks)
    return Kinks([], named(looker, masks, which[:MOST_NAMED]), kinked, beside)


class Range(NamedTuple):
    """Per output, between which its derivative along a direction may be, and whether it has a kink."""

    low: Array
    high: Array
    kinked: Array
    several: bool
    """Whether more than two pieces meet in some output."""


def outsiders(
    point: Point, directions: Sequence[Sequence[Array | None]], ranges: Sequence[Range], outputs: Sequence[int]
) -> list[Entry]:
    """Of every output of which backward's derivative along a direction is outside of its range, the entry at fault."""
    wrong: list[Entry] = []
    for output in outputs:
        gradients = point.vjp(point.outputs.unit(output))
        for direction, r in zip(directions, ranges, strict=True):
            claim = sum(inner(g, d) for g, d in zip(gradients, direction, strict=True) if d is not None)
            if not float(r.low[output]) <= claim <= float(r.high[output]):
                wrong.append(outside(point, direction, gradients, r, output, claim))
                break
    return wrong


def range_around(
    point: Point, direction: Sequence[Array | None], offsets: Sequence[Sequence[Array | None]], found: Derivative
) -> Range:
    """Of the derivatives on both sides of the point, `found` there, and of differences at points `NEAR` off."""
    xp = module_of(found.kinked)
    lines = [Line(point.forward, moved(point.x, offset, NEAR), direction, point.outputs.vector) for offset in offsets]
    values = xp.stack([(line.at(STEP).change - line.at(-STEP).change) / (2 * STEP) for line in lines])
    values = xp.where(xp.isfinite(values), values, found.both.value)
    low, high = values.min(axis=0), values.max(axis=0)
    rounding = found.noise / STEP
    alike = rounding + CLOSE * xp.maximum(xp.maximum(abs(low), abs(high)), found.around)
    ordered = xp.sort(values, axis=0)
    pieces = (ordered[1:] - ordered[:-1] > APART * alike).sum(axis=0) + 1

    sided = found.kinked | found.unclear
    kinked = sided | (high - low > APART * alike)
    left, right = found.hull
    known = sided & xp.isfinite(left) & xp.isfinite(right)
    low, high = xp.where(known, xp.minimum(low, left), low), xp.where(known, xp.maximum(high, right), high)
    margin = rounding + alike + xp.where(pieces > 2, (high - low) / (pieces - 1), 0.0)
    smooth = ~kinked & xp.isfinite(found.both.bar)
    value, bar = found.both.value, found.both.bar + found.gap + CLOSE * abs(found.both.value)
    low, high = xp.where(smooth, value - bar, low - margin), xp.where(smooth, value + bar, high + margin)
    return Range(low, high, kinked, bool((pieces > 2).any()))


def outside(
    point: Point, direction: Sequence[Array | None], gradients: Sequence[Array], r: Range, output: int, claim: float
) -> Entry:
    """The entry that carries most of a claim that lies outside of a range; its derivative is the nearer end."""
    low, high = float(r.low[output]), float(r.high[output])
    moves = [(k, d) for k, d in enumerate(direction) if d is not None and d.size]
    number, d = max(moves, key=lambda move: float(abs(gradients[move[0]] * move[1]).max()))
    shares = abs(gradients[number] * d)
    if not bool((shares > 0).any()):  # nothing is given: then to what moves most
        number, d = max(moves, key=lambda move: float(abs(move[1]).max()))
        shares = abs(d)
    index = int(shares.argmax())
    step = float(d.reshape(-1)[index].real)
    own = float(gradients[number].reshape(-1)[index].real)
    value = own + ((low if claim < low else high) - claim) / step
    return Entry(number, index, point.outputs.element(output), own, value, abs(high - low) / abs(step) / 2)


def beside_is_wrong(looker: Looker, masks: Masks | None) -> tuple[Looker, Look] | None:
    """A look from a point beside at which backward is wrong, if there is one."""
    for _ in range(2):
        try:
            there = beside(looker, masks)
            look = there.look(by_rows=True)
            if look.decision is Decision.FAIL:
                look = there.look(by_rows=True, whole=True)
                if look.decision is Decision.FAIL:
                    return there, look
        except Exception:  # it is not asked to work elsewhere
            return None
    return None


def named(looker: Looker, masks: Masks | None, outputs: Sequence[int]) -> list[str]:
    """For some kinked outputs, an input element that has the kink, and the derivatives on both its sides."""
    point, places = looker.point, list[str]()
    xp, scales = module_of(point.outputs.vector), flat(point.scales)
    within = scales
    if masks is not None:
        within = flat([s * (0 if m is None else m) for s, m in zip(point.scales, masks, strict=True)])
    diagonal = len(point.x) == 1 and scales.size == point.outputs.vector.size

    def along(mask: Array) -> Derivative:
        scan = Scan(point.line(unflat(within * mask, point.scales)))
        scan.extend(BRIEF)
        return derivative_of(scan, scan.line.sizes * FINEST)

    for output in outputs:

        def shows(mask: Array, output: int = output) -> bool:
            return bool(along(mask).kinked[output])

        for index in [output] if diagonal and bool(within[output]) else halved(xp, scales.size, shows, 1):
            mask = xp.zeros(scales.size)
            mask[index] = 1
            there = along(mask)
            number, own = place_in(point.x, index)
            left, right = (float(side.value[output]) / float(scales[index]) + 0.0 for side in (there.left, there.right))
            jump = ", with a jump" if bool(there.jumped[output]) else ""
            place = point.place(Entry(number, own, 0, 0.0, 0.0, 0.0))
            places.append(f"{place} (left {left:.6g}, right {right:.6g}{jump})")
    return places or ["points that no single input element shows"]
