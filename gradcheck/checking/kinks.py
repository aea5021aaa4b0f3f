"""Where the function has no derivative: the gradient has to lie between the one-sided ones, and be right beside them.

The operations' table says where. A gradient is one of many at a kink (an element of Clarke's subdifferential, 1983)
only if along every direction it is between the derivatives at points as near as one likes: their gradients are the
tape's, exact. Along a direction d the points x ± δ·d are among them: where the function is convex or concave their
slopes are the whole range (Rockafellar 1970).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.backends.bundled import Step
from gradcheck.checking.differences import RATIO, USUAL, moved
from gradcheck.checking.point import SUM_OF_OUTPUTS, Entry, Point, array_and_element, flat, flat_real
from gradcheck.checking.precision import CLEAR, EPSILON, FEW, NumpyArray, wide
from gradcheck.checking.probe import SMALL, Found, Masks, Prober, Ruling, along, parts_of, undecided, with_kink
from gradcheck.checking.tape import Tape, dead_steps
from gradcheck.result import Diagnosis, Status

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
MOST_NAMED = 3
"""Places that a sentence names."""
NEAR_STEP = -15
NEAR = RATIO**NEAR_STEP
"""How far off the points are, relative to the inputs' scale: rounding (2^-52) does not lead across a kink, curvature of
the inputs' scale changes a slope by this share (2^-30) alone."""
AT_ZERO = (2.0**-300, 2.0**-120, 2.0**-60, NEAR)
"""The same for elements that are exactly 0, which have no scale of their own: the first that the outputs respond to."""
CLOSE = 1e-5
"""How far apart slopes may be that belong to one smooth piece, relative to the largest: at `NEAR`, curvature up to
10,000 times the inputs' scale."""
BESIDE = 2.0**-7
"""How far off, relative to the inputs' scale, a gradient is looked at once more, and elements are moved to see which
outputs depend on them."""
SMALL_STEPS = USUAL[: len(USUAL) // 2 + 1]
"""The smaller half: the shape of a function at an element that is 0 shows there, whatever the size of the others."""
GROWS = 0.9
"""The slope grows without bound if from step to step it grows by no less than this times what it grew before. With
steps of ratio 4 that is 4^(1 − p) beside a power p: more than 1 for p < 1, and 1 for a logarithm, but less where the
slope has a limit (1/2 for x^1.5, 1/4 for what is smooth). Powers from 1 to 1.07 are taken for logarithms."""

EDGE = (
    "the outputs are not finite at points beside the inputs, which lie at the edge of the function's domain: there is "
    "no derivative to compare with{}. Choose inputs inside of it"
)


def axes_of(axis: Any) -> tuple[int, ...] | None:
    """The axes that a reduction is given, of Paddle's ways to say so; None for all."""
    return None if axis is None or axis == [] else tuple(np.atleast_1d(axis).tolist())


def depending(point: Point, random: np.random.Generator, masks: Masks) -> Array:
    """Which flat real outputs depend on the elements in `masks`."""
    found = point.outputs.vector != point.outputs.vector
    for _ in range(2):
        line = point.line(point.direction(random, masks))
        found |= (line.at(BESIDE).change != 0) | (line.at(-BESIDE).change != 0)
    return found


def listed(names: Sequence[str], count: int) -> str:
    """The first of some names, and how many more of all there are."""
    return ", ".join(names[:MOST_NAMED]) + (f" and {count - MOST_NAMED} more" if count > MOST_NAMED else "")


def at_kinks(prober: Prober, found: Found, masks: Masks) -> Found:
    """`found`, and what the kinks over the elements in `masks` add to it: the gradient has to lie between the slopes at
    points nearby."""
    point, random = prober.point, prober.random
    kinked = depending(point, random, masks)
    which = sorted(random.permutation(np.flatnonzero(kinked).tolist())[:MOST_LOOKED_AT].tolist())
    directions = [point.direction(random, masks) for _ in range(KINK_DIRECTIONS)]
    directions.append([d if d is None else abs(d) for d in directions[0]])
    nearby = slopes_nearby(prober, directions, which)
    wrong, places = list[Entry](), dict[int, str]()
    for output, pieces in nearby.items():
        one = point.outputs.unit(output)
        gradients, taped = point.vjp(one), point.by_tape(one)
        claims, rules = ([along(rows, direction) for direction in directions] for rows in (gradients, taped))
        outside = pieces.outside(claims)
        if outside and not pieces.complete:
            if wrong:
                continue
            further = [point.direction(random, masks) for _ in range(FURTHER)]
            pieces = slopes_nearby(prober, directions, [output], further).get(output, pieces)
            outside = pieces.outside(claims)
        low, high = pieces.ranges()
        if outside:
            off = rounding(prober, one, directions)
            outside = [i for i in outside if not low[i] - off[i] <= claims[i] <= high[i] + off[i]]
        # where all is of one piece an operation's own rule may be wrong, as that of sign at 0
        kinked[output] = not pieces.smooth or bool(((rules < low) | (rules > high)).any())
        if outside and kinked[output]:  # else the differences say so of every entry
            i = outside[0]
            wrong.append(entry_outside(point, directions[i], gradients, (low[i], high[i]), output, claims[i]))
        elif not pieces.smooth and len(places) < MOST_NAMED:
            name_kink(places, point, directions, pieces)
    if wrong:
        text = f"the gradient is not between the one-sided derivatives at {point.place(wrong[0])}"
        return Found(Status.FAIL, wrong=wrong, diagnosis=(Diagnosis.of("GC120", text),))
    if not bool(kinked.all()):
        smooth = prober.look(masks, without=kinked)
        if smooth.decision is Ruling.FAIL:
            return Found(Status.FAIL, probe=smooth)
    named = listed(list(places.values()), max(int(kinked.sum()), len(places)))
    unknown = len(nearby) < len(which)
    if (places or unknown) and (beside := wrong_beside(prober, masks)) is not None:
        text = f"the gradient is wrong beside {named}: the wrong entries are those at a point close by"
        return replace(beside, diagnosis=(Diagnosis.of("GC120", text),))
    if unknown:
        return undecided(EDGE.format(point.raised))
    why = f"not differentiable at {named}; the gradient lies between the one-sided derivatives"
    return with_kink(found, why) if places else found


def rounding(prober: Prober, cotangent: Array, directions: Sequence[Direction]) -> list[float]:
    """How far the derivative that backward gives along each direction may be off by rounding, and that of a tape."""
    measured = prober.point.measured_claim(prober.point.outputs.split(cotangent), prober.random)
    measured.draw()
    bounds = [2 * bound for bound in measured.bounds(absolute=True)]  # the tape computes from the same numbers
    return [sum(float(abs(part).sum()) for part in parts_of(bounds, direction)) for direction in directions]


def wrong_beside(prober: Prober, masks: Masks) -> Found | None:
    """FAIL if backward is wrong at a point beside, on either side."""
    direction = prober.point.direction(prober.random, masks)
    for sign in (1.0, -1.0):
        try:
            beside = prober.point.beside(moved(prober.point.x, direction, sign * BESIDE))
            there = Prober(beside, prober.random, prober.rtol)
            probe = there.look()
        except Exception:  # it is not asked to work elsewhere
            return None
        if probe.decision is Ruling.FAIL:
            return Found(Status.FAIL, probe=probe, prober=there)
    return None


# --------------------------------------------------------------------------- slopes at points nearby
@dataclass
class Pieces:
    """The slopes of one output: ``along[i, j]`` is that at point j along direction i, NaN where it is not known, as
    outside of the domain; points 2i and 2i + 1 are ahead and behind along direction i."""

    along: NumpyArray
    tolerance: float
    jumps: bool
    rows: Sequence[Sequence[Array]] = ()
    """The gradients at the points."""

    @property
    def ends(self) -> tuple[NumpyArray, NumpyArray]:
        """Per direction, the least and the largest slope; inf and −inf where all points are outside of the domain."""
        missing = np.isnan(self.along)
        return np.where(missing, np.inf, self.along).min(axis=1), np.where(missing, -np.inf, self.along).max(axis=1)

    @property
    def smooth(self) -> bool:
        """Whether they are all of one piece."""
        low, high = self.ends
        return not self.jumps and bool((high - low <= self.tolerance).all())

    @property
    def complete(self) -> bool:
        """Whether the slopes ahead and behind are the whole range: of a convex or concave function."""
        which, (low, high) = np.arange(len(self.along)), self.ends
        ahead, behind = self.along[which, 2 * which], self.along[which, 2 * which + 1]
        return any(
            bool(((first <= low + self.tolerance) & (last >= high - self.tolerance)).all())
            for first, last in ((ahead, behind), (behind, ahead))
        )

    def ranges(self) -> tuple[NumpyArray, NumpyArray]:
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
        low, high = self.ranges()
        return np.flatnonzero(~((low <= claims) & (claims <= high))).tolist()


def points_beside(point: Point, direction: Direction, at_zero: float, near: float) -> list[list[Array]]:
    """The points ahead and behind along a direction."""

    def off(x: Array, d: Array | None, sign: float) -> Array:
        return x if d is None else np.asarray(x + sign * np.where(x == 0, at_zero, near) * d)

    return [[off(x, d, sign) for x, d in zip(point.x, direction, strict=True)] for sign in (1.0, -1.0)]


def slopes_nearby(
    prober: Prober, directions: Sequence[Direction], outputs: Sequence[int], further: Sequence[Direction] = ()
) -> dict[int, Pieces]:
    """The slopes of some outputs from the tapes at points nearby, along `further` directions as well."""
    point, here = prober.point, prober.point.outputs.vector
    for at_zero in AT_ZERO:
        change = point.vector(points_beside(point, directions[0], at_zero, NEAR)[0]) - here
        if bool((change[list(outputs)] != 0).all()):
            break
    points = [x for direction in (*directions, *further) for x in points_beside(point, direction, at_zero, NEAR)]
    tapes = [point.recorded(point.at(x)) for x in points]
    values = [flat_real([tape.outputs[k] for k in point.outputs.active]) for tape in tapes if tape is not None]
    line = point.line(directions[0])
    noise = point.noise(line, NEAR_STEP, prober.random)
    around = line.samples[NEAR_STEP][0].size / NEAR  # beside it slopes at elements that are 0 are small
    pairs = [(x, d) for x, d in zip(point.x, directions[0], strict=True) if d is not None]
    reach = NEAR if any(bool((x[d != 0] != 0).any()) for x, d in pairs) else at_zero
    found = {}
    for output in outputs:
        cotangents = point.outputs.split(point.outputs.unit(output))
        rows = [
            [x * np.nan for x in point.x] if tape is None else point.of_moved(tape.gradient(cotangents))
            for tape in tapes
        ]
        slopes = np.array([[along(row, direction) for row in rows] for direction in directions])
        slopes = np.where(np.isfinite(slopes), slopes, np.nan)
        if not np.isnan(slopes).all():
            largest = float(np.nanmax(abs(slopes)))
            changes = [abs(float(v[output] - here[output])) for v in values]
            # a change that is so many times what the slopes explain is a jump
            jumps = any(change > CLEAR * (reach * largest + float(noise[output])) for change in changes)
            largest = largest if jumps else max(largest, float(around[output]))
            found[output] = Pieces(slopes, CLOSE * largest, jumps, rows)
    return found


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
    low, high = map(float, between)
    moves = {k: d for k, d in enumerate(direction) if d is not None and d.size}
    parts = {k: abs(gradients[k] * d) for k, d in moves.items()}
    if not any(bool((part > 0).any()) for part in parts.values()):  # nothing is given: then to what moves most
        parts = {k: abs(d) for k, d in moves.items()}
    number = max(parts, key=lambda k: float(parts[k].max()))
    index = int(parts[number].argmax())
    step = float(moves[number].reshape(-1)[index].real)
    own = float(gradients[number].reshape(-1)[index].real)
    value = own + ((low if claim < low else high) - claim) / step
    return Entry(number, index, point.outputs.element(output), own, value, abs(high - low) / abs(step) / 2)


def name_kink(places: dict[int, str], point: Point, directions: Sequence[Direction], pieces: Pieces) -> None:
    """Put the input element that has most of a kink, and the derivatives on both its sides, among the `places`, by its
    number; of elements that are there already the next one, if the kink is of several."""
    jump = ", with a jump" if pieces.jumps else ""
    rows = np.stack([np.asarray(flat(row).real.tolist()) for row in pieces.rows[: 2 * len(directions)]])
    moves = [flat([x * 0 if d is None else d for x, d in zip(point.x, one, strict=True)]) for one in directions]
    steps = np.stack([sign * np.asarray(move.real.tolist()) for move in moves for sign in (1, -1)])
    apart = np.where((steps != 0).any(axis=0), np.ptp(rows, axis=0), -1.0)
    apart[list(places)] = -1.0
    index = int(apart.argmax())
    if places and not apart[index] > pieces.tolerance:
        return
    sides = (rows[steps[:, index] * sign > 0, index] for sign in (-1, 1))
    known = (side[np.isfinite(side)] for side in sides)
    left, right = (float(np.median(side)) + 0.0 if side.size else np.nan for side in known)  # no −0
    number, own = array_and_element(point.x, index)
    element = point.place(Entry(number, own, 0, 0.0, 0.0, 0.0))
    places[index] = f"{element} (left {left:.6g}, right {right:.6g}{jump})"


# --------------------------------------------------------------------------- slopes without bound, as of √x at 0
def where_infinite(prober: Prober) -> Found:
    """The elements at which the gradient is not finite, which the point holds from now on: KINK if the slope of the
    function grows without bound on a side there as it says."""
    point, claim = prober.point, prober.claimed()
    prober.claims.append(claim)
    if all(bool(np.isfinite(g).all()) for g in claim[1]):
        return Found(Status.PASS)
    cotangent = abs(claim[0])  # of one sign: what is said of the slopes then holds for the outputs
    gradients = point.vjp(SMALL * cotangent)
    elements = [~np.isfinite(g) for g in gradients]
    places = [(k, int(i)) for k, mask in enumerate(elements) for i in np.flatnonzero(mask).tolist()]
    if not places:
        return Found(Status.PASS)
    drawn = sorted(prober.random.permutation(len(places))[:MOST_LOOKED_AT].tolist())
    right, wrong = list[str](), list[Entry]()
    for number, index in [places[k] for k in drawn]:
        value = complex(gradients[number].reshape(-1)[index]).real
        sides = slopes_of_sides(point, number, index, cotangent)
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
        diagnosis = (Diagnosis.of("GC124", text),)
        return Found(Status.FAIL, wrong=wrong, exhaustive=len(drawn) == len(places), diagnosis=diagnosis)
    point.held = elements
    text = f"the slope grows without bound at {listed(right, len(places))}, as backward says"
    return Found(Status.KINK, text)


def slopes_of_sides(point: Point, number: int, index: int, cotangent: Array) -> dict[str, tuple[float, float]]:
    """The slopes of the weighted outputs on both sides along one element: ±inf where they grow without bound, else
    those at the smallest step, and how far they are from those at the next."""
    size = float(point.scales[number].reshape(-1)[index])
    line = point.line(point.along_element(number, index, size), cotangent)
    line.extend(SMALL_STEPS)
    found = {}
    for name, side, sign in (("left", 1, -1.0), ("right", 0, 1.0)):
        values = np.array([sign * float(line.samples[k][side].change[0]) / (size * RATIO**k) for k in SMALL_STEPS])
        growth = values[:-1] - values[1:]
        unbounded = bool((growth[:-1] / growth[1:] >= GROWS).all())
        slope = float(np.copysign(np.inf, growth[0])) if unbounded else float(values[0]) + 0.0  # no −0
        found[name] = slope, float(abs(growth[0]))
    return found


# --------------------------------------------------------------------------- where an operation has none
class Kink(NamedTuple):
    """An operation that is at a kink, a tie or a jump for some of its elements."""

    name: str
    """Of the operation."""
    inputs: list[Array]
    """Per input of the call, which of its elements those depend on."""


class Arguments(NamedTuple):
    """What an operation read: arrays and numbers by position, units of rounding of each, other arguments by name."""

    values: Sequence[Any]
    units: Sequence[Any]
    named: dict[str, Any]

    def near(self, *places: Any) -> list[Array]:
        """Which elements of the first argument lie at one of some places, which are exact."""
        return [sum((abs(self.values[0] - p) <= FEW * self.units[0] for p in places), self.values[0] != self.values[0])]

    def axes(self) -> tuple[int, ...] | None:
        """The axes of a reduction; None for all."""
        return axes_of(self.named.get("axis"))


KinkRule = Callable[[Arguments], Sequence[Any]]
"""Gives, per argument, which of its elements are at a kink; None for none of them."""


def where_equal(a: Arguments) -> Sequence[Any]:
    """Two arguments that are equal."""
    equal = abs(a.values[0] - a.values[1]) <= FEW * (a.units[0] + a.units[1])
    return [equal, equal]


def where_multiples(a: Arguments) -> Sequence[Any]:
    """A first argument that is a multiple of the second, where that is known."""
    x, y = a.values[:2]
    return [abs(x - np.round(x / y) * y) <= FEW * (a.units[0] + a.units[1])] * 2 if y is not None else []


def tied(a: Arguments, extreme: str) -> Sequence[Any]:
    """Several elements that are the extreme, "max" or "min"."""
    x, axes = a.values[0], a.axes()
    near = abs(x - getattr(x, extreme)(axis=axes, keepdims=True)) <= FEW * a.units[0]
    return [near & (near.sum(axis=axes, keepdims=True) > 1)]


def tied_neighbours(a: Arguments) -> Sequence[Any]:
    """Elements that are equal to the next one in order along the axis."""
    x, axis = np.atleast_1d(a.values[0]), a.named.get("axis", -1)
    order, places = np.argsort(x, axis), np.arange(x.shape[axis])
    gaps = np.diff(np.take_along_axis(x, order, axis), axis=axis, prepend=-np.inf, append=np.inf)
    close = gaps <= FEW * float(np.max(a.units[0], initial=0))
    either = close.take(places, axis) | close.take(places + 1, axis)
    return [np.take_along_axis(either, np.argsort(order, axis), axis).reshape(np.shape(a.values[0]))]


def among(a: Arguments) -> Sequence[Any]:
    """Values that are equal to one of a sorted sequence."""
    sequence, values = a.values[:2]
    equal = abs(values[..., None] - sequence) <= FEW * float(np.max(a.units[1], initial=0))
    return (
        [equal.reshape(-1, sequence.size).any(0).reshape(sequence.shape), equal.any(-1)] if sequence.ndim == 1 else []
    )


KINKED: dict[str, KinkRule] = {
    **dict.fromkeys(("relu", "leaky_relu", "elu", "abs", "sign", "sqrt"), lambda a: a.near(0)),
    **dict.fromkeys(("bool", "nonzero", "count_nonzero", "any", "all"), lambda a: a.near(0)),
    **dict.fromkeys(("floor", "ceil", "trunc", "cast to integers"), lambda a: a.near(np.round(a.values[0]))),
    "round": lambda a: a.near(np.floor(a.values[0]) + 0.5),
    **dict.fromkeys(("clip", "hardtanh"), lambda a: a.near(*(a.named[k] for k in a.named if k in ("min", "max")))),
    "softplus": lambda a: a.near(a.named["threshold"] / a.named["beta"]),
    "norm": lambda a: [abs(a.values[0]).max(axis=a.axes(), keepdims=True, initial=0) + 0 * abs(a.values[0]) == 0],
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), where_equal),
    **dict.fromkeys(("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal"), where_equal),
    **dict.fromkeys(("isclose", "allclose", "equal_all"), where_equal),
    **dict.fromkeys(("remainder", "floor_divide"), where_multiples),
    **dict.fromkeys(("max", "argmax"), lambda a: tied(a, "max")),
    **dict.fromkeys(("min", "argmin"), lambda a: tied(a, "min")),
    "argsort": tied_neighbours,
    "searchsorted": among,
}
"""The operations that can have a kink or a jump, and where they have one."""


