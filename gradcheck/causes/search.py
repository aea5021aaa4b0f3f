"""The search for the mistakes that turn the tape's gradient into a claim.

With r the cotangent of one input of one operation, a backward that hands on A in its place gives G + pull(A − r), and
one that only scales it gives G + (c − 1) pull(r). Nearly all candidates are sorted out without pulling: along a
direction t of the inputs, pull(A) is ⟨tangent, A⟩, one product with the change of that value when the inputs move along
t. Those that agree along a few directions are pulled back for several cotangents, and must reproduce the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.backends.bundled import Step
from gradcheck.causes.candidates import SHARE, Candidate, Edge, all_candidates, edges_of
from gradcheck.checking.differences import moved, random_direction, scale_of
from gradcheck.checking.point import Point
from gradcheck.checking.precision import EPSILON, MOVES, SMALLEST, wide
from gradcheck.checking.probe import along
from gradcheck.checking.tape import Tape, dead_steps

EXACT_TO = 1e-10
"""To what part of the largest error each element must be reproduced, beside the rounding."""
LEAST_NUMBERS, LEAST_DIGITS = 3, 12
"""Independent numbers of a wrong gradient, and digits in all of them that are no rounding, below which it is not
explained: any share fits one number, and of a million pairs of candidates one fits 6 digits by chance."""
DIRECTIONS = 6
"""Along which each wrong input is moved: numbers that a candidate must agree with, or a pair of them."""
SCREEN, SCREEN_UNITS = 1e-4, 32
"""To what part of the error a candidate must agree along the directions, and to how many ε of the coarsest dtype if
that is more. Tangents are central differences with a step of ε^⅓, right to about ε^⅔: 1e-10 in float64, 2e-5 where
values are rounded to float32. A projection on the tape adds up a few values, each rounded by an ε."""
MOST_CONFIRMED = 40
"""Candidates that are pulled back, the least far-fetched first."""
MOST_TAPE_NUMBERS, MOST_RULED = 10_000_000, 1_000_000
"""Numbers on a tape on which causes are sought, and on which those are that are not plain shares. Tangents hold them
`DIRECTIONS` times; the search takes about 0.3 µs a number for shares and 2 µs for all (LayerNorm of 256 × 1024)."""
LEAST_PULLED = 20_000
"""Operations that a search may pull back through in any case: some tenths of a second."""
ANY_FACTOR = 9.0
"""How far-fetched a share is that is off by a factor that explains nothing."""
NO_FACTOR = 3.0
"""How much more far-fetched a factor is where an operation only moves values."""
SIMPLER = 2.0
"""How much less far-fetched a mistake is that is made in all equal computations: half of all (1.5) is simpler than one
of two missing (0)."""
SHARES = (0.0, -1.0, 2.0, 0.5)
"""Factors of a share that is missing, of the wrong sign, counted twice or by half."""
DEAREST = 2.0
"""How far-fetched a rule may be that is tried in all runs of a line, in a pair, or with a factor."""


Backward = Callable[[Array], list[Array]]
"""The gradients of the moved inputs for a cotangent, flat."""


@dataclass(frozen=True, eq=False)
class Mistake:
    """What is handed on in place of the right cotangent of an edge, or that one scaled; and projections of both."""

    edge: Edge
    candidate: Candidate
    along: Array
    right: Array
    steps: frozenset[Step]
    """All operations that it is made in."""
    when: str = ""
    """In which runs of its line it is made, as in a loop, if it is not in one alone."""

    @property
    def cost(self) -> float:
        """How far-fetched it is."""
        return self.candidate.cost

    @property
    def shared(self) -> bool:
        """Whether it is the right cotangent that is scaled."""
        return self.candidate.value is SHARE.value

    def is_at(self, edge: Edge) -> bool:
        """Whether it is made there."""
        of_call = (edge.number, edge.output) == (self.edge.number, self.edge.output)
        return edge.position == self.edge.position and (
            edge.step in self.steps if self.steps else of_call
        )

    def handed_on(self, edge: Edge) -> Array:
        """What is handed on in place of the right cotangent of an edge."""
        value = self.candidate.fitting(edge)
        return edge.right if value is None else value

    @property
    def simple(self) -> list[float]:
        """The plainest of its factors; none if it is too far-fetched."""
        return [] if self.cost > DEAREST else list(SHARES) if self.shared else [1.0]

    @property
    def factors(self) -> dict[float, float]:
        """Factors that explain themselves, of a share or beside a wrong rule, and how far-fetched each is."""
        if self.cost > DEAREST:
            return {1.0: 0.0}
        if not self.shared:
            return {
                1.0: 0.0,
                -1.0: 0.5,
                **dict.fromkeys((2, 0.5), 1.0),
                **dict.fromkeys((-2, -0.5, 3, 1 / 3), 2.0),
            }
        edge = self.edge
        name, shapes, together = (
            edge.step.name,
            [edge.right.shape, *map(np.shape, edge.given)],
            edge.summed,
        )
        square = name in ("square", "pow", "sqrt", "rsqrt") or (name == "multiply" and edge.alone)
        signed = name in ("neg", "subtract") or (
            name == "divide" and edge.position == 1
        )  # the sign is written there
        found = {
            0.0: 0.0,
            -1.0: 0.5 if signed else 1.0,
            **dict.fromkeys((2.0, 0.5), 1.0 if square else 1.5),
        }
        found |= dict.fromkeys((-2.0, -0.5, 3.0, 1 / 3, 4.0, 0.25), 3.0)
        for n in {n for shape in shapes for n in (*shape, int(np.prod(shape)), together) if n > 1}:
            added_up = 1.0 if n == together else 2.0
            lengths = {
                n: added_up,
                1 / n: added_up,
                n / (n - 1): 2.0,
                (n - 1) / n: 2.0,
                -n: 3.0,
                -1 / n: 3.0,
            }
            found |= {
                factor: min(cost, found.get(factor, cost)) for factor, cost in lengths.items()
            }
        if name in MOVES:  # what reads elements several times may count them
            as_many = len({int(np.prod(shape)) for shape in shapes}) == 1
            found = {
                c: cost + NO_FACTOR * (c < 0 or (c > 0 and as_many)) for c, cost in found.items()
            }
        return found


class Cause(NamedTuple):
    """Mistakes, each with its factor, that together reproduce the claim for the inputs that they explain."""

    mistakes: Sequence[tuple[Mistake, float]]
    cost: float
    explains: frozenset[int] = frozenset()
    spoils: int = 0
    """How many inputs it would change whose gradient is right."""
    residual: float = 0.0
    """How far it is off, relative to the largest error."""

    @property
    def rank(self) -> tuple[float, int]:
        """How far-fetched it is, then how late in the forward it stands."""
        return self.cost, sum(mistake.edge.step.first for mistake, _ in self.mistakes)


class Claimed(NamedTuple):
    """The gradient of one input that is claimed for several cotangents, beside the tape's."""

    gradients: Array
    """One row per draw of cotangents."""
    error: Array
    """How far the first of them is from the tape."""
    bar: float
    """How far apart may be what reproduces the claim."""
    wrong: bool
    scaled: bool
    """Whether it is wrong by one and the same factor as a whole."""
    several: bool
    """Whether more than one number is wrong: any factor fits one."""

    @classmethod
    def of(cls, gradients: Array, right: Array, rounded: float, independent: int) -> Claimed:
        """One row per draw, of which so many are `independent`; `rounded` is how far rounding may put them apart."""
        error = gradients - right
        largest = float(abs(error).max(initial=0))
        bar = rounded + EXACT_TO * largest or SMALLEST["float64"]
        drawn = abs(error[:independent])
        wrong = (
            drawn.size >= LEAST_NUMBERS
            and LEAST_DIGITS <= np.log10(np.maximum(drawn / bar, 1.0)).sum() < np.inf
        )
        if not wrong:  # rounding is not measured where both agree to many digits
            bar = rounded + EXACT_TO * float(abs(right).max(initial=0)) or SMALLEST["float64"]
        off = abs(error - np.vdot(right, error) / np.vdot(right, right) * right)
        one = parallel(error) and not parallel(
            right
        )  # a number per draw, such as one that is broadcast on the way
        several = not one and int((abs(error[0]) > bar).sum()) > 1
        return cls(
            gradients,
            error[0],
            bar,
            wrong,
            wrong and bool((off <= SCREEN * largest).all()),
            several,
        )


