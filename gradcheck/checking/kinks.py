"""Where the function has no derivative: the gradient has to lie between the one-sided ones, and be right beside them.

A gradient is one of many at a kink (an element of Clarke's subdifferential, 1983) only if along every direction it is
between the derivatives at points as near as one likes. Their gradients are the tape's, exact; where there is no tape
they are differences. Along a direction d the points x ± δ·d are among them: where the function is convex or concave
their slopes are the whole range (Rockafellar 1970).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcheck.checking.arrays import CLEAR, Array, array_and_element, flat, flat_real, inner, module_of
from gradcheck.checking.decide import Ruling
from gradcheck.checking.found import MOST_NAMED, listed
from gradcheck.checking.line import Line, moved
from gradcheck.checking.noise import from_close_values, noise_by_perturbation
from gradcheck.checking.point import Entry, Point
from gradcheck.checking.probe import Probe, Prober
from gradcheck.checking.tape_comparison import Masks

Direction = Sequence[Array | None]
"""One array per moved input; None for one that stays."""

KINK_DIRECTIONS = 8
"""Along which a gradient has to be between the slopes: one that is outside for half of the directions, as where both of
two tied maxima take all, passes all of them once in 2^8. One more has one sign: along it the shares of tied elements
add up, so that a gradient which gives all of it to each is outside whatever is drawn."""
FURTHER = 120
"""More directions, with a point ahead and behind on each, where a gradient is outside of the slopes of a function that
is neither convex nor concave: of 30 pieces that meet (30 equal values, sorted) one is missed once in 3,000."""
MOST_LOOKED_AT = 16
"""Kinked outputs, or elements with an infinite gradient, that are looked at by themselves, drawn at random."""
NEAR = 2.0**-30
"""How far off the points are, relative to the inputs' scale: rounding (2^-52) does not lead across a kink, curvature of
the inputs' scale changes a slope by this share alone."""
AT_ZERO = (2.0**-300, 2.0**-120, 2.0**-60, NEAR)
"""The same for elements that are exactly 0, which have no scale of their own: the first that the outputs respond to."""
NEAR_BY_DIFFERENCES = CLEAR * NEAR
"""The same where slopes are differences, whose step is `NEAR`: so much smaller that few reach over a kink."""
CLOSE = 1e-5
"""How far apart slopes may be that belong to one smooth piece, relative to the largest: at `NEAR`, curvature up to
10,000 times the inputs' scale; ten times the distance by differences."""
BESIDE = 2.0**-7
"""How far off, relative to the inputs' scale, a gradient is looked at once more, and elements are moved to see which
outputs depend on them."""

EDGE = (
    "the outputs are not finite at points beside the inputs, which lie at the edge of the function's domain: there is "
    "no derivative to compare with{}. Choose inputs inside of it"
)
PIECES = (
    "more pieces of the function meet here than differences can tell of, and the gradient is of none that was seen: "
    "choose inputs without ties, or operations that can be recorded"
)


@dataclass
class Kinks:
    """What was found: wrong entries, or where the kinks are, named; neither if there is none."""

    wrong: list[Entry]
    places: list[str]
    kinked: Array
    """The outputs that may have one, and are not to be compared with the tape."""
    unknown: str = ""
    """Why of some output it cannot be told."""
    wrong_beside: tuple[Prober, Probe] | None = None
    """A probe from a point beside, at which backward is wrong."""

    @property
    def text(self) -> str:
        """Where the function has no derivative."""
        return listed(self.places, max(int(self.kinked.sum()), len(self.places)))


