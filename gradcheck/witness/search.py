"""The search for the single mistake that turns the tape's gradient into a claim.

With the cotangent r of one input of one operation, a backward that hands on A in its place gives G + pull(A − r) instead of
G; one that only scales it, by linearity, G + (c − 1) pull(r). What pull(A) is need not be computed to sort out nearly
all candidates: its projection on a direction t of the inputs is ⟨tangent along t, A⟩, one product with the change of the
value when the inputs move along t. Those that agree on a few directions are pulled back, for several cotangents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from gradcheck.witness.candidates import Edge, candidates, substitutions
from gradcheck.witness.graph import EPSILON, Array, Graph, Step, wide
from gradcheck.witness.rounding import Replays

DIRECTIONS = 6
"""Along which each wrong input is moved: a pair of candidates with two free factors leaves 4 numbers to agree."""

SCREEN = 1e-4
"""To what part of the error a candidate must agree along the directions. Tangents are central differences with a step
of ε^⅓, right to about ε^⅔: 1e-10 in float64, 2e-5 where values are rounded to float32."""

EXACT_TO = 1e-10
"""To what part of the largest error each element must be reproduced, beside the rounding."""

MOST_CONFIRMED = 40
"""Candidates that are pulled back, the least far-fetched first."""

LARGEST = 4_000_000
"""Numbers on a tape on which causes are sought: tangents hold them `DIRECTIONS` times per wrong input."""


@dataclass(frozen=True)
class Cause:
    """A mistake: the right cotangent of one input of an operation is replaced by `factor` times a candidate.

    `position` is the input; None if the cotangent of the output is meant, which is only scaled. `candidate` is the
    ordinal of the candidate among those of the edge; None for the right one.
    """

    step: Step
    position: int | None
    number: int
    candidate: int | None
    factor: float
    code: str
    cost: float
    says: str
    explains: frozenset[int] = frozenset()
    """The inputs whose gradient it reproduces."""
    spoils: int = 0
    """How many inputs it would change whose gradient is right."""
    residual: float = 0.0


class Claim(NamedTuple):
    """What is to be explained, per cotangent: how far the claim is from the tape, per input."""

    cotangents: Sequence[Sequence[Array | None]]
    errors: Sequence[Sequence[Array]]
    bars: Sequence[float]
    """Per input, what of it may be rounding."""
    wrong: Sequence[int]
    """The inputs whose gradient is wrong by more."""


@dataclass
class Score:
    """A candidate's projections on the directions, one row per direction of each wrong input."""

    step: Step
    position: int | None
    number: int
    ordinal: int | None
    code: str
    cost: float
    says: str
    projections: Array
    factors: dict[float, float] = field(default_factory=dict)
    """Factors that would be plain here, and how far-fetched."""


def found_causes(tape: Graph, replays: Replays, claim: Claim, names: Sequence[str]) -> list[Cause]:
    """The mistakes that reproduce the claim for some of the wrong inputs, those of one edge before pairs."""
    if sum(array.size for array in tape.recording.arrays) > LARGEST:
        return []
    directions, tangents = moved(tape, replays, claim.wrong)
    if not tangents:
        return []
    errors = np.concatenate(
        [[inner(t, claim.errors[0][k]) for t in along] for k, along in zip(claim.wrong, directions, strict=True)]
    )
    scores = scored(tape, claim.cotangents[0], tangents, names)
    proposals: dict[tuple[Any, ...], Cause] = {}
    for block in range(len(claim.wrong)):
        rows = slice(block * DIRECTIONS, (block + 1) * DIRECTIONS)
        for cause in proposed(scores, errors[rows], rows):
            proposals.setdefault((id(cause.step), cause.position, cause.candidate, cause.factor), cause)
    ordered = sorted(proposals.values(), key=lambda cause: (cause.cost, cause.step.first))[:MOST_CONFIRMED]
    return confirmed(tape, claim, ordered, names)