def kinks(graph: Tape) -> list[Kink]:
    """The operations and decisions at a kink, a tie or a jump, in order of execution, those left out whose output
    cancels."""
    recording, random, found = graph.recording, np.random.default_rng(0), []
    steps = [step for step in recording.steps if step.name in KINKED]
    if steps:
        dead = dead_steps(graph, [random.standard_normal(out.shape) for out in recording.outputs])
        steps = [step for step in steps if step.first not in dead]
    keyed: list[tuple[int, int, Any]] = [(step.first, 1, step) for step in steps]
    keyed += [(decision.at, 0, decision) for decision in recording.decisions if decision.name in KINKED]
    for _, _, step in sorted(keyed, key=lambda entry: entry[:2]):
        starts: dict[int, Array] = {}
        for edge, mask in zip(step.edges, elements_at_kinks(graph, step), strict=False):
            if edge >= 0 and mask is not None and bool(mask.any()):
                shape = recording.arrays[edge].shape
                mask = mask.any(axis=tuple(range(mask.ndim - len(shape))))
                mask = mask.any(axis=tuple(k for k, n in enumerate(shape) if n == 1), keepdims=True)
                starts[edge] = random.uniform(1, 2, shape) * mask
        if starts:
            found.append(Kink(step.name, [g != 0 for g in graph.pulled(starts)]))
    return found


