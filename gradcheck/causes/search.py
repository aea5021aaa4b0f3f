"""The search for mistakes on the tape that reproduce backward's wrong gradient (the claim).

With r the cotangent of one input of one operation, a backward that passes on A instead gives G +
pull(A − r), and one that only scales r gives G + (c − 1) pull(r). Nearly all candidates are
excluded without pulling: along a direction t of the inputs, pull(A) is ⟨tangent, A⟩, one product
with the change of that value when the inputs move along t. Candidates that agree along a few
directions are pulled back for several cotangents, and must reproduce the claim.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array, Cotangents
from gradcheck.backends.recording import Recording, Step
from gradcheck.causes.candidates import (
    SHARE,
    Candidate,
    Edge,
    Values,
    all_candidates,
    edges_of,
    other_values,
)
from gradcheck.checking.differences import Direction, move_along, random_direction, scale_of
from gradcheck.checking.point import Point, directional_derivative
from gradcheck.checking.precision import MOVES, SMALLEST, Change, wide
from gradcheck.checking.tape import Tape, dead_steps

EXACT_TO = 1e-10
"""The share of the largest error to which each element must be reproduced, in addition to
rounding.
"""
LEAST_NUMBERS, LEAST_DIGITS = 3, 12
"""A wrong gradient is explained only if it has at least this many independent numbers, with this
many digits above rounding in total: any share fits one number, and of a million pairs of candidates
one fits 6 digits by chance.
"""
DIRECTIONS = 4
"""The number of directions along which each wrong input is moved, each giving a number that a
candidate, or a pair, must match. Of a million pairs, one matches four numbers to 1e-4 by chance
once in 1e10 searches.
"""
SCREEN, SCREEN_UNITS = 1e-4, 32
"""How closely a candidate must agree along the directions: relative to the error, or, if that is
more, in ε of the coarsest dtype. Tangents are central differences with a step of ε^⅓, accurate to
about ε^⅔: 1e-10 in float64, 2e-5 where values are rounded to float32. A projection on the tape adds
up a few values, each rounded by an ε.
"""
MOST_CONFIRMED = 40
"""Candidates that are pulled back, the least far-fetched first."""
MOST_TAPE_NUMBERS, MOST_RULED = 10_000_000, 1_000_000
"""The most numbers on a tape for which causes are searched, and for which candidates other than
scaled shares are tried. Tangents hold each number `DIRECTIONS` times; the search takes about 0.3 µs
a number for shares and 2 µs for all (LayerNorm of 256 × 1024).
"""
MOST_WIDE = 100
"""The most operations for which wider mistakes are tried: their number grows with the square."""
LEAST_PULLED = 20_000
"""Operations that a search may always pull back through: a few tenths of a second."""
ANY_FACTOR = 9.0
"""How far-fetched a share is if its factor has no plausible meaning."""
NO_FACTOR = 3.0
"""How much more far-fetched a factor is where an operation only moves values."""
SIMPLER = 2.0
"""How much less far-fetched a mistake is if it is made in all equal computations: "half of all"
(1.5) is simpler than "one of two is missing" (0).
"""
SHARES = (0.0, -1.0, 2.0, 0.5)
"""Factors for a share that is missing, has the wrong sign, or counts twice or half."""
RULE_FACTORS = {
    1.0: 0.0,
    -1.0: 0.5,
    **dict.fromkeys((2.0, 0.5), 1.0),
    **dict.fromkeys((-2.0, -0.5, 3.0, 1 / 3), 2.0),
}
"""Additional factors of a wrong rule, and how far-fetched each is."""
EACH_TIME = ", each time"
"""The text for a mistake that is made in every run of a line."""
PLAIN = 2.0
"""How far-fetched a plain mistake may be. Others are tried only if no edit repairs backward, and
then not in all runs of a line, in a pair or with a factor.
"""
BANDS = 1.5, PLAIN, math.inf
"""Upper limits of the bands: mistakes within one band, by how far-fetched they are, are tried
together. Of the mistakes that explain all wrong inputs of 200 mutants, 65 % are in the first band,
which has a ninth of the candidates, and 76 % are plain, as are two fifths of the candidates
(tests/bench/derive.py).
"""

TriedCandidate = tuple[Edge, Candidate]
"""A candidate, and the edge at which it is tried."""
Backward = Callable[[Array], list[Array]]
"""The gradients of the moved inputs for a cotangent, flat."""


@dataclass(frozen=True, eq=False)
class Mistake:
    """A candidate passed on at one or several edges, and its projections along the directions."""

    edge: Edge
    candidate: Candidate
    cost: float
    """How far-fetched the share is."""
    projection: Array
    right: Array
    """The projections of the right cotangent."""
    places: frozenset[Any]
    """All edges at which the mistake is made, see `Edge.place`."""
    when: str = ""
    """The runs of its line in which the mistake is made, if the line runs more than once, as in a
    loop.
    """

    @classmethod
    def at_edge(cls, edge: Edge, candidate: Candidate, projection: Array, right: Array) -> Mistake:
        """A candidate at one edge."""
        return cls(edge, candidate, candidate.cost, projection, right, frozenset([edge.place]))

    @property
    def scales(self) -> bool:
        """Whether it is the right cotangent with a factor."""
        return self.candidate is SHARE

    @property
    def simple_factors(self) -> Sequence[float]:
        """The plainest of the share's factors; empty if it is too far-fetched."""
        if self.cost > PLAIN:
            return ()
        return SHARES if self.scales else (1.0,)

    @property
    def factors(self) -> dict[float, float]:
        """Factors that explain themselves, and how far-fetched each is."""
        if self.scales:
            return share_factors(self.edge)
        return RULE_FACTORS if self.cost <= PLAIN else {1.0: 0.0}


