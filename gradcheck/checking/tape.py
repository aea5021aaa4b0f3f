"""A recorded call as a graph of numbered values, and the walk that pulls cotangents back through
it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import repeat
from operator import is_
from typing import Any

import numpy as np

from gradcheck.backends.base import Array, Cotangents
from gradcheck.backends.recording import Recording, Step
from gradcheck.checking.precision import (
    EPSILON,
    MANY,
    MOVES,
    VJP,
    Change,
    dtype_name,
    rounded_input,
    wide,
)
from gradcheck.support.foreign import describe_error

SUMMING = {
    "add", "subtract", "all_reduce", "broadcast_ranks", "broadcast_to", "broadcast_view", "tile",
    "getitem", "gather", "index_select", "take_along_axis", "tensor_unfold",
}  # fmt: skip
"""Operations whose vjp sums cotangents, so that these may cancel in it."""

SELECTING = {"relu", "clip", "hardtanh", "maximum", "minimum", "fmax", "fmin"}
"""Elementwise operations whose result is one of their operands, or a bound."""

MOST_COMPOSED = 16
"""The most operations of a function of one value: for more, nobody writes the derivative as a
single expression.
"""

Pulled = tuple[int, int, Array]
"""The position and the number of an operation's input, and its cotangent."""
Passed = tuple[Step, list[Array | None], list[Pulled]]
"""An operation on the walk, the cotangents of its outputs, and the result of `Step.pull` for
them.
"""