def elements_at_kinks(graph: Tape, step: Any) -> Sequence[Any]:
    """Per argument of an operation or decision, which of its elements are at a kink."""
    arrays, units = graph.recording.arrays, []
    if isinstance(step, Step):
        named = {name: value for name, value in step.operands().items() if value is not None}
        values: list[Any] = [arrays[e] if e >= 0 else named.get("xy"[k]) for k, e in enumerate(step.edges[:2])]
    else:
        values, named = list(step.inputs), dict(zip(step.arguments, step.inputs, strict=False))
    values = [wide(v) if getattr(getattr(v, "dtype", None), "name", "") in EPSILON else v for v in values]
    for edge, value in zip(step.edges, values, strict=False):
        maker = graph.maker(edge) if edge >= 0 else None
        cancelled = maker.edges if maker is not None and maker.name in ("add", "subtract") else ()
        size = 0.0 if edge < 0 else abs(value) + sum(abs(wide(arrays[e])) for e in cancelled if e >= 0)
        units.append(size * EPSILON.get(arrays[edge].dtype.name, 0.0))
    with np.errstate(all="ignore"):
        return KINKED[step.name](Arguments(values, units, named))


def kinked_by_tape(point: Point) -> list[Array] | None:
    """Per moved input the elements that feed an operation at its kink, as the tape tells; None if none do."""
    tape = point.tape
    if tape is None:
        return None
    masks = [~np.isfinite(g) for g in point.by_tape(point.outputs.vector * 0 + 1)]  # a slope without bound
    for kink in kinks(tape):
        masks = [mask | kink.inputs[k] for mask, k in zip(masks, point.moved, strict=True)]
    masks = [m & ~h for m, h in zip(masks, point.held, strict=True)] if point.held else masks
    return masks if any(bool(m.any()) for m in masks) else None
