"""Mistakes between ranks: a sum over them that is missing, or made once too often.

For every collective that forward makes, the gradient is computed as if its vjp had such a mistake,
and compared with backward's gradient. If ranks disagree on the gradient of a replicated input, each
rank's gradient is compared too.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array, Cotangents
from gradcheck.backends.recording import Step
from gradcheck.causes.words import SourcePlace, source_place
from gradcheck.checking.precision import wide
from gradcheck.checking.tape import Tape, dead_steps
from gradcheck.result import Diagnosis


class Flow(NamedTuple):
    """The cotangent that flows to the k-th input of an operation on a walk."""

    k: int
    cotangents: Sequence[Array]
    """The cotangents of the outputs, one per rank."""
    right_by_input: Mapping[int, Array]
    """The right cotangent of each input."""

    @property
    def right(self) -> Array:
        return self.right_by_input[self.k]


Pull = Callable[[Flow], Array]
"""The cotangent if the vjp of the operation is wrong."""

OWN: Mapping[str, Pull] = {
    "all_reduce": lambda flow: flow.cotangents[flow.k],
    "all_gather": lambda flow: flow.cotangents[flow.k][flow.k],
    "reduce_scatter": lambda flow: np.stack(
        [g * (j == flow.k) for j, g in enumerate(flow.cotangents)]
    ),
    "all_to_all": lambda flow: flow.cotangents[flow.k],
    "broadcast_ranks": lambda flow: flow.cotangents[0],
}
"""The gradient, by collective, if each rank keeps the part that belongs to its own output; for a
reduce-scatter, with zeros elsewhere.
"""
SENT_BACK = {"reduce_scatter": "gathered from", "all_to_all": "sent back to"}
"""The right treatment of a collective's cotangents, if it is not a sum over the ranks."""
SUMMED = "the gradient is summed over the ranks, although each rank has its own"


def too_often(count: int) -> list[tuple[str, float]]:
    """Texts for a gradient whose factor is the number of ranks."""
    return [
        (f"the gradient is {count} times what it should be, counted once for each rank", count),
        (f"the gradient is divided by the number of ranks, {count}", 1 / count),
    ]


class WorldGradient(NamedTuple):
    """Backward's gradient of one input of a world."""

    name: str
    placement: str
    gradient: Array
    """The world's gradient."""
    ranks: Sequence[Array]
    """The gradients of the ranks."""


WorldEvidence = tuple[Tape, Cotangents, Mapping[int, WorldGradient]]
"""The call of the world, recorded with its lines; random cotangents; and backward's gradients for
them, by input of the world: only inputs that have a gradient.
"""


class RankMistake(NamedTuple):
    """A mistake made at some operations."""

    code: str
    says: str
    steps: Sequence[Step]
    pull: Pull


def between_ranks(
    tape: Tape,
    cotangents: Cotangents,
    claimed: Mapping[int, WorldGradient],
    size: int,
    named: bool | None,
) -> list[Diagnosis]:
    """The mistakes between ranks that reproduce backward's gradient.

    Args:
        tape: the call of the world, recorded with its lines.
        claimed: backward's gradients, by input of the world; only inputs that have a gradient.
        size: the number of ranks; more than one.
        named: whether a cause unrelated to ranks is known. It takes precedence over sums at lines:
            a forgotten mask that gives each rank its part looks like such a sum. None before any
            search: then only a mistake at a collective that explains every wrong gradient counts.
    """
    close = tape.coarsest**0.5

    def explained_by(gradients: Sequence[Array]) -> set[int]:
        return {
            k for k, c in claimed.items() if same_gradient(wide(c.gradient), gradients[k], close)
        }

    right = tape.gradient(cotangents)
    if not (wrong := wrong_inputs(tape, cotangents, claimed)):
        return []
    wholes = [d for k in wrong for d in whole_cause(tape, claimed[k], right[k], size, close)]
    written = Tape(tape.recording, dead=dead_steps(tape, cotangents))
    mistakes = chain(at_collectives(written), over_other_groups(written, cotangents))
    if named is False:
        mistakes = chain(mistakes, summed_at_lines(written, cotangents, size))

    of_some_inputs: list[Diagnosis] = []
    for mistake in mistakes:
        explained = explained_by(with_wrong_vjps(written, cotangents, mistake))
        if not explained.issuperset(wrong):
            continue
        steps = [line[0] for line in tape.lines if line[0] in mistake.steps] or mistake.steps
        if len(steps) > 1 and len(wholes) == len(wrong):
            return wholes  # one mistake at the end is simpler than one at several lines
        diagnoses = []
        for step in steps:
            names = [claimed[k].name for k in wrong if k in step.edges]
            diagnoses.append(describe_mistake(mistake, step, tape, names))
        if len(explained) == len(claimed):
            return diagnoses
        of_some_inputs = of_some_inputs or diagnoses
    return [] if named is None else of_some_inputs or wholes