def share_factors(edge: Edge) -> dict[float, float]:
    """Factors that a share may have by mistake, and how far-fetched each is."""
    name, shapes = edge.step.name, [edge.right.shape, *map(np.shape, edge.incoming)]
    sizes = {math.prod(shape) for shape in shapes}
    square = name in ("square", "pow", "sqrt", "rsqrt") or (name == "multiply" and edge.alone)
    # The formulas of these operations contain a minus sign.
    signed = name in ("neg", "subtract") or (name == "divide" and edge.position == 1)
    factors = {0.0: 0.0, -1.0: 0.5 if signed else 1.0}
    factors |= dict.fromkeys((2.0, 0.5), 1.0 if square else 1.5)
    factors |= dict.fromkeys((-2.0, -0.5, 3.0, 1 / 3, 4.0, 0.25), 3.0)
    for n in sizes.union({edge.summed}, *shapes) - {0, 1}:
        cost_of_n = 1.0 if n == edge.summed else 2.0
        lengths = {n: cost_of_n, 1 / n: cost_of_n, n / (n - 1): 2.0, (n - 1) / n: 2.0}
        for factor, cost in (lengths | {-n: 3.0, -1 / n: 3.0}).items():
            factors[factor] = min(cost, factors.get(factor, cost))
    if name in MOVES:
        for factor in factors:
            # A factor that counts elements is likely only if elements are read several times.
            if factor < 0 or (factor > 0 and len(sizes) == 1):
                factors[factor] += NO_FACTOR
    return factors


class Cause(NamedTuple):
    """Mistakes, each with its factor, that reproduce the claim for the inputs they explain."""

    mistakes: Sequence[tuple[Mistake, float]]
    cost: float
    explains: frozenset[int] = frozenset()
    spoils: int = 0
    """The number of inputs with a right gradient that the cause would change."""
    residual: float = 0.0
    """How far the cause is off, relative to the largest error."""

    @property
    def rank(self) -> tuple[float, int]:
        """Sort key: how far-fetched the cause is, then how late in the forward."""
        return self.cost, sum(mistake.edge.step.first for mistake, _ in self.mistakes)

    @property
    def words(self) -> list[tuple[str, str]]:
        """The code and the factor of each mistake."""
        return [(mistake.candidate.code, f"{factor:.6g}") for mistake, factor in self.mistakes]


