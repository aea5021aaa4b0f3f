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

from gradcheck.backends.base import Array
from gradcheck.backends.bundled import Step
from gradcheck.causes.words import SourcePlace, source_place
from gradcheck.checking.precision import wide
from gradcheck.checking.tape import Tape, dead_steps
from gradcheck.result import Diagnosis

Pull = Callable[[int, list[Array], Mapping[int, Array]], Array]
"""What flows to the k-th input of an operation, given the cotangents of its outputs and what should flow to each."""

OWN: Mapping[str, Pull] = {
    "all_reduce": lambda k, given, right: given[k],
    "all_gather": lambda k, given, right: given[k][k],
    "reduce_scatter": lambda k, given, right: np.stack([g * (j == k) for j, g in enumerate(given)]),
    "all_to_all": lambda k, given, right: given[k],
    "broadcast_ranks": lambda k, given, right: given[0],
}
"""By collective: each rank keeps what belongs to its own output; of a reduce-scatter zeros for the rest."""
SENT_BACK = {"reduce_scatter": "gathered from", "all_to_all": "sent back to"}
"""What has to be done to the cotangents of a collective, if it is not to sum them over the ranks."""
SUMMED = "the gradient is summed over the ranks, where each has its own"


def too_often(count: int) -> list[tuple[str, float]]:
    """The factors of a gradient that counts ranks, in words."""
    return [
        (f"the gradient is {count} times what it should be, counted once for each rank", count),
        (f"the gradient is divided by the number of ranks, {count}", 1 / count),
    ]


class WorldGradient(NamedTuple):
    """What backward gives for one input of a world."""

    name: str
    stands: str
    whole: Array
    """As the world's gradient."""
    ranks: Sequence[Array]
    """As the ranks gave it."""


Trial = tuple[str, str, list[Step], list[Array]]
"""A code, a mistake in words, an operation of each line that it is made at, and the gradients that it gives."""


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
    close = graph.coarsest**0.5 or 1e-8
    claimed = {k: c for k, c in enumerate(claims) if c is not None}

    def reproduced(gradients: Sequence[Array]) -> set[int]:
        return {k for k, c in claimed.items() if same_gradient(wide(c.whole), gradients[k], close)}

    right = graph.gradient(cotangents)
    wrong = sorted(claimed.keys() - reproduced(right))
    some: list[list[Diagnosis]] = []
    written = Tape(graph.recording, dead=dead_steps(graph, cotangents))
    at_lines = summed_at_lines(written, cotangents, size) if named is False else ()
    wholes = [one for k in wrong for one in whole_cause(graph, claimed[k], right[k], size, close)]
    trials = chain(
        at_collectives(written, cotangents), over_other_groups(written, cotangents), at_lines
    )
    for code, says, steps, gradients in trials if wrong else ():
        explained = reproduced(gradients)
        if explained.issuperset(wrong):
            if len(steps) > 1 and len(wholes) == len(wrong):
                return wholes  # one thing at the end is less than the same at several lines
            rows = [(step, [claimed[k].name for k in wrong if k in step.edges]) for step in steps]
            some.append([diagnosed(code, says, step, graph, names) for step, names in rows])
            if len(explained) == len(claimed):
                return some[-1]  # else it is made for some of the inputs alone
    if named is None:
        return []
    return some[0] if some else wholes


