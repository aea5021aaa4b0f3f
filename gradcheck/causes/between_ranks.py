"""What goes wrong between ranks: a sum over them that is missing, or made once too often.

Of every collective that forward makes, what the gradient would be if its vjp were such a mistake is held against what
backward gives. Ranks that disagree on what all have are looked at by what each of them gives.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array, Step
from gradcheck.causes.lines import SourcePlace, source_place
from gradcheck.checking.arrays import wide
from gradcheck.checking.graph import Graph, Tape, dead_steps
from gradcheck.result import Diagnosis

Pull = Callable[[int, list[Array], Array], Array]
"""What flows to the k-th input of a collective, given the cotangents of its outputs and what should flow."""


def part_alone(k: int, given: list[Array], right: Array) -> Array:
    """Of a reduce-scatter's gathered cotangents the own part, zeros for the rest."""
    return np.stack([g * (j == k) for j, g in enumerate(given)])


OWN: Mapping[str, Pull] = {
    "all_reduce": lambda k, given, right: given[k],
    "all_gather": lambda k, given, right: given[k][k],
    "reduce_scatter": part_alone,
    "all_to_all": lambda k, given, right: given[k],
    "broadcast_ranks": lambda k, given, right: given[0],
}
"""By collective: each rank keeps what belongs to its own output."""
SENT_BACK = {"reduce_scatter": "gathered from", "all_to_all": "sent back to"}
"""What has to be done to the cotangents of a collective, if it is not to sum them over the ranks."""


class RankMistake(NamedTuple):
    """One mistake at one collective: a code, what it is in words, and the wrong vjp."""

    code: str
    says: str
    pull: Pull


def mistakes(step: Step) -> Iterator[RankMistake]:
    """Those that a collective invites."""
    done = SENT_BACK.get(step.name, "summed over")
    yield RankMistake("GC152", f"the gradient is not {done} the ranks: each keeps its own part", OWN[step.name])
    yield from too_often(max(len(step.edges), len(step.values)))


def too_often(count: int) -> Iterator[RankMistake]:
    """The gradient times or over the number of ranks."""
    times = f"the gradient is {count} times what it should be, counted once for each rank"
    yield RankMistake("GC151", times, lambda k, g, r: r * count)
    yield RankMistake("GC151", f"the gradient is divided by the number of ranks, {count}", lambda k, g, r: r / count)


class WorldGradient(NamedTuple):
    """What backward gives for one input of a world."""

    name: str
    stands: str
    whole: Array
    """As the world's gradient."""
    ranks: Sequence[Array]
    """As the ranks gave it."""


def between_ranks(
    graph: Tape,
    cotangents: Sequence[Array | None],
    claims: Sequence[WorldGradient | None],
    size: int,
    named: bool | None,
) -> list[Diagnosis]:
    """The causes that reproduce what backward gives, of those that lie between ranks.

    Args:
        graph: the call of the world, recorded with its lines.
        claims: one per input of the world; None for an input without a gradient.
        size: how many ranks there are.
        named: whether a cause that has nothing to do with ranks is known. It goes before sums at lines: a mask that is
            forgotten where each rank has its part is such a sum as well. None if nothing was sought yet: then only a
            mistake at a collective counts that explains every wrong gradient.
    """
    right = graph.gradient(cotangents)
    close = graph.coarsest**0.5 or 1e-8
    wrong = [k for k, c in enumerate(claims) if c is not None and not same_gradient(wide(c.whole), right[k], close)]
    if not wrong:
        return []
    some: list[Diagnosis] = []
    written = Graph(graph.recording, dead_steps(graph, cotangents))
    at_lines = summed_at_lines(written, cotangents, size) if named is False else ()
    for found, tell in chain(at_collectives(written, cotangents), at_lines):
        same = {k for k, c in enumerate(claims) if c is not None and same_gradient(wide(c.whole), found[k], close)}
        if not same.issuperset(wrong):
            continue
        diagnosis = tell(graph, [c if k in wrong else None for k, c in enumerate(claims)])
        if all(c is None or k in same for k, c in enumerate(claims)):
            return [diagnosis]
        some.append(diagnosis)  # made for some of the inputs alone
    if named is None:
        return []
    if some:
        return some[:1]
    return [one for k in wrong for one in whole_cause(graph, claims[k], right[k], size, close)]  # type: ignore[arg-type]


Tell = Callable[[Tape, Sequence["WorldGradient | None"]], Diagnosis]
"""Makes a diagnosis, given the recording and the claims that are wrong."""


def at_collectives(graph: Graph, cotangents: Sequence[Array | None]) -> Iterator[tuple[list[Array], Tell]]:
    """The gradients with one mistake at one collective."""
    for steps in lines_of(graph):
        for mistake in mistakes(steps[0]):
            yield with_wrong_vjps(graph, cotangents, steps, mistake.pull), partial(diagnosed, mistake, steps[0])