class Tape:
    """A call recorded at one point, as a graph of numbered values: its exact gradient.

    It gives the derivative of the actual computation: everything is recorded, even if the layer
    detaches it, and no hand-written backward is used. It is complete unless values leave it;
    `incomplete` then has the reason.

    Args:
        recording: the call.
        choices: the choices made, in order; see `gradcheck.checking.precision`.
        dead: the numbers of outputs of operations that nothing is pulled back through.
        rounds_constants: whether operations outside of the tape round: those that do not depend on
            the inputs.
    """

    def __init__(
        self,
        recording: Recording,
        choices: Sequence[Array] = (),
        dead: frozenset[int] = frozenset(),
        rounds_constants: bool = False,
    ) -> None:
        self.recording, self.choices, self.dead = recording, choices, dead
        self.rounds_constants = rounds_constants
        self.outputs = recording.outputs
        """The outputs that claim a gradient, in order."""
        self.independent = bool(recording.layers)
        """Whether backward's gradient has another source than the tape: without a hand-written
        backward it comes from the tape itself.
        """
        error = (
            ""
            if recording.error is None
            else f"recording it raised {describe_error(recording.error)}"
        )
        # The call may raise because a value was taken out of the graph.
        self.incomplete = recording.leaks[0] if recording.leaks else error
        """The reason why the derivative does not cover the whole computation, such as ``.numpy() in
        line 7``; empty if it does.
        """
        self.walks = 0.0
        """The number of walks over the tape, or of equally costly computations."""

    @cached_property
    def replays(self) -> bool:
        """Whether perturbed runs of the call can be computed without the user's code."""
        return not self.rounds_constants and self.recording.replays

    @cached_property
    def coarsest(self) -> float:
        """The largest ε of the floating dtypes on the tape, inputs included."""
        return max(
            (EPSILON.get(dtype_name(array.dtype), 0.0) for array in self.recording.arrays),
            default=0.0,
        )

    def maker(self, number: int) -> Step | None:
        """The operation that made a value; None for an input."""
        steps = self.recording.steps
        index = bisect_right(steps, number, key=lambda step: step.first)
        return steps[index - 1] if index else None

    def hold_dead(self, name: str, output: Array, number: int) -> None:
        """The change for a replay: it does not alter values that nothing is pulled back through."""
        if number in self.dead:
            output[...] = self.recording.arrays[number]

    @cached_property
    def equals(self) -> dict[Step, frozenset[Step]]:
        """For each operation, all operations that compute the same from the same inputs, such as
        both differences in (a − b) (a − b).
        """
        first: dict[int, int] = {}
        groups: dict[Any, list[Step]] = {}
        for step in self.recording.steps:
            values = tuple((v.shape, v.dtype.name, hash(v.tobytes())) for v in step.values)
            group = groups.setdefault(
                (step.name, tuple(first.get(e, e) for e in step.edges), values), []
            )
            group.append(step)
            first |= {step.first + k: group[0].first + k for k in range(len(step.values))}
        return {
            step: frozenset(group) for group in groups.values() if len(group) > 1 for step in group
        }

    @cached_property
    def composed(self) -> dict[Step, list[Step]]:
        """Functions of one value that several operations compute, such as 1 / (1 + exp(−x)): a map
        from the last operation to all of them. At least two of these are not linear, and nothing
        else reads their intermediate values.
        """
        arrays, origin = self.recording.arrays, dict[int, int]()
        members, readers = dict[int, Step](), dict[int, set[int]]()
        for step in self.recording.steps:
            operands = {e for e in step.edges if e >= 0}
            for e in operands:
                readers.setdefault(e, set()).add(step.first)
            origins = {origin.get(e, e) for e in operands}
            shapes = {v.shape for v in (*step.values, *(arrays[e] for e in operands))}
            if (
                len(step.values) == len(origins) == len(shapes) == 1
                and step.values[0].dtype.kind == "f"
            ):
                members[step.first], origin[step.first] = step, origins.pop()
        for number in self.recording.ends:
            readers.setdefault(number, set()).add(-1)
        composed = dict[Step, list[Step]]()
        for first, step in members.items():
            inside, waiting = {first}, [first]
            while waiting and len(inside) <= MOST_COMPOSED:
                more = {e for e in members[waiting.pop()].edges if e in members} - inside
                inside |= more
                waiting += more
            steps = [members[k] for k in sorted(inside)]
            several = (
                sum(not linear(member) for member in steps) > 1 and len(steps) <= MOST_COMPOSED
            )
            if (
                several
                and step.name not in MOVES
                and all(readers[k] <= inside for k in inside - {first})
            ):
                composed[step] = steps
        return composed

    @cached_property
    def lines(self) -> list[list[Step]]:
        """The operations grouped by name and line; an operation without a known line forms its own
        group.
        """
        groups: dict[Any, list[Step]] = {}
        for step in self.recording.steps:
            groups.setdefault((step.name, step.spot or step.first), []).append(step)
        return list(groups.values())

    @property
    def runs(self) -> list[list[Step]]:
        """The operations of one line that is run several times."""
        return [steps for steps in self.lines if len(steps) > 1]

    def starts(self, cotangents: Cotangents) -> dict[int, Array]:
        """The cotangents by the numbers of the outputs, in double precision."""
        starts: dict[int, Array] = {}
        for end, u in zip(self.recording.ends, cotangents, strict=True):
            if end >= 0 and u is not None:
                u = u.astype(
                    "complex128" if self.recording.arrays[end].dtype.kind == "c" else "float64",
                    copy=False,
                )
                starts[end] = u if end not in starts else starts[end] + u
        return starts

    def walk(self, pending: dict[int, Array]) -> Iterator[Passed]:
        """The operations that cotangents reach, the last one first. Changes that the caller makes
        in `pulled` take effect in the rest of the walk.

        `pending` are the cotangents of any values, by number; in the end, those of the inputs.
        """
        self.walks += 1
        with np.errstate(all="ignore"):
            for step in reversed(self.recording.steps):
                numbers = range(step.first, step.first + len(step.values))
                incoming = [*map(pending.pop, numbers, repeat(None))]
                if step.first in self.dead or all(map(is_, incoming, repeat(None))):
                    continue
                pulled = list(step.pull(incoming))
                if step.name in SELECTING:
                    pulled = [without_unselected(step, each) for each in pulled]
                yield step, incoming, pulled
                for _, number, cotangent in pulled:
                    pending[number] = (
                        pending[number] + cotangent if number in pending else cotangent
                    )

    def pull_back(self, pending: dict[int, Array]) -> list[Array]:
        """The cotangents of the inputs (zeros if none flows there), for cotangents of any values,
        by number.
        """
        for _ in self.walk(pending):
            pass
        return self.fill_missing(pending)

    def fill_missing(self, cotangents: dict[int, Array]) -> list[Array]:
        """One array per input, zeros for missing ones."""
        return [
            cotangents[k] if k in cotangents else wide(self.recording.arrays[k] * 0)
            for k in range(self.recording.inputs)
        ]

    def gradient(self, cotangents: Cotangents) -> list[Array]:
        """The cotangents of the inputs (zeros if none flows there), in float64 or complex128.

        `cotangents` are one per output, of its shape; None for an output that takes no part.
        """
        return self.pull_back(self.starts(cotangents))


