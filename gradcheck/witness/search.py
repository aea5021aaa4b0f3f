"""The search for the mistakes that turn the tape's gradient into a claim.

With r the cotangent of one input of one operation, a backward that hands on A in its place gives G + pull(A − r), and
one that only scales it gives G + (c − 1) pull(r). Nearly all candidates are sorted out without pulling: along a
direction t of the inputs, pull(A) is ⟨tangent, A⟩, one product with the change of that value when the inputs move along
t. Those that agree along a few directions are pulled back for several cotangents, and must reproduce the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gradcheck.backends.base import Array, Step
from gradcheck.witness.candidates import RULE_FACTORS, plain_factors, tried
from gradcheck.witness.edges import Candidate, Edge, edges_of
from gradcheck.witness.graph import EPSILON, Graph, wide
from gradcheck.witness.rounding import Replays

DIRECTIONS = 6
"""Along which each wrong input is moved: numbers that a candidate must agree with, or a pair of them."""

SCREEN = 1e-4
"""To what part of the error a candidate must agree along the directions. Tangents are central differences with a step
of ε^⅓, right to about ε^⅔: 1e-10 in float64, 2e-5 where values are rounded to float32."""

EXACT_TO = 1e-10
"""To what part of the largest error each element must be reproduced, beside the rounding."""

CANCELLED = 1000
"""Units of rounding, of what it was added up from, below which a cotangent counts as 0."""

MOST_CONFIRMED = 40
"""Candidates that are pulled back, the least far-fetched first."""

LARGEST = 4_000_000
"""Numbers on a tape on which causes are sought: tangents hold them `DIRECTIONS` times per wrong input."""


class Claim(NamedTuple):
    """What is to be explained: per cotangent and input, how far the claim is from the tape."""

    cotangents: Sequence[Sequence[Array | None]]
    errors: Sequence[Sequence[Array]]
    bars: Sequence[float]
    """Per input, what of it may be rounding."""
    wrong: Sequence[int]
    """The inputs whose gradient is wrong by more."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One candidate on one edge: its projections along the directions, and those of the right cotangent."""

    edge: Edge
    ordinal: int | None
    """Among the edge's candidates; None for the right cotangent, to be scaled."""
    code: str
    cost: float
    says: str
    along: Array
    right: Array
    factors: dict[float, float]
    """Plain factors, and how far-fetched each is."""


@dataclass(frozen=True, eq=False)
class Cause:
    """A candidate with its factor, that reproduces the claim for the inputs that it `explains`."""

    trial: Trial
    factor: float
    cost: float
    second: Cause | None = None
    """A second mistake beside it."""
    explains: frozenset[int] = frozenset()
    spoils: int = 0
    """How many inputs it would change whose gradient is right."""
    residual: float = 0.0
    """How far it is off, relative to the largest error."""

    @property
    def step(self) -> Step:
        """The operation whose rule is wrong."""
        return self.trial.edge.step

    @property
    def place(self) -> int:
        """How late in the forward it stands; of a pair, both."""
        return self.step.first + (self.second.place if self.second else 0)


def found_causes(tape: Graph, replays: Replays, claim: Claim) -> list[Cause]:
    """The mistakes that reproduce the claim for some of the wrong inputs, and pairs for those that none explains."""
    arrays = tape.recording.arrays
    if sum(array.size for array in arrays) > LARGEST:
        return []
    graph = Graph(tape.recording, dead_steps(tape, claim.cotangents[0]))
    directions, tangents = moved(graph, replays, claim.wrong)
    if not tangents:
        return []
    trials = scored(graph, claim.cotangents[0], tangents)
    blocks = []
    for block, (k, along) in enumerate(zip(claim.wrong, directions, strict=True)):
        errors = np.array([np.real(np.vdot(t, claim.errors[0][k])) for t in along])
        blocks.append((k, errors, slice(block * DIRECTIONS, (block + 1) * DIRECTIONS)))
    singles = {
        (cause.trial, cause.factor): cause
        for k, errors, rows in blocks
        for cause in proposed(trials, errors, rows, arrays[k].size > 1)
    }
    found = confirmed(graph, claim, singles.values())
    explained = frozenset[int]().union(*(cause.explains for cause in found))
    pairs = [pair for k, errors, rows in blocks if k not in explained for pair in paired(trials, errors, rows)]
    return found + confirmed(graph, claim, pairs)


