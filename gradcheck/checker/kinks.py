"""Where the function has no derivative: the gradient has to lie between the sides, and be right beside the point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradcheck.checker.decide import Decision
from gradcheck.checker.look import Look, Looker
from gradcheck.checker.point import Entry, Point
from gradcheck.numeric.derivative import BRIEF, Derivative, derivative_of
from gradcheck.numeric.line import Array, inner, module_of
from gradcheck.numeric.scan import Scan
from gradcheck.numeric.search import halved, unflat

DIRECTIONS = 8
"""Along which a gradient has to lie in the hull of both sides: one that is outside for half of the directions, as where both of two
tied maxima take all, passes all of them once in 2^8."""
MOST_OUTPUTS = 16
"""Kinked outputs that are looked at by themselves, drawn at random; of a diagonal Jacobian all are."""
MOST_NAMED = 3
"""Kinks that the result names."""
BESIDE = 2.0**-7
"""How far off the points beside are, relative to the inputs' scale; two are looked at."""
CLOSE = 1e-6
"""How far off one-sided derivatives, of lower order than those from both sides, may be relative to the larger side."""

Masks = Sequence[Array | None]


@dataclass
class Kinks:
    """What was found: wrong entries, or where the kinks are, named; neither if there is none."""

    wrong: list[Entry]
    places: list[str]
    more: int = 0
    jumps: bool = False
    wrong_beside: Look | None = None

    @property
    def text(self) -> str:
        """Where the function has no derivative."""
        more = f" and {self.more} more" if self.more > 0 else ""
        return ", ".join(self.places) + more


def judged(looker: Looker, masks: Masks | None) -> Kinks:
    """Hold the gradient against the one-sided derivatives along random directions over the elements in `masks`.

    A point at which both sides agree all the same has no kink; the gradient has to be that derivative there.
    """
    point = looker.point
    xp = module_of(point.outputs.vector)
    directions = [point.direction(looker.random, masks) for _ in range(DIRECTIONS)]
    derivatives: list[Derivative] = []
    noise: Array | None = None
    for direction in directions:
        scan = Scan(point.line(direction))
        noise = looker.noise(scan, True) if noise is None else noise
        derivatives.append(looker.scanned(scan, noise, True, BRIEF))
    kinked = xp.stack([d.kinked | d.unclear for d in derivatives]).any(axis=0)
    which = xp.flatnonzero(kinked).tolist()
    changed = xp.flatnonzero(~kinked & (derivatives[0].around > 0)).tolist()
    looked_at = [*drawn(looker, which), *drawn(looker, changed)]
    wrong: list[Entry] = []
    for output, gradients in rows(point, looked_at):
        for direction, derivative in zip(directions, derivatives, strict=True):
            claim = sum(inner(g, d) for g, d in zip(gradients, direction, strict=True) if d is not None)
            low, high = ends(derivative, output)
            if not low <= claim <= high:
                wrong.append(in_direction(point, direction, gradients, derivative, output, claim))
                break
    if wrong:
        return Kinks(wrong, [])
    if not which:
        return Kinks([], [])
    beside = beside_is_wrong(looker, masks)
    places, jumps = named(looker, masks, which[:MOST_NAMED])
    return Kinks([], places, len(which) - MOST_NAMED, jumps, beside)


def drawn(looker: Looker, which: Sequence[int]) -> list[int]:
    """At most so many of the outputs, at random."""
    if len(which) <= MOST_OUTPUTS:
        return list(which)
    return sorted(looker.random.choice(np.asarray(which), MOST_OUTPUTS, replace=False).tolist())


def rows(point: Point, outputs: Sequence[int]) -> list[tuple[int, list[Array]]]:
    """Rows of the Jacobian that backward claims."""
    found = []
    for output in outputs:
        one = point.outputs.vector * 0
        one[output] = 1
        found.append((output, point.vjp(one)))
    return found


def ends(derivative: Derivative, output: int) -> tuple[float, float]:
    """The hull of both sides of an output, or its derivative where there is no kink."""
    if not bool(derivative.kinked[output] | derivative.unclear[output]):
        value, bar = float(derivative.both.value[output]), float(derivative.both.bar[output])
        bar += CLOSE * abs(value)
        return value - bar, value + bar
    low, high = (float(end[output]) for end in derivative.hull)
    margin = CLOSE * max(abs(low), abs(high))
    return low - margin, high + margin


def in_direction(
    point: Point, direction: Sequence[Array | None], gradients: Sequence[Array], derivative: Derivative, output: int, claim: float
) -> Entry:
    """The entry that carries most of a gradient that lies outside of both sides, with the nearer side for its derivative."""
    low, high = ends(derivative, output)
    nearer = low if claim < low else high
    shares = [abs(g * d).reshape(-1) if d is not None else abs(g).reshape(-1) * 0 for g, d in zip(gradients, direction, strict=True)]
    number = max(range(len(shares)), key=lambda k: float(shares[k].max()) if shares[k].size else -1.0)
    index = int(shares[number].argmax())
    d = direction[number]
    assert d is not None
    step = float(d.reshape(-1)[index].real)
    own = float(gradients[number].reshape(-1)[index].real)
    element = output // 2 if point.outputs.complex else output
    return Entry(number, index, element, own, own + (nearer - claim) / step, abs(high - low) / abs(step) / 2)


def beside_is_wrong(looker: Looker, masks: Masks | None) -> Look | None:
    """A look at a point beside at which backward is wrong, if there is one."""
    for _ in range(2):
        direction = looker.point.direction(looker.random, masks)
        moved = [x if d is None else x + BESIDE * d for x, d in zip(looker.point.x, direction, strict=True)]
        try:
            there = Looker(looker.point.beside(moved), looker.random, looker.rtol)
            look = there.look(by_rows=True)
            if look.decision is Decision.FAIL:
                look = there.look(by_rows=True, whole=True)
                if look.decision is Decision.FAIL:
                    return look
        except Exception:  # it is not asked to work elsewhere
            return None
    return None


def named(looker: Looker, masks: Masks | None, outputs: Sequence[int]) -> tuple[list[str], bool]:
    """For some kinked outputs, an input element that has the kink, and the derivatives on both its sides; whether one is a jump."""
    point, places, jumps = looker.point, [], False
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
            jump = bool(found.jumped[output])
            jumps |= jump
            place = point.place(Entry(number, index - start, 0, 0.0, 0.0, 0.0))
            places.append(f"{place} (left {left:.6g}, right {right:.6g}{', with a jump' if jump else ''})")
    return places or ["points that no single input element shows"], jumps