def without_unselected(step: Step, pulled: Pulled) -> Pulled:
    """An operand's cotangent, with 0 where the operation does not select that operand, even if the
    cotangent is infinite (from √ at 0, after a clip): the result is constant near that point.
    """
    position, number, cotangent = pulled
    output = step.values[0]
    if cotangent.shape != output.shape or bool(np.isfinite(cotangent).all()):
        return pulled
    slopes = {k: slope for k, _, slope in step.pull([np.ones(output.shape)])}
    is_unselected = (slopes[position] == 0) & ~np.isfinite(cotangent)
    return position, number, np.where(is_unselected, 0.0, cotangent)


def sum_to_shape(value: Array, shape: Sequence[int]) -> Array:
    """Sum a value over the axes along which an array of shape `shape` was broadcast."""
    extra = value.ndim - len(shape)
    stretched = [k + extra for k, n in enumerate(shape) if n == 1]
    return value.sum(axis=(*range(extra), *stretched), keepdims=True).reshape(shape)


def linear(step: Step) -> bool:
    """Whether an operation is linear in its one operand, up to a constant."""
    scales = step.name == "multiply" or (step.name == "divide" and step.edges[0] >= 0)
    return (scales and sum(e >= 0 for e in step.edges) == 1) or step.name in {
        *MOVES,
        "add",
        "subtract",
        "neg",
        "scale",
    }


def dead_steps(tape: Tape, cotangents: Cotangents) -> frozenset[int]:
    """The operations whose output the result does not depend on, because it cancels: the maximum in
    a stable softmax.

    A mistake elsewhere keeps it from cancelling on the tape, but not in a backward that was written
    without it. A cancelling sum of n terms leaves about √n units of rounding if their absolute
    values add up to n; ten operations in a row leave ten.
    """
    sizes: dict[int, float] = {}
    dead = set()
    for step, incoming, pulled in tape.walk(tape.starts(cotangents)):
        cotangent = incoming[0]
        if len(incoming) == 1 and cotangent is not None and cotangent.size:
            added_up = sizes.get(step.first, 0.0)
            if added_up and float(abs(cotangent).max()) <= MANY * tape.coarsest * added_up:
                dead.add(step.first)
        summed = 0.0
        if step.name in SUMMING:
            summed = sum(float(abs(g).sum()) for g in incoming if g is not None)
        for _, number, r in pulled:
            largest = float(abs(r).max(initial=0))
            sizes[number] = sizes.get(number, 0.0) + max(largest, summed / max(r.size, 1))
    return frozenset(dead)


def perturbed_gradient(tape: Tape, cotangents: Cotangents, change: Change) -> list[Array]:
    """The tape's gradient, with a change of every product in the backward walk."""

    def perturb_products(kind: str) -> list[Array]:
        """`kind` precedes the names of operations whose vjp rounds."""
        starts = tape.starts(cotangents).items()
        # Sums of cotangents round even if forward only moved values, for example by an index.
        pending = {number: rounded_input(cotangent, change) for number, cotangent in starts}
        for step, _, pulled in tape.walk(pending):
            for k, (position, number, cotangent) in enumerate(pulled):
                fresh = cotangent.copy()  # an addition hands the same array to both of its inputs
                change(kind + step.name, fresh, -1)
                pulled[k] = position, number, fresh
        return tape.fill_missing(pending)

    gradients = perturb_products(VJP)
    if all(np.isfinite(g).all() for g in gradients):
        return gradients
    # a product that is always 0 may have been perturbed and multiplied by an infinite slope
    return [
        np.where(np.isfinite(f), f, a) for f, a in zip(gradients, perturb_products(""), strict=True)
    ]
