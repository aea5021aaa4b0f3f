"""The search for the mistakes that turn the tape's gradient into a claim.

With r the cotangent of one input of one operation, a backward that hands on A in its place gives G + pull(A − r), and
one that only scales it gives G + (c − 1) pull(r). Nearly all candidates are sorted out without pulling: along a
direction t of the inputs, pull(A) is ⟨tangent, A⟩, one product with the change of that value when the inputs move along
t. Those that agree along a few directions are pulled back for several cotangents, and must reproduce the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gradcheck.backends.base import Array, Step
from gradcheck.numeric.arrays import EPSILON, wide
from gradcheck.witness.candidates import RULE_FACTORS, plain_factors, tried
from gradcheck.witness.edges import EXACT_TO, Candidate, Cause, Claim, Mistake, edges_of
from gradcheck.witness.graph import Graph, dead_steps
from gradcheck.witness.loops import looped
from gradcheck.witness.rounding import Replays
from gradcheck.witness.tape import Tape

DIRECTIONS = 6
"""Along which each wrong input is moved: numbers that a candidate must agree with, or a pair of them."""

SCREEN, UNITS = 1e-4, 32
"""To what part of the error a candidate must agree along the directions, and to how many ε of the coarsest dtype if
that is more. Tangents are central differences with a step of ε^⅓, right to about ε^⅔: 1e-10 in float64, 2e-5 where
values are rounded to float32. A projection on the tape adds up a few values, each rounded by an ε."""

MOST_CONFIRMED = 40
"""Candidates that are pulled back, the least far-fetched first."""

LARGEST, MOST_RULED = 10_000_000, 1_000_000
"""Numbers on a tape on which causes are sought, and on which those are that are not plain shares. Tangents hold them
`DIRECTIONS` times; the search takes about 0.3 µs a number for shares and 2 µs for all (LayerNorm of 256 × 1024)."""

PLAIN = 1.0
"""The cost up to which a share explains an input so well that no rule is looked for: missing, wrong sign, a mean."""


def found_causes(tape: Tape, claim: Claim) -> list[Cause]:
    """The mistakes that reproduce the claim for some of the wrong inputs, and pairs for those that none explains.

    First those that explain all wrong inputs at once, of these first the plain shares; only what is left is looked at
    input by input.
    """
    size = sum(array.size for array in tape.recording.arrays)
    if size > LARGEST:
        return []
    graph = Graph(tape.recording, dead_steps(tape, claim.cotangents[0]))
    found: list[Cause] = []
    left = list(claim.wrong)
    for together in (True, False) if len(left) > 1 else (True,):
        groups = [left] if together else [[k] for k in left]
        probes = probed(graph, tape.replays, claim, groups) if left else None
        if probes is None:
            return found
        for ruled in (False, True):
            if not left or (ruled and size > MOST_RULED):
                return found
            if together or ruled:
                trials = scored(graph, claim.cotangents[0], probes.tangents, ruled)
                found += confirmed(graph, claim, proposed(trials, probes, several(graph, groups)))
            plain = [cause for cause in found if ruled or cause.cost <= PLAIN]
            left = [k for k in claim.wrong if not any(k in cause.explains for cause in plain)]
    if left:
        found += looped(graph, claim, left)
        left = [k for k in left if not any(k in cause.explains for cause in found)]
    return found + confirmed(graph, claim, paired(trials, probes, left)) if left and probes else found


def several(graph: Graph, groups: Sequence[Sequence[int]]) -> list[bool]:
    """Whether a group of inputs has more than one element: any factor fits one number."""
    return [sum(graph.recording.arrays[k].size for k in group) > 1 for group in groups]


# --------------------------------------------------------------------------- along directions
class Trial(NamedTuple):
    """A mistake by its projections along the directions, and those of the right cotangent there."""

    mistake: Mistake
    along: Array
    right: Array
    factors: dict[float, float]
    """Plain factors, and how far-fetched each is."""


class Probes(NamedTuple):
    """Groups of wrong inputs, each moved along a few directions: one row per direction, group after group."""

    groups: Sequence[Sequence[int]]
    errors: Array
    """The projections of the claim's error."""
    tangents: Sequence[Array | None]
    """Per value its changes, flat; None where there are none."""
    screen: float
    """To what part of the error a candidate must agree."""


def probed(graph: Graph, replays: Replays, claim: Claim, groups: Sequence[Sequence[int]]) -> Probes | None:
    """The changes of all values when groups of inputs are moved; None if another branch is taken beside the point."""
    arrays = graph.recording.arrays
    start = [wide(x) if x.dtype.name in EPSILON else x for x in arrays[: graph.recording.inputs]]
    random, step = np.random.default_rng(3), graph.coarsest ** (1 / 3)
    held = {number: arrays[number] for number in graph.dead}

    def hold(name: str, out: Array, number: int) -> None:
        if number in held:
            out[...] = held[number]

    errors, rows = [], []
    for group in [group for group in groups for _ in range(DIRECTIONS)]:
        t = {k: random.standard_normal(start[k].shape) * typical(start[k]) for k in group}
        t = {k: d + 1j * random.standard_normal(d.shape) if start[k].dtype.kind == "c" else d for k, d in t.items()}
        errors.append(sum(float(np.real(np.vdot(d, claim.errors[0][k]))) for k, d in t.items()))
        ends = [[x + s * t[k] if k in t else x for k, x in enumerate(start)] for s in (step, -step)]
        after, before = (replays.beside(end, hold).recording.arrays for end in ends)
        if not len(after) == len(before) == len(arrays):
            return None
        pairs = zip(after, before, strict=True)  # times 1.0: masks among the inputs count as numbers
        rows.append([(wide(1.0 * a) - wide(1.0 * b)).reshape(-1) / (2 * step) for a, b in pairs])
    stacked = [np.stack([row[number] for row in rows]) for number in range(len(arrays))]
    tangents = [matrix if matrix.any() else None for matrix in stacked]
    return Probes(groups, np.array(errors), tangents, max(SCREEN, UNITS * graph.coarsest))


