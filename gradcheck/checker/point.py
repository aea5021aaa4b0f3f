"""A problem at its point: the function in the precision of the differences, its vjp, its tape, names of its entries."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gradcheck.checker.outputs import Outputs
from gradcheck.checker.problem import Problem
from gradcheck.foreign import text_of
from gradcheck.numeric.arrays import Array, spacing, wide
from gradcheck.numeric.jacobian import Entry
from gradcheck.numeric.line import MOST_ROWS, Line, random_direction, scale_of
from gradcheck.result import Diagnosis, WrongEntry, element
from gradcheck.witness.causes import explain
from gradcheck.witness.tape import Tape

SUM_OF_OUTPUTS = -1
"""In place of an output element: a random signed sum of all outputs."""


class OutOfTimeError(Exception):
    """The deadline of a check is over."""


@dataclass
class Spent:
    """What a check has run so far, here and at other points, and when it has to stop."""

    evaluations: int = 0
    vjps: int = 0
    deadline: float = np.inf
    """By ``time.monotonic``."""

    @property
    def runs(self) -> int:
        """Evaluations and vjps together."""
        return self.evaluations + self.vjps

    def on(self, evaluations: int = 0, vjps: int = 0) -> None:
        """Count what is about to be run. Raises OutOfTimeError once the deadline is over."""
        if time.monotonic() > self.deadline:
            raise OutOfTimeError
        self.evaluations += evaluations
        self.vjps += vjps


class Point:
    """The function with float64 copies of the inputs, unless the layer only takes its own dtype.

    `coarsest` is the spacing of the dtype that the inputs were given in, where it is not that of `problem`.

    Raises:
        Exception: whatever the layer raises there.
    """

    def __init__(self, problem: Problem, coarsest: float = 0.0, spent: Spent | None = None) -> None:
        self.problem = problem
        self.spent = spent or Spent()
        self.moved = [k for k, wanted in enumerate(problem.differentiable) if wanted]
        """The inputs that a gradient is claimed for, which are moved."""
        self.raised = ""
        """What the layer raised at points nearby, if it did."""
        self.held: Sequence[Array] = ()
        """Masks of the elements that stay as they are, one per moved input; none if all move."""
        self.inputs = [wide(x) for x in problem.inputs]
        try:
            self.outputs = Outputs.of(self.first_outputs())
        except Exception:
            if self.as_given:
                raise
            self.inputs = list(problem.inputs)
            self.outputs = Outputs.of(self.first_outputs())
        self.x = [self.inputs[k] for k in self.moved]
        """The inputs that are moved."""
        self.coarsest = coarsest or max((spacing(problem.inputs[k]) for k in self.moved), default=0.0)
        """The spacing of the coarsest dtype among them, as they were given."""

    @property
    def as_given(self) -> bool:
        """Whether the inputs have their own dtypes."""
        return all(a.dtype == b.dtype for a, b in zip(self.inputs, self.problem.inputs, strict=True))

    @property
    def nothing_to_check(self) -> str:
        """Why there is no gradient to check, if so."""
        if not self.moved:
            return "no input takes a gradient"
        if not self.outputs.active:
            return "the call returned no Tensor that claims a gradient"
        if not self.outputs.size:
            return "the outputs have no elements"
        return "" if sum(x.size for x in self.x) else "the inputs have no elements"

    def first_outputs(self) -> list[Array]:
        """What forward gives at the point."""
        if self.problem.outputs is not None and self.as_given:
            return list(self.problem.outputs)
        return self.problem.forward(self.inputs)

    def beside(self, moved: Sequence[Array]) -> Point:
        """The same function at another point."""
        there = Point(
            replace(self.problem, inputs=self.at(moved), outputs=None, observe=None), self.coarsest, self.spent
        )
        there.held = self.held
        return there

    def at(self, moved: Sequence[Array]) -> list[Array]:
        """All inputs with the moved ones replaced."""
        point = list(self.inputs)
        for k, x in zip(self.moved, moved, strict=True):
            point[k] = x
        return point

    # ----------------------------------------------------------------- what the differences need
    @cached_property
    def scales(self) -> list[Array]:
        """The natural scale of every element of the moved inputs."""
        return [scale_of(x) for x in self.x]

    def forward(self, moved: Sequence[Array]) -> list[Array]:
        """The active outputs with the moved inputs replaced; NaN where the layer raises."""
        self.spent.on(evaluations=1)
        try:
            outputs = self.problem.forward(self.at(moved))
        except Exception as error:  # outside of its domain, for at the point itself it did not
            self.raised = f"; the forward raises {type(error).__name__} at points nearby: {text_of(error)}"
            outputs = [array * np.nan for array in self.outputs.arrays]
        return [outputs[k] for k in self.outputs.active]

    def direction(self, random: np.random.Generator, masks: Sequence[Array | None] | None = None) -> list[Array | None]:
        """A random direction over all moved inputs, or over the elements in their masks (None: that input stays)."""
        found: list[Array | None] = []
        for k, (x, scale) in enumerate(zip(self.x, self.scales, strict=True)):
            mask = None if masks is None else masks[k]
            if masks is not None and mask is None:
                found.append(None)
                continue
            d = random_direction(x, scale, random)
            d = d * ~self.held[k] if self.held else d
            found.append(d if mask is None else d * mask)
        return found

    def line(self, direction: Sequence[Array | None], weights: Array | None = None) -> Line:
        """The line through the point along a direction."""
        return Line(self.forward, self.x, direction, self.outputs.vector, weights)

    @property
    def by_rows(self) -> bool:
        """Whether every output may have a derivative of its own."""
        return self.outputs.size <= MOST_ROWS

    # ----------------------------------------------------------------- what is claimed, and what the tape says
    def vjp(self, cotangent: Array, moved: Sequence[Array] | None = None) -> list[Array]:
        """The gradients of the moved inputs that the layer claims; at others, if these are given."""
        self.spent.on(vjps=1)
        inputs = list(self.inputs) if moved is None else self.at(moved)
        return self.of_moved(self.problem.vjp(inputs, self.outputs.split(cotangent)))

    def of_moved(self, gradients: Sequence[Array | None]) -> list[Array]:
        """Of the gradients of all inputs those of the moved ones, None as zeros, in double precision."""
        return [wide(self.inputs[k] * 0 if gradients[k] is None else gradients[k]) for k in self.moved]

    @cached_property
    def tape(self) -> Tape | None:
        """The recorded forward at the point, if there is a complete one."""
        return self.recorded(self.inputs)

    def recorded(self, inputs: Sequence[Array], lines: bool = False) -> Tape | None:
        """The recorded forward at these inputs; None if values leave it, or nothing records."""
        if self.problem.record is None:
            return None
        self.spent.on(evaluations=1)
        try:
            tape = self.problem.record(inputs, lines)
        except Exception:  # a tape that cannot be had is not heard; the layer itself ran
            return None
        return None if tape is None or tape.incomplete else tape

    @property
    def witnessed(self) -> bool:
        """Whether the tape is a witness of its own: complete, and not where the claim comes from."""
        return self.tape is not None and self.tape.independent

    def by_tape(self, cotangent: Array) -> list[Array]:
        """The gradients of the moved inputs by the tape."""
        assert self.tape is not None
        return self.of_moved(self.tape.gradient(self.outputs.split(cotangent)))

    def rounding(self, cotangent: Array, enough: Callable[[list[Array]], bool] = lambda bars: False) -> list[Array]:
        """Per moved input and element, how far claim and tape together may be off by rounding on the way.

        No more is measured than is `enough`: it only grows.
        """
        assert self.tape is not None
        parts = self.outputs.split(cotangent)
        return self.of_moved(self.tape.rounding(parts, lambda bars: enough(self.of_moved(bars))))

    def explained(
        self, claims: Sequence[tuple[Array, Sequence[Array]]], rounding: Sequence[Array], walks: float
    ) -> Sequence[Diagnosis]:
        """The mistakes on the tape that reproduce what backward gives for some cotangents, each with its line.

        `rounding` is that for the first of them, per moved input; no more than so many walks over it are taken.
        """
        tape = self.recorded(self.inputs, lines=True)
        if tape is None:
            return []

        def of_all(values: Sequence[Array]) -> list[Array | None]:
            found = dict(zip(self.moved, values, strict=True))
            return [found.get(k) for k in range(len(self.inputs))]

        pairs = [(self.outputs.split(u), of_all(gradients)) for u, gradients in claims]
        return explain(tape, pairs, self.problem.names, of_all(rounding), walks)

    # ----------------------------------------------------------------- names
    @property
    def complex(self) -> bool:
        """Whether an input or output is complex."""
        return self.outputs.complex or any(x.dtype.kind == "c" for x in self.x)

    def place(self, entry: Entry) -> str:
        """The input element of an entry, as reports name it."""
        named = self.named(entry)
        return element(named.input, named.index)

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