# --------------------------------------------------------------------------- along directions
def moved(tape: Graph, replays: Replays, wrong: Sequence[int]) -> tuple[list[list[Array]], list[Array | None]]:
    """Directions of each wrong input, and per value the changes along them, one row each; empty if there are none."""
    start = [
        wide(array) if array.dtype.name in EPSILON else array
        for array in tape.recording.arrays[: tape.recording.inputs]
    ]
    random = np.random.default_rng(3)
    coarsest = max(EPSILON[a.dtype.name] for a in tape.recording.arrays if a.dtype.name in EPSILON)
    directions, rows = [], []
    for k in wrong:
        size = float((abs(start[k]) ** 2).mean()) ** 0.5 or 1.0
        along = [random.standard_normal(start[k].shape) for _ in range(DIRECTIONS)]
        if start[k].dtype.kind == "c":
            along = [t + 1j * random.standard_normal(t.shape) for t in along]
        directions.append(along)
        for t in along:
            step = size * coarsest ** (1 / 3)
            ends = [replays.beside([x + s * step * t if j == k else x for j, x in enumerate(start)]) for s in (1, -1)]
            rows.append(
                [(wide(a) - wide(b)) / (2 * step) for a, b in zip(*(e.recording.arrays for e in ends), strict=False)]
            )
    count = len(tape.recording.arrays)
    if any(len(row) != count for row in rows):  # another branch was taken beside the point
        return directions, []
    stacked: list[Array | None] = []
    for number in range(count):
        matrix = np.stack([row[number].reshape(-1) for row in rows])
        stacked.append(matrix if bool(matrix.any()) else None)
    return directions, stacked


def inner(t: Array, value: Array) -> float:
    """The real part of ⟨t, value⟩."""
    return float(np.real(np.vdot(t, value)))


def scored(
    tape: Graph, cotangents: Sequence[Array | None], tangents: Sequence[Array | None], names: Sequence[str]
) -> list[Score]:
    """All candidates of all edges, and their projections."""
    found: list[Score] = []

    def projected(number: int, value: Array) -> Array | None:
        matrix = tangents[number]
        return None if matrix is None else np.real(matrix.conj() @ wide(value).reshape(-1))

    def visit(step: Step, given: Sequence[Array | None], pulled: Sequence[tuple[int, int, Array]]) -> None:
        if len(pulled) > 1 and len(step.values) == 1 and given[0] is not None:
            whole = projected(step.first, given[0])
            if whole is not None:
                found.append(Score(step, None, step.first, None, "", 0.5, "", whole, plain_factors(step, step.values)))
        for edge in edges_of(tape, step, given, pulled):
            right = projected(edge.number, edge.right)
            if right is None:
                continue
            factors = plain_factors(step, [*step.values, edge.right])
            found.append(Score(step, edge.position, edge.number, None, "", 0, "", right, factors))
            for ordinal, c in enumerate(tried(tape, edge, names)):
                along = projected(edge.number, c.value)
                assert along is not None
                if np.isfinite(along).all():
                    found.append(Score(step, edge.position, edge.number, ordinal, c.code, c.cost, c.says, along))

    tape.pulled(tape.starts(cotangents), visit)
    return found


def edges_of(
    tape: Graph, step: Step, given: Sequence[Array | None], pulled: Sequence[tuple[int, int, Array]]
) -> Iterator[Edge]:
    """The edges of an operation."""
    for position, number, right in pulled:
        siblings = [r for p, _, r in pulled if p != position and r.shape == right.shape]
        yield Edge(step, position, number, given, right, tape.recording.arrays, siblings)


def tried(tape: Graph, edge: Edge, names: Sequence[str]) -> Iterator[Any]:
    """The candidates of an edge: of its own operation, then its rule with other values."""
    yield from candidates(edge)
    yield from substitutions(edge, pool(tape, edge, names))


def pool(tape: Graph, edge: Edge, names: Sequence[str]) -> dict[str, Array]:
    """The values that could be mistaken for one that the rule of an edge reads, by their numbers."""
    shapes = {v.shape for v in edge.step.operands().values() if hasattr(v, "shape")}
    return {f"#{k}": array for k, array in enumerate(tape.recording.arrays) if array.shape in shapes}


def plain_factors(step: Step, shaped: Sequence[Array]) -> dict[float, float]:
    """Factors that explain themselves where these arrays are, and how far-fetched each is."""
    found = {0.0: 0.0, -1.0: 1.0, 2.0: 1.5, 0.5: 1.5, -2.0: 3.0, -0.5: 3.0, 3.0: 3.0, 1 / 3: 3.0, 4.0: 3.5, 0.25: 3.5}
    for n in {n for array in shaped for n in (*array.shape, array.size) if n > 1}:
        reducing = 1.0 if step.name in ("sum", "mean", "max", "min", "broadcast_to") or len(shaped) > 1 else 2.0
        for c in (float(n), 1 / n):
            found.setdefault(c, reducing)
            found.setdefault(-c, 3.0)
        if n > 2:
            for c in (n / (n - 1), (n - 1) / n):
                found.setdefault(c, 2.0)
    return found