def parallel(draws: Array) -> bool:
    """Whether the rows of an array are one and the same but for a factor each."""
    rows = draws.reshape(len(draws), -1)
    longest = rows[abs(rows).sum(axis=1).argmax()]
    along = np.outer(rows @ longest.conj() / np.vdot(longest, longest), longest)
    return bool(abs(rows - along).max(initial=0.0) <= SCREEN * abs(rows).max(initial=0.0))


class CauseSearch:
    """For the mistakes that reproduce what backward gives at a point, each with its line.

    Args:
        tape: the call there, recorded with lines.
        claims: cotangents, independent random draws, three or more, and the gradients of the moved inputs for each.
        rounding: per moved input, how far each element of claim and tape may be apart by rounding.
        walks: how many walks over the tape it may take.
    """

    def __init__(
        self,
        point: Point,
        tape: Tape,
        claims: Sequence[tuple[Array, Sequence[Array]]],
        rounding: Sequence[Array],
        walks: float,
    ) -> None:
        self.point, self.reruns = point, point.problem.reruns
        self.cotangents = [point.outputs.split(u) for u, _ in claims]
        self.graph = Tape(tape.recording, dead=dead_steps(tape, self.cotangents[0]))
        self.claimed = dict[int, Claimed]()
        truth = list(map(self.graph.gradient, self.cotangents))
        for place, k in enumerate(point.moved):
            gradients, right = (
                np.stack([wide(g[place]) for _, g in claims]),
                np.stack([t[k] for t in truth]),
            )
            rounded = float(rounding[place].max(initial=0))
            self.claimed[k] = Claimed.of(
                gradients, right, rounded, min(len(claims), point.outputs.size)
            )
        self.wrong = [k for k, claimed in self.claimed.items() if claimed.wrong]
        self.most = self.graph.walks + max(walks, LEAST_PULLED / max(len(tape.recording.steps), 1))

    def chosen(self) -> Iterator[tuple[Cause, list[Cause]]]:
        """The fewest and simplest causes that explain the most inputs, each with all that say the same."""

        def same(cause: Cause) -> Any:
            return cause.explains, [
                (mistake.candidate.code, f"{factor:.6g}") for mistake, factor in cause.mistakes
            ]

        finite = all(np.isfinite(claimed.error).all() for claimed in self.claimed.values())
        causes = self.causes() if self.wrong and finite and self.reruns is not None else []
        left = set(self.wrong)
        while useful := [cause for cause in causes if cause.explains & left]:
            best = min(useful, key=lambda c: (-len(c.explains & left), c.spoils, *c.rank))
            yield best, [cause for cause in useful if same(cause) == same(best)]
            left -= best.explains

    def gradients(self, causes: Sequence[Cause], cotangent: Array) -> list[Array]:
        """The tape's gradients with mistakes: of the inputs that some causes explain what backward gives for them."""
        cotangents = self.point.outputs.split(cotangent)
        found = dict[int, Array]()
        for cause in causes:
            gradients = dict(enumerate(mistaken(self.graph, cotangents, cause)))
            found = gradients | found | {k: gradients[k] for k in cause.explains}
        return [found[k] for k in self.point.moved]

    def causes(self) -> list[Cause]:
        """The mistakes that reproduce the claim for some of the wrong inputs, and pairs for those that none explains.

        First those that explain all wrong inputs at once, also if they are made each time that a line is run; only
        what is left is looked at input by input. Where the walks that it may take are used up, the search ends.
        """
        graph, wrong, found = self.graph, self.wrong, list[Cause]()
        steps, size = graph.recording.steps, sum(array.size for array in graph.recording.arrays)
        ruled = set(steps) if size <= MOST_RULED else set[Step]()
        if (
            len(steps) > self.most - graph.walks
        ):  # rules that read each other's values are as many as so many walks
            ruled -= {step for run in graph.runs for step in run[:-1]}
        groups = (
            [] if size > MOST_TAPE_NUMBERS else [wrong, *([k] for k in wrong if len(wrong) > 1)]
        )

        def unexplained(group: Sequence[int]) -> bool:
            return graph.walks < self.most and not any(
                k in cause.explains for cause in found for k in group
            )

        for group in groups:
            probed = self.probed(group, ruled) if unexplained(group) else None
            if probed is None:
                continue
            errors, mistakes = probed
            within = max(SCREEN, SCREEN_UNITS * graph.coarsest) * float(abs(errors).max())
            several = any(self.claimed[k].several for k in group)
            graph.walks += 2 * DIRECTIONS + len(mistakes) / len(
                steps
            )  # a candidate costs as much as an operation
            found += self.confirmed(single(mistakes, errors, within, several))
            if group is wrong and ruled and unexplained(group):
                found += self.confirmed(repeated(graph, mistakes, within))
            if (
                len(group) == 1
                and ruled
                and unexplained(group)
                and not self.claimed[group[0]].scaled
            ):
                found += self.confirmed(paired(mistakes, errors, within))
        scaled = {k for k in wrong if self.claimed[k].scaled}
        return [cause for cause in found if not (cause.spoils and cause.explains <= scaled)]

    # ----------------------------------------------------------------- along directions
    def probed(self, group: Sequence[int], ruled: set[Step]) -> tuple[Array, list[Mistake]] | None:
        """The projections of the claim's error along directions of some inputs, and all mistakes with theirs; rules
        too of the operations in `ruled`.

        None if no operation depends on these inputs, or another branch is taken beside the point.
        """
        assert self.reruns is not None
        graph, arrays = self.graph, self.graph.recording.arrays
        start = [
            wide(x) if x.dtype.name in EPSILON else x for x in arrays[: graph.recording.inputs]
        ]
        random, step = np.random.default_rng(3), graph.coarsest ** (1 / 3)

        def hold(name: str, out: Array, number: int) -> None:
            if number in graph.dead:
                out[...] = arrays[number]

        errors, rows = [], []
        for _ in range(DIRECTIONS):
            direction = [
                random_direction(x, scale_of(x), random) if k in group else None
                for k, x in enumerate(start)
            ]
            errors.append(
                along([self.claimed[k].error for k in group], [direction[k] for k in group])
            )
            sides = [self.reruns.recording(moved(start, direction, h), hold) for h in (step, -step)]
            after, before = ([] if side is None else side.arrays for side in sides)
            if not len(after) == len(before) == len(arrays):
                return None
            pairs = zip(
                after, before, strict=True
            )  # times 1.0: masks among the inputs count as numbers
            rows.append(
                [(wide(1.0 * a) - wide(1.0 * b)).reshape(-1) / (2 * step) for a, b in pairs]
            )
        mistakes = self.projected([np.stack(changes) for changes in zip(*rows, strict=True)], ruled)
        return (np.array(errors), mistakes) if mistakes else None

    def projected(self, tangents: Sequence[Array], ruled: set[Step]) -> list[Mistake]:
        """The shares of all edges, and all candidates of operations in `ruled`; `tangents` are the changes of each
        value, one row per direction, flat."""
        graph, cotangents, found = self.graph, self.cotangents[0], list[Mistake]()
        for edge in edges_of(graph, cotangents, graph.starts(cotangents)):
            chained = edge.position in (Edge.WHOLE, Edge.COMPOSED)
            if (chained and edge.step not in ruled) or not tangents[edge.number].any():
                continue
            adjoint = tangents[edge.number].conj()
            right = np.real(adjoint @ edge.right.reshape(-1))
            steps = frozenset(
                [edge.step] if edge.position not in (Edge.INCOMING, Edge.WHOLE) else []
            )
            if not chained and not (edge.position == Edge.INCOMING and len(cotangents) == 1):
                found.append(
                    Mistake(edge, SHARE, right, right, steps)
                )  # else that is the share of another edge
            for candidate in all_candidates(edge) if edge.step in ruled else ():
                if (value := candidate.fitting(edge)) is not None:
                    along = np.real(adjoint @ wide(value).reshape(-1))
                    if float(abs(along - right).max()) <= EXACT_TO * float(abs(right).max()):
                        continue  # no mistake: the rule does not read what would be another
                    found.append(Mistake(edge, candidate, along, right, steps))
        return [*found, *in_all_equals(graph, found), *in_all_runs_but_one(graph, found)]

    # ----------------------------------------------------------------- on a walk over the tape
    def confirmed(self, causes: Sequence[Cause]) -> list[Cause]:
        """Those that reproduce the claim for all cotangents, with what they explain; the simplest are given first.

        None is tried that is more far-fetched than one that explains everything, or after so many walks. A share that
        would be scaled for some inputs and not for others is no cause: backward computes it once.
        """
        found = list[Cause]()
        for cause in causes:
            complete = [c for c in found if not c.spoils and len(c.explains) == len(self.wrong)]
            if self.graph.walks >= self.most or (complete and cause.cost > complete[-1].cost):
                break
            worst, explains = dict.fromkeys(self.claimed, 0.0), frozenset(self.wrong)
            for draw, cotangents in enumerate(self.cotangents):
                gradients = mistaken(self.graph, cotangents, cause)
                for k, c in self.claimed.items():
                    worst[k] = np.maximum(
                        worst[k], abs(c.gradients[draw] - gradients[k]).max(initial=0) / c.bar
                    )
                explains = frozenset(k for k in explains if worst[k] <= 1)  # NaN stays
                if not explains:
                    break
            spoils = sum(not off <= 1 for off in worst.values()) - len(self.wrong) + len(explains)
            if explains and (not spoils or not cause.mistakes[0][0].shared):
                residual = EXACT_TO * float(max(worst[k] for k in explains))
                found.append(cause._replace(explains=explains, spoils=spoils, residual=residual))
        return found


