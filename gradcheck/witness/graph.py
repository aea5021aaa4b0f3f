"""A recorded call as a graph of numbered values, and the walk that pulls cotangents back through it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from gradcheck.backends.base import Array, Recording, Step
from gradcheck.numeric.arrays import EPSILON, wide

EXACT = {
    "reshape", "transpose", "broadcast_view", "broadcast_to", "clone", "tile", "flip", "roll", "tril", "triu", "concat",
    "stack", "split", "unbind", "getitem", "setitem", "written", "where", "complex", "real", "imag", "conj", "neg",
    "maximum", "minimum", "fmax", "fmin", "clip", "abs", "sign", "floor", "ceil", "trunc", "round", "nan_to_num", "max",
    "min", "relu", "hardtanh", "pad", "as_strided", "fill", "with_zeros",
}  # fmt: skip
"""Operations that move, select or copy values, or change them without rounding."""


CANCELLED = 16
"""Units of rounding, of what it was added up from, below which a cotangent counts as 0. A sum of n terms that cancels
leaves about √n of them where the terms add up to n; a chain of ten operations leaves ten."""


Visit = Callable[[Step, Sequence[Array | None], Sequence[tuple[int, int, Array]]], None]
"""Sees an operation, the cotangents of its outputs, and what `Step.pull` gave for them."""

Alter = Callable[[Step, Sequence[Array | None], list[tuple[int, int, Array]]], list[tuple[int, int, Array]]]
"""As `Visit`, and gives what to go on with."""


class Graph:
    """The walk over a recording."""

    def __init__(self, recording: Recording, dead: frozenset[int] = frozenset()) -> None:
        self.recording = recording
        self.dead = dead
        """The numbers of outputs of operations that nothing is pulled back through."""

    @cached_property
    def coarsest(self) -> float:
        """The largest ε of a floating dtype on the way, inputs included."""
        return max((EPSILON.get(array.dtype.name, 0.0) for array in self.recording.arrays), default=0.0)

    def maker(self, number: int) -> Step | None:
        """The operation that made a value; None for an input."""
        steps = self.recording.steps
        found = bisect_right(steps, number, key=lambda step: step.first)
        return steps[found - 1] if found else None

    def starts(self, cotangents: Sequence[Array | None]) -> dict[int, Array]:
        """The cotangents by the numbers of the outputs, in double precision."""
        starts: dict[int, Array] = {}
        for end, u in zip(self.recording.ends, cotangents, strict=True):
            if end >= 0 and u is not None:
                u = u.astype("complex128" if self.recording.arrays[end].dtype.kind == "c" else "float64", copy=False)
                starts[end] = u if end not in starts else starts[end] + u
        return starts

    def pulled(
        self,
        starts: dict[int, Array],
        visit: Visit | None = None,
        alter: Alter | None = None,
    ) -> dict[int, Array]:
        """The cotangents of the inputs, by number, for cotangents of any values.

        `visit` sees each operation pass, `alter` may change what comes out of one.
        """
        pending = dict(starts)
        with np.errstate(all="ignore"):
            for step in reversed(self.recording.steps):
                first = step.first
                if len(step.values) == 1:
                    if first not in pending:
                        continue
                    given = [pending.pop(first)]
                    if first in self.dead:
                        continue
                else:
                    given = [pending.pop(first + k, None) for k in range(len(step.values))]
                    if all(g is None for g in given):
                        continue
                pulled = list(step.pull(given))
                if alter is not None:
                    pulled = alter(step, given, pulled)
                for _, edge, cotangent in pulled:
                    present = pending.get(edge)
                    pending[edge] = cotangent if present is None else present + cotangent
                if visit is not None:
                    visit(step, given, pulled)
        return pending

    def filled(self, found: dict[int, Array]) -> list[Array]:
        """One array per input."""
        return [found[k] if k in found else wide(self.recording.arrays[k] * 0) for k in range(self.recording.inputs)]


def dead_steps(graph: Graph, cotangents: Sequence[Array | None]) -> frozenset[int]:
    """The operations whose output the result does not depend on, because it cancels: the maximum in a stable softmax.

    A mistake elsewhere keeps it from cancelling on the tape, but not in a backward that was written without it.
    """
    sizes: dict[int, float] = {}
    dead = set()

    def visit(step: Step, given: Sequence[Array | None], pulled: Sequence[tuple[int, int, Array]]) -> None:
        cotangent = given[0]
        if len(step.values) == 1 and cotangent is not None and cotangent.size:
            added_up = sizes.get(step.first, 0.0)
            if added_up and float(abs(cotangent).max()) <= CANCELLED * graph.coarsest * added_up:
                dead.add(step.first)
            summed = float(abs(cotangent).sum()) if step.name in ("add", "subtract") else 0.0
            for _, number, r in pulled:
                sizes[number] = sizes.get(number, 0.0) + max(float(abs(r).max(initial=0)), summed / max(r.size, 1))

    graph.pulled(graph.starts(cotangents), visit)
    return frozenset(dead)