def at_collectives(graph: Tape, cotangents: Sequence[Array | None]) -> Iterator[Trial]:
    """One mistake at the collectives of one line and of one input together; then at all of a name, as who errs does so
    more than once; then at each by itself, as one line of a helper may serve several."""
    lines = [line for line in graph.lines if line[0].name in OWN]
    by_name = [[step for line in lines if line[0].name == name for step in line] for name in OWN]
    alone = [[step] for line in lines if len(line) > 1 for step in line]
    for number, steps in enumerate(
        [*lines, *(steps for steps in by_name if steps and steps not in lines), *alone]
    ):
        name, count = steps[0].name, max(len(steps[0].edges), len(steps[0].values))
        says = f"the gradient is not {SENT_BACK.get(name, 'summed over')} the ranks: each keeps its own part"
        rows: list[tuple[str, str, Pull]] = [("GC152", says, partial(own_unless_alone, OWN[name]))]
        rows += [("GC151", says, partial(scaled, factor)) for says, factor in too_often(count)]
        if name in ("all_gather", "reduce_scatter", "all_to_all") and number < len(lines):
            for whose, order in OTHER_RANKS:
                rows.append(("GC104", f"the gradient is that {whose}", partial(of_another, order)))
                rows.append(("GC104", f"each part is that {whose}", partial(with_parts_of, order)))
        for code, says, pull in rows:
            firsts = [line[0] for line in lines if line[0] in steps] or steps
            yield code, says, firsts, with_wrong_vjps(graph, cotangents, steps, pull)


def own_unless_alone(own: Pull, k: int, given: list[Array], right: Mapping[int, Array]) -> Array:
    """What each rank keeps; what should flow where one rank's output stands for all that are the same."""
    alone = len(given) > 1 and sum(bool(g.any()) for g in given) == 1
    return right[k] if alone else own(k, given, right)


def scaled(factor: float, k: int, given: list[Array], right: Mapping[int, Array]) -> Array:
    """What should flow, times a factor."""
    return right[k] * factor


Order = Callable[[int, int], int]
"""Of a rank, and the number of ranks, another rank."""
OTHER_RANKS: Sequence[tuple[str, Order]] = (
    ("of the rank before", lambda k, count: (k - 1) % count),
    ("of the rank after", lambda k, count: (k + 1) % count),
    ("of the opposite rank, in reverse order", lambda k, count: count - 1 - k),
    ("of the first rank", lambda k, count: 0),
)


def of_another(order: Order, k: int, given: list[Array], right: Mapping[int, Array]) -> Array:
    """What should flow to another rank."""
    return right.get(order(k, len(given)), right[k] * 0)


def with_parts_of(order: Order, k: int, given: list[Array], right: Mapping[int, Array]) -> Array:
    """What should flow, its parts, one per rank, in another order."""
    count = len(given)
    return (
        right[k][[order(j, count) for j in range(count)]]
        if right[k].shape[:1] == (count,)
        else right[k]
    )


def over_other_groups(graph: Tape, cotangents: Sequence[Array | None]) -> Iterator[Trial]:
    """Of sums over groups, those over all ranks, and over the groups that cross them: of ranks at the same place."""
    given = {step.first: step.given(cots) for step, cots, _ in graph.walk(graph.starts(cotangents))}
    for steps in graph.lines:
        groups = [
            given[step.first] for step in steps if step.name == "all_reduce" and step.first in given
        ]
        if len(groups) < 2 or len({tuple(g.shape for g in group) for group in groups}) > 1:
            continue
        crossing = [sum(several[1:], several[0]) for several in zip(*groups, strict=True)]
        whole = [sum(crossing[1:], crossing[0])] * len(crossing)
        for code, whose, sums in (
            ("GC151", "all ranks", whole),
            ("GC152", "the ranks at the same place of each group", crossing),
        ):
            says = f"the gradient is summed over {whose}, not over those of its group"
            yield (
                code,
                says,
                steps[:1],
                with_wrong_vjps(graph, cotangents, steps, partial(the_kth, sums)),
            )


def the_kth(sums: Sequence[Array], k: int, given: list[Array], right: Mapping[int, Array]) -> Array:
    """The k-th of some."""
    return sums[k]