def mistaken(graph: Tape, cotangents: Sequence[Array | None], cause: Cause) -> list[Array]:
    """The gradients that a walk gives on which mistakes are made."""
    pending = graph.starts(cotangents)
    steps = frozenset[Step]().union(*(mistake.steps for mistake, _ in cause.mistakes))
    for edge in edges_of(graph, cotangents, pending, steps):
        for mistake, factor in cause.mistakes:
            if mistake.is_at(edge):
                edge.add(factor * mistake.handed_on(edge) - edge.right)
    return graph.filled(pending)


# --------------------------------------------------------------------------- made in several operations
def in_all_equals(graph: Tape, mistakes: Sequence[Mistake]) -> Iterator[Mistake]:
    """A mistake made in all operations that compute the same of the same: their effects add up, where they have any."""
    groups: dict[Any, list[Mistake]] = {}
    for m in mistakes:
        if m.steps and m.edge.step in graph.equals:
            groups.setdefault(
                (graph.equals[m.edge.step], m.edge.position, m.candidate.says), []
            ).append(m)
    for members in groups.values():
        sizes = [float(max(abs(m.along).max(), abs(m.right).max())) for m in members]
        group = [m for m, size in zip(members, sizes, strict=True) if size > SCREEN * max(sizes)]
        if len(group) > 1:
            simpler = group[-1].candidate._replace(cost=group[-1].cost - SIMPLER)
            yield together(group, candidate=simpler)


