"""A problem at its point: the function in the precision of the differences, its vjp, and the names of its entries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradcheck.checker.low_precision import SUM_OF_OUTPUTS
from gradcheck.checker.outputs import Outputs, widened
from gradcheck.checker.problem import Array, Problem
from gradcheck.numeric.probe import Entry
from gradcheck.result import WrongEntry


class AtPoint:
    """The function with float64 copies of the inputs, unless the layer only takes its own dtype.

    Raises:
        Exception: whatever the layer raises there.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.moved = [k for k, wanted in enumerate(problem.differentiable) if wanted]
        """The inputs that a gradient is claimed for, which are moved."""
        self.raised = ""
        """What the layer raised at points nearby, if it did."""
        self.inputs = [widened(x) for x in problem.inputs]
        try:
            self.outputs = Outputs.of(self.first_outputs())
        except Exception:
            if self.as_given:
                raise
            self.inputs = list(problem.inputs)
            self.outputs = Outputs.of(self.first_outputs())

    @property
    def as_given(self) -> bool:
        """Whether the inputs have their own dtypes."""
        return all(a.dtype == b.dtype for a, b in zip(self.inputs, self.problem.inputs, strict=True))

    def first_outputs(self) -> list[Array]:
        """What forward gives at the point."""
        if self.problem.outputs is not None and self.as_given:
            return list(self.problem.outputs)
        return self.problem.forward(self.inputs)

    def forward(self, moved: Sequence[Array]) -> list[Array]:
        """The active outputs with the moved inputs replaced; NaN where the layer raises."""
        point = list(self.inputs)
        for k, x in zip(self.moved, moved, strict=True):
            point[k] = x
        try:
            outputs = self.problem.forward(point)
        except Exception as error:  # outside of its domain, for at the point itself it did not
            self.raised = f"; the forward raises {type(error).__name__} at points nearby: {error}"
            outputs = [array * np.nan for array in self.outputs.arrays]
        return [outputs[k] for k in self.outputs.active]

    def vjp(self, cotangent: Array) -> list[Array]:
        """The gradients of the moved inputs at the point."""
        return self.vjp_at(cotangent, self.inputs, self.outputs)

    def vjp_at(self, cotangent: Array, inputs: Sequence[Array], outputs: Outputs) -> list[Array]:
        """The gradients of the moved inputs, None as zeros, in float64."""
        found = self.problem.vjp(list(inputs), outputs.split(cotangent))
        return [widened(inputs[k] * 0 if found[k] is None else found[k]) for k in self.moved]

    def entries(self, number: int) -> int:
        """The number of entries of the Jacobian of one input."""
        return self.inputs[self.moved[number]].size * self.outputs.vector.size  # type: ignore[no-any-return]

    def complex(self) -> bool:
        """Whether an input or output is complex."""
        return "c" in {a.dtype.kind for a in (*(self.inputs[k] for k in self.moved), self.outputs.vector)}

    def place(self, entry: Entry) -> str:
        """The input element of an entry, as reports name it."""
        named = self.named(entry)
        return f"{named.input}[{','.join(map(str, named.index))}]" if named.index else named.input

    def named(self, entry: Entry) -> WrongEntry:
        """An entry with the names of its input and output."""
        number = self.moved[entry.input]
        index = np.unravel_index(entry.index, self.inputs[number].shape)
        output, output_index = "Σ ± out", tuple[int, ...]()
        if entry.output != SUM_OF_OUTPUTS:
            k, output_index = self.outputs.locate(entry.output)
            output = self.problem.output_names[k]
        return WrongEntry(
            input=self.problem.names[number],
            index=tuple(int(i) for i in index),
            output=output,
            output_index=output_index,
            analytic=entry.analytic,
            numeric=entry.numeric,
            bar=entry.bar,
        )
