"""The elements at which operations (max, relu, sort …) have kinks, and the gradients that are right
there.

The table KINKED lists the operations. A gradient is valid at a kink (an element of Clarke's
subdifferential, 1983) only if, along every direction, it is between the derivatives at arbitrarily
close points; the gradients at these points are the tape's, which are exact. Along a direction d, x
± δ·d are such points; if the function is convex or concave, their slopes bound the whole range
(Rockafellar 1970).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.backends.recording import Step
from gradcheck.checking.differences import RATIO, USUAL, move_along
from gradcheck.checking.point import (
    SUM_OF_OUTPUTS,
    Entry,
    Masks,
    Point,
    array_and_element,
    even_weights,
    flat_real,
)
from gradcheck.checking.precision import (
    CLEAR,
    EPSILON,
    FEW,
    SMALLEST,
    finite_sizes,
    flat,
    unflatten,
    wide,
)
from gradcheck.checking.probe import (
    POWER,
    SMALL,
    CheckOutcome,
    Prober,
    Ruling,
    add_kink,
    inconclusive_outcome,
    none_if_all_false,
    tape_diff,
)
from gradcheck.checking.reasons import VerdictReason
from gradcheck.checking.tape import Tape, dead_steps, sum_to_shape
from gradcheck.result import Diagnosis, Status

KINK_DIRECTIONS = 8
"""The number of directions along which the share of a group must be between the slopes. A gradient
that is outside for half of the directions (two tied maxima that both get all) passes them all once
in 2^8. One further direction has a constant sign. Along it the shares of tied elements add up, so
that a gradient that gives everything to each of them is always outside.
"""
USED_DIRECTIONS = KINK_DIRECTIONS + 1
FIRST_DIRECTIONS = 3
"""The number of directions along which points are taken first. One point on each side of a kink
suffices, and so do the two orders of two tied elements; a gradient within the range of few points
is also within the range of more.
"""
MOST_AIMED = 6
"""The number of rounds in which points are taken along single entries, one per group at a time."""
AIM = 2.0**-12
"""How far the other elements move in these rounds, so that none stays at its kink. The square of
this distance is within `CLOSE`.
"""
MOST_TIED = 20
"""The most tied elements for which an element without observed variation counts as constant: of 20
that alternate, one is missed by 250 points once in 300,000.
"""
SAME_LABEL = 1e-9
"""How far labels of rows, which are from 1 to 2, may differ by rounding."""
FURTHER = 120
"""The number of further directions, each with a point ahead and behind, if a gradient is outside of
the slopes of a function that is neither convex nor concave. If 30 pieces meet (30 equal values,
sorted), one is missed once in 3,000.
"""
MOST_LOOKED_AT = 16
"""The most kinked outputs, or elements with an infinite gradient, that are checked one by one,
drawn at random.
"""
MOST_NAMED = 3
"""The most elements that a message names."""
NEAR_STEP = -15
NEAR = RATIO**NEAR_STEP
"""The distance of the points, relative to the inputs' scale: rounding (2^-52) is too small to cross
a kink, and curvature on the inputs' scale changes a slope only by this share (2^-30).
"""
WIDE_STEP = -8
WIDER = RATIO**WIDE_STEP
"""The distance of wider points, where rounding leaves no digit of the slopes at `NEAR`: terms that
cancel there like 1 / δ² (the derivative of (exp(x) − 1) / x at 0) leave an error of 2^-20 at
δ = 2^-16.
"""
AT_ZERO = (2.0**-300, 2.0**-120, 2.0**-60)
"""Distances for elements that are exactly 0, which have no scale: the first one that changes the
outputs and breaks ties is used, otherwise `NEAR`.
"""
CLOSE = 1e-5
"""The largest difference between slopes of one smooth piece, relative to the largest slope: at
`NEAR`, curvature up to 10,000 times the inputs' scale.
"""
BESIDE = 2.0**-7
"""The distance, relative to the inputs' scale, at which a gradient is checked again, and by which
elements are moved to find the outputs that depend on them.
"""
SMALL_STEPS = USUAL[: len(USUAL) // 2 + 1]
"""The smaller half of the steps: they show the shape of a function at an element that is 0,
whatever the size of other elements.
"""
GROWS = 0.9
"""The slope grows without bound if its growth per step is at least this times the growth in the
step before. With steps of ratio 4 the growth changes by 4^(1 − p) near a power p: more than 1 for p
< 1, and 1 for a logarithm, but less if the slope has a limit (1/2 for x^1.5, 1/4 for a smooth
function). Powers from 1 to 1.07 count as logarithms.
"""


def axes_of(axis: Any) -> tuple[int, ...] | None:
    """A reduction's axes, in any form that Paddle accepts; None for all."""
    return None if axis is None or axis == [] else tuple(np.atleast_1d(axis).tolist())


def dependent_outputs(point: Point, random: np.random.Generator, masks: Masks) -> Array:
    """A mask of the flat real outputs that depend on the elements in `masks`."""
    depends = point.outputs.vector != point.outputs.vector
    for _ in range(2):
        line = point.line(point.direction(random, masks))
        depends |= (line.at(BESIDE).change != 0) | (line.at(-BESIDE).change != 0)
    return depends


def list_names(names: Sequence[str], count: int) -> str:
    """The first names of a list, followed by the number of the others."""
    return ", ".join(names[:MOST_NAMED]) + (
        f" and {count - MOST_NAMED} more" if count > MOST_NAMED else ""
    )


