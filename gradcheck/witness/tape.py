"""A recorded call: its exact gradient, its rounding, and what stands on the way.

The tape is the derivative of what is computed: everything is on it, whatever the layer detaches, and no hand-written
backward takes part. It is complete unless values leave it, which `incomplete` then says.

The rounding error of u·F is Σ over recorded values v of |cotangent of v| · ε(dtype of v) · |v|, to first order: one
walk back gives all cotangents (S. Linnainmaa, Taylor expansion of the accumulated rounding error, 1976; B.
Christianson, Reverse accumulation and accurate rounding error estimates, 1992). ε is the spacing of floating-point
numbers at 1, twice what one correctly rounded operation does: room for functions that are off by one unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from gradcheck.backends.base import Array, Recording, Step
from gradcheck.foreign import kind_of, text_of
from gradcheck.numeric.arrays import EPSILON, SMALLEST, wide
from gradcheck.witness.graph import Graph
from gradcheck.witness.kinks import kinks
from gradcheck.witness.rounding import EXACT, Replays, claim_rounding, tape_rounding

SUMS = {
    "sum", "mean", "cumsum", "add_n", "matmul", "bmm", "einsum_explicit", "norm", "add_at", "getitem_adjoint",
    "as_strided_adjoint", "logsumexp",
}  # fmt: skip
"""Operations that round products and partial sums inside: of a size that the inputs tell, a cancelled output not."""

SOLVERS = {"inv", "det", "logabsdet", "cholesky"}
"""Operations by elimination: their error is that of inputs moved by ε times the largest of them (Wilkinson 1961)."""


class Tape(Graph):
    """A call recorded at one point. Freed with the object; `gradient` and `noise` may be asked as often as wanted.

    Args:
        recording: the call.
        replays: the call again, with values moved.
        differs: the recorded run gave other outputs than a plain one.
    """

    def __init__(self, recording: Recording, replays: Replays, differs: bool = False) -> None:
        super().__init__(recording)
        self.replays = replays
        self.differs = differs
        self.outputs = recording.outputs
        """The outputs that claim a gradient, in order."""
        self.independent = bool(recording.layers)
        """Whether the claim is another's: without a hand-written backward it is the tape's own."""

    @cached_property
    def incomplete(self) -> str:
        """Why the derivative is not that of all that is computed, such as ``.numpy() in line 7``; empty if it is."""
        if self.recording.leaks:  # first: what is taken inside may be why recording raises
            return self.recording.leaks[0]
        if (error := self.recording.error) is not None:
            return f"recording it raised {kind_of(error)}: {text_of(error)}"
        return "recorded, it gives other values: memory is changed behind a view" if self.differs else ""

    kinks = cached_property(kinks)

    # ----------------------------------------------------------------- rounding
    def noise(self, cotangents: Sequence[Array | None]) -> float:
        """The rounding error η of Σ cotangent · output, to first order."""
        return sum(rounded(*passed, self.recording.arrays) for passed in self.walk(self.starts(cotangents)))

    def rounding(
        self, cotangents: Sequence[Array | None], enough: Callable[[list[Array]], bool] = lambda bars: False
    ) -> list[Array]:
        """Per input and element, how far `gradient` and the layer's own may be apart by the rounding of both.

        Args:
            cotangents: in the dtypes of the outputs.
            enough: whether what is known so far will do; it only grows.
        """
        bars: list[Array] = []
        for both in zip(*(of(self, cotangents, self.replays) for of in (tape_rounding, claim_rounding)), strict=True):
            bars = [a + b for a, b in zip(*both, strict=True)]
            if enough(bars):
                break
        return bars


def rounded(
    step: Step, given: Sequence[Array | None], pulled: Sequence[tuple[int, int, Array]], arrays: Sequence[Array]
) -> float:
    """What the rounding of one operation adds to the error of the end result."""
    if exact(step, arrays):
        return 0.0
    dtype = step.values[0].dtype.name
    outputs = [(c, v) for c, v in zip(given, step.values, strict=True) if c is not None]
    terms = [weight(c, v) + SMALLEST[dtype] * float(abs(c).sum()) for c, v in outputs]
    if step.name in SUMS:
        terms += [weight(g, arrays[number]) for _, number, g in pulled]
    elif step.name in SOLVERS:
        terms += [float(abs(arrays[number]).max()) * float(abs(g).sum()) for _, number, g in pulled if g.size]
    return EPSILON[dtype] * sum(terms)


def exact(step: Step, arrays: Sequence[Array]) -> bool:
    """Whether the outputs of an operation are not rounded."""
    if step.name == "cast":
        return EPSILON[arrays[step.edges[0]].dtype.name] >= EPSILON[step.values[0].dtype.name]
    if step.name == "abs" and arrays[step.edges[0]].dtype.kind == "c":
        return False
    if step.name == "round":  # to decimals is not
        return bool((step.values[0] == np.rint(step.values[0])).all())
    return step.name in EXACT


def weight(cotangent: Array, value: Array) -> float:
    """Σ |cotangent · value|, where nothing flows to an infinite value and those have no rounding."""
    product = abs(cotangent * wide(value))
    total = float(product.sum())
    return total if np.isfinite(total) else float(product[(cotangent != 0) & (abs(value) < np.inf)].sum())
