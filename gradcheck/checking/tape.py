"""A recorded call: its exact gradient, and where it has none.

The tape is the derivative of what is computed: everything is on it, whatever the layer detaches, and no hand-written
backward takes part. It is complete unless values leave it, which `incomplete` then says.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.backends.bundled import Recording
from gradcheck.checking.arrays import module_of
from gradcheck.checking.graph import Graph
from gradcheck.checking.kinked_operations import kinks
from gradcheck.checking.precision import VJP, Change
from gradcheck.support.foreign import described


class Tape(Graph):
    """A call recorded at one point.

    Args:
        recording: the call.
        choices: what was chosen on the way, in order; see `gradcheck.checking.precision`.
    """

    def __init__(self, recording: Recording, choices: Sequence[Array] = ()) -> None:
        super().__init__(recording)
        self.choices = choices
        self.outputs = recording.outputs
        """The outputs that claim a gradient, in order."""
        self.independent = bool(recording.layers)
        """Whether the claim is another's: without a hand-written backward it is the tape's own."""

    @cached_property
    def incomplete(self) -> str:
        """Why the derivative is not that of all that is computed, such as ``.numpy() in line 7``; empty if it is."""
        if self.recording.leaks:  # first: what is taken inside may be why recording raises
            return self.recording.leaks[0]
        return "" if self.recording.error is None else f"recording it raised {described(self.recording.error)}"

    kinks = cached_property(kinks)


def perturbed_gradient(graph: Graph, cotangents: Sequence[Array | None], change: Change) -> list[Array]:
    """The gradient by a graph, with a change of every product that flows back."""
    found = changed_on_the_way(graph, cotangents, change, VJP)
    if all(bool(np.isfinite(g).all()) for g in found):
        return found
    # a product that is 0 for good may have moved, and met a slope without bound
    again = changed_on_the_way(graph, cotangents, change, "")
    return [module_of(f).where(np.isfinite(f), f, a) for f, a in zip(found, again, strict=True)]


def changed_on_the_way(graph: Graph, cotangents: Sequence[Array | None], change: Change, kind: str) -> list[Array]:
    """The same; `kind` precedes the names of operations whose vjp rounds."""
    pending = graph.starts(cotangents)
    for step, _, pulled in graph.walk(pending):
        for k, (position, number, cotangent) in enumerate(pulled):
            fresh = cotangent.copy()  # an addition hands the same array to both of its inputs
            change(kind + step.name, fresh, -1)
            pulled[k] = position, number, fresh
    return graph.filled(pending)
