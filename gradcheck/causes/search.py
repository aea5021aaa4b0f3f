"""The search for the mistakes that turn the tape's gradient into a claim.

With r the cotangent of one input of one operation, a backward that hands on A in its place gives G + pull(A − r), and
one that only scales it gives G + (c − 1) pull(r). Nearly all candidates are sorted out without pulling: along a
direction t of the inputs, pull(A) is ⟨tangent, A⟩, one product with the change of that value when the inputs move along
t. Those that agree along a few directions are pulled back for several cotangents, and must reproduce the claim.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array, Step
from gradcheck.causes.candidates import all_candidates
from gradcheck.causes.edges import EXACT_TO, Cause, Edge, Mistake, Unexplained, edges_of, factors, incoming, whole
from gradcheck.checking.arrays import EPSILON, inner, wide
from gradcheck.checking.differences import moved, random_direction, scale_of
from gradcheck.checking.graph import Graph
from gradcheck.checking.problem import Reruns

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

SIMPLER = 2.0
"""How much less far-fetched a mistake is that is made in all equal computations: half of all (1.5) is simpler than one
of two missing (0)."""

SHARES = (0.0, -1.0, 2.0, 0.5)
"""Factors of a share that is missing, of the wrong sign, counted twice or by half."""

DEAREST = 2.0
"""How far-fetched a rule may be that is tried each time that a line is run, which costs a walk, and with a second
mistake: in a pair, or with a factor."""


def found_causes(graph: Graph, reruns: Reruns, claim: Unexplained, walks: float) -> list[Cause]:
    """The mistakes that reproduce the claim for some of the wrong inputs, and pairs for those that none explains.

    First those that explain all wrong inputs at once, also if they are made each time that a line is run; only what is
    left is looked at input by input. Where the walks that it may take are used up, the search ends.
    """
    size, steps = sum(array.size for array in graph.recording.arrays), max(len(graph.recording.steps), 1)
    found, most = list[Cause](), graph.walks + max(walks, LEAST_PULLED / steps)
    ruled = set(graph.recording.steps) if size <= MOST_RULED else set[Step]()
    if (
        steps > most - graph.walks
    ):  # rules that read each other's values are steps² candidates, as many as so many walks
        ruled -= {step for run in graph.runs for step in run[:-1]}
    groups = [] if size > MOST_TAPE_NUMBERS else [claim.wrong, *([k] for k in claim.wrong if len(claim.wrong) > 1)]

    def unexplained(group: Sequence[int]) -> bool:
        return graph.walks < most and not any(k in cause.explains for cause in found for k in group)

    for group in groups:
        probes = probed(graph, reruns, claim, group, ruled) if unexplained(group) else None
        if probes is None:
            continue
        graph.walks += 2 * DIRECTIONS + len(probes.mistakes) / steps  # a candidate costs as much as an operation
        found += confirmed(graph, claim, proposed(probes), most)
        if group is claim.wrong and ruled and unexplained(group):
            found += confirmed(graph, claim, repeated(graph, probes), most)
        if len(group) == 1 and ruled and unexplained(group) and group[0] not in claim.scaled:
            found += confirmed(graph, claim, paired(probes), most)
    return [cause for cause in found if not (cause.spoils and cause.explains <= set(claim.scaled))]


# --------------------------------------------------------------------------- along directions
class Probes(NamedTuple):
    """What is seen along a few directions of some wrong inputs."""

    errors: Array
    """The projections of the claim's error."""
    mistakes: Sequence[Mistake]
    screen: float
    """To what part of the error a candidate must agree."""
    several: bool
    """Whether more than one number is wrong: any factor fits one."""

    @property
    def within(self) -> float:
        """The same, as a number."""
        return self.screen * float(abs(self.errors).max())


def probed(graph: Graph, reruns: Reruns, claim: Unexplained, group: Sequence[int], ruled: set[Step]) -> Probes | None:
    """All mistakes along directions of some inputs; rules too of the operations in `ruled`.

    None if no operation depends on these inputs, or another branch is taken beside the point.
    """
    arrays = graph.recording.arrays
    start = [wide(x) if x.dtype.name in EPSILON else x for x in arrays[: graph.recording.inputs]]
    random, step = np.random.default_rng(3), graph.coarsest ** (1 / 3)
    held = {number: arrays[number] for number in graph.dead}

    def hold(name: str, out: Array, number: int) -> None:
        if number in held:
            out[...] = held[number]

    errors, rows = [], []
    for _ in range(DIRECTIONS):
        direction = [random_direction(x, scale_of(x), random) if k in group else None for k, x in enumerate(start)]
        errors.append(sum(inner(claim.errors[k], direction[k]) for k in group))
        sides = [reruns.recording(moved(start, direction, h), hold) for h in (step, -step)]
        after, before = ([] if side is None else side.arrays for side in sides)
        if not len(after) == len(before) == len(arrays):
            return None
        pairs = zip(after, before, strict=True)  # times 1.0: masks among the inputs count as numbers
        rows.append([(wide(1.0 * a) - wide(1.0 * b)).reshape(-1) / (2 * step) for a, b in pairs])
    mistakes = projected(graph, claim, [np.stack(changes) for changes in zip(*rows, strict=True)], ruled)
    several = any(k in claim.several for k in group)
    return Probes(np.array(errors), mistakes, max(SCREEN, SCREEN_UNITS * graph.coarsest), several) if mistakes else None