def summed_at_lines(graph: Graph, cotangents: Sequence[Array | None], size: int) -> Iterator[tuple[list[Array], Tell]]:
    """The gradients if what flows to one operand of one line, each rank's own, were summed over the ranks."""
    flows = {step.first: pulled[:] for step, _, pulled in graph.walk(graph.starts(cotangents))}
    for steps in graph.runs:
        if len(steps) != size or steps[0].name in OWN or any(step.first not in flows for step in steps):
            continue
        for position in {p for p, _, _ in flows[steps[0].first]}:
            own = [flow for step in steps for p, _, flow in flows[step.first] if p == position]
            if len(own) != size or len({flow.shape for flow in own}) > 1:
                continue
            total = sum(own[1:], own[0])
            if all(step.edges[position] < graph.recording.inputs for step in steps):
                continue  # that of an input is told as such
            found = with_wrong_vjps(graph, cotangents, steps, lambda k, g, r, p=position, t=total: t if k == p else r)  # type: ignore[misc]
            yield found, partial(diagnosed, RankMistake("GC151", SUMMED, lambda k, g, r: r), steps[0])


SUMMED = "the gradient is summed over the ranks, where each has its own"


def lines_of(graph: Graph) -> list[list[Step]]:
    """The collectives of a recording, those of one line and those of one input together; then each by itself, as one
    line of a helper may serve several."""
    found = [steps for steps in graph.lines if steps[0].name in OWN]
    return [*found, *([step] for steps in found if len(steps) > 1 for step in steps)]


def with_wrong_vjps(graph: Graph, cotangents: Sequence[Array | None], steps: Sequence[Step], pull: Pull) -> list[Array]:
    """The gradient if the vjps of some collectives were others."""
    pending = graph.starts(cotangents)
    for step, given, pulled in graph.walk(pending):
        if step in steps:
            filled = step.given(given)
            if step.name in OWN and len(filled) > 1 and sum(bool(g.any()) for g in filled) == 1:
                continue  # one rank's output stands for all that are the same
            pulled[:] = [(k, number, pull(k, filled, flow)) for k, number, flow in pulled]
    return graph.filled(pending)


def whole_cause(graph: Tape, claim: WorldGradient, right: Array, size: int, close: float) -> list[Diagnosis]:
    """Why the gradient of one input is wrong as a whole."""
    whole = wide(claim.whole)
    rows = []
    if claim.stands == "replicated":
        says = (
            f"each rank returns its own part of the gradient; their sum is right. All ranks use {claim.name}, so "
            "all-reduce its gradient in backward (or declare it partial, if the trainer sums it later)"
        )
        rows.append(("GC152", says, sum(map(wide, claim.ranks[1:]), wide(claim.ranks[0])), right))
    if claim.stands == "split":
        rows.append(("GC151", SUMMED, whole, right * 0 + right.sum(0)))
    if size > 1:
        counted, divided = (m.says for m in too_often(size))
        rows += [("GC151", counted, whole, right * size), ("GC151", divided, whole, right / size)]
    for code, says, given, wanted in rows:
        if same_gradient(given, wanted, close):
            text = f"{claim.name}: {says}"
            return [Diagnosis(code=code, text=text, inputs=(claim.name,), **backward_of(graph))]
    return []


def diagnosed(mistake: RankMistake, step: Step, graph: Tape, claims: Sequence[WorldGradient | None]) -> Diagnosis:
    """A mistake at a collective, with its line in forward; or in backward, where forward has none for it."""
    place = source_place(step.spot)
    if place.file:
        code = place.source[place.column : place.end_column] or step.name
        return Diagnosis(
            code=mistake.code,
            text=f"backward of `{code}`: {mistake.says}",
            operation=step.name,
            detail="its gradient (reproduces backward)",
            **place.told,
        )
    names = [c.name for k, c in enumerate(claims) if c is not None and k in step.edges]
    who = ", ".join(names) or "what all ranks have"
    return Diagnosis(
        code=mistake.code,
        text=f"{who}, which all ranks use: {mistake.says}",
        inputs=tuple(names),
        **backward_of(graph),
    )


def backward_of(graph: Tape) -> dict[str, Any]:
    """Where the backward of the one layer that was called begins, as parts of a diagnosis; nothing of several."""
    functions = {inspect.unwrap(getattr(layer, "backward", None) or (lambda: None)) for layer in graph.recording.layers}
    codes = {function.__code__ for function in functions if hasattr(function, "__code__")}
    if len(codes) != 1:
        return {}
    code = codes.pop()
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    down = bool(lines) and lines[0].strip().startswith("@")  # a decorator stands first
    source = lines[down].rstrip("\n") if lines[down:] else ""
    begins = len(source) - len(source.lstrip())
    place = SourcePlace(code.co_filename, code.co_firstlineno + down, begins, len(source), source)
    return {**place.told, "detail": "here"}


def same_gradient(a: Array, b: Array, close: float) -> bool:
    """Whether two gradients are the same, relative to their largest element."""
    if a.shape != b.shape:
        return False
    size = max(float(abs(b).max(initial=0.0)), float(abs(a).max(initial=0.0)))
    return bool(np.isfinite(size)) and float(abs(a - b).max(initial=0.0)) <= close * size