def in_all_runs_but_one(graph: Tape, mistakes: Sequence[Mistake]) -> Iterator[Mistake]:
    """Shares of a value that all runs of a line read, but that of one: a sum over the runs that is overwritten."""
    shares = {(m.edge.step, m.edge.position): m for m in mistakes if m.shared and m.steps}
    for run in (run for run in graph.runs if len(run) > 2):
        for position, number in enumerate(run[0].edges):
            found = [shares[step, position] for step in run if (step, position) in shares]
            if len(found) == len(run) and all(m.edge.number == number for m in found):
                for which, one, rest in (
                    ("first", found[0], found[1:]),
                    ("last", found[-1], found[:-1]),
                ):
                    if float(abs(one.right).max()) > SCREEN * max(
                        float(abs(m.right).max()) for m in rest
                    ):
                        yield together(
                            rest, when=f", in all runs but the {which}"
                        )  # no share is no exception


def together(mistakes: Sequence[Mistake], **changes: Any) -> Mistake:
    """One mistake made in several operations, whose effects add up."""
    along, right = sum(m.along for m in mistakes), sum(m.right for m in mistakes)
    steps = frozenset[Step]().union(*(m.steps for m in mistakes))
    return replace(mistakes[-1], along=along, right=right, steps=steps, **changes)