@dataclass(frozen=True, eq=False)
class Group:
    """Some wrong inputs, and the values that a mistake must reproduce to explain all of them."""

    inputs: Sequence[int]
    errors: Array
    """The projections of the claim's error along directions of the inputs."""
    tangents: Sequence[Array]
    """The change of each value along these directions, one row per direction, flat; empty if
    operations take another branch next to the point.
    """
    screen: float
    several: bool
    """Whether more than one number is wrong."""

    @property
    def within(self) -> float:
        """How far off a candidate may be along the directions."""
        return self.screen * float(abs(self.errors).max())

    def project(self, edge: Edge, cotangent: Array) -> Array:
        """The projections of a cotangent at an edge."""
        projected: Array = (self.tangents[edge.number].conj() @ cotangent.reshape(-1)).real
        return projected


class Claimed:
    """Backward's claimed gradient of one input for several cotangents, and the tape's.

    Args:
        gradients: one row per draw of cotangents, of which `independent` are independent.
        right: the tape's gradients.
        rounding: the largest difference that rounding explains.
    """

    def __init__(self, gradients: Array, right: Array, rounding: float, independent: int) -> None:
        self.gradients, error = gradients, gradients - right
        self.error = error[0]
        self.bound = bound_of(error, rounding)
        """The largest distance from backward's gradient at which a cause still reproduces it."""
        drawn = np.maximum(abs(error[:independent]) / self.bound, 1.0)
        self.wrong = drawn.size >= LEAST_NUMBERS and LEAST_DIGITS <= np.log10(drawn).sum() < np.inf
        if not self.wrong:  # the difference does not measure rounding if both agree to many digits
            self.bound = bound_of(right, rounding)
        distances = abs(error - np.vdot(right, error) / np.vdot(right, right) * right)
        self.scaled = self.wrong and bool((distances <= SCREEN * abs(error).max(initial=0)).all())
        """Whether the gradient is wrong by the same factor everywhere."""
        # A gradient that is one number per draw, broadcast on the way, fits any factor.
        one_number = are_parallel(error) and not are_parallel(right)
        self.several = not one_number and int((abs(error[0]) > self.bound).sum()) > 1
        """Whether more than one number is wrong."""


def bound_of(values: Array, rounding: float) -> float:
    """The largest error of reproduced values: rounding plus a fraction of the largest value."""
    return rounding + EXACT_TO * float(abs(values).max(initial=0)) or SMALLEST["float64"]


def are_parallel(draws: Array) -> bool:
    """Whether the rows of an array are equal up to a factor each."""
    rows = draws.reshape(len(draws), -1)
    longest = rows[abs(rows).sum(axis=1).argmax()]
    projected = np.outer(rows @ longest.conj() / np.vdot(longest, longest), longest)
    return bool(abs(rows - projected).max(initial=0.0) <= SCREEN * abs(rows).max(initial=0.0))


