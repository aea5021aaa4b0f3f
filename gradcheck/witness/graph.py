"""A recorded call as a graph of numbered values, and the walk that pulls cotangents back through it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from gradcheck.backends.base import Array, Decision, Recording, Step
from gradcheck.witness.lines import Place, place_of

EPSILON = {
    "float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52,
    "complex64": 2.0**-23, "complex128": 2.0**-52,
}  # fmt: skip
"""The spacing of the numbers of a dtype at 1: 2 to the power of minus the bits after the point."""


SMALLEST = {
    "float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022,
    "complex64": 2.0**-126, "complex128": 2.0**-1022,
}  # fmt: skip
"""The smallest normal number of a dtype: below it the spacing of numbers does not shrink."""

EXACT = {
    "reshape", "transpose", "broadcast_view", "broadcast_to", "clone", "tile", "flip", "roll", "tril", "triu", "concat",
    "stack", "split", "unbind", "getitem", "setitem", "written", "where", "complex", "real", "imag", "conj", "neg",
    "maximum", "minimum", "fmax", "fmin", "clip", "abs", "sign", "floor", "ceil", "trunc", "round", "nan_to_num", "max",
    "min", "relu", "hardtanh", "pad", "as_strided", "fill",
}  # fmt: skip
"""Operations that move, select or copy values, or change them without rounding."""


class Operation(NamedTuple):
    """One operation on the way, for reports."""

    name: str
    dtype: str
    """Of its output."""
    place: Place | None
    """The user's line, if lines were recorded."""


Visit = Callable[[Step, Sequence[Array | None], Sequence[tuple[int, int, Array]]], None]
"""Sees an operation, the cotangents of its outputs, and what `Step.pull` gave for them."""


class Graph:
    """The walk over a recording."""

    def __init__(self, recording: Recording, dead: frozenset[int] = frozenset()) -> None:
        self.recording = recording
        self.dead = dead
        """The numbers of outputs of operations that nothing is pulled back through."""

    @property
    def operations(self) -> list[Operation]:
        """In order of execution."""
        return [self.operation(step) for step in self.recording.steps]

    def operation(self, step: Step | Decision) -> Operation:
        """A step, or a decision, as reports say it."""
        values = getattr(step, "values", None)
        dtype = values[0].dtype.name if values else "bool"
        return Operation(step.name, dtype, None if step.spot is None else place_of(step.spot))

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
        touch: Callable[[Array], Array] = lambda cotangent: cotangent,
    ) -> dict[int, Array]:
        """The cotangents of the inputs, by number, for cotangents of any values.

        `visit` sees each operation pass, `touch` may change each cotangent that comes out of one.
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
                for _, edge, cotangent in pulled:
                    cotangent = touch(cotangent)
                    present = pending.get(edge)
                    pending[edge] = cotangent if present is None else present + cotangent
                if visit is not None:
                    visit(step, given, pulled)
        return pending

    def filled(self, found: dict[int, Array]) -> list[Array]:
        """One array per input."""
        return [found[k] if k in found else wide(self.recording.arrays[k] * 0) for k in range(self.recording.inputs)]


def wide(array: Array) -> Array:
    """A floating array in float64, a complex one in complex128."""
    return array.astype("complex128" if array.dtype.kind == "c" else "float64", copy=False)
