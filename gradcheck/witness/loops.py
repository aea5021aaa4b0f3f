"""Mistakes that are made each time that a line is run: their effects do not add up, so the walk is tried with them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from gradcheck.backends.base import Array, Step
from gradcheck.witness.candidates import tried
from gradcheck.witness.edges import EXACT_TO, Cause, Claim, Edge, Mistake, edges_of
from gradcheck.witness.graph import Graph

DEAREST = 2
"""How far-fetched a candidate may be that is tried in a loop: each costs a walk of its own."""


def looped(graph: Graph, claim: Claim, left: Sequence[int]) -> list[Cause]:
    """The mistakes on lines that are run several times which reproduce the claim for inputs that are left."""
    runs: dict[Any, list[int]] = {}
    for step in graph.recording.steps:
        runs.setdefault((step.spot, step.name), []).append(step.first)
    last = {numbers[-1]: set(numbers) for (spot, _), numbers in runs.items() if spot is not None and len(numbers) > 1}
    mistakes: list[tuple[Mistake, float]] = []
    rights: list[list[Array]] = []

    def visit(step: Step, given: Sequence[Array | None], pulled: Sequence[tuple[int, int, Array]]) -> None:
        for edge in edges_of(graph, step, given, pulled) if step.first in last and not rights else ():
            if edge.position >= 0:
                mistakes.extend((Mistake(edge), c) for c in (0.0, -1.0, 2.0, 0.5))
                for k, (code, cost, says, _) in enumerate(tried(edge)):
                    if cost <= DEAREST:
                        mistakes.append((Mistake(edge, k, code, cost, says), 1.0))

    for cotangents in claim.cotangents:
        rights.append(graph.filled(graph.pulled(graph.starts(cotangents), visit)))
    found = []
    for mistake, factor in mistakes:
        explains = frozenset(left)
        for cotangents, errors, right in zip(claim.cotangents, claim.errors, rights, strict=True):
            wrong = walked(graph, cotangents, mistake, factor, last[mistake.edge.step.first])
            off = {k: float(abs(errors[k] - (wrong[k] - right[k])).max()) for k in explains}
            explains = frozenset(
                k for k in explains if off[k] <= claim.bars[k] + EXACT_TO * float(abs(errors[k]).max())
            )
            if not explains:
                break
        if explains:
            found.append(Cause(mistake, factor, 5 + mistake.cost, explains=explains, each_time=True))
    return found


def walked(
    graph: Graph, cotangents: Sequence[Array | None], mistake: Mistake, factor: float, steps: set[int]
) -> list[Array]:
    """The gradients that a walk gives which makes a mistake at each of some operations."""
    position, ordinal = mistake.edge.position, mistake.ordinal

    def mistaken(edge: Edge) -> Array:
        candidate = None if ordinal is None else next(itertools.islice(tried(edge), ordinal, None), None)
        return factor * edge.right if candidate is None else candidate.value

    def alter(step: Step, given: Any, pulled: list[tuple[int, int, Array]]) -> list[tuple[int, int, Array]]:
        if step.first not in steps:
            return pulled
        values = {e.position: mistaken(e) for e in edges_of(graph, step, given, pulled) if e.position == position}
        return [(p, number, values.get(p, r)) for p, number, r in pulled]

    return graph.filled(graph.pulled(graph.starts(cotangents), alter=alter))