class CauseSearch:
    """The search at one point for the mistakes that reproduce backward's gradients.

    Args:
        tape: the call there, recorded with lines.
        claims: three or more cotangents, independent random draws, and the gradients of the moved
            inputs for each.
        rounding: per moved input, how far claim and tape may differ in each element by rounding.
        walks: the maximum number of walks over the tape.
    """

    def __init__(
        self,
        point: Point,
        tape: Tape,
        claims: Sequence[tuple[Array, Sequence[Array]]],
        rounding: Sequence[Array],
        walks: float,
    ) -> None:
        assert point.problem.reruns is not None, "it recorded the tape"
        self.point, self.reruns, self.claims = point, point.problem.reruns, claims
        self.cotangents = [point.outputs.split(u) for u, _ in claims]
        self.tape = Tape(tape.recording, dead=dead_steps(tape, self.cotangents[0]))
        self.claimed: dict[int, Claimed] = {}
        right = [self.tape.gradient(u) for u in self.cotangents]
        independent = min(len(claims), point.outputs.size)
        for place, k in enumerate(point.moved):
            gradients = np.stack([g[place] for _, g in claims])
            truth = np.stack([r[k] for r in right])
            rounded = float(rounding[place].max(initial=0))
            self.claimed[k] = Claimed(gradients, truth, rounded, independent)
        self.wrong = [k for k, claimed in self.claimed.items() if claimed.wrong]
        least = LEAST_PULLED / max(len(tape.recording.steps), 1)
        self.most_walks = self.tape.walks + max(walks, least)
        self.is_short = len(tape.recording.steps) <= MOST_WIDE

    def choose(self) -> Iterator[tuple[Cause, list[Cause]]]:
        """The fewest and simplest causes that explain the most inputs, each with equivalent
        ones.
        """
        causes = self.causes() if self.wrong else []
        remaining = set(self.wrong)
        while useful := [cause for cause in causes if cause.explains & remaining]:
            best = min(useful, key=lambda c: (-len(c.explains & remaining), c.spoils, *c.rank))
            same = best.explains, best.words
            yield best, [cause for cause in useful if (cause.explains, cause.words) == same]
            remaining -= best.explains

    def gradients(self, causes: Sequence[Cause], cotangent: Array) -> list[Array]:
        """The tape's gradients with mistakes: equal to backward's for the inputs explained."""
        cotangents = self.point.outputs.split(cotangent)
        mistaken: dict[int, Array] = {}
        for cause in causes:
            gradients = dict(enumerate(mistaken_gradients(self.tape, cotangents, cause)))
            mistaken = gradients | mistaken | {k: gradients[k] for k in cause.explains}
        return [mistaken[k] for k in self.point.moved]

    def causes(self) -> list[Cause]:
        """The mistakes that reproduce the claim for some of the wrong inputs.

        Mistakes that explain all wrong inputs at once come first, including those made in every run
        of a line. The remaining inputs are explained one by one, also by pairs of mistakes. The
        search ends when no walks are left.
        """
        tape, wrong = self.tape, self.wrong
        size = sum(array.size for array in tape.recording.arrays)
        finite = all(np.isfinite(claimed.error).all() for claimed in self.claimed.values())
        if size > MOST_TAPE_NUMBERS or not finite:
            return []
        ruled = set(tape.recording.steps) if size <= MOST_RULED else set[Step]()
        # There is a rule with replaced values for every operation, and each takes one walk.
        if len(tape.recording.steps) > self.most_walks - tape.walks:
            ruled.difference_update(*(run[:-1] for run in tape.runs))
        everything = self.group(wrong)
        if not everything.tangents or not tape.recording.steps:
            return []
        confirmed, explained = list[Cause](), set[int]()
        for group, causes in self.proposals(everything, ruled):
            if explained.isdisjoint(group.inputs):
                confirmed += self.confirm(causes)
                explained.update(*(cause.explains for cause in confirmed))
            if explained.issuperset(wrong):
                break
        scaled = {k for k in wrong if self.claimed[k].scaled}
        return [cause for cause in confirmed if not (cause.spoils and cause.explains <= scaled)]

    def proposals(
        self, everything: Group, ruled: set[Step]
    ) -> Iterator[tuple[Group, Sequence[Cause]]]:
        """Causes by kind, the least far-fetched first, and the inputs that they should explain.

        Plain mistakes are tried in bands of how far-fetched they are. Then an edit that repairs
        backward is sought: it is as informative as a far-fetched cause.
        """
        trials, mistakes = self.trials(everything, ruled), list[Mistake]()
        for lowest, highest in itertools.pairwise((-math.inf, *BANDS)):
            if lowest == PLAIN and self.point.problem.find_fix() is not None:
                return
            band = [trial for trial in trials if lowest < self.least_cost(*trial) <= highest]
            mistakes += self.project_trials([everything], band)[0]
            causes = single(mistakes, everything)
            yield everything, [cause for cause in causes if lowest < cause.cost <= highest]
            if highest == PLAIN and ruled:
                yield everything, repeat_in_all_runs(self.tape, mistakes, everything.within)
        alone = [self.group([k]) for k in self.wrong if len(self.wrong) > 1]
        alone = [group for group in alone if group.tangents]
        plain = [mistakes, *self.project_trials(alone, trials)]
        yield from self.wider_proposals([everything, *alone], plain, ruled)

    def least_cost(self, edge: Edge, candidate: Candidate) -> float:
        """How far-fetched a candidate at an edge is; less if other operations compute the same,
        because the mistake may be in all of them.
        """
        return candidate.cost - SIMPLER * (edge.step in self.tape.equals)

    def wider_proposals(
        self, groups: Sequence[Group], plain: Sequence[Sequence[Mistake]], ruled: set[Step]
    ) -> Iterator[tuple[Group, list[Cause]]]:
        """Less likely causes, by kind: mistakes that explain inputs one by one, pairs of them,
        wider ones, and other values in forward. `plain` are those that are not wider, per group.
        """
        for group, mistakes in zip(groups, plain, strict=True):
            if group is not groups[0]:
                yield group, single(mistakes, group)
            if ruled and len(group.inputs) == 1 and not self.claimed[group.inputs[0]].scaled:
                yield group, pairs_of_mistakes(mistakes, group)
        if not ruled or not self.is_short:
            return
        wider = self.project_trials(groups, self.trials(groups[0], ruled, is_wide=True))
        for group, mistakes in zip(groups, wider, strict=True):
            yield group, single(mistakes, group)
            yield group, single(self.in_every_run(group), group)
        if self.tape.recording.replays:
            yield groups[0], computed_otherwise(self.tape)

    # ----------------------------------------------------------------- along directions
    def group(self, inputs: Sequence[int]) -> Group:
        """Move some inputs together along random directions."""
        start = [wide(x) for x in self.tape.recording.arrays[: self.tape.recording.inputs]]
        random, errors, tangents = np.random.default_rng(3), [], []
        for _ in range(DIRECTIONS):
            direction: list[Array | None] = [None] * len(start)
            for k in inputs:
                direction[k] = random_direction(start[k], scale_of(start[k]), random)
            arguments = [self.claimed[k].error for k in inputs], [direction[k] for k in inputs]
            errors.append(directional_derivative(*arguments))
            tangents.append(self.changes_along(start, direction))
        self.tape.walks += 2 * DIRECTIONS
        changes = [] if None in tangents else [*map(np.stack, zip(*tangents, strict=True))]
        screen = max(SCREEN, SCREEN_UNITS * self.tape.coarsest)
        several = any(self.claimed[k].several for k in inputs)
        return Group(tuple(inputs), np.array(errors), changes, screen, several)

    def changes_along(self, start: Sequence[Array], direction: Direction) -> list[Array] | None:
        """The change of each value along a direction of the inputs, flat; None if operations take
        another branch next to the point.
        """
        count, step = len(self.tape.recording.arrays), self.tape.coarsest ** (1 / 3)
        sides = []
        for h in (step, -step):
            side = self.rerun(move_along(start, direction, h), self.tape.hold_dead)
            if side is None or len(side.arrays) != count:
                return None
            # Times 1.0, so that masks among the inputs become numbers.
            sides.append([wide(1.0 * array).reshape(-1) for array in side.arrays])
        return [(a - b) / (2 * step) for a, b in zip(*sides, strict=True)]

    def rerun(self, inputs: Sequence[Array], hold: Change) -> Recording | None:
        """The call at other inputs, with dead values fixed; None if there is no such call."""
        recording = self.tape.recording
        return (
            recording.replay(inputs, hold)
            if recording.replays
            else self.reruns.recording(inputs, hold)
        )

    def trials(self, group: Group, ruled: set[Step], is_wide: bool = False) -> list[TriedCandidate]:
        """The shares of all edges whose values change with a group of inputs, and all candidates of
        operations in `ruled`; or the wider candidates.
        """
        tape, cotangents = self.tape, self.cotangents[0]
        without_share = {Edge.WHOLE, Edge.COMPOSED}
        if len(cotangents) == 1:
            without_share.add(Edge.INCOMING)  # equals the share of another edge
        trials, steps = list[TriedCandidate](), set(tape.recording.steps)
        for edge in edges_of(tape, cotangents, tape.starts(cotangents), steps, is_wide):
            if not group.tangents[edge.number].any():
                continue
            if edge.position not in without_share and not is_wide:
                trials.append((edge, SHARE))
            if edge.step in ruled:
                trials += [(edge, candidate) for candidate in all_candidates(edge)]
        return trials

    def project_trials(
        self, groups: Sequence[Group], trials: Iterable[TriedCandidate]
    ) -> list[list[Mistake]]:
        """The mistakes that change what the right cotangent is along the directions, per group."""
        tape, per_group = self.tape, [list[Mistake]() for _ in groups]
        right = {edge: [group.project(edge, edge.right) for group in groups] for edge, _ in trials}
        for edge, candidate in trials:
            value = candidate.hand_on(edge)
            for group, of_right, mistakes in zip(groups, right[edge], per_group, strict=True):
                projection, least = group.project(edge, value), EXACT_TO * abs(of_right).max()
                # A candidate with the right projection changes nothing: its rule does not read the
                # replaced value.
                if candidate is SHARE or abs(projection - of_right).max() > least:
                    mistakes.append(Mistake.at_edge(edge, candidate, projection, of_right))
        tape.walks += sum(map(len, per_group)) / len(tape.recording.steps)
        return [[*m, *in_all_equals(tape, m), *in_all_runs_but_one(tape, m)] for m in per_group]

    def in_every_run(self, group: Group) -> list[Mistake]:
        """Wider mistakes of the last run of a line, made in all runs that have a share: a state
        that starts as zeros has none in the first run.
        """
        tape, cotangents = self.tape, self.cotangents[0]
        last = {step: run[-1] for run in tape.runs for step in run}
        candidates: dict[Any, list[Candidate]] = {}
        runs: dict[Any, list[Mistake]] = {}
        for edge in edges_of(tape, cotangents, tape.starts(cotangents), {*last}, is_wide=True):
            if edge.of_call:
                continue
            line = edge.position, last[edge.step]  # the last run comes first
            right = group.project(edge, edge.right)
            for candidate in candidates.setdefault(line, [*all_candidates(edge)]):
                projection = group.project(edge, candidate.hand_on(edge))
                mistake = Mistake.at_edge(edge, candidate, projection, right)
                runs.setdefault((line, candidate), []).insert(0, mistake)
        tape.walks += sum(map(len, runs.values())) / len(tape.recording.steps)
        felt = [[m for m in run if m.right.any()] or run for run in runs.values()]
        return [together(run, when=EACH_TIME) for run in felt]

    # ----------------------------------------------------------------- on a walk over the tape
    def confirm(self, causes: Sequence[Cause]) -> list[Cause]:
        """Return the causes that reproduce the claim for all cotangents, with the inputs that they
        explain.

        The simplest are given first. No cause is tried that is more far-fetched than one that
        explains everything, and none after the last walk. A share that would be scaled for some
        inputs and not for others is not a cause: backward computes it once.
        """
        confirmed = list[Cause]()
        most_cost = math.inf
        for cause in causes:
            if self.tape.walks >= self.most_walks or cause.cost > most_cost:
                break
            worst = self.residuals(cause)
            fits = {k for k, distance in worst.items() if distance <= 1}
            explains = fits.intersection(self.wrong)
            spoils = len(self.claimed.keys() - fits - set(self.wrong))
            if not explains or (spoils and cause.mistakes[0][0].scales):
                continue
            if not spoils and len(explains) == len(self.wrong):
                most_cost = cause.cost
            residual = EXACT_TO * max(worst[k] for k in explains)
            confirmed.append(
                Cause(cause.mistakes, cause.cost, frozenset(explains), spoils, residual)
            )
        return confirmed

    def residuals(self, cause: Cause) -> dict[int, float]:
        """The distance of a cause from backward's gradient, in error bounds, by input; cotangents
        are tried until it fits no wrong input.
        """
        worst = dict.fromkeys(self.claimed, 0.0)
        for draw, cotangents in enumerate(self.cotangents):
            gradients = mistaken_gradients(self.tape, cotangents, cause)
            for k, claimed in self.claimed.items():
                distance = (
                    abs(claimed.gradients[draw] - gradients[k]).max(initial=0) / claimed.bound
                )
                worst[k] = float(np.maximum(worst[k], distance))  # NaN stays
            if not any(worst[k] <= 1 for k in self.wrong):
                break
        return worst