@dataclass
class Pieces:
    """The slopes of one output: ``along[i, j]`` is that at point j along direction i, NaN outside of the domain; points
    2i and 2i + 1 are ahead and behind along direction i."""

    along: np.ndarray[Any, Any]
    tolerance: float
    jumps: bool
    rows: Sequence[Sequence[Array]] | None = None
    """The gradients at the points, where there is a tape."""

    @classmethod
    def of(
        cls,
        slopes: np.ndarray[Any, Any],
        changes: Sequence[float],
        reach: float,
        noise: float,
        *,
        around: float = 0.0,
        floor: float = 0.0,
        rows: Sequence[Sequence[Array]] | None = None,
    ) -> Pieces | None:
        """Those with these slopes; None where no point is inside of the domain.

        Args:
            changes: of the output at the points, which are so far off as `reach`.
            around: how large a slope is farther off.
            floor: how far slopes may be off by rounding.
        """
        slopes = np.where(np.isfinite(slopes), slopes, np.nan)
        if np.isnan(slopes).all():
            return None
        largest = float(np.nanmax(abs(slopes)))
        # a change that is so many times what the slopes explain is a jump
        jumps = any(change > CLEAR * (reach * largest + noise) for change in changes)
        return cls(slopes, floor + CLOSE * (largest if jumps else max(largest, around)), jumps, rows)

    @property
    def smooth(self) -> bool:
        """Whether they are all of one piece."""
        low, high = self.ends
        return not self.jumps and bool((high - low <= self.tolerance).all())

    @property
    def complete(self) -> bool:
        """Whether the slopes ahead and behind are the whole range: of a convex or concave function."""
        which = np.arange(len(self.along))
        ends = self.along[which, 2 * which], self.along[which, 2 * which + 1]

        def between(low: np.ndarray[Any, Any], high: np.ndarray[Any, Any]) -> bool:
            least, largest = self.ends
            return bool((low <= least + self.tolerance).all() and (high >= largest - self.tolerance).all())

        return between(*ends) or between(*reversed(ends))

    @property
    def ends(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Per direction, the least and the largest slope; inf and −inf where all points are outside of the domain."""
        missing = np.isnan(self.along)
        return np.where(missing, np.inf, self.along).min(axis=1), np.where(missing, -np.inf, self.along).max(axis=1)

    def ranges(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Per direction, between which a gradient may be."""
        low, high = self.ends
        # else what was not seen may lie beyond by as much as the pieces that were are apart
        count = (np.diff(np.sort(self.along, axis=1), axis=1) > self.tolerance).sum(axis=1) + 1
        spare = np.where((count > 2) & (not self.complete), (high - low) / np.maximum(count - 1, 1), 0.0)
        missing = low > high
        low, high = np.where(missing, -np.inf, low - spare), np.where(missing, np.inf, high + spare)
        return low - self.tolerance, high + self.tolerance

    def outside(self, claims: Sequence[float]) -> list[int]:
        """The directions along which a gradient is not between the slopes."""
        return [i for i, (low, high) in enumerate(zip(*self.ranges(), strict=True)) if not low <= claims[i] <= high]

    def far_off(self, claims: Sequence[float]) -> bool:
        """Whether a gradient is outside by more than the slopes are apart: no piece that was not seen reaches there."""
        (low, high), values = self.ranges(), np.asarray(claims)
        width = high - low
        return bool(((values < low - width) | (values > high + width)).any())


def kinked_by_tape(point: Point) -> list[Array] | None:
    """Per moved input the elements that feed an operation at its kink, as the tape tells; None if none do."""
    tape = point.tape
    if tape is None:
        return None
    masks = [~np.isfinite(g) for g in point.by_tape(point.outputs.vector * 0 + 1)]  # a slope without bound
    for kink in tape.kinks:
        for number, k in enumerate(point.moved):
            if kink.inputs[k] is not None:
                masks[number] |= kink.inputs[k]
    masks = [m & ~h for m, h in zip(masks, point.held, strict=True)] if point.held else masks
    return masks if any(bool(m.any()) for m in masks) else None


def judge_kinks(prober: Prober, masks: Masks | None) -> Kinks:
    """Hold the gradient against the slopes at points nearby, over the elements in `masks`."""
    point, random = prober.point, prober.random
    xp = module_of(point.outputs.vector)
    affected = xp.zeros(point.outputs.vector.size, bool)
    for _ in range(2):
        line = point.line(point.direction(random, masks))
        affected |= (line.at(BESIDE).change != 0) | (line.at(-BESIDE).change != 0)
    which = xp.flatnonzero(affected).tolist()
    if len(which) > MOST_LOOKED_AT:
        which = sorted(random.choice(np.asarray(which), MOST_LOOKED_AT, replace=False).tolist())
    directions = [point.direction(random, masks) for _ in range(KINK_DIRECTIONS)]
    directions.append([d if d is None else abs(d) for d in directions[0]])
    found = (slopes_by_tape if point.tape is not None else by_differences)(prober, directions, which)
    wrong, places, kinked = list[Entry](), dict[int, str](), affected.copy()
    unknown = EDGE.format(point.raised) if len(found) < len(which) else ""
    for output, pieces in found.items():
        one = point.outputs.unit(output)
        gradients = point.vjp(one)
        claims = [along(gradients, direction) for direction in directions]
        outside = pieces.outside(claims)
        if outside and not pieces.complete:
            if wrong:
                continue
            if point.tape is None and not pieces.far_off(claims):
                unknown = PIECES
                continue
            if point.tape is not None:
                further = [point.direction(random, masks) for _ in range(FURTHER)]
                pieces = slopes_by_tape(prober, directions, [output], further).get(output, pieces)
                outside = pieces.outside(claims)
        low, high = pieces.ranges()
        if outside:
            off = rounding(prober, one, directions)
            outside = [i for i in outside if not low[i] - off[i] <= claims[i] <= high[i] + off[i]]
        kinked[output] = not pieces.smooth
        if pieces.smooth and point.tape is not None:  # an operation's own rule may be wrong there, as that of sign at 0
            taped = [along(point.by_tape(one), direction) for direction in directions]
            kinked[output] = not all(a <= t <= b or t != t for a, t, b in zip(low, taped, high, strict=True))
        if outside and kinked[output]:  # else the differences say so of every entry
            i = outside[0]
            wrong.append(
                entry_outside(point, directions[i], gradients, (float(low[i]), float(high[i])), output, claims[i])
            )
        elif not pieces.smooth and len(places) < MOST_NAMED:
            name_kink(places, point, directions, pieces)
    if wrong or not (places or unknown):
        return Kinks(wrong, [], kinked)
    return Kinks([], list(places.values()), kinked, unknown, beside_is_wrong(prober, masks))


def rounding(prober: Prober, cotangent: Array, directions: Sequence[Direction]) -> list[float]:
    """How far the derivative that backward gives along each direction may be off by rounding, and that of a tape."""
    point = prober.point
    measured = point.measured_claim(point.outputs.split(cotangent), prober.random)
    measured.draw()
    bounds = [2 * bound for bound in measured.bounds(absolute=True)]  # the tape's is computed from the same numbers
    return [sum(float(abs(b * d).sum()) for b, d in zip(bounds, e, strict=True) if d is not None) for e in directions]


def along(gradients: Sequence[Array], direction: Direction) -> float:
    """The derivative along a direction."""
    return sum(inner(g, d) for g, d in zip(gradients, direction, strict=True) if d is not None)


# --------------------------------------------------------------------------- slopes at points nearby
def offsets(point: Point, directions: Sequence[Direction], at_zero: float, near: float) -> list[list[Array]]:
    """The points ahead and behind along each direction."""
    points = []
    for direction in directions:
        for sign in (1.0, -1.0):
            steps = [None if d is None else sign * module_of(x).where(x == 0, at_zero, near) * d
                     for x, d in zip(point.x, direction, strict=True)]  # fmt: skip
            points.append(
                [x if s is None else module_of(x).asarray(x + s) for x, s in zip(point.x, steps, strict=True)]
            )
    return points


def slopes_by_tape(
    prober: Prober, directions: Sequence[Direction], outputs: Sequence[int], further: Sequence[Direction] = ()
) -> dict[int, Pieces]:
    """The slopes of some outputs from the tapes at the points, along `further` directions as well."""
    point, here = prober.point, prober.point.outputs.vector
    for at_zero in AT_ZERO:
        change = point.vector(offsets(point, directions[:1], at_zero, NEAR)[0]) - here
        if bool((change[list(outputs)] != 0).all()):
            break
    tapes = [point.recorded(point.at(x)) for x in offsets(point, [*directions, *further], at_zero, NEAR)]
    values = [flat_real([tape.outputs[k] for k in point.outputs.active]) for tape in tapes if tape is not None]
    noise, _ = noise_by_perturbation(point, directions[0], NEAR, prober.random)
    around = abs(point.line(directions[0]).at(NEAR).change) / NEAR  # beside it slopes at elements that are 0 are small
    pairs = [(x, d) for x, d in zip(point.x, directions[0], strict=True) if d is not None]
    reach = NEAR if any(bool((x[d != 0] != 0).any()) for x, d in pairs) else at_zero
    outside = [x * np.nan for x in point.x]
    found = {}
    for output in outputs:
        cotangents = point.outputs.split(point.outputs.unit(output))
        rows = [outside if tape is None else point.of_moved(tape.gradient(cotangents)) for tape in tapes]
        slopes = np.array([[along(row, direction) for row in rows] for direction in directions])
        changes = [abs(float(v[output] - here[output])) for v in values]
        found[output] = Pieces.of(slopes, changes, reach, float(noise[output]), around=float(around[output]), rows=rows)
    return {output: pieces for output, pieces in found.items() if pieces is not None}


def by_differences(prober: Prober, directions: Sequence[Direction], outputs: Sequence[int]) -> dict[int, Pieces]:
    """The slopes of some outputs from differences at the points."""
    point, here = prober.point, prober.point.outputs.vector
    if point.opaque:
        noise = from_close_values(point.line(directions[0]), True)
    else:
        noise, _ = noise_by_perturbation(point, directions[0], NEAR, prober.random)
    points = offsets(point, directions, NEAR_BY_DIFFERENCES, NEAR_BY_DIFFERENCES)
    values = [point.vector(x) for x in points]
    slopes = [[slope(point, x, direction) for x in points] for direction in directions]
    found = {}
    for output in outputs:
        of_output = np.array([[float(s[output]) for s in row] for row in slopes])
        changes = [abs(float(v[output] - here[output])) for v in values]
        error = float(noise[output])
        found[output] = Pieces.of(of_output, changes, NEAR_BY_DIFFERENCES, error, floor=error / NEAR)
    return {output: pieces for output, pieces in found.items() if pieces is not None}


def slope(point: Point, x: Sequence[Array], direction: Direction) -> Array:
    """The slope of every output at another point."""
    line = Line(point.forward, x, direction, point.outputs.vector)
    return (line.at(NEAR).change - line.at(-NEAR).change) / (2 * NEAR)


# --------------------------------------------------------------------------- what is told of them
def entry_outside(
    point: Point,
    direction: Direction,
    gradients: Sequence[Array],
    between: tuple[float, float],
    output: int,
    claim: float,
) -> Entry:
    """The entry that carries most of a claim that lies outside of a range; its derivative is the nearer end."""
    low, high = between
    moves = [(k, d) for k, d in enumerate(direction) if d is not None and d.size]
    number, d = max(moves, key=lambda move: float(abs(gradients[move[0]] * move[1]).max()))
    parts = abs(gradients[number] * d)
    if not bool((parts > 0).any()):  # nothing is given: then to what moves most
        number, d = max(moves, key=lambda move: float(abs(move[1]).max()))
        parts = abs(d)
    index = int(parts.argmax())
    step = float(d.reshape(-1)[index].real)
    own = float(gradients[number].reshape(-1)[index].real)
    value = own + ((low if claim < low else high) - claim) / step
    return Entry(number, index, point.outputs.element(output), own, value, abs(high - low) / abs(step) / 2)


def name_kink(places: dict[int, str], point: Point, directions: Sequence[Direction], pieces: Pieces) -> None:
    """Put the input element that has most of a kink, and the derivatives on both its sides, among the `places`, by its
    number; of elements that are there already the next one, if the kink is of several."""
    jump = ", with a jump" if pieces.jumps else ""
    if pieces.rows is None:
        places[-1 - len(places)] = f"points beside the inputs{jump}"
        return
    rows = np.stack([np.asarray(flat(row).real.tolist()) for row in pieces.rows[: 2 * len(directions)]])
    moves = [flat([x * 0 if d is None else d for x, d in zip(point.x, one, strict=True)]) for one in directions]
    steps = np.stack([sign * np.asarray(move.real.tolist()) for move in moves for sign in (1, -1)])
    apart = np.where((steps != 0).any(axis=0), np.ptp(rows, axis=0), -1.0)
    apart[list(places)] = -1.0
    index = int(apart.argmax())
    if places and not apart[index] > pieces.tolerance:
        return
    left, right = (median(rows[steps[:, index] * sign > 0, index]) for sign in (-1, 1))
    number, own = array_and_element(point.x, index)
    element = point.place(Entry(number, own, 0, 0.0, 0.0, 0.0))
    places[index] = f"{element} (left {left:.6g}, right {right:.6g}{jump})"


def median(values: np.ndarray[Any, Any]) -> float:
    """The median of those that are finite, with no sign of 0; NaN if there are none."""
    known = values[np.isfinite(values)]
    return float(np.median(known)) + 0.0 if known.size else np.nan


def beside_is_wrong(prober: Prober, masks: Masks | None) -> tuple[Prober, Probe] | None:
    """A probe from a point beside, on either side, at which backward is wrong, if there is one."""
    direction = prober.point.direction(prober.random, masks)
    for sign in (1.0, -1.0):
        try:
            there = prober.at(moved(prober.point.x, direction, sign * BESIDE))
            probe = there.probe()
            if probe.decision is Ruling.FAIL:
                probe = there.probe(whole=True)
                if probe.decision is Ruling.FAIL:
                    return there, probe
        except Exception:  # it is not asked to work elsewhere
            return None
    return None
