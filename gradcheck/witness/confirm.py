"""Whether a mistake reproduces a claim: it is made on a walk over the tape, and every element compared."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.numeric.arrays import wide
from gradcheck.witness.candidates import tried
from gradcheck.witness.edges import EXACT_TO, Cause, Claim, Edge, edges_of
from gradcheck.witness.graph import Graph


@dataclass
class Budget:
    """The walks over the tape that a search may still take; a candidate costs as much as an operation on a walk."""

    left: float


def confirmed(
    graph: Graph, claim: Claim, rights: Sequence[Sequence[Array]], causes: Sequence[Cause], budget: Budget
) -> list[Cause]:
    """Those that reproduce the claim for all cotangents, with what they explain; the simplest are given first.

    None is tried that is more far-fetched than one that explains everything. A share that would be scaled for some
    inputs and not for others is no cause: backward computes it once.
    """
    found, dearest = list[Cause](), np.inf
    for cause in causes:
        if budget.left <= 0 or cause.cost > dearest:
            break
        worst = np.zeros(len(claim.bars))
        explains = frozenset(claim.wrong)
        for cotangents, errors, right in zip(claim.cotangents, claim.errors, rights, strict=True):
            budget.left -= 1
            for k, (error, wrong) in enumerate(zip(errors, mistaken(graph, cotangents, cause), strict=True)):
                largest = float(abs(error).max(initial=0)) if k in claim.wrong else 0.0
                apart = float(abs(error - (wrong - right[k])).max(initial=0))
                worst[k] = np.maximum(worst[k], apart / (claim.bars[k] + EXACT_TO * largest or 1.0))  # NaN stays
            explains = frozenset(k for k in explains if worst[k] <= 1)
            if not explains:
                break
        else:
            spoils = sum(not worst[k] <= 1 for k in range(len(worst)) if k not in claim.wrong)
            residual = EXACT_TO * max(worst[k] for k in explains)
            if not spoils or cause.mistake.ordinal is not None:
                found.append(replace(cause, explains=explains, spoils=spoils, residual=residual))
                if not spoils and len(explains) == len(claim.wrong):
                    dearest = cause.cost
    return found


def mistaken(graph: Graph, cotangents: Sequence[Array | None], cause: Cause) -> list[Array]:
    """The gradients that a walk gives which makes a mistake, or a pair of them."""
    parts = [part for part in (cause, cause.second) if part is not None]
    pending = graph.starts(cotangents)
    for part, at in ((part, part.mistake.edge) for part in parts):
        if at.position == Edge.INCOMING:
            pending[at.number] = pending[at.number] + (part.factor - 1) * wide(cotangents[at.output])
    for step, given, pulled in graph.walk(pending):
        here = [part for part in parts if part.made_at(step)]
        edges = {edge.position: edge for edge in edges_of(graph, step, given, pulled)} if here else {}
        for part in here:
            edge, ordinal = edges.get(part.mistake.edge.position), part.mistake.ordinal
            if edge is None:  # a constant, the first time
                continue
            found = None if ordinal is None else next(itertools.islice(tried(edge), ordinal, None), None)
            change = part.factor * (edge.right if found is None else found.value) - edge.right
            pulled += step.pull([change]) if edge.position == Edge.OUTPUT else [(edge.position, edge.number, change)]
    return graph.filled(pending)
