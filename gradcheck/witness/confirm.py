"""Whether mistakes reproduce a claim: they are made on a walk over the tape, and every element compared."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.numeric.arrays import wide
from gradcheck.witness.candidates import tried
from gradcheck.witness.edges import EXACT_TO, Cause, Claim, Edge, edges_of
from gradcheck.witness.graph import Graph


def confirmed(graph: Graph, claim: Claim, causes: Sequence[Cause], most: float) -> list[Cause]:
    """Those that reproduce the claim for all cotangents, with what they explain; the simplest are given first.

    None is tried that is more far-fetched than one that explains everything, or after so many walks. A share that would
    be scaled for some inputs and not for others is no cause: backward computes it once.
    """
    found = list[Cause]()
    for cause in causes:
        complete = [c for c in found if not c.spoils and len(c.explains) == len(claim.wrong)]
        if graph.walks >= most or (complete and cause.cost > complete[-1].cost):
            break
        worst = np.zeros(len(claim.bars))
        for draw, cotangents in enumerate(claim.cotangents):
            gradients = mistaken(graph, cotangents, cause)
            apart = [float(abs(c[draw] - g).max(initial=0)) for c, g in zip(claim.gradients, gradients, strict=True)]
            worst = np.maximum(worst, np.array(apart) / claim.bars)  # NaN stays
            explains = frozenset(k for k in claim.wrong if worst[k] <= 1)
            if not explains:
                break
        else:
            spoils = int((~(worst <= 1)).sum()) - len(claim.wrong) + len(explains)
            residual = EXACT_TO * float(max(worst[[*explains]]))
            if not spoils or cause.mistakes[0][0].ordinal is not None:
                found.append(cause._replace(explains=explains, spoils=spoils, residual=residual))
    return found


def mistaken(graph: Graph, cotangents: Sequence[Array | None], cause: Cause) -> list[Array]:
    """The gradients that a walk gives on which mistakes are made."""
    pending = graph.starts(cotangents)
    for mistake, factor in cause.mistakes:
        edge = mistake.edge
        if edge.position == Edge.INCOMING:
            pending[edge.number] = pending[edge.number] + (factor - 1) * wide(cotangents[edge.output])
    for step, given, pulled in graph.walk(pending):
        here = [(mistake, factor) for mistake, factor in cause.mistakes if step in mistake.steps]
        edges = list(edges_of(graph, step, given, pulled)) if here else []
        for mistake, factor in here:  # of a constant, the first time that a line is run, there is no edge
            for edge in (edge for edge in edges if edge.position == mistake.edge.position):
                found = () if mistake.ordinal is None else itertools.islice(tried(edge), mistake.ordinal, None)
                change = factor * next((c.value for c in found), edge.right) - edge.right
                out = edge.position == Edge.OUTPUT
                pulled += step.pull([change]) if out else [(edge.position, edge.number, change)]
    return graph.filled(pending)
