"""A problem at its point: the function in the precision of the check, its vjp, its tape, names of its entries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gradcheck.checking.arrays import EPS, Array, distance, flat_real, module_of, only, spacing, wide
from gradcheck.checking.line import MOST_ROWS, Line, random_direction, scale_of
from gradcheck.checking.outputs import FlatOutputs
from gradcheck.checking.precision import Change, Measured, noting
from gradcheck.checking.problem import Problem
from gradcheck.checking.tape import Tape, perturbed_gradient
from gradcheck.result import WrongEntry, element
from gradcheck.support.foreign import text_of

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


@dataclass
class Entry:
    """One entry of the Jacobian: an element of an input, one of the flat outputs, both derivatives, and the bound."""

    input: int
    index: int
    output: int
    analytic: float
    numeric: float
    bar: float


class Point:
    """The function with float64 copies of the inputs, casts to fewer digits left out; with the inputs as they were
    given where the layer takes nothing else.

    Raises:
        Exception: whatever the layer raises there.
    """

    def __init__(self, problem: Problem, spent: Spent | None = None, may_round: bool = False) -> None:
        self.problem = problem
        self.spent = spent or Spent()
        self.moved = [k for k, wanted in enumerate(problem.differentiable) if wanted]
        """The inputs that a gradient is claimed for, which are moved."""
        given_in_float64 = all(spacing(problem.inputs[k]) == EPS for k in self.moved)
        self.may_round = may_round or not given_in_float64
        """Whether what nothing sees may round to float32."""
        self.reruns = problem.reruns
        """None where casts cannot be left out, as nothing sees them or the layer does not work without."""
        self.opaque = problem.reruns is None
        """Whether values are handed to code that nothing sees: its rounding cannot be measured by changing results."""
        self.raised = ""
        """What the layer raised at points nearby, if it did."""
        self.held: Sequence[Array] = ()
        """Masks of the elements that stay as they are, one per moved input; none if all move."""
        self.recording: Tape | None = None
        """The recorded forward, if that was the first look."""
        self.inputs = [wide(x) for x in problem.inputs]
        self.outputs = FlatOutputs.of(self.first_outputs())
        self.casts = frozenset(() if self.reruns is None else self.reruns.left_out_last)
        """The dtypes of the casts that forward makes."""
        self.x = [self.inputs[k] for k in self.moved]
        """The inputs that are moved."""
        looked_at = [*self.x, *(self.outputs.arrays[k] for k in self.outputs.active)]
        self.epsilon = max(map(spacing, looked_at), default=EPS)
        """Of the coarsest dtype of inputs and outputs as they are looked at."""

    def first_outputs(self) -> list[Array]:
        """What forward gives at the point, in float64 and without casts if it works there."""
        attempts = [(self.inputs, self.reruns), (self.inputs, None), (list(self.problem.inputs), None)]
        for inputs, reruns in attempts[self.reruns is None :]:
            self.inputs, self.reruns = inputs, reruns
            if self.as_given and self.problem.outputs is not None:
                self.recording = self.recorded(inputs)  # which tells of casts
                if reruns is None or (self.recording is not None and not reruns.left_out):
                    return list(self.problem.outputs)
            try:
                return self.compute(inputs)
            except OutOfTimeError:
                raise
            except Exception:
                if reruns is None and self.as_given:
                    raise
        raise AssertionError("the last attempt returns or raises")

    @property
    def as_given(self) -> bool:
        """Whether the inputs have their own dtypes."""
        return all(a.dtype == b.dtype for a, b in zip(self.inputs, self.problem.inputs, strict=True))

    @property
    def casts_left_out(self) -> bool:
        """Whether what was run so far had casts to fewer digits, which were left out."""
        return self.reruns is not None and bool(self.reruns.left_out)

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

    def beside(self, moved: Sequence[Array]) -> Point:
        """The same function at another point."""
        problem = replace(self.problem, inputs=self.at(moved), outputs=None, observe=None)
        there = Point(problem, self.spent, self.may_round)
        there.held = self.held
        return there

    def at(self, moved: Sequence[Array]) -> list[Array]:
        """All inputs with the moved ones replaced."""
        point = list(self.inputs)
        for k, x in zip(self.moved, moved, strict=True):
            point[k] = x
        return point

    # ----------------------------------------------------------------- what the differences need
    def compute(self, inputs: Sequence[Array], change: Change | None = None) -> list[Array]:
        """The outputs at these inputs."""
        self.spent.on(evaluations=1)
        return self.problem.forward(inputs) if self.reruns is None else self.reruns.outputs(inputs, change)

    @cached_property
    def scales(self) -> list[Array]:
        """The natural scale of every element of the moved inputs."""
        return [scale_of(x) for x in self.x]

    def forward(self, moved: Sequence[Array], change: Change | None = None) -> list[Array]:
        """The active outputs with the moved inputs replaced; NaN where the layer raises."""
        try:
            outputs = self.compute(self.at(moved), change)
        except OutOfTimeError:
            raise
        except Exception as error:  # outside of its domain, for at the point itself it did not
            self.raised = f"; the forward raises {type(error).__name__} at points nearby: {text_of(error)}"
            outputs = [array * np.nan for array in self.outputs.arrays]
        return [outputs[k] for k in self.outputs.active]

    def vector(self, moved: Sequence[Array]) -> Array:
        """The flat real outputs with the moved inputs replaced."""
        return flat_real(self.forward(moved))

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

    def along_element(self, number: int, index: int, size: complex) -> list[Array | None]:
        """A direction along one element of a moved input."""
        x = self.x[number]
        d = module_of(x).zeros(x.size, x.dtype)
        d[index] = size
        return only(number, d.reshape(x.shape), self.x)

    def line(self, direction: Sequence[Array | None], weights: Array | None = None) -> Line:
        """The line through the point along a direction."""
        return Line(self.forward, self.x, direction, self.outputs.vector, weights)

    @property
    def by_rows(self) -> bool:
        """Whether every output may have a derivative of its own."""
        return self.outputs.size <= MOST_ROWS

    # ----------------------------------------------------------------- what is claimed, and what the tape says
    def claimed(self, cotangent: Array) -> list[Array | None]:
        """The gradients of all inputs that the layer claims."""
        self.spent.on(vjps=1)
        return self.gradients(list(self.inputs), self.outputs.split(cotangent))

    def vjp(self, cotangent: Array) -> list[Array]:
        """Those of the moved inputs."""
        return self.of_moved(self.claimed(cotangent))

    def gradients(
        self,
        inputs: Sequence[Array],
        cotangents: Sequence[Array | None],
        change: Change | None = None,
        own: bool = False,
    ) -> list[Array | None]:
        """What backward gives for all inputs."""
        if self.reruns is None:
            return self.problem.vjp(inputs, cotangents)
        return self.reruns.gradients(inputs, cotangents, change, own)

    def of_moved(self, gradients: Sequence[Array | None]) -> list[Array]:
        """Of the gradients of all inputs those of the moved ones, None as zeros, in double precision."""
        given = ((self.inputs[k], gradients[k]) for k in self.moved)
        return [wide(module_of(x).zeros_like(x) if g is None else g) for x, g in given]

    @cached_property
    def tape(self) -> Tape | None:
        """The recorded forward at the point, if there is a complete one that gives the same outputs."""
        tape = self.recording or self.recorded(self.inputs)
        return tape if tape is not None and self.agrees(tape.outputs) else None

    def recorded(self, inputs: Sequence[Array], lines: bool = False, own: bool = False) -> Tape | None:
        """The recorded forward at these inputs; None if values leave it, or nothing records."""
        if self.problem.reruns is None or (self.reruns is None and not own):
            return None
        choices: list[Array] = []
        self.spent.on(evaluations=1)
        recording = self.problem.reruns.recording(inputs, noting(choices), own, lines)
        tape = None if recording is None else Tape(recording, choices)
        self.opaque |= tape is not None and bool(tape.recording.leaks)
        return None if tape is None or tape.incomplete else tape

    def agrees(self, outputs: Sequence[Array]) -> bool:
        """Whether recorded outputs are those of the call itself, up to rounding."""
        plain = self.outputs.arrays
        if len(outputs) != len(plain) or any(a.shape != b.shape for a, b in zip(outputs, plain, strict=True)):
            return False
        if all(bool((distance(wide(a), wide(b)) == 0).all()) for a, b in zip(outputs, plain, strict=True)):
            return True
        measured = Measured(lambda c: self.compute(self.inputs, c), self.epsilon, np.random.default_rng(0))
        measured.draw()
        rows = zip(outputs, plain, measured.bounds(), strict=True)
        return all(bool((distance(wide(a), wide(b)) <= bound).all()) for a, b, bound in rows)

    @property
    def witnessed(self) -> bool:
        """Whether the tape is a witness of its own: complete, and not where the claim comes from."""
        return self.tape is not None and self.tape.independent

    def by_tape(self, cotangent: Array) -> list[Array]:
        """The gradients of the moved inputs by the tape."""
        assert self.tape is not None
        return self.of_moved(self.tape.gradient(self.outputs.split(cotangent)))

    # ----------------------------------------------------------------- rounding, measured
    def measured_claim(
        self, cotangents: Sequence[Array | None], random: np.random.Generator, own: bool = False
    ) -> Measured:
        """The claimed gradients of the moved inputs, and how far they may be off; `own`: as the user runs the layer."""
        inputs = list(self.problem.inputs) if own else self.inputs

        def compute(change: Change) -> list[Array]:
            self.spent.on(vjps=1)
            return self.of_moved(self.gradients(inputs, cotangents, change, own))

        return Measured(compute, self.epsilon, random)

    def measured_tape(
        self,
        tape: Tape,
        cotangents: Sequence[Array | None],
        taped: Sequence[Array],
        random: np.random.Generator,
        own: bool = False,
    ) -> Measured:
        """A tape's gradients of the moved inputs, which are known, and how far they may be off."""
        reruns, given = self.problem.reruns, self.problem.inputs if own else self.inputs
        assert reruns is not None

        def compute(change: Change) -> list[Array]:
            self.spent.on(evaluations=1)
            inputs = [x.copy() for x in given]
            for k in self.moved:  # what rules compute from them inside is rounded as well
                change("input", inputs[k], -1)
            again = reruns.recording(inputs, change, own)
            assert again is not None
            return self.of_moved(perturbed_gradient(Tape(again), cotangents, change))

        return Measured(compute, self.epsilon, random, plain=(taped, tape.choices))

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