def projected(graph: Graph, claim: Unexplained, tangents: Sequence[Array], ruled: set[Step]) -> list[Mistake]:
    """The right cotangents of all edges, to be scaled, and of the operations in `ruled` all candidates in their place.

    `tangents` are the changes of each value, one row per direction, flat.
    """
    found: list[Mistake] = []
    cotangents = claim.cotangents[0]
    flows = graph.flows(cotangents) if ruled else {}
    edges = (edge for passed in graph.walk(graph.starts(cotangents)) for edge in edges_of(graph, *passed, flows))
    for edge in itertools.chain(incoming(graph, cotangents), edges, whole(graph, flows)):
        if not tangents[edge.number].any():
            continue
        adjoint = tangents[edge.number].conj()
        right = np.real(adjoint @ edge.right.reshape(-1))
        steps = frozenset([edge.step] if edge.position not in (Edge.INCOMING, Edge.WHOLE) else [])
        chained = edge.position in (Edge.WHOLE, Edge.COMPOSED) or (
            edge.position == Edge.INCOMING and len(cotangents) == 1
        )
        if not chained:  # else as a share it is that of an operation of its own
            found.append(Mistake(edge, right, right, steps))
        for ordinal, candidate in enumerate(all_candidates(edge) if edge.step in ruled else ()):
            if (value := candidate.fitting(edge)) is not None:
                along = np.real(adjoint @ wide(value).reshape(-1))
                if float(abs(along - right).max()) <= EXACT_TO * float(abs(right).max()):
                    continue  # no mistake: the rule does not read what would be another
                found.append(Mistake(edge, along, right, steps, ordinal, *candidate[:3]))
    return [*found, *in_all_equals(graph, found), *in_all_runs_but_one(graph, found)]


def in_all_equals(graph: Graph, mistakes: Sequence[Mistake]) -> Iterator[Mistake]:
    """A mistake made in all operations that compute the same of the same: their effects add up, where they have any."""
    groups: dict[Any, list[Mistake]] = {}
    for m in mistakes:
        if m.steps and m.edge.step in graph.equals:
            groups.setdefault((graph.equals[m.edge.step], m.edge.position, m.ordinal, m.says), []).append(m)
    for members in groups.values():
        sizes = [float(max(abs(m.along).max(), abs(m.right).max())) for m in members]
        group = [m for m, size in zip(members, sizes, strict=True) if size > SCREEN * max(sizes)]
        if len(group) > 1:
            yield replace(together(group), cost=group[-1].cost - SIMPLER)


def in_all_runs_but_one(graph: Graph, mistakes: Sequence[Mistake]) -> Iterator[Mistake]:
    """Shares of a value that all runs of a line read, but that of one: a sum over the runs that is overwritten."""
    shares = {(m.edge.step, m.edge.position): m for m in mistakes if m.ordinal is None and m.steps}
    for run in (run for run in graph.runs if len(run) > 2):
        for position, number in enumerate(run[0].edges):
            found = [shares[step, position] for step in run if (step, position) in shares]
            if len(found) == len(run) and all(m.edge.number == number for m in found):
                for which, one, rest in (("first", found[0], found[1:]), ("last", found[-1], found[:-1])):
                    if float(abs(one.right).max()) <= SCREEN * max(float(abs(m.right).max()) for m in rest):
                        continue  # what has no share is no exception
                    yield replace(together(rest), when=f", in all runs but the {which}")


def together(mistakes: Sequence[Mistake]) -> Mistake:
    """One mistake made in several operations, whose effects add up."""
    along, right = sum(m.along for m in mistakes), sum(m.right for m in mistakes)
    return replace(mistakes[-1], along=along, right=right, steps=frozenset[Step]().union(*(m.steps for m in mistakes)))


# --------------------------------------------------------------------------- proposals
def likeliest(causes: Iterable[Cause]) -> list[Cause]:
    """The least far-fetched, the first in the forward before others."""
    return sorted(causes, key=lambda cause: cause.rank)[:MOST_CONFIRMED]