def check_at_kinks(prober: Prober, outcome: CheckOutcome, masks: Masks) -> CheckOutcome:
    """Extend an outcome by the kinks of the elements in `masks`. The gradient must lie
    between the slopes at nearby points, entry by entry, and along directions over the elements that
    one row of an operation ties.
    """
    point, random = prober.point, prober.random
    count = point.outputs.vector.size
    cotangent = even_weights(count, random) if count > 1 else point.outputs.unit(0)
    nearby = Nearby(prober, masks, cotangent)
    nearby.move(FIRST_DIRECTIONS)
    claim = flat_real(point.vjp(cotangent))
    slopes = nearby.slopes(cotangent)
    if slopes.outside(claim).any or not slopes.varies[nearby.free].all():
        nearby.move(USED_DIRECTIONS)
        slopes = nearby.slopes(cotangent)
    if slopes.outside(claim).any:
        wrong = outside_slopes(nearby, cotangent, claim)
        if wrong:
            text = (
                f"the gradient is not between the one-sided derivatives at {point.place(wrong[0])}"
            )
            return CheckOutcome(
                Status.FAIL, wrong=wrong, diagnosis=(Diagnosis.of("GC120", text),), exhaustive=False
            )
        slopes = nearby.slopes(cotangent)
    jumping = nearby.jumping(slopes.rows)
    # Even if all points are on one piece, an operation's own rule may be wrong (that of sign at 0).
    varies = nearby.free & (slopes.varies | slopes.excludes(flat_real(point.by_tape(cotangent))))
    smooth_ones = nearby.free & ~varies
    if smooth_ones.any():
        tied = nearby.free & np.isin(nearby.groups, nearby.groups[varies])
        kinked = jumping | (
            dependent_outputs(point, random, nearby.as_masks(tied)) if tied.any() else False
        )
        if not kinked.all():
            smooth = prober.probe_until_conclusive(masks, without=kinked)
            if smooth.decision is Ruling.FAIL:
                return CheckOutcome(Status.FAIL, probe=smooth)
    kinked_entries = np.flatnonzero(nearby.free & slopes.varies)
    unknown = bool((nearby.free & slopes.missing).any())
    if not kinked_entries.size and not jumping.any():
        return nearby.no_slopes() if unknown else outcome
    summed = nearby.slopes(0 * cotangent + 1)
    every_entry = not (slopes.excludes(claim) & nearby.free).any()
    reason = VerdictReason.KINK if every_entry else VerdictReason.KINK_ALONG_DIRECTIONS
    kinked_places = named_kinks(nearby, summed, kinked_entries)
    jumping_places = named_jumps(nearby, summed) if jumping.any() else ""
    if (beside := wrong_beside(prober, masks)) is not None:
        places = kinked_places or jumping_places
        text = (
            f"the gradient is wrong near {places}: the wrong entries are those at a point close by"
        )
        return replace(beside, diagnosis=(Diagnosis.of("GC120", text),))
    if unknown:
        return nearby.no_slopes()
    reasons = [reason.sentence(places=kinked_places)] if kinked_places else []
    reasons += [VerdictReason.JUMP.sentence(places=jumping_places)] if jumping_places else []
    return add_kink(outcome, "; ".join(reasons))


def wrong_beside(prober: Prober, masks: Masks) -> CheckOutcome | None:
    """A FAIL if backward is wrong at a nearby point on either side."""
    direction = prober.point.direction(prober.random, masks)
    for sign in (1.0, -1.0):
        try:
            beside = prober.point.beside(move_along(prober.point.x, direction, sign * BESIDE))
            prober_beside = Prober(beside, prober.random, prober.rtol)
            if beside.witnessed:  # differences are needed only if the tape disagrees
                claim = prober_beside.draw_claim()
                prober_beside.claims.append(claim)
                if tape_diff(beside, *claim, None, prober.rtol).wrong is None:
                    continue
            probe = prober_beside.probe_until_conclusive()
        except Exception:  # the layer need not work at other points
            return None
        if probe.decision is Ruling.FAIL:
            return CheckOutcome(Status.FAIL, probe=probe, prober=prober_beside)
    return None