def dead_steps(tape: Graph, cotangents: Sequence[Array | None]) -> frozenset[int]:
    """The operations whose output the result does not depend on, because it cancels: the maximum in a stable softmax.

    A mistake elsewhere keeps it from cancelling on the tape, but not in a backward that was written without it.
    """
    sizes: dict[int, float] = {}
    dead = set()
    epsilon = coarsest(tape)

    def visit(step: Step, given: Sequence[Array | None], pulled: Sequence[tuple[int, int, Array]]) -> None:
        cotangent = given[0]
        if len(step.values) == 1 and cotangent is not None and cotangent.size:
            if float(abs(cotangent).max()) <= CANCELLED * epsilon * sizes.get(step.first, 0.0):
                dead.add(step.first)
            summed = float(abs(cotangent).sum()) if step.name in ("add", "subtract") else 0.0
            for _, number, r in pulled:
                sizes[number] = sizes.get(number, 0.0) + max(float(abs(r).max(initial=0)), summed / max(r.size, 1))

    tape.pulled(tape.starts(cotangents), visit)
    return frozenset(dead)


def coarsest(graph: Graph) -> float:
    """The largest ε on a tape."""
    return max(EPSILON.get(array.dtype.name, 0.0) for array in graph.recording.arrays)


# --------------------------------------------------------------------------- along directions
def moved(graph: Graph, replays: Replays, wrong: Sequence[int]) -> tuple[list[list[Array]], list[Array | None]]:
    """Directions of each wrong input, and per value its changes along all of them, one row each.

    There are none if another branch is taken beside the point.
    """
    arrays = graph.recording.arrays
    start = [wide(x) if x.dtype.name in EPSILON else x for x in arrays[: graph.recording.inputs]]
    random, length = np.random.default_rng(3), coarsest(graph) ** (1 / 3)
    held = {number: arrays[number] for number in graph.dead}

    def hold(name: str, out: Array, number: int) -> None:
        if number in held:
            out[...] = held[number]

    directions: list[list[Array]] = []
    rows = []
    for k in wrong:
        step = length * (float((abs(start[k]) ** 2).mean()) ** 0.5 or 1.0)
        directions.append([])
        for _ in range(DIRECTIONS):
            t = random.standard_normal(start[k].shape)
            t = t + 1j * random.standard_normal(t.shape) if start[k].dtype.kind == "c" else t
            directions[-1].append(t)
            ends = [[x + s * t if j == k else x for j, x in enumerate(start)] for s in (step, -step)]
            after, before = (replays.beside(end, hold).recording.arrays for end in ends)
            if not len(after) == len(before) == len(arrays):
                return directions, []
            rows.append([(wide(a) - wide(b)).reshape(-1) / (2 * step) for a, b in zip(after, before, strict=True)])
    stacked = [np.stack([row[number] for row in rows]) for number in range(len(arrays))]
    return directions, [matrix if matrix.any() else None for matrix in stacked]


def scored(graph: Graph, cotangents: Sequence[Array | None], tangents: Sequence[Array | None]) -> list[Trial]:
    """All candidates of all edges."""
    found: list[Trial] = []

    def visit(step: Step, given: Sequence[Array | None], pulled: Sequence[tuple[int, int, Array]]) -> None:
        for edge in edges_of(graph, step, given, pulled):
            matrix = tangents[edge.number]
            if matrix is None:
                continue
            adjoint = matrix.conj()
            right = np.real(adjoint @ edge.right.reshape(-1))
            found.append(Trial(edge, None, "", 0.0, "", right, right, plain_factors(edge)))
            for ordinal, (code, cost, says, value) in enumerate(tried(edge)):
                along = np.real(adjoint @ wide(value).reshape(-1))
                if np.isfinite(along).all():
                    found.append(Trial(edge, ordinal, code, cost, says, along, right, RULE_FACTORS))

    graph.pulled(graph.starts(cotangents), visit)
    return found