def wrong_inputs(
    tape: Tape, cotangents: Cotangents, claimed: Mapping[int, WorldGradient]
) -> list[int]:
    """The inputs of which backward's gradient differs from that of the tape."""
    right, close = tape.gradient(cotangents), tape.coarsest**0.5
    return [k for k, c in claimed.items() if not same_gradient(wide(c.gradient), right[k], close)]


def with_wrong_vjps(tape: Tape, cotangents: Cotangents, mistake: RankMistake) -> list[Array]:
    """The gradient if the vjps of some operations are replaced."""
    pending = tape.starts(cotangents)
    for step, incoming, pulled in tape.walk(pending):
        if step in mistake.steps:
            filled, right = step.pack_cotangents(incoming), {k: flow for k, _, flow in pulled}
            for i, (k, number, _) in enumerate(pulled):
                pulled[i] = k, number, mistake.pull(Flow(k, filled, right))
    return tape.fill_missing(pending)


# --------------------------------------------------------------------------- at collectives
def at_collectives(tape: Tape) -> Iterator[RankMistake]:
    """Mistakes at the collectives of one line and of one input together.

    Next are mistakes at all collectives of one name, as a mistake is often repeated; last, at each
    single collective, as one line of a helper may serve several.
    """
    lines = [line for line in tape.lines if line[0].name in OWN]
    by_name: dict[str, list[Step]] = {name: [] for name in OWN}
    for line in lines:
        yield from at_operations(line)
        if line[0].name in ("all_gather", "reduce_scatter", "all_to_all"):
            for whose, order in OTHER_RANKS:
                says = f"the gradient is that {whose}"
                yield RankMistake("GC104", says, line, partial(of_another, order))
                yield RankMistake(
                    "GC104",
                    f"each part is that {whose}",
                    line,
                    partial(with_reordered_parts, order),
                )
        by_name[line[0].name] += line
    for steps in by_name.values():
        if steps and steps not in lines:
            yield from at_operations(steps)
    for line in lines:
        for step in line if len(line) > 1 else ():
            yield from at_operations([step])


def at_operations(steps: Sequence[Step]) -> Iterator[RankMistake]:
    """Each rank keeps its own part, or counts all ranks, at some operations of one name."""
    first = steps[0]
    done = SENT_BACK.get(first.name, "summed over")
    says = f"the gradient is not {done} the ranks: each keeps its own part"
    yield RankMistake("GC152", says, steps, partial(own_unless_alone, OWN[first.name]))
    for says, factor in too_often(max(len(first.edges), len(first.values))):
        yield RankMistake("GC151", says, steps, partial(times_factor, factor))


def own_unless_alone(pull_own_part: Pull, flow: Flow) -> Array:
    """The part of the gradient that belongs to each rank; the right cotangent if only one rank's
    output is used, because it represents equal outputs of all ranks.
    """
    alone = len(flow.cotangents) > 1 and sum(bool(g.any()) for g in flow.cotangents) == 1
    return flow.right if alone else pull_own_part(flow)


def times_factor(factor: float, flow: Flow) -> Array:
    """The right cotangent, times a factor."""
    return flow.right * factor


Order = Callable[[int, int], int]
"""Map a rank, with the number of ranks, to another rank."""
OTHER_RANKS: Sequence[tuple[str, Order]] = (
    ("of the rank before", lambda k, count: (k - 1) % count),
    ("of the rank after", lambda k, count: (k + 1) % count),
    ("of the opposite rank, in reverse order", lambda k, count: count - 1 - k),
    ("of the first rank", lambda k, count: 0),
)


def of_another(order: Order, flow: Flow) -> Array:
    """The right cotangent of another rank."""
    return flow.right_by_input.get(order(flow.k, len(flow.cotangents)), flow.right * 0)


def with_reordered_parts(order: Order, flow: Flow) -> Array:
    """The right cotangent with its parts, one per rank, in another order."""
    count = len(flow.cotangents)
    if flow.right.shape[:1] != (count,):
        return flow.right
    return flow.right[[order(j, count) for j in range(count)]]


def over_other_groups(tape: Tape, cotangents: Cotangents) -> Iterator[RankMistake]:
    """In place of sums over groups: sums over all ranks, and over the crossing groups, which have
    the ranks at the same position of each group.
    """
    incoming = {
        step: step.pack_cotangents(cots) for step, cots, _ in tape.walk(tape.starts(cotangents))
    }
    for steps in tape.runs:
        groups = [
            incoming[step] for step in steps if step.name == "all_reduce" and step in incoming
        ]
        shapes = {tuple(g.shape for g in group) for group in groups}
        if len(groups) < 2 or len(shapes) > 1:
            continue
        crossing = [sum(several) for several in zip(*groups, strict=True)]
        total = [sum(crossing)] * len(crossing)
        for code, whose, sums in (
            ("GC151", "all ranks", total),
            ("GC152", "the ranks at the same position of each group", crossing),
        ):
            says = f"the gradient is summed over {whose}, not over those of its group"
            yield RankMistake(code, says, steps, partial(sum_of_rank, sums))