# -------------------------------------------- slopes at nearby points
def per_number(point: Point, arrays: Sequence[Array]) -> Array:
    """Expand values per element of the moved inputs to one vector with a value for every real
    number: a complex element has two.
    """
    vector = flat_real(arrays)
    return vector.repeat(point.size * point.numbers // vector.size)


@dataclass
class Outside:
    """The parts of a gradient that are outside of the slopes: single numbers, and shares of a group
    along a direction.
    """

    entries: Array
    shares: Array
    """For each direction, the shares of groups that are outside."""

    @property
    def any(self) -> bool:
        """Whether anything is."""
        return bool(self.entries.any()) or bool(self.shares.any())


@dataclass
class Slopes:
    """The gradients at nearby points for one cotangent, and the range that they allow for a
    gradient.

    Numbers of one `group` are tied by a row of a kinked operation. Along a direction over a group,
    a convex or concave function has its smallest and largest slopes behind and ahead of the point;
    for sums of such functions, this holds group by group.
    """

    rows: Array
    """A slope per point and number of the inputs; NaN where unknown. Points 2k and 2k + 1 lie ahead
    and behind along move k.
    """
    moves: Array
    groups: Array
    """The group of each number; −1 for numbers that do not move."""
    tolerance: Array
    """The change by curvature and rounding, per number."""
    further: bool = False
    """Whether all points were taken. If so, unobserved slopes may exceed the range by the distance
    between the observed pieces.
    """

    @cached_property
    def count(self) -> int:
        """The number of groups."""
        return int(self.groups.max(initial=-1)) + 1

    @cached_property
    def missing(self) -> Array:
        """The numbers whose slopes are unknown."""
        return np.isnan(self.rows).all(axis=0)

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """The smallest and the largest slope, per number."""
        return extremes_of(self.rows)

    @cached_property
    def varies(self) -> Array:
        """The numbers at which pieces with different slopes meet."""
        low, high = self.ends
        return high - low > 2 * self.tolerance

    def sum_by_group(self, values: Array) -> Array:
        """The sums of numbers by group."""
        free = self.groups >= 0
        return np.bincount(self.groups[free], values[free], minlength=self.count)

    def share_by_group(self, gradient: Array) -> Array:
        """A gradient's slopes along the first directions, each restricted to each group."""
        return np.array(
            [self.sum_by_group(gradient * move) for move in self.moves[:USED_DIRECTIONS]]
        )

    @cached_property
    def shared(self) -> Array:
        """The slopes of `share_by_group`, indexed by direction, point and group."""
        return np.stack([*map(self.share_by_group, self.rows)], axis=1)

    @cached_property
    def share_tolerance(self) -> Array:
        """The tolerance of slopes along these directions."""
        return np.array(
            [self.sum_by_group(self.tolerance * abs(move)) for move in self.moves[:USED_DIRECTIONS]]
        )

    @cached_property
    def complete(self) -> Array:
        """Per group, whether the slopes ahead and behind bound the whole range."""
        k = np.arange(min(len(self.shared), len(self.rows) // 2))
        ahead, behind = self.shared[k, 2 * k], self.shared[k, 2 * k + 1]
        low, high = extremes_of(self.shared[k], axis=1)
        room = self.share_tolerance[k]
        complete = np.zeros(self.count, bool)
        for first, last in ((ahead, behind), (behind, ahead)):
            complete |= ((first <= low + room) & (last >= high - room)).all(axis=0)
        return complete

    def excludes(self, gradient: Array) -> Array:
        """A mask of the numbers of a gradient that are outside of their slopes."""
        low, high = self.ends
        spare = spare_of(self.rows, self.tolerance, 0) if self.further else 0.0
        room = self.tolerance + spare
        return ~((low - room <= gradient) & (gradient <= high + room)) & ~self.missing

    def outside(self, gradient: Array) -> Outside:
        """Return the entries of a gradient outside of the slopes."""
        low, high = extremes_of(self.shared, axis=1)
        room = self.share_tolerance + (
            spare_of(self.shared, self.share_tolerance, 1) if self.further else 0.0
        )
        shares = self.share_by_group(gradient)
        outside = ~((low - room <= shares) & (shares <= high + room)) & np.isfinite(low + high)
        return Outside(self.excludes(gradient) & (self.groups >= 0), outside)


def extremes_of(values: Array, axis: int = 0) -> tuple[Array, Array]:
    """The smallest and the largest value along an axis; inf and −inf if all are NaN."""
    least = np.fmin.reduce(values, axis, float, initial=np.inf)
    return least, np.fmax.reduce(values, axis, float, initial=-np.inf)


def spare_of(values: Array, tolerance: Array, axis: int) -> Array:
    """How far unobserved slopes may exceed the range: by the distance between the observed pieces,
    if there are many.
    """
    distances = np.diff(np.sort(values, axis=axis), axis=axis)
    gaps = (distances > np.expand_dims(tolerance, axis)).sum(axis=axis)
    low, high = extremes_of(values, axis)
    return np.where((gaps > 1) & (low <= high), (high - low) / np.maximum(gaps, 1), 0.0)


class Nearby:
    """Points next to the inputs, each along one direction, and the tapes there.

    `cotangent` is that of the slopes whose rounding is measured.
    """

    def __init__(self, prober: Prober, masks: Masks, cotangent: Array) -> None:
        self.prober, self.point = prober, prober.point
        self.parts = self.point.outputs.split(cotangent)
        self.free = per_number(self.point, masks) != 0
        """A mask of the numbers that move, over the flat real numbers of all moved inputs."""
        self.groups, self.mixed, signs = groups_of(self.point, self.free)
        self.scales = per_number(self.point, self.point.scales)
        drawn = [self.draw_move() for _ in range(KINK_DIRECTIONS)]
        # along the first direction the shares of tied elements add up, whatever signs come between
        self.directions = [abs(drawn[0]) * signs, *drawn]
        self.moves: list[Array]
        self.tapes: list[Tape | None]
        self.values: list[Array]
        self.outputs = self.point.outputs.vector
        self.choose_distance(float(abs(cotangent * self.outputs).sum()))
        line = self.point.line(self.as_arrays(self.directions[0]))
        self.noise = self.point.noise(line, self.step, prober.random)
        self.around = line.samples[self.step][0].size / self.near
        x = flat_real(self.point.x)
        self.reach = self.near if (x[self.free] != 0).any() else self.at_zero

    def draw_move(self) -> Array:
        """A random direction over the numbers that move."""
        masks = self.as_masks(self.free)
        return flat_real(self.point.direction(self.prober.random, masks))

    def as_masks(self, numbers: Array) -> list[Array]:
        """Convert a mask of numbers to masks of elements."""
        flags = numbers.reshape(-1, self.point.numbers).any(axis=1)
        return unflatten(flags, self.point.x)

    def as_arrays(self, move: Array) -> list[Array]:
        """Convert a direction over the numbers to one array per input."""
        vector = move.view("complex128") if self.point.numbers == 2 else move
        pairs = zip(unflatten(vector, self.point.x), self.point.x, strict=True)
        return [values if x.dtype.kind == "c" else values.real for values, x in pairs]

    def beside(self, direction: Array) -> list[list[Array]]:
        """The points ahead and behind along a direction."""
        return points_beside(self.point, self.as_arrays(direction), self.at_zero, self.near)

    def choose_distance(self, of_outputs: float) -> None:
        """Choose the first distance at which slopes have digits; at the last, some may have none.

        Next to a removable singularity (sin(x) / x at 0) terms that grow without bound cancel.

        Args:
            of_outputs: the size of the weighted sum of outputs that the slopes belong to.
        """
        tiny = (size for size in AT_ZERO if self.responds(size) and self.parts_ties(size))
        steps = chain(zip(tiny, repeat(NEAR_STEP)), [(NEAR, NEAR_STEP), (WIDER, WIDE_STEP)])
        for self.at_zero, self.step in steps:
            self.near = RATIO**self.step
            self.moves, self.tapes, self.values = [], [], []
            self.move(1)
            slopes, self.rounding = self.measured_slopes()
            natural = max(of_outputs, float((slopes * self.scales).max(initial=0.0)))
            self.lost = self.rounding * self.scales > POWER * natural + SMALLEST["float64"]
            if not self.lost.any():
                break

    def measured_slopes(self) -> tuple[Array, Array]:
        """The sizes of the slopes of numbers that move, at the points so far, and the largest error
        that rounding may cause in them.
        """
        sizes, bounds = 0.0 * self.scales, 0.0 * self.scales
        for tape in self.tapes:
            if tape is not None:
                slopes = self.point.moved_gradients(tape.gradient(self.parts))
                random = np.random.default_rng(0)
                measured = self.point.measured_tape(tape, self.parts, slopes, random)
                measured.draw()
                known = per_number(self.point, [measured.bounds(absolute=True)])
                sizes = np.maximum(sizes, finite_sizes(flat_real(slopes)))
                bounds = np.maximum(bounds, finite_sizes(known))
        return sizes * self.free, bounds * self.free

    def responds(self, at_zero: float) -> bool:
        """Whether so small a move of the elements that are 0 changes as many outputs as a move by
        `NEAR` does.
        """
        direction = self.as_arrays(self.directions[0])
        near, far = (
            self.point.vector(points_beside(self.point, direction, size, NEAR)[0])
            for size in (at_zero, NEAR)
        )
        return bool((near != self.outputs)[far != self.outputs].all())

    def parts_ties(self, at_zero: float) -> bool:
        """Whether so small a move of only the elements that are 0 takes as many of them off their
        kinks as a move by `NEAR` does: a constant that is added to them (1 + 0) may absorb a
        smaller move.
        """
        remaining = self.count_kinked(at_zero)
        return remaining == 0 or remaining == self.count_kinked(NEAR)

    def count_kinked(self, at_zero: float) -> int:
        """The number of elements that feed an operation at its kink once those that are 0 have
        moved.
        """
        x = points_beside(self.point, self.as_arrays(self.directions[0]), at_zero, 0.0)[0]
        tape = self.point.record(self.point.all_inputs(x))
        kinked = np.zeros(self.free.shape, bool)
        for kink in kinks(tape) if tape else ():
            kinked |= per_number(self.point, self.point.select_moved(kink.inputs)) != 0
        return int((kinked & self.free).sum())

    def move(self, count: int) -> None:
        """Add points ahead and behind along the first `count` directions."""
        for direction in self.directions[len(self.moves) : count]:
            self.take(direction)

    def take(self, direction: Array) -> None:
        """Record tapes ahead and behind along a direction."""
        self.moves.append(direction)
        for x in self.beside(direction):
            tape = self.point.record(self.point.all_inputs(x))
            self.tapes.append(tape)
            if tape is not None:
                self.values.append(flat_real(self.point.outputs.select(tape.outputs)))

    def slopes(self, cotangent: Array, further: bool = False) -> Slopes:
        """The gradients at the points for a cotangent."""
        parts = self.point.outputs.split(cotangent)
        unknown = self.free * np.nan
        rows = np.array(
            [
                unknown if t is None else flat_real(self.point.moved_gradients(t.gradient(parts)))
                for t in self.tapes
            ]
        )
        rows = np.where(np.isfinite(rows) & ~self.lost, rows, np.nan)
        sizes = finite_sizes(rows).max(axis=0) * self.scales * self.free
        of_group = np.zeros(int(self.groups.max(initial=-1)) + 1)
        np.maximum.at(of_group, self.groups[self.free], sizes[self.free])
        largest = float(sizes.max(initial=0.0))
        # next to an element that is 0 slopes are small; a jump is not a slope
        around = float((abs(cotangent) * np.where(self.jumping(rows), 0.0, self.around)).sum())
        room = np.where(self.free, CLOSE * of_group[self.groups], 0.0) + FEW * self.near * (
            largest + around
        )
        # next to 0, the curvature is on the scale of the outputs
        of_outputs = float(abs(cotangent * self.outputs).sum())
        room += np.where(flat_real(self.point.x) == 0, FEW * self.at_zero * of_outputs, 0.0)
        moves = np.array([*self.moves, *self.directions[len(self.moves) :]])
        return Slopes(rows, moves, self.groups, room / self.scales + self.rounding, further)

    def no_slopes(self) -> CheckOutcome:
        """The undecided outcome if no slope is known: outside of the domain, or within it."""
        finite = len(self.values) == len(self.tapes) and np.isfinite(self.values).all()
        return inconclusive_outcome(
            VerdictReason.NO_SLOPE if finite else VerdictReason.EDGE, raised=self.point.raised
        )

    def jumping(self, rows: Array) -> Array:
        """A mask of the outputs that change by many times more than the slopes explain."""
        changes = finite_sizes(rows) @ abs(np.array(self.moves)).T
        explained = self.reach * float(changes.max(initial=0.0)) + self.noise
        jumps = np.zeros(self.outputs.shape, bool)
        for values in self.values:
            jumps |= abs(values - self.outputs) > CLEAR * explained
        return jumps


def outside_slopes(nearby: Nearby, cotangent: Array, claim: Array) -> list[Entry]:
    """The entries of a gradient that are outside of the slopes, after further points were taken for
    those that seem to be; none if the points did not reach the pieces.
    """
    point = nearby.point
    measured = point.measured_claim(point.outputs.split(cotangent), nearby.prober.random)
    measured.draw()
    nearby.rounding = nearby.rounding + per_number(point, [measured.bounds(absolute=True)])
    sizes = np.bincount(nearby.groups[nearby.free])
    size = np.where(nearby.free, sizes[nearby.groups], 0)
    aimed = size == 1
    slopes = nearby.slopes(cotangent)
    for _ in range(MOST_AIMED):
        entries = slopes.outside(claim).entries & ~aimed
        if not entries.any():
            break
        aim_at(nearby, slopes, claim, entries, aimed)
        slopes = nearby.slopes(cotangent)
    outside = slopes.outside(claim)
    complete = np.where(nearby.free, slopes.complete[nearby.groups], False)
    sure = Outside(outside.entries & complete & aimed, outside.shares & slopes.complete)
    if sure.any:
        return entries_outside(nearby, claim, slopes, sure)
    unsure = outside.entries & ~complete & ~nearby.mixed
    if not Outside(unsure, outside.shares & ~slopes.complete).any:
        return []
    # Pieces that no point reached may be the reason: take more points, and check the outputs one by
    # one.
    while len(nearby.moves) < len(nearby.directions) + FURTHER:
        nearby.take(nearby.draw_move())
    several = nearby.outputs.size > 1
    for output in candidates(nearby, outside) if several else [0]:
        unit = point.outputs.unit(output)
        gradient = flat_real(point.vjp(unit)) if several else claim
        slopes = nearby.slopes(unit, further=True)
        outside = slopes.outside(gradient)
        observed = slopes.varies | (size <= MOST_TIED)
        # with many pieces, few points show how a single number varies
        sure = Outside(
            outside.entries & (aimed | ~complete) & observed & ~nearby.mixed, outside.shares
        )
        if sure.any:
            return entries_outside(nearby, gradient, slopes, sure, output)
    return []


def aim_at(nearby: Nearby, slopes: Slopes, claim: Array, outside: Array, aimed: Array) -> None:
    """Take points along the entry of each group that is outside by most, and remember these
    entries.
    """
    low, high = slopes.ends
    excess = np.where(outside, np.maximum(claim - high, low - claim) * nearby.scales, -np.inf)
    order = np.argsort(-excess)
    _, first = np.unique(nearby.groups[order], return_index=True)
    chosen = order[first]
    chosen = chosen[outside[chosen]]
    move = AIM * nearby.draw_move()
    move[chosen] = nearby.scales[chosen]
    aimed[chosen] = True
    nearby.take(move)


def candidates(nearby: Nearby, outside: Outside) -> list[int]:
    """Outputs that depend on entries outside of the slopes; drawn at random if there are many."""
    groups = np.union1d(nearby.groups[outside.entries], np.flatnonzero(outside.shares.any(axis=0)))
    masks = nearby.as_masks(nearby.free & np.isin(nearby.groups, groups))
    random = nearby.prober.random
    which = np.flatnonzero(dependent_outputs(nearby.point, random, masks)).tolist()
    return sorted(random.permutation(which)[:MOST_LOOKED_AT].tolist())


def entries_outside(
    nearby: Nearby, claim: Array, slopes: Slopes, outside: Outside, output: int | None = None
) -> list[Entry]:
    """The entries outside of the slopes; the nearer end of the range is reported as their
    derivative. If several outputs were checked together, the output whose own gradient is outside
    is named.
    """
    point = nearby.point
    if output is None and nearby.outputs.size == 1:
        output = 0
    if output is None:
        for candidate in candidates(nearby, outside):
            unit = point.outputs.unit(candidate)
            gradient, alone = flat_real(point.vjp(unit)), nearby.slopes(unit)
            outside_alone = alone.outside(gradient)
            if outside_alone.any:
                return entries_outside(nearby, gradient, alone, outside_alone, candidate)
    low, high = slopes.ends
    values: Array = np.where(claim < low, low, high)
    picks = np.flatnonzero(outside.entries).tolist()
    if not picks:
        direction, group = np.argwhere(outside.shares)[0].tolist()
        move = slopes.moves[direction] * (nearby.groups == group)
        share, (low, high) = claim @ move, extremes_of(slopes.shared[direction, :, group])
        terms = abs(claim * move)
        k = int((terms if terms.any() else abs(move)).argmax())
        values[k] = claim[k] + ((low if share < low else high) - share) / move[k]
        picks = [k]
    name = SUM_OF_OUTPUTS if output is None else point.outputs.element(output)
    wrong = []
    for k in picks:
        number, index = array_and_element(point.x, k // point.numbers)
        numbers = (float(row[k]) for row in (claim, values, slopes.tolerance))
        wrong.append(Entry(number, index, name, *numbers))
    return wrong


def points_beside(
    point: Point, direction: Sequence[Array], at_zero: float, near: float
) -> list[list[Array]]:
    """The points ahead and behind along a direction."""
    pairs = zip(point.x, direction, strict=True)
    moves = [(x, np.where(x == 0, at_zero, near) * d) for x, d in pairs]
    return [[np.asarray(x + sign * move) for x, move in moves] for sign in (1.0, -1.0)]


# -------------------------------------------- which elements are tied
def groups_of(point: Point, free: Array) -> tuple[Array, Array, Array]:
    """For each number: its group, −1 if it does not move; whether it, or another number of its
    group, feeds several rows of one operation; and a sign such that the elements of a group's rows
    grow in the direction of these signs.

    Numbers that feed one row of an operation at its kink (the window of a maximum) belong together.
    Numbers that feed several rows are one group.
    """
    parent, signs = np.arange(free.size), np.ones(free.size)
    mixed = np.zeros(free.size, bool)
    keys = []
    assert point.tape is not None
    for kink in kinks(point.tape):
        weight = per_number(point, point.select_moved(kink.weights))
        labelled = per_number(point, point.select_moved(kink.labelled))
        with np.errstate(all="ignore"):
            ratio = np.where(weight != 0, labelled / weight, np.nan)
        place = np.clip(np.searchsorted(kink.labels, ratio), 1, max(kink.labels.size - 1, 1))
        near = [np.minimum(place - k, kink.labels.size - 1) for k in (0, 1)]
        distances = np.array([abs(kink.labels[k] - ratio) for k in near])
        label = np.where(distances[0] < distances[1], near[0], near[1])
        known = distances.min(axis=0) <= SAME_LABEL
        fed = (weight != 0) & free
        mixed |= fed & ~known
        keys.append(np.where(fed & known, label, -1))
        signs = np.where(fed, np.copysign(1.0, weight), signs)
    changed = True
    while changed:
        before = parent.copy()
        for key in keys:
            present = key >= 0
            least = np.full(int(key.max(initial=-1)) + 1, free.size)
            np.minimum.at(least, key[present], parent[present])
            parent[present] = np.minimum(parent[present], least[key[present]])
        changed = not np.array_equal(before, parent)
    # Both parts of a complex number are in one group.
    parent = parent.reshape(-1, point.numbers).min(axis=1).repeat(point.numbers)
    mixed |= np.isin(parent, parent[mixed])
    parent = np.where(mixed, free.size, parent)
    groups = np.full(free.size, -1)
    groups[free] = np.unique(parent[free], return_inverse=True)[1].reshape(-1)
    return groups, mixed, signs


# ----------------------------------------------- messages
def named_kinks(nearby: Nearby, slopes: Slopes, numbers: Array) -> str:
    """The first elements at which pieces meet, with their slopes, and the number of further
    ones.
    """
    elements, first = np.unique(numbers // nearby.point.numbers, return_index=True)
    names = []
    for number in numbers[first[:MOST_NAMED]].tolist():
        sides = sides_of(slopes_that_vary(nearby, slopes, number), nearby, number)
        names.append(f"{element_of(nearby, number)} ({sides})")
    return list_names(names, elements.size)


def slopes_that_vary(nearby: Nearby, summed: Slopes, number: int) -> Slopes:
    """The slopes of the sum of the outputs; if they cancel in the sum, the slopes of the first
    output that has a kink.
    """
    if not summed.varies[number]:
        outputs = nearby.point.outputs
        for output in range(min(outputs.vector.size, MOST_LOOKED_AT)):
            slopes = nearby.slopes(outputs.unit(output))
            if slopes.varies[number]:
                return slopes
    return summed


def element_of(nearby: Nearby, number: int) -> str:
    """The name in reports of the element that a number belongs to."""
    point = nearby.point
    k, index = array_and_element(point.x, number // point.numbers)
    return point.place(Entry(k, index, 0, 0.0, 0.0, 0.0))


def sides_of(slopes: Slopes, nearby: Nearby, number: int) -> str:
    """The slopes on both sides of an element if both are known, otherwise the smallest and the
    largest slope nearby.
    """
    steps = np.stack([sign * move[number] for move in nearby.moves for sign in (1, -1)])
    low, high = slopes.ends
    sides = [extremes_of(slopes.rows[steps * sign > 0, number]) for sign in (-1, 1)]
    room = 2 * float(slopes.tolerance[number])
    if all(side[1] - side[0] <= room for side in sides):
        left, right = (float(side[0]) + 0.0 for side in sides)  # no −0
        return f"left {left:.6g}, right {right:.6g}"
    return f"slopes from {float(low[number]) + 0.0:.6g} to {float(high[number]) + 0.0:.6g}"


def named_jumps(nearby: Nearby, slopes: Slopes) -> str:
    """Elements at which the function jumps when only they move."""
    point, places = nearby.point, dict[str, None]()
    order = np.argsort(slopes.varies[nearby.free], kind="stable")
    for number in np.flatnonzero(nearby.free)[order][:MOST_LOOKED_AT].tolist():
        move = np.zeros(nearby.free.size)
        move[number] = nearby.scales[number]
        for x in nearby.beside(move):
            change = abs(point.vector(x) - nearby.outputs)
            slope = float(np.nanmax(abs(slopes.rows), initial=0.0)) * float(nearby.scales[number])
            if (change > CLEAR * (nearby.reach * slope + nearby.noise)).any():
                places[element_of(nearby, number)] = None
        if len(places) == MOST_NAMED:
            break
    return ", ".join(places) or element_of(nearby, int(np.flatnonzero(nearby.free)[0]))


# -------------------------- unbounded slopes, such as that of √x at 0
def check_where_infinite(prober: Prober) -> CheckOutcome:
    """The outcome for the elements at which the gradient is infinite, which the point then keeps
    fixed: KINK if the slope of the function grows without bound on one side, as backward claims.
    """
    point, claim = prober.point, prober.draw_claim()
    prober.claims.append(claim)
    if all(np.isfinite(g).all() for g in claim[1]):
        return CheckOutcome(Status.PASS)
    cotangent = abs(claim[0])  # one sign, so that slopes of the sum show those of the outputs
    gradients = point.vjp(SMALL * cotangent)
    elements = [~np.isfinite(g) for g in gradients]
    positions = np.flatnonzero(flat(elements))
    if not positions.size:
        return CheckOutcome(Status.PASS)
    drawn = np.sort(prober.random.permutation(positions.size)[:MOST_LOOKED_AT])
    right, wrong = list[str](), list[Entry]()
    for position in positions[drawn].tolist():
        number, index = array_and_element(point.x, position)
        value = complex(flat(gradients)[position]).real
        sides = slopes_of_sides(point, number, index, cotangent)
        slope, bar = next(
            (side for side in sides.values() if np.isfinite(side[0])), (np.nan, np.nan)
        )
        entry = Entry(number, index, SUM_OF_OUTPUTS, value, slope, bar)
        if value in (slope for slope, _ in sides.values()):
            unbounded = ", ".join(
                f"{side} {slope:g}" for side, (slope, _) in sides.items() if np.isinf(slope)
            )
            right.append(f"{point.place(entry)} ({unbounded})")
        else:
            wrong.append(entry)
    if wrong:
        names = list_names([point.place(entry) for entry in wrong], len(wrong))
        text = (
            f"backward gives {wrong[0].analytic:g} at {names}, but the slope is not infinite on "
            "either side"
        )
        diagnosis = (Diagnosis.of("GC124", text),)
        return CheckOutcome(
            Status.FAIL, wrong=wrong, exhaustive=drawn.size == positions.size, diagnosis=diagnosis
        )
    point.infinite = elements
    text = VerdictReason.UNBOUNDED.sentence(places=list_names(right, positions.size))
    return CheckOutcome(Status.KINK, text)


def slopes_of_sides(
    point: Point, number: int, index: int, cotangent: Array
) -> dict[str, tuple[float, float]]:
    """The slopes of the weighted outputs on both sides along one element: ±inf where they grow
    without bound, otherwise the slopes at the smallest step; and their distance from the slopes at
    the next step.
    """
    size = float(point.scales[number].reshape(-1)[index])
    line = point.line(point.along_element(number, index, size), cotangent)
    line.extend(SMALL_STEPS)
    slopes = {}
    for name, side, sign in (("left", 1, -1.0), ("right", 0, 1.0)):
        values = np.array(
            [sign * float(line.samples[k][side].change[0]) / (size * RATIO**k) for k in SMALL_STEPS]
        )
        growth = values[:-1] - values[1:]
        unbounded = bool((growth[:-1] / growth[1:] >= GROWS).all())
        # Adding 0 makes −0 a 0.
        slope = float(np.copysign(np.inf, growth[0])) if unbounded else float(values[0]) + 0.0
        slopes[name] = slope, float(abs(growth[0]))
    return slopes


# -------------------------------------------- the kinks of operations
class Kink(NamedTuple):
    """An operation that is at a kink, a tie or a jump for some of its elements."""

    name: str
    """The name of the operation."""
    inputs: list[Array]
    """For each input of the call, a mask of the elements that feed the kinked ones."""
    weights: list[Array]
    labelled: list[Array]
    """For each input, the cotangents that flow back from random numbers at the kinked elements, and
    from the same numbers times the labels of their rows: the ratio gives the row of an element that
    feeds only one.
    """
    labels: Array
    """The labels of the rows, in order."""


class Arguments(NamedTuple):
    """Arguments of an operation: arrays and numbers by position, their units of rounding, and other
    arguments by name.
    """

    values: Sequence[Any]
    units: Sequence[Any]
    named: dict[str, Any]

    def near(self, *places: Any) -> list[Array]:
        """A mask of the elements of the first argument that are at one of some exact values."""
        return [
            sum(
                (abs(self.values[0] - p) <= FEW * self.units[0] for p in places),
                self.values[0] != self.values[0],
            )
        ]

    def axes(self) -> tuple[int, ...] | None:
        """The axes of a reduction; None for all."""
        return axes_of(self.named.get("axis"))


KinkRule = Callable[[Arguments], Sequence[Any]]
"""A function that gives, per argument, a mask of its elements at a kink; None if there are none."""


def where_equal(a: Arguments) -> Sequence[Any]:
    """A mask of elements whose two arguments are equal."""
    equal = abs(a.values[0] - a.values[1]) <= FEW * (a.units[0] + a.units[1])
    return [equal, equal]


def where_multiples(a: Arguments) -> Sequence[Any]:
    """A mask of elements whose first argument is a multiple of the second, if the second is
    known.
    """
    x, y = a.values[:2]
    return (
        [abs(x - np.round(x / y) * y) <= FEW * (a.units[0] + a.units[1])] * 2
        if y is not None
        else []
    )


def where_extremes_tie(a: Arguments, extreme: str) -> Sequence[Any]:
    """A mask of elements that share the extreme ("max" or "min") with others."""
    x, axes = a.values[0], a.axes()
    near = abs(x - getattr(x, extreme)(axis=axes, keepdims=True)) <= FEW * a.units[0]
    return [near & (near.sum(axis=axes, keepdims=True) > 1)]


def tied_neighbours(a: Arguments) -> Sequence[Any]:
    """A mask of elements that are equal to the next one in order along the axis."""
    x, axis = np.atleast_1d(a.values[0]), a.named.get("axis", -1)
    order, places = np.argsort(x, axis), np.arange(x.shape[axis])
    gaps = np.diff(np.take_along_axis(x, order, axis), axis=axis, prepend=-np.inf, append=np.inf)
    close = gaps <= FEW * float(np.max(a.units[0], initial=0))
    either = close.take(places, axis) | close.take(places + 1, axis)
    return [
        np.take_along_axis(either, np.argsort(order, axis), axis).reshape(np.shape(a.values[0]))
    ]


def windows_of(x: Array, named: dict[str, Any], fill: Any) -> Array:
    """The windows of pooling over `x`, [batch, channels, *counts, *kernel], padded with `fill`."""
    wide = np.pad(x, [(0, 0), (0, 0), *named["pads"]], constant_values=fill)
    views = np.lib.stride_tricks.sliding_window_view(wide, named["kernel"], tuple(range(2, x.ndim)))
    return views[(slice(None), slice(None), *(slice(None, None, s) for s in named["strides"]))]


def ties_of_windows(a: Arguments) -> tuple[Array, Array]:
    """Elements that share the largest value of a window with others, and their positions in the
    flattened argument.
    """
    x = a.values[0]
    places = windows_of(np.arange(x.size).reshape(x.shape), a.named, -1)
    values, units = (
        windows_of(x, a.named, -np.inf),
        windows_of(np.broadcast_to(a.units[0], x.shape), a.named, 0.0),
    )
    axes = tuple(range(x.ndim, values.ndim))
    near = (abs(values - values.max(axis=axes, keepdims=True)) <= FEW * units) & (places >= 0)
    return near & (near.sum(axis=axes, keepdims=True) > 1), places


def tied_in_windows(a: Arguments) -> Sequence[Any]:
    """A mask of elements that share the largest value of a window with others."""
    near, places = ties_of_windows(a)
    return [np.bincount(places[near], minlength=a.values[0].size).reshape(a.values[0].shape) > 0]


def where_in_sequence(a: Arguments) -> Sequence[Any]:
    """A mask of values that are equal to one of a sorted sequence."""
    sequence, values = a.values[:2]
    equal = abs(values[..., None] - sequence) <= FEW * float(np.max(a.units[1], initial=0))
    return (
        [equal.reshape(-1, sequence.size).any(0).reshape(sequence.shape), equal.any(-1)]
        if sequence.ndim == 1
        else []
    )


KINKED: dict[str, KinkRule] = {
    **dict.fromkeys(("relu", "leaky_relu", "elu", "abs", "sign", "sqrt"), lambda a: a.near(0)),
    **dict.fromkeys(("bool", "nonzero", "count_nonzero", "any", "all"), lambda a: a.near(0)),
    **dict.fromkeys(
        ("floor", "ceil", "trunc", "cast to integers"), lambda a: a.near(np.round(a.values[0]))
    ),
    "round": lambda a: a.near(np.floor(a.values[0]) + 0.5),
    **dict.fromkeys(
        ("clip", "hardtanh"),
        lambda a: a.near(*(a.named[k] for k in a.named if k in ("min", "max"))),
    ),
    "softplus": lambda a: a.near(a.named["threshold"] / a.named["beta"]),
    "norm": lambda a: [
        abs(a.values[0]).max(axis=a.axes(), keepdims=True, initial=0) + 0 * abs(a.values[0]) == 0
    ],
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), where_equal),
    **dict.fromkeys(("isclose", "allclose", "equal_all", "equal", "not_equal"), where_equal),
    **dict.fromkeys(("less_than", "less_equal", "greater_than", "greater_equal"), where_equal),
    **dict.fromkeys(("remainder", "floor_divide"), where_multiples),
    **dict.fromkeys(("max", "argmax"), lambda a: where_extremes_tie(a, "max")),
    **dict.fromkeys(("min", "argmin"), lambda a: where_extremes_tie(a, "min")),
    "window_argmax": tied_in_windows,
    "argsort": tied_neighbours,
    "searchsorted": where_in_sequence,
}
"""The operations that can have a kink or a jump, each with the function that finds it."""


def kinks(tape: Tape) -> list[Kink]:
    """The operations and decisions at a kink, a tie or a jump, in order of execution, without those
    whose output cancels.
    """
    recording, kinked = tape.recording, list[Kink]()
    steps = [step for step in recording.steps if step.name in KINKED]
    decisions = [decision for decision in recording.decisions if decision.name in KINKED]
    random = np.random.default_rng(0)
    if steps:
        dead = dead_steps(
            tape, [random.standard_normal(output.shape) for output in recording.outputs]
        )
        steps = [step for step in steps if step.first not in dead]
    keyed: list[tuple[int, int, Any]] = [(step.first, 1, step) for step in steps]
    keyed += [(decision.values_before, 0, decision) for decision in decisions]
    for _, _, step in sorted(keyed, key=lambda entry: entry[:2]):
        starts, again = dict[int, Array](), dict[int, Array]()
        masks, labels = elements_at_kinks(tape, step)
        for edge, mask in zip(step.edges, masks, strict=False):
            if edge >= 0 and mask.any():
                shape = recording.arrays[edge].shape
                drawn = random.uniform(1, 2, shape) * (sum_to_shape(mask, shape) != 0)
                # A broadcast element feeds several rows.
                label = labels if mask.shape == shape == labels.shape else 0.0
                starts[edge] = starts.get(edge, 0.0) + drawn
                again[edge] = again.get(edge, 0.0) + drawn * label
        if starts:
            pulled = tape.pull_back(starts)
            kinked.append(
                Kink(
                    step.name,
                    [g != 0 for g in pulled],
                    pulled,
                    tape.pull_back(again),
                    np.unique(np.maximum(labels, 1)),
                )
            )
    return kinked


def row_labels(name: str, values: Sequence[Any], axis: Any) -> Array:
    """A number from 1 to 2 for every row of an operation, in the shape of its arguments."""
    shape = np.broadcast_shapes(*(np.shape(v) for v in values if v is not None))
    row_shape = list(shape)
    if name in WHOLE_ROWS or name in ALONG_AXIS:
        axes = axes_of(axis) if name in WHOLE_ROWS or axis is not None else (-1,)
        for k in range(len(shape)) if axes is None else axes:
            row_shape[k] = 1
    count = math.prod(row_shape)
    labels = 1 + np.random.default_rng(1).permutation(count) / max(count, 1)
    return np.broadcast_to(labels.reshape(row_shape), shape)


def window_labels(a: Arguments) -> Array:
    """For each element, the label of the window in which it is tied; 0 if there are several such
    windows, or none.
    """
    near, places = ties_of_windows(a)
    x, counts = a.values[0], near.shape[: a.values[0].ndim]
    labels = row_labels("", [np.empty(counts)], None).reshape(*counts, *[1] * (near.ndim - x.ndim))
    sums = np.bincount(places[near], np.broadcast_to(labels, near.shape)[near], minlength=x.size)
    return np.where(np.bincount(places[near], minlength=x.size) == 1, sums, 0.0).reshape(x.shape)


WHOLE_ROWS = {"max", "argmax", "min", "argmin", "norm"}
ALONG_AXIS = {"argsort"}
"""Operations in which the elements along some axes form one row, with the default axes (all, or the
last one).
"""


def elements_at_kinks(tape: Tape, step: Any) -> tuple[Sequence[Any], Array]:
    """For each argument of an operation or decision, the elements at a kink; and the labels of its
    rows.
    """
    arrays, units = tape.recording.arrays, []
    if isinstance(step, Step):
        named = {name: value for name, value in step.operands.items() if value is not None}
        values: list[Any] = [
            arrays[e] if e >= 0 else named.get("xy"[k]) for k, e in enumerate(step.edges[:2])
        ]
    else:
        values, named = list(step.inputs), dict(zip(step.arguments, step.inputs, strict=False))
    values = [
        wide(v) if getattr(getattr(v, "dtype", None), "name", "") in EPSILON else v for v in values
    ]
    for edge, value in zip(step.edges, values, strict=False):
        unit: Any = 0.0
        if edge >= 0:
            maker = tape.maker(edge)
            cancelled = maker.edges if maker and maker.name in ("add", "subtract") else ()
            size = abs(value) + sum(abs(wide(arrays[e])) for e in cancelled if e >= 0)
            unit = size * EPSILON.get(arrays[edge].dtype.name, 0.0)
        units.append(unit)
    arguments = Arguments(values, units, named)
    with np.errstate(all="ignore"):
        masks = KINKED[step.name](arguments)
        if step.name == "window_argmax":
            return masks, window_labels(arguments)
    if step.name == "searchsorted":  # all of its elements form one row
        return masks, np.ones(())
    return masks, row_labels(step.name, values[: 2 if len(masks) > 1 else 1], named.get("axis"))


def kinked_by_tape(point: Point, cotangent: Array) -> list[Array] | None:
    """Per moved input, a mask of the elements that, according to the tape, are operands of an
    operation at its kink or have an unbounded slope; None if there are none. `cotangent` has no
    zeros.
    """
    tape = point.tape
    if tape is None:
        return None
    masks = [~np.isfinite(g) for g in point.by_tape(cotangent)]
    for kink in kinks(tape):
        fed = point.select_moved(kink.inputs)
        masks = [mask | more for mask, more in zip(masks, fed, strict=True)]
    return none_if_all_false(point.free_elements(masks))