def mistaken_gradients(tape: Tape, cotangents: Cotangents, cause: Cause) -> list[Array]:
    """The gradients of the inputs from a walk with mistakes."""
    edges = [mistake.edge for mistake, _ in cause.mistakes]
    if edges[0].position == Edge.VALUE:
        return gradient_at_other_value(tape, cotangents, cause.mistakes[0][0])
    pending = tape.starts(cotangents)
    steps = {step for mistake, _ in cause.mistakes for step, *_ in mistake.places}
    is_wide = any(edge.flows for edge in edges)
    for edge in edges_of(tape, cotangents, pending, steps, is_wide):
        for mistake, factor in cause.mistakes:
            if edge.place in mistake.places:
                edge.add(factor * mistake.candidate.hand_on(edge) - edge.right)
    return tape.fill_missing(pending)


def gradient_at_other_value(tape: Tape, cotangents: Cotangents, mistake: Mistake) -> list[Array]:
    """The gradients of the inputs if one value is replaced, and all values that are computed from
    it change.
    """
    edge, recording = mistake.edge, tape.recording

    def change(name: str, output: Array, number: int) -> None:
        if number == edge.number:
            output[...] = mistake.candidate.value(edge)
        else:
            tape.hold_dead(name, output, number)

    tape.walks += 2  # a replay costs as much as a walk
    inputs = recording.arrays[: recording.inputs]
    try:
        other = recording.replay(inputs, change)
    except ValueError:  # the value is outside the domain of a later operation
        return [np.full_like(x, np.nan) for x in inputs]
    return Tape(other, dead=tape.dead).gradient(cotangents)