# --------------------------------------------------------------------------- proposals
def proposed(scores: Sequence[Score], errors: Array, rows: slice) -> Iterator[Cause]:
    """What agrees with the errors along the directions of one input."""
    size = float(abs(errors).max())
    right: dict[tuple[int, int | None], Array] = {}
    for score in scores:
        along = score.projections[rows]
        if score.ordinal is None:
            right[id(score.step), score.position] = along
        if not along.any():
            continue
        wanted = errors + right[id(score.step), score.position]
        factor = float(along @ wanted) / float(along @ along)
        if float(abs(wanted - factor * along).max()) > SCREEN * size:
            continue
        plain = nearest(factor, score.factors if score.ordinal is None else RULE_FACTORS)
        if plain is not None:
            c, more = plain
            if score.ordinal is None and c == 1:
                continue
            yield Cause(
                score.step, score.position, score.number, score.ordinal, c, score.code, score.cost + more, score.says
            )
        elif score.ordinal is None:
            yield Cause(score.step, score.position, score.number, None, factor, score.code, 9, score.says)


RULE_FACTORS = {1.0: 0.0, -1.0: 0.5, 2.0: 1.0, 0.5: 1.0, -2.0: 1.5, -0.5: 1.5, 3.0: 2.0, 1 / 3: 2.0}
"""Factors that a wrong rule may have beside, and how far-fetched they are."""


def nearest(factor: float, plain: dict[float, float]) -> tuple[float, float] | None:
    """The plain factor that this one is up to `SCREEN`."""
    near = [(cost, c) for c, cost in plain.items() if abs(factor - c) <= SCREEN * max(1.0, abs(c))]
    return min(near)[::-1] if near else None


# --------------------------------------------------------------------------- confirmed
def confirmed(tape: Graph, claim: Claim, proposals: Sequence[Cause], names: Sequence[str]) -> list[Cause]:
    """Those that reproduce the claim for all cotangents, with what they explain."""
    residuals = [np.zeros(tape.recording.inputs) for _ in proposals]
    for cotangents, errors in zip(claim.cotangents, claim.errors, strict=True):
        changes = changes_of(tape, cotangents, proposals, names)
        for residual, change in zip(residuals, changes, strict=True):
            for k, (error, delta) in enumerate(zip(errors, change, strict=True)):
                largest = float(abs(error).max(initial=0)) if k in claim.wrong else 0.0
                bar = claim.bars[k] + EXACT_TO * largest
                off = float(abs(error - delta).max(initial=0)) / (bar or 1.0)
                residual[k] = max(residual[k], off if np.isfinite(off) else np.inf)
    found = []
    for cause, residual in zip(proposals, residuals, strict=True):
        explains = frozenset(k for k in claim.wrong if residual[k] <= 1)
        if explains:
            spoils = sum(residual[k] > 1 for k in range(len(residual)) if k not in claim.wrong)
            found.append(
                replace(cause, explains=explains, spoils=spoils, residual=EXACT_TO * max(residual[k] for k in explains))
            )
    return found


def changes_of(
    tape: Graph, cotangents: Sequence[Array | None], proposals: Sequence[Cause], names: Sequence[str]
) -> list[list[Array]]:
    """Per proposal what it changes in the gradients of all inputs."""
    starts: list[dict[int, Array]] = [{} for _ in proposals]

    def visit(step: Step, given: Sequence[Array | None], pulled: Sequence[tuple[int, int, Array]]) -> None:
        here = [(k, cause) for k, cause in enumerate(proposals) if cause.step is step]
        if not here:
            return
        edges = {edge.position: edge for edge in edges_of(tape, step, given, pulled)}
        for k, cause in here:
            if cause.position is None:
                starts[k] = {cause.number: (cause.factor - 1) * given[0]}  # type: ignore[operator]
                continue
            edge = edges[cause.position]
            values = edge.right if cause.candidate is None else list(tried(tape, edge, names))[cause.candidate].value
            starts[k] = {cause.number: cause.factor * values - edge.right}

    tape.pulled(tape.starts(cotangents), visit)
    return [tape.filled(tape.pulled(start)) for start in starts]