def typical(x: Array) -> float:
    """The size of an array's elements."""
    return float((abs(x) ** 2).mean()) ** 0.5 or 1.0


def scored(
    graph: Graph, cotangents: Sequence[Array | None], tangents: Sequence[Array | None], ruled: bool
) -> list[Trial]:
    """The right cotangents of all edges, to be scaled, and if `ruled` all candidates in their place."""
    found: list[Trial] = []

    def visit(step: Step, given: Sequence[Array | None], pulled: Sequence[tuple[int, int, Array]]) -> None:
        for edge in edges_of(graph, step, given, pulled):
            matrix = tangents[edge.number]
            if matrix is None:
                continue
            adjoint = matrix.conj()
            right = np.real(adjoint @ edge.right.reshape(-1))
            found.append(Trial(Mistake(edge), right, right, plain_factors(edge)))
            for ordinal, (code, cost, says, value) in enumerate(tried(edge) if ruled else ()):
                along = np.real(adjoint @ wide(value).reshape(-1))
                if np.isfinite(along).all():
                    found.append(Trial(Mistake(edge, ordinal, code, cost, says), along, right, RULE_FACTORS))

    graph.pulled(graph.starts(cotangents), visit)
    return found


# --------------------------------------------------------------------------- proposals
def proposed(trials: Sequence[Trial], probes: Probes, several: Sequence[bool]) -> list[Cause]:
    """What agrees with the errors of a group along its directions. A group of several elements may have any factor."""
    found: dict[tuple[Mistake, float], Cause] = {}
    for block, many in enumerate(several if trials else ()):
        errors, along, right = projections(trials, probes, block)
        wanted = errors + right
        unit = abs(along).max(1, keepdims=True)  # squares of small numbers underflow
        factors = (along / unit * (wanted / unit)).sum(1) / ((along / unit) ** 2).sum(1)
        off = abs(wanted - factors[:, None] * along).max(1)
        for k in map(int, np.flatnonzero(off <= probes.screen * abs(errors).max())):
            mistake, factor, known = trials[k].mistake, float(factors[k]), trials[k].factors.items()
            plain = [(cost, c) for c, cost in known if abs(factor - c) <= probes.screen * max(1.0, abs(c))]
            if plain:
                cost, c = min(plain)
                found[mistake, c] = Cause(mistake, c, mistake.cost + cost)
            elif mistake.ordinal is None and many:
                found[mistake, factor] = Cause(mistake, factor, 9.0)
    return list(found.values())


def projections(trials: Sequence[Trial], probes: Probes, block: int) -> tuple[Array, Array, Array]:
    """Along the directions of one group: the errors, and per trial its own and the right cotangent's projections."""
    rows = slice(block * DIRECTIONS, (block + 1) * DIRECTIONS)
    return probes.errors[rows], np.stack([t.along[rows] for t in trials]), np.stack([t.right[rows] for t in trials])


def paired(trials: Sequence[Trial], probes: Probes, left: Sequence[int]) -> list[Cause]:
    """Two mistakes at once, one of them a share that is missing, of the wrong sign, doubled or halved."""
    found = []
    for block in (k for k, group in enumerate(probes.groups) if trials and group[0] in left):
        errors, along, right = projections(trials, probes, block)
        size = probes.screen * float(abs(errors).max())
        both = [(k, c) for k, t in enumerate(trials) if t.mistake.ordinal is None for c in (0.0, -1.0, 2.0, 0.5)]
        scaled = len(both)
        both += [(k, 1.0) for k, t in enumerate(trials) if t.mistake.ordinal is not None and t.mistake.cost < 4]
        changes = np.stack([c * along[k] - right[k] for k, c in both])
        for first in np.flatnonzero(abs(changes[:scaled]).max(1) > size):
            close = abs(changes - (errors - changes[first])).max(1) <= size
            for second in np.flatnonzero(close & (abs(changes).max(1) > size)):
                a, b = trials[both[first][0]].mistake, trials[both[second][0]].mistake
                if a.edge is not b.edge:
                    found.append(Cause(a, both[first][1], 10 + b.cost, Cause(b, both[second][1], b.cost)))
    return found


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
            edge, ordinal = edges[part.mistake.edge.position], part.mistake.ordinal
            if ordinal is not None and edge.position not in values:
                values[edge.position] = list(tried(edge))
            value = edge.right if ordinal is None else values[edge.position][ordinal].value
            change = part.factor * value - edge.right
            starts[k][edge.number] = starts[k].get(edge.number, 0) + change

    graph.pulled(graph.starts(cotangents), visit)
    return [graph.filled(graph.pulled(start)) for start in starts]