def arrays_only(change: Array) -> None:
    """A replaced value in forward has no cotangent to change."""


def computed_otherwise(tape: Tape) -> list[Cause]:
    """Values that backward may compute differently, the plainest first, each with a guess."""
    causes, arrays = list[Cause](), tape.recording.arrays
    values = Values.of(tape, (), is_wide=False)
    for step in tape.recording.steps:
        if len(step.values) != 1 or step.first in tape.dead or step.name in MOVES:
            continue
        edge = Edge(step, Edge.VALUE, step.first, [], step.values[0], values, arrays_only)
        for candidate in other_values(step, arrays):
            mistake = Mistake.at_edge(edge, candidate, np.zeros(1), np.zeros(1))
            causes.append(Cause([(mistake, 1.0)], candidate.cost))
    return simplest(causes)


# --------------------------------------------------------------------------- at several places
def in_all_equals(tape: Tape, mistakes: Sequence[Mistake]) -> Iterator[Mistake]:
    """A mistake made in all operations that compute the same from the same inputs.

    Their effects, if any, add up.
    """
    groups: dict[Any, list[Mistake]] = {}
    for mistake in mistakes:
        edge = mistake.edge
        if edge.step in tape.equals and not edge.of_call:
            key = tape.equals[edge.step], edge.position, mistake.candidate.says
            groups.setdefault(key, []).append(mistake)
    for members in groups.values():
        group = [
            m
            for m in members
            if largest_projection(m) > SCREEN * max(map(largest_projection, members))
        ]
        if len(group) > 1:
            yield together(group, cost=group[-1].cost - SIMPLER)