def summed_at_lines(graph: Tape, cotangents: Sequence[Array | None], size: int) -> Iterator[Trial]:
    """What flows to one operand of one line, each rank's own, summed over the ranks."""
    flows = {step.first: pulled[:] for step, _, pulled in graph.walk(graph.starts(cotangents))}

    def total(
        position: int, own: Sequence[Array], k: int, given: list[Array], right: Mapping[int, Array]
    ) -> Array:
        return sum(own[1:], own[0]) if k == position else right[k]

    for steps in graph.runs:
        if (
            len(steps) != size
            or steps[0].name in OWN
            or any(step.first not in flows for step in steps)
        ):
            continue
        for position in {p for p, _, _ in flows[steps[0].first]}:
            own = [flow for step in steps for p, _, flow in flows[step.first] if p == position]
            of_inputs = all(
                step.edges[position] < graph.recording.inputs for step in steps
            )  # told as such
            if len(own) == size and len({flow.shape for flow in own}) == 1 and not of_inputs:
                pull = partial(total, position, own)
                yield "GC151", SUMMED, steps[:1], with_wrong_vjps(graph, cotangents, steps, pull)


def with_wrong_vjps(
    graph: Tape, cotangents: Sequence[Array | None], steps: Sequence[Step], pull: Pull
) -> list[Array]:
    """The gradient if the vjps of some operations were others."""
    pending = graph.starts(cotangents)
    for step, given, pulled in graph.walk(pending):
        if step in steps:
            filled = step.given(given)
            right = {k: flow for k, _, flow in pulled}
            pulled[:] = [(k, number, pull(k, filled, right)) for k, number, _ in pulled]
    return graph.filled(pending)


def whole_cause(
    graph: Tape, claim: WorldGradient, right: Array, size: int, close: float
) -> Iterator[Diagnosis]:
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
        places = [
            next((r for r, one in enumerate(right) if same_gradient(w, one, close)), -1)
            for w in whole
        ]
        if sorted(places) == list(range(size)) and places != sorted(places):
            says = ", ".join(
                f"rank {r} returns that of rank {other}" for r, other in enumerate(places[:3])
            )
            rows.append(
                (
                    "GC104",
                    f"the gradient goes to another rank: {says}{' …' * (size > 3)}",
                    right,
                    right,
                )
            )
    rows += [
        ("GC151", says, whole, right * factor)
        for says, factor in (too_often(size) if size > 1 else ())
    ]
    for code, says, given, wanted in rows:
        if same_gradient(given, wanted, close):
            yield Diagnosis(
                code=code, text=f"{claim.name}: {says}", inputs=(claim.name,), **backward_of(graph)
            )
            return


def diagnosed(code: str, says: str, step: Step, graph: Tape, names: Sequence[str]) -> Diagnosis:
    """A mistake with its line in forward; where that has none for it, in backward, told of the inputs in `names`."""
    place = source_place(step.spot)
    if not place.file:
        text = f"{', '.join(names) or 'what all ranks have'}, which all ranks use: {says}"
        return Diagnosis(code=code, text=text, inputs=tuple(names), **backward_of(graph))
    text = f"backward of `{place.text or step.name}`: {says}"
    detail = "its gradient (reproduces backward)"
    return Diagnosis(code=code, text=text, operation=step.name, detail=detail, **place.fields)


def backward_of(graph: Tape) -> dict[str, Any]:
    """Where the backward of the one layer that was called begins, as parts of a diagnosis; nothing of several."""
    functions = {
        inspect.unwrap(getattr(layer, "backward", None) or (lambda: None))
        for layer in graph.recording.layers
    }
    codes = {function.__code__ for function in functions if hasattr(function, "__code__")}
    if len(codes) != 1:
        return {}
    code = codes.pop()
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    down = bool(lines) and lines[0].strip().startswith("@")  # a decorator stands first
    source = lines[down].rstrip("\n") if lines[down:] else ""
    begins = len(source) - len(source.lstrip())
    place = SourcePlace(code.co_filename, code.co_firstlineno + down, begins, len(source), source)
    return {**place.fields, "detail": "here"}


def same_gradient(a: Array, b: Array, close: float) -> bool:
    """Whether two gradients are the same, relative to their largest element."""
    if a.shape != b.shape:
        return False
    size = max(float(abs(b).max(initial=0.0)), float(abs(a).max(initial=0.0)))
    return bool(np.isfinite(size)) and float(abs(a - b).max(initial=0.0)) <= close * size