def sum_of_rank(sums: Sequence[Array], flow: Flow) -> Array:
    """The sum that belongs to a rank."""
    return sums[flow.k]


def summed_at_lines(tape: Tape, cotangents: Cotangents, size: int) -> Iterator[RankMistake]:
    """The cotangents of one operand of one line, one per rank, summed over the ranks."""
    flows: dict[Step, dict[int, Array]] = {}
    for step, _, pulled in tape.walk(tape.starts(cotangents)):
        flows[step] = {position: flow for position, _, flow in pulled}
    for steps in tape.runs:
        if len(steps) != size or steps[0].name in OWN:
            continue
        for position in flows.get(steps[0], ()):
            of_ranks = [flows[s][position] for s in steps if position in flows.get(s, ())]
            # The share of an input of the call is found as the input's whole gradient.
            of_inputs = all(step.edges[position] < tape.recording.inputs for step in steps)
            if (
                len(of_ranks) == size
                and len({flow.shape for flow in of_ranks}) == 1
                and not of_inputs
            ):
                yield RankMistake("GC151", SUMMED, steps, partial(total_at, position, of_ranks))


def total_at(position: int, of_ranks: Sequence[Array], flow: Flow) -> Array:
    """The cotangent of one operand, summed over the ranks; for other operands the right
    cotangent.
    """
    return sum(of_ranks) if flow.k == position else flow.right


# --------------------------------------------------------------------------- the whole gradient
def whole_cause(
    tape: Tape, claim: WorldGradient, right: Array, size: int, close: float
) -> Iterator[Diagnosis]:
    """Why the whole gradient of one input is wrong, if that is known."""
    claimed = wide(claim.gradient)
    rows = []
    if claim.placement == "replicated":
        says = (
            "each rank returns its own part of the gradient; their sum is right. All ranks use "
            f"{claim.name}, so all-reduce its gradient in backward (or declare it partial, if the "
            "trainer sums it later)"
        )
        rows.append(("GC152", says, sum(map(wide, claim.ranks)), right))
    if claim.placement == "split":
        rows.append(("GC151", SUMMED, claimed, right * 0 + right.sum(0)))
        places = []
        for gradient in claimed:
            same = (r for r in range(size) if same_gradient(gradient, right[r], close))
            places.append(next(same, -1))
        if places != sorted(places) == list(range(size)):
            says = ", ".join(f"rank {r} returns that of rank {k}" for r, k in enumerate(places[:3]))
            says = f"the gradient goes to another rank: {says}{' …' * (size > 3)}"
            rows.append(("GC104", says, right, right))
    rows += [("GC151", says, claimed, right * factor) for says, factor in too_often(size)]
    for code, says, candidate, wanted in rows:
        if same_gradient(candidate, wanted, close):
            text = f"{claim.name}: {says}"
            yield Diagnosis(code=code, text=text, inputs=(claim.name,), **backward_of(tape))
            return


# --------------------------------------------------------------------------- in words
def describe_mistake(
    mistake: RankMistake, step: Step, tape: Tape, names: Sequence[str]
) -> Diagnosis:
    """A mistake with its line in forward.

    If forward has no line for it, the line of backward is given, with the inputs in `names`.
    """
    place = source_place(step.spot)
    if not place.file:
        subject = ", ".join(names) or "a value that all ranks have"
        text = f"{subject}, which all ranks use: {mistake.says}"
        return Diagnosis(code=mistake.code, text=text, inputs=tuple(names), **backward_of(tape))
    return Diagnosis(
        code=mistake.code,
        text=f"backward of `{place.text or step.name}`: {mistake.says}",
        operation=step.name,
        detail="its gradient (reproduces backward)",
        **place.fields,
    )


def backward_of(tape: Tape) -> dict[str, Any]:
    """The first line of the backward if only one layer was called, as fields of a diagnosis.

    Empty for several layers.
    """
    codes: set[Any] = set()
    for layer in tape.recording.layers:
        backward: Any = getattr(layer, "backward", None)
        codes.add(getattr(inspect.unwrap(backward), "__code__", None))
    codes.discard(None)
    if len(codes) != 1:
        return {}
    code = codes.pop()
    lines = [*linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :], "", ""]
    down = lines[0].strip().startswith("@")  # a decorator comes first
    source = lines[down].rstrip("\n")
    begins = len(source) - len(source.lstrip())
    place = SourcePlace(code.co_filename, code.co_firstlineno + down, begins, len(source), source)
    return {**place.fields, "detail": "here"}


def same_gradient(a: Array, b: Array, close: float) -> bool:
    """Whether two gradients are the same, relative to their largest element."""
    if a.shape != b.shape:
        return False
    size = max(float(abs(b).max(initial=0.0)), float(abs(a).max(initial=0.0)))
    return bool(np.isfinite(size)) and float(abs(a - b).max(initial=0.0)) <= close * size