def proposed(probes: Probes) -> list[Cause]:
    """What agrees with the errors along the directions. A share of several numbers may be off by any factor."""
    found = []
    along = np.stack([m.along for m in probes.mistakes])
    wanted = probes.errors + np.stack([m.right for m in probes.mistakes])
    unit = abs(along).max(1, keepdims=True)  # squares of small numbers underflow
    best = (along / unit * (wanted / unit)).sum(1) / ((along / unit) ** 2).sum(1)
    off = abs(wanted - best[:, None] * along).max(1)
    for k in map(int, np.flatnonzero(off <= probes.within)):
        mistake, factor = probes.mistakes[k], float(best[k])
        known = factors(mistake) if mistake.cost <= DEAREST else {1.0: 0.0}
        if mistake.ordinal is None and probes.several:
            known |= {factor: ANY_FACTOR}
        near = [(cost, c) for c, cost in known.items() if abs(factor - c) <= probes.screen * max(1.0, abs(c))]
        found += [Cause([(mistake, c)], mistake.cost + cost) for cost, c in sorted(near)[:1]]
    return likeliest(found)


def simple(mistakes: Sequence[Mistake]) -> list[tuple[Mistake, float]]:
    """Rules that are not too far-fetched, as they are, and shares by the plainest of factors."""
    return [(m, c) for m in mistakes if m.cost <= DEAREST for c in (SHARES if m.ordinal is None else (1.0,))]


def paired(probes: Probes) -> list[Cause]:
    """Two mistakes at once, one of them a share."""
    found = []
    both = simple(probes.mistakes)
    changes = np.stack([c * mistake.along - mistake.right for mistake, c in both])
    size = probes.within
    felt = abs(changes).max(1) > size
    order = np.argsort(changes[:, 0])
    wanted = probes.errors[0] - changes[:, 0]
    low, high = (np.searchsorted(changes[order, 0], wanted + margin) for margin in (-size, size))
    for first in np.flatnonzero(felt & [mistake.ordinal is None for mistake, _ in both]):
        fits = order[low[first] : high[first]]
        for second in fits[felt[fits] & (abs(changes[first] + changes[fits] - probes.errors).max(1) <= size)]:
            pair = [both[first], both[second]]
            if pair[0][0].edge is not pair[1][0].edge:
                found.append(Cause(pair, sum(mistake.cost for mistake, _ in pair)))
    return likeliest(found)


def repeated(graph: Graph, probes: Probes) -> list[Cause]:
    """A mistake on a line that is run several times, as in a loop, made each time: their effects do not add up.

    Each of their projections is that of one run; of those that agree in it the simplest comes first, the others last.
    """
    runs = {run[-1]: run for run in graph.runs}
    found = []
    for mistake, factor in simple([m for m in probes.mistakes if m.steps and m.edge.step in runs]):
        steps = mistake.steps.union(runs[mistake.edge.step])
        change = tuple(np.rint((factor * mistake.along - mistake.right) / probes.within))
        found.append((change, Cause([(replace(mistake, steps=steps, when=", each time"), factor)], mistake.cost)))
    found.sort(key=lambda alike: alike[1].rank)
    first: dict[Any, Cause] = {}  # along a chain a factor is the same on every line
    for change, cause in found:
        first.setdefault(change, cause)
    others = [c for change, c in found if c is not first[change] and c.mistakes[0][0].ordinal is not None]
    return [*first.values(), *others]


# --------------------------------------------------------------------------- on a walk over the tape
def confirmed(graph: Graph, claim: Unexplained, causes: Sequence[Cause], most: float) -> list[Cause]:
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
            rows = zip(claim.gradients, gradients, strict=True)
            apart = [float(abs(c[draw] - g).max(initial=0)) for c, g in rows]
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
            right = wide(cotangents[edge.output])
            incoming_edge = replace(edge, given=[right], right=right)
            pending[edge.number] = pending[edge.number] + factor * handed_on(mistake, incoming_edge) - right
    flows = graph.flows(cotangents) if any(m.ordinal is not None for m, _ in cause.mistakes) else {}
    for step, given, pulled in graph.walk(pending):
        here = [(mistake, factor) for mistake, factor in cause.mistakes if step in mistake.steps]
        edges = list(edges_of(graph, step, given, pulled, flows)) if here else []
        for mistake, factor in here:  # of a constant, the first time that a line is run, there is no edge
            for edge in (edge for edge in edges if edge.position == mistake.edge.position):
                change = factor * handed_on(mistake, edge) - edge.right
                out = edge.position == Edge.OUTPUT
                pulled += step.pull([change]) if out else [(edge.position, edge.number, change)]
    for mistake, factor in cause.mistakes:
        if mistake.edge.position == Edge.WHOLE:
            k = mistake.edge.number
            pending[k] = factor * handed_on(mistake, replace(mistake.edge, right=pending[k]))
    return graph.filled(pending)


def handed_on(mistake: Mistake, edge: Edge) -> Array:
    """What a mistake hands on in place of the right cotangent of an edge."""
    found = () if mistake.ordinal is None else itertools.islice(all_candidates(edge), mistake.ordinal, None)
    value = next((candidate.fitting(edge) for candidate in found), None)
    return edge.right if value is None else value