# --------------------------------------------------------------------------- proposals: what agrees along directions
def single(mistakes: Sequence[Mistake], errors: Array, within: float, several: bool) -> list[Cause]:
    """One mistake, with a factor. A share of `several` numbers may be off by any."""
    found = []
    along, wanted = (
        np.stack([m.along for m in mistakes]),
        errors + np.stack([m.right for m in mistakes]),
    )
    unit = abs(along).max(1, keepdims=True)  # squares of small numbers underflow
    best = (along / unit * (wanted / unit)).sum(1) / ((along / unit) ** 2).sum(1)
    screen = within / float(abs(errors).max())
    for k in map(int, np.flatnonzero(abs(wanted - best[:, None] * along).max(1) <= within)):
        mistake, factor = mistakes[k], float(best[k])
        known = mistake.factors | ({factor: ANY_FACTOR} if mistake.shared and several else {})
        near = [
            (cost, c) for c, cost in known.items() if abs(factor - c) <= screen * max(1.0, abs(c))
        ]
        found += [Cause([(mistake, c)], mistake.cost + cost) for cost, c in sorted(near)[:1]]
    return sorted(found, key=lambda cause: cause.rank)[:MOST_CONFIRMED]


def paired(mistakes: Sequence[Mistake], errors: Array, within: float) -> list[Cause]:
    """Two mistakes at once, one of them a share."""
    found, both = [], [(m, c) for m in mistakes for c in m.simple]
    changes = np.stack([c * mistake.along - mistake.right for mistake, c in both])
    felt = abs(changes).max(1) > within
    order = np.argsort(changes[:, 0])
    wanted = errors[0] - changes[:, 0]
    low, high = (
        np.searchsorted(changes[order, 0], wanted + margin) for margin in (-within, within)
    )
    for first in np.flatnonzero(felt & [mistake.shared for mistake, _ in both]):
        fits = order[low[first] : high[first]]
        for second in fits[
            felt[fits] & (abs(changes[first] + changes[fits] - errors).max(1) <= within)
        ]:
            pair = [both[first], both[second]]
            if pair[0][0].edge is not pair[1][0].edge:
                found.append(Cause(pair, sum(mistake.cost for mistake, _ in pair)))
    return sorted(found, key=lambda cause: cause.rank)[:MOST_CONFIRMED]


def repeated(graph: Tape, mistakes: Sequence[Mistake], within: float) -> list[Cause]:
    """A mistake on a line that is run several times, as in a loop, made each time: their effects do not add up.

    Each of their projections is that of one run; of those that agree in it the simplest comes first, the others last.
    """
    runs = {run[-1]: run for run in graph.runs}
    found = []
    for mistake in (m for m in mistakes if m.steps and m.edge.step in runs):
        again = replace(
            mistake, steps=mistake.steps.union(runs[mistake.edge.step]), when=", each time"
        )
        for factor in mistake.simple:
            change = tuple(np.rint((factor * mistake.along - mistake.right) / within))
            found.append((change, Cause([(again, factor)], mistake.cost + mistake.factors[factor])))
    first: dict[Any, Cause] = {}  # along a chain a factor is the same on every line
    found.sort(key=lambda alike: alike[1].rank)
    others = [c for change, c in found if first.setdefault(change, c) is not c]
    return [*first.values(), *(c for c in others if not c.mistakes[0][0].shared)]