def largest_projection(mistake: Mistake) -> float:
    """The largest of a mistake's projections."""
    return float(max(abs(mistake.projection).max(), abs(mistake.right).max()))


def in_all_runs_but_one(tape: Tape, mistakes: Sequence[Mistake]) -> Iterator[Mistake]:
    """The shares of a value that all runs of a line read, without that of the first or last run:
    the mistake of overwriting a sum over the runs.
    """
    shares = {(m.edge.step, m.edge.position, m.edge.number): m for m in mistakes if m.scales}
    for run in (run for run in tape.runs if len(run) > 2):
        for position, number in enumerate(run[0].edges):
            places = [(step, position, number) for step in run]
            if not shares.keys() >= set(places):
                continue
            # A state that starts as zeros has no share in its first run.
            of_run = map(shares.__getitem__, places)
            of_value = [*itertools.dropwhile(lambda share: not largest_projection(share), of_run)]
            if len(of_value) < 2:
                continue
            for which, exception, rest in (
                ("first", of_value[0], of_value[1:]),
                ("last", of_value[-1], of_value[:-1]),
            ):
                if largest_projection(exception) > SCREEN * max(map(largest_projection, rest)):
                    yield together(rest, when=f", in all runs but the {which}")


def together(mistakes: Sequence[Mistake], **changes: Any) -> Mistake:
    """One mistake made in several operations, whose effects add up."""
    projection, right = sum(m.projection for m in mistakes), sum(m.right for m in mistakes)
    places = frozenset[Any]().union(*(m.places for m in mistakes))
    return replace(mistakes[-1], projection=projection, right=right, places=places, **changes)