# --------------------------------------------------------------------------- proposals
def proposed(trials: Sequence[Trial], errors: Array, rows: slice, several: bool) -> Iterator[Cause]:
    """What agrees with the errors along the directions of one input, which has `several` elements or one."""
    size = float(abs(errors).max())
    for trial in trials:
        along, wanted = trial.along[rows], errors + trial.right[rows]
        if not along.any():
            continue
        unit = float(abs(along).max())  # squares of small numbers underflow
        factor = float((along / unit) @ (wanted / unit)) / float((along / unit) @ (along / unit))
        if float(abs(wanted - factor * along).max()) > SCREEN * size:
            continue
        plain = [(cost, c) for c, cost in trial.factors.items() if abs(factor - c) <= SCREEN * max(1.0, abs(c))]
        if plain:
            cost, c = min(plain)
            yield Cause(trial, c, trial.cost + cost)
        elif trial.ordinal is None and several:  # any factor fits one number
            yield Cause(trial, factor, 9.0)


def paired(trials: Sequence[Trial], errors: Array, rows: slice) -> Iterator[Cause]:
    """Two mistakes at once, one of them a share that is missing, of the wrong sign, doubled or halved."""
    size = float(abs(errors).max())
    scaled = [(t, c, (c - 1) * t.along[rows]) for t in trials if t.ordinal is None for c in (0.0, -1.0, 2.0, 0.5)]
    ruled = [(t, 1.0, t.along[rows] - t.right[rows]) for t in trials if t.ordinal is not None and t.cost < 4]
    both = [entry for entry in scaled + ruled if float(abs(entry[2]).max()) > SCREEN * size]
    if not both:
        return
    changes = np.stack([change for _, _, change in both])
    for trial, c, change in scaled:
        close = abs(changes - (errors - change)).max(axis=1) <= SCREEN * size
        for k in np.flatnonzero(close):
            other, d, _ = both[k]
            if other.edge is not trial.edge:
                yield Cause(trial, c, 10 + other.cost, Cause(other, d, other.cost))


# --------------------------------------------------------------------------- confirmed
def confirmed(graph: Graph, claim: Claim, causes: Iterable[Cause]) -> list[Cause]:
    """The least far-fetched that reproduce the claim for all cotangents, with what they explain."""
    tests = sorted(causes, key=lambda cause: (cause.cost, cause.place))[:MOST_CONFIRMED]
    worst = np.zeros((len(tests), len(claim.bars)))
    for cotangents, errors in zip(claim.cotangents, claim.errors, strict=True):
        for row, changes in zip(worst, changes_of(graph, cotangents, tests), strict=True):
            for k, (error, change) in enumerate(zip(errors, changes, strict=True)):
                largest = float(abs(error).max(initial=0)) if k in claim.wrong else 0.0
                off = float(abs(error - change).max(initial=0)) / (claim.bars[k] + EXACT_TO * largest or 1.0)
                row[k] = max(row[k], off if np.isfinite(off) else np.inf)
    found = []
    for cause, row in zip(tests, worst, strict=True):
        explains = frozenset(k for k in claim.wrong if row[k] <= 1)
        if explains:
            spoils = sum(row[k] > 1 for k in range(len(row)) if k not in claim.wrong)
            found.append(
                replace(cause, explains=explains, spoils=spoils, residual=EXACT_TO * max(row[k] for k in explains))
            )
    return found


def changes_of(graph: Graph, cotangents: Sequence[Array | None], causes: Sequence[Cause]) -> list[list[Array]]:
    """Per cause what it changes in the gradients of all inputs."""
    parts = [(k, part) for k, cause in enumerate(causes) for part in (cause, cause.second) if part is not None]
    starts: list[dict[int, Array]] = [{} for _ in causes]

    def visit(step: Step, given: Sequence[Array | None], pulled: Sequence[tuple[int, int, Array]]) -> None:
        here = [(k, part) for k, part in parts if part.step is step]
        edges = {edge.position: edge for edge in edges_of(graph, step, given, pulled)} if here else {}
        values: dict[int, list[Candidate]] = {}
        for k, part in here:
            edge, ordinal = edges[part.trial.edge.position], part.trial.ordinal
            if ordinal is not None and edge.position not in values:
                values[edge.position] = list(tried(edge))
            value = edge.right if ordinal is None else values[edge.position][ordinal].value
            change = part.factor * value - edge.right
            starts[k][edge.number] = starts[k].get(edge.number, 0) + change

    graph.pulled(graph.starts(cotangents), visit)
    return [graph.filled(graph.pulled(start)) for start in starts]