# --------------------------------------------------------------------------- proposals
def simplest(causes: Iterable[Cause]) -> list[Cause]:
    """Return the least far-fetched causes, in that order."""
    return sorted(causes, key=lambda cause: cause.rank)[:MOST_CONFIRMED]


def single(mistakes: Sequence[Mistake], group: Group) -> list[Cause]:
    """One mistake, with a factor. A share of several numbers may have any factor."""
    causes = list[Cause]()
    if not mistakes:
        return causes
    projections = np.stack([m.projection for m in mistakes])
    wanted = group.errors + np.stack([m.right for m in mistakes])
    unit = abs(projections).max(1, keepdims=True)  # squares of small numbers underflow
    best = (projections / unit * (wanted / unit)).sum(1) / ((projections / unit) ** 2).sum(1)
    for k in map(
        int, np.flatnonzero(abs(wanted - best[:, None] * projections).max(1) <= group.within)
    ):
        mistake, factor = mistakes[k], float(best[k])
        factors = mistake.factors
        if mistake.scales and group.several:
            factors = factors | {factor: ANY_FACTOR}
        near = [
            (cost, c)
            for c, cost in factors.items()
            if abs(factor - c) <= group.screen * max(1, abs(c))
        ]
        if near:
            cost, factor = min(near)
            causes.append(Cause([(mistake, factor)], mistake.cost + cost))
    return simplest(causes)


def pairs_of_mistakes(mistakes: Sequence[Mistake], group: Group) -> list[Cause]:
    """Two mistakes at once, one of them a share."""
    errors, within = group.errors, group.within
    causes, scaled = [], [(m, c) for m in mistakes for c in m.simple_factors]
    if not scaled:
        return []
    changes = np.stack([c * mistake.projection - mistake.right for mistake, c in scaled])
    felt = abs(changes).max(1) > within
    # Partners are looked up by their first projection, in sorted order.
    order = np.argsort(changes[:, 0])
    wanted = errors[0] - changes[:, 0]
    low = np.searchsorted(changes[order, 0], wanted - within)
    high = np.searchsorted(changes[order, 0], wanted + within)
    for first in np.flatnonzero(felt & [mistake.scales for mistake, _ in scaled]):
        partners = order[low[first] : high[first]]
        distances = abs(changes[first] + changes[partners] - errors).max(1)
        for second in partners[felt[partners] & (distances <= within)]:
            pair = [scaled[first], scaled[second]]
            if pair[0][0].edge is not pair[1][0].edge:
                causes.append(Cause(pair, pair[0][0].cost + pair[1][0].cost))
    return simplest(causes)


def repeat_in_all_runs(tape: Tape, mistakes: Sequence[Mistake], within: float) -> list[Cause]:
    """A mistake made each time that its line is run, as in a loop: the effects do not add up.

    Its projections are those of one run. Of mistakes with equal projections, the simplest comes
    first and the others last.
    """
    runs = {run[-1]: run for run in tape.runs}
    proposals: list[tuple[Cause, Any]] = []
    for mistake in mistakes:
        edge = mistake.edge
        if edge.of_call or edge.step not in runs:
            continue
        places = mistake.places.union((step, edge.position, ()) for step in runs[edge.step])
        again = replace(mistake, places=places, when=EACH_TIME)
        for factor in mistake.simple_factors:
            cause = Cause([(again, factor)], mistake.cost + mistake.factors[factor])
            change = np.rint((factor * mistake.projection - mistake.right) / within)
            proposals.append((cause, tuple(change)))
    proposals.sort(key=lambda proposal: proposal[0].rank)
    first: dict[Any, Cause] = {}  # along a chain a factor is the same on every line
    further = []
    for cause, change in proposals:
        if first.setdefault(change, cause) is not cause and not cause.mistakes[0][0].scales:
            further.append(cause)
    return [*first.values(), *further]
