"""A problem at one point: the function in the precision of the check, its vjp, its tape, and the
names of its entries.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from gradcheck.backends.base import Array, Cotangents, InputGradients, is_differentiable
from gradcheck.backends.recording import Recording, chooses
from gradcheck.checking.differences import (
    RATIO,
    Direction,
    Line,
    move_along,
    random_direction,
    scale_of,
)
from gradcheck.checking.precision import (
    CLEAR,
    EPS,
    MANY,
    Change,
    Measured,
    coarsest,
    distance,
    flat,
    largest,
    noting,
    of_each_largest,
    rounded_input,
    wide,
)
from gradcheck.checking.problem import Problem, UnseenRuns
from gradcheck.checking.searches import FEWEST, jumps_carry
from gradcheck.checking.tape import Tape, perturbed_gradient
from gradcheck.result import WrongEntry, element
from gradcheck.support.foreign import text_of

T = TypeVar("T")

Masks = Sequence[Array | None]
"""One array per moved input; None for an input that is not involved."""

MOST_ROWS = 2**14
"""The most outputs that each get a separate derivative; if there are more, only their weighted sum
has one. A scan keeps about 60 values per row: 8 MB.
"""
SUM_OF_OUTPUTS = -1
"""In place of an output element: a random signed sum of all outputs."""


# ------------------------------------------------- many arrays as one
def shapes_of(arrays: Sequence[Array]) -> list[tuple[int, ...]]:
    """The shapes of some arrays."""
    return [a.shape for a in arrays]


def flat_real(arrays: Sequence[Array]) -> Array:
    """Copies in float64, flat; the real and imaginary parts of a complex array alternate."""
    vector = flat(arrays)
    if vector.dtype.kind == "c":
        return vector.astype("complex128").view("float64")
    return vector.astype("float64")


def count_numbers(arrays: Sequence[Array]) -> int:
    """The number of real numbers per element: 2 if any of the arrays is complex, because all are
    then treated as complex.
    """
    return 1 + any(a.dtype.kind == "c" for a in arrays)


def array_and_element(arrays: Sequence[Array], position: int) -> tuple[int, int]:
    """The array, and the index in it, at a position of the flat vector of all arrays."""
    ends = np.cumsum([array.size for array in arrays])
    number = int(np.searchsorted(ends, position, "right"))
    return number, position - int(ends[number]) + arrays[number].size


def one_input_only(number: int, value: Array, arrays: Sequence[Array]) -> Masks:
    """A direction, or masks, over `arrays` in which only one array takes part."""
    return [value if k == number else None for k in range(len(arrays))]


def even_weights(count: int, random: np.random.Generator) -> Array:
    """A vector of random signs and magnitudes from 1/2 to 3/2."""
    drawn = random.uniform(-1, 1, count)
    return drawn + np.copysign(0.5, drawn)


# --------------------------------------------- shares of a projection
def shares(gradient: Array, direction: Array) -> Array:
    """conj(gradient) · direction, element by element; 0 where the direction is 0, even if the
    gradient is infinite.
    """
    products = (gradient.conj() if gradient.dtype.kind == "c" else gradient) * direction
    return (
        products if np.isfinite(complex(products.sum())) else np.where(direction != 0, products, 0)
    )


def elements_of(direction: Direction) -> Masks:
    """Masks of the elements that move."""
    return [None if d is None else d != 0 for d in direction]


def parts_of(gradients: Sequence[Array], direction: Direction) -> list[Array]:
    """The shares of a projection, by the inputs that move."""
    return [shares(g, d) for g, d in zip(gradients, direction, strict=True) if d is not None]


def directional_derivative(gradients: Sequence[Array], direction: Direction) -> float:
    """Re Σ conj(gradient) · direction: the derivative along the direction."""
    return sum(float(share.real.sum()) for share in parts_of(gradients, direction))


# ----------------------------------------------- a check at its point
class OutOfTimeError(BaseException):
    """The deadline of a check has passed. Not an Exception, so that handlers for a layer's errors
    do not catch it.
    """


@dataclass
class Spent:
    """The evaluations that a check has run so far, at all points, and the time at which it must
    stop.
    """

    evaluations: int = 0
    vjps: int = 0
    deadline: float = np.inf
    """By ``time.monotonic``."""

    @property
    def runs(self) -> int:
        """Evaluations and vjps together."""
        return self.evaluations + self.vjps

    def count_run(self, evaluations: int = 0, vjps: int = 0) -> None:
        """Count a run that is about to start. Raises OutOfTimeError once the deadline has
        passed.
        """
        if time.monotonic() > self.deadline:
            raise OutOfTimeError
        self.evaluations += evaluations
        self.vjps += vjps


@dataclass
class Entry:
    """One entry of the Jacobian: an element of an input, one of the flat outputs, both derivatives,
    and the bound.
    """

    input: int
    index: int
    output: int
    analytic: float
    numeric: float
    bar: float


@dataclass
class FlatOutputs:
    """The outputs at the point; those with a derivative are also concatenated in a flat float64
    vector.

    If one of them is complex, all count as complex: real and imaginary parts alternate.
    """

    arrays: list[Array]
    active: list[int]

    def select(self, outputs: Sequence[Array]) -> list[Array]:
        """Select the active outputs among all outputs."""
        return [outputs[k] for k in self.active]

    @cached_property
    def selected(self) -> list[Array]:
        """The active outputs at the point."""
        return self.select(self.arrays)

    @cached_property
    def numbers(self) -> int:
        """The number of entries of the vector that an element of an output has: 1 or 2."""
        return count_numbers(self.selected)

    @cached_property
    def vector(self) -> Array:
        """The active outputs, flat, in float64."""
        return flat_real(self.selected)

    @property
    def size(self) -> int:
        """Elements of the active outputs."""
        return int(self.vector.size) // self.numbers

    def split(self, cotangent: Array) -> list[Array | None]:
        """A flat real cotangent as one array per output, of its dtype; None for outputs without a
        derivative.

        Values too large for the dtype become its largest number: such an overflow says nothing
        about the layer.
        """
        vector = cotangent.view("complex128") if self.numbers == 2 else cotangent
        parts: list[Array | None] = [None] * len(self.arrays)
        start = 0
        for k in self.active:
            array = self.arrays[k]
            values = vector[start : start + array.size]
            start += array.size
            if array.dtype.kind != "c":
                values = values.real
                if array.dtype.kind == "f" and array.dtype.itemsize < 8:
                    largest = float(np.finfo(array.dtype).max)
                    values = values.clip(-largest, largest)
            parts[k] = values.astype(array.dtype).reshape(array.shape)
        return parts

    def cotangent(self, random: np.random.Generator) -> Array:
        """A random signed cotangent, flat, rounded to the outputs' dtypes."""
        return self.round_cotangent(even_weights(self.vector.size, random))

    def round_cotangent(self, cotangent: Array) -> Array:
        """A flat cotangent, rounded to the outputs' dtypes as backward gets it."""
        parts = self.split(cotangent)
        return flat_real([array for array in parts if array is not None])

    def unit(self, position: int) -> Array:
        """The cotangent that is 1 at one position of the vector and 0 elsewhere."""
        unit = self.vector * 0
        unit[position] = 1
        return unit

    def element(self, position: int) -> int:
        """The flat element that a position of the vector belongs to."""
        return position // self.numbers

    def locate(self, position: int) -> tuple[int, tuple[int, ...]]:
        """The output, and the index in it, at a position of the flat outputs."""
        number, index = array_and_element(self.selected, position)
        k = self.active[number]
        return k, tuple(int(i) for i in np.unravel_index(index, self.arrays[k].shape))

    def not_finite(self) -> tuple[int, tuple[int, ...]] | None:
        """The first element that is inf or NaN, if any."""
        bad = np.flatnonzero(~np.isfinite(self.vector)).tolist()
        return self.locate(self.element(bad[0])) if bad else None


class Point:
    """The function at float64 copies of the inputs, with casts to fewer digits left out; at the
    given inputs if the layer accepts only those.

    Raises:
        Exception: whatever the layer raises there.
    """

    def __init__(
        self, problem: Problem, spent: Spent | None = None, may_round: bool = False
    ) -> None:
        self.problem = problem
        self.spent = spent or Spent()
        self.moved = [k for k, wanted in enumerate(problem.differentiable) if wanted]
        """The inputs for which a gradient is claimed; only these are moved."""
        self.given_epsilon = coarsest(self.select_moved(problem.inputs))
        """The epsilon of the coarsest dtype among the moved inputs, as given."""
        self.may_round = may_round or self.given_epsilon > EPS
        """Whether unobserved code may round to float32."""
        self.runs = problem.runs
        """The function itself, if casts cannot be left out because they are not observed or the
        layer needs them.
        """
        self.opaque = problem.reruns is None
        """Whether values are passed to unobserved code, whose rounding cannot be measured by
        perturbing results.
        """
        self.raised = ""
        """The layer's error at nearby points, if any."""
        self.last_by_tape: tuple[Array | None, list[Array]] = None, []
        """The latest cotangent of `by_tape`, and its gradients."""
        self.recording: Tape | None = None
        """The recorded forward, if it was recorded first."""
        self.searches = False
        """Whether the outputs change through comparisons (a search), so that the tape is not their
        derivative; known once `tape` was read.
        """
        self.as_given = False
        """Whether the inputs have their own dtypes."""
        self.inputs = [wide(x) for x in problem.inputs]
        outputs = self.first_outputs()
        self.outputs = FlatOutputs(
            outputs, [k for k, a in enumerate(outputs) if is_differentiable(a)]
        )
        self.by_rows = self.outputs.size <= MOST_ROWS
        """Whether every output may have a separate derivative."""
        self.casts = frozenset(self.runs.last_omitted_casts)
        """The dtypes of the casts that forward makes."""
        self.x = self.select_moved(self.inputs)
        """The inputs that are moved."""
        self.numbers = count_numbers(self.x)
        """The number of real numbers per element of `x`."""
        self.everywhere = [np.ones(x.shape, bool) for x in self.x]
        """Masks of all elements of the moved inputs."""
        self.infinite: Sequence[Array] = [~mask for mask in self.everywhere]
        """Masks of the elements at which the gradient is infinite, one per moved input: these stay
        as they are.
        """
        self.epsilon = coarsest([*self.x, *self.outputs.selected])
        """The epsilon of the coarsest dtype among inputs and outputs in the evaluations."""

    def first_outputs(self) -> list[Array]:
        """Forward's outputs at the point, in float64 and without casts if possible."""
        unseen = UnseenRuns(self.problem)
        attempts = [(self.inputs, self.runs), (self.inputs, unseen)]
        attempts.append((list(self.problem.inputs), unseen))
        for inputs, runs in attempts[self.opaque :]:
            self.inputs, self.runs = inputs, runs
            self.as_given = all(
                a.dtype == b.dtype for a, b in zip(inputs, self.problem.inputs, strict=True)
            )
            if self.as_given and self.problem.outputs is not None:
                self.recording = self.record(inputs)  # the recording reports casts
                if runs is unseen or (self.recording is not None and not runs.omitted_casts):
                    return list(self.problem.outputs)
            try:
                outputs = self.compute(inputs)
                known = self.problem.outputs
                # reinterpreted bytes of wider inputs are other numbers, and perhaps more of them
                if self.as_given or known is None or shapes_of(outputs) == shapes_of(known):
                    return outputs
            except Exception:
                if runs is unseen and self.as_given:
                    raise
        raise AssertionError("the last attempt returns or raises")

    @property
    def size(self) -> int:
        """The number of elements of the moved inputs."""
        return sum(x.size for x in self.x)

    @property
    def is_own_precision(self) -> bool:
        """Whether the runs so far used the layer's own dtypes and casts."""
        return self.as_given and not self.casts_left_out

    @property
    def casts_left_out(self) -> bool:
        """Whether the runs so far had casts to fewer digits, which were left out."""
        return bool(self.runs.omitted_casts)

    @property
    def nothing_to_check(self) -> str:
        """The reason why no gradient is checked; empty if one is."""
        if not self.moved:
            return "no input takes a gradient"
        if not self.outputs.size:
            return "the outputs have no elements"
        return "" if self.size else "the inputs have no elements"

    def beside(self, moved: Sequence[Array]) -> Point:
        """The function at another point."""
        problem = replace(self.problem, inputs=self.all_inputs(moved), outputs=None)
        point = Point(problem, self.spent, self.may_round)
        point.infinite = self.infinite
        return point

    def select_moved(self, values: Sequence[T]) -> list[T]:
        """Select the moved inputs from values per input."""
        return [values[k] for k in self.moved]

    def all_inputs(self, moved: Sequence[Array]) -> list[Array]:
        """All inputs with the moved ones replaced."""
        point = list(self.inputs)
        for k, x in zip(self.moved, moved, strict=True):
            point[k] = x
        return point

    # -------------------------------- evaluations for the differences
    def compute(self, inputs: Sequence[Array], change: Change | None = None) -> list[Array]:
        """The outputs at these inputs."""
        self.spent.count_run(evaluations=1)
        return self.runs.outputs(inputs, change)

    @cached_property
    def scales(self) -> list[Array]:
        """The natural scale of every element of the moved inputs."""
        return [scale_of(x) for x in self.x]

    def forward(self, moved: Sequence[Array], change: Change | None = None) -> list[Array]:
        """The active outputs with the moved inputs replaced; NaN where the layer raises."""
        try:
            outputs = self.compute(self.all_inputs(moved), change)
        except Exception as error:  # outside of its domain: it did not raise at the point itself
            self.raised = (
                f"; the forward raises {type(error).__name__} at nearby points: {text_of(error)}"
            )
            outputs = [array * np.nan for array in self.outputs.arrays]
        return self.outputs.select(outputs)

    def vector(self, moved: Sequence[Array]) -> Array:
        """The flat real outputs with the moved inputs replaced."""
        return flat_real(self.forward(moved))

    def direction(self, random: np.random.Generator, masks: Masks | None = None) -> Direction:
        """A random direction over all moved inputs, or over the elements in `masks` (None: that
        input does not move).
        """
        chosen = self.everywhere if masks is None else masks
        rows = zip(self.x, self.scales, chosen, self.infinite, strict=True)
        return [
            None if mask is None else random_direction(x, scale, random) * (mask & ~infinite)
            for x, scale, mask, infinite in rows
        ]

    def free_elements(self, masks: Masks | None = None) -> list[Array]:
        """Per moved input, the elements that are moved: all, or those in its mask."""
        chosen = self.everywhere if masks is None else masks
        pairs = zip(chosen, self.infinite, strict=True)
        return [infinite & False if mask is None else mask & ~infinite for mask, infinite in pairs]

    def along_element(self, number: int, index: int, size: complex) -> Direction:
        """A direction along one element of a moved input."""
        x = self.x[number]
        d = np.zeros(x.size, x.dtype)
        d[index] = size
        return one_input_only(number, d.reshape(x.shape), self.x)

    def line(self, direction: Direction, weights: Array | None = None) -> Line:
        """The line through the point along a direction."""
        return Line(self.vector, self.x, direction, self.outputs.vector, weights)

    # --------------------------- the claimed gradient, and the tape's
    def claimed_gradients(self, cotangent: Array) -> InputGradients:
        """The gradients that the layer claims, for all inputs."""
        self.spent.count_run(vjps=1)
        return self.runs.gradients(list(self.inputs), self.outputs.split(cotangent))

    def vjp(self, cotangent: Array) -> list[Array]:
        """The gradients of the moved inputs."""
        return self.moved_gradients(self.claimed_gradients(cotangent))

    def moved_gradients(self, gradients: Cotangents) -> list[Array]:
        """Select the gradients of the moved inputs in double precision, with zeros for None."""
        pairs = zip(self.x, self.select_moved(gradients), strict=True)
        return [wide(np.zeros_like(x) if g is None else g) for x, g in pairs]

    @cached_property
    def tape(self) -> Tape | None:
        """The recorded forward at the point, if the recording is complete and gives the same
        outputs.
        """
        tape = self.recording or self.record(self.inputs)
        if tape is None or not self.agrees(tape.outputs):
            return None
        self.searches = len(tape.recording.decisions) >= FEWEST and self.jumps_carry()
        self.opaque |= self.searches
        return None if self.searches else tape

    def jumps_carry(self) -> bool:
        """Whether some outputs change by jumps along a random direction; see `searches`."""
        random = np.random.default_rng(0)
        direction = self.direction(random)

        def slope(t: float, weights: Array) -> float:
            gradients = self.tape_gradients(direction, weights, t)
            return np.nan if gradients is None else directional_derivative(gradients, direction)

        return jumps_carry(self.line(direction), slope, random)

    def tape_gradients(
        self, direction: Direction, cotangent: Array, t: float
    ) -> list[Array] | None:
        """The tape's gradients at a position on a line; None without a complete tape."""
        tape = self.record(self.all_inputs(move_along(self.x, direction, t)))
        if tape is None:
            return None
        return self.moved_gradients(tape.gradient(self.outputs.split(cotangent)))

    def record(
        self, inputs: Sequence[Array], lines: bool = False, keep_casts: bool = False
    ) -> Tape | None:
        """The recorded forward at these inputs; None if values leave it, if it is not the
        derivative of the computation, or if nothing records.
        """
        if self.searches:
            return None
        choices, constants = list[Array](), list[str]()
        recording = self.runs.recording(inputs, noting(choices, constants), keep_casts, lines)
        if recording is None:
            return None
        self.spent.count_run(evaluations=1)
        self.opaque |= bool(recording.leaks)
        tape = Tape(recording, choices, rounds_constants=bool(constants))
        return None if tape.incomplete else tape

    def agrees(self, outputs: Sequence[Array]) -> bool:
        """Whether the recorded outputs equal those of the call itself, up to rounding."""
        plain = self.outputs.arrays
        if shapes_of(outputs) != shapes_of(plain):
            return False
        error = distance(wide(flat(outputs)), wide(flat(plain)))
        if not error.any():
            return True
        random, nondet = np.random.default_rng(0), self.problem.nondet
        measured = Measured(
            lambda c: self.compute(self.inputs, c), self.epsilon, random, nondet=nondet
        )
        measured.draw()
        bounds = measured.bounds() + nondet * of_each_largest(plain)
        return bool((error <= bounds).all())

    @property
    def witnessed(self) -> bool:
        """Whether the tape is independent evidence: complete, and not the source of backward's
        gradient.
        """
        return self.tape is not None and self.tape.independent

    def by_tape(self, cotangent: Array) -> list[Array]:
        """The tape's gradients of the moved inputs."""
        assert self.tape is not None
        if self.last_by_tape[0] is not cotangent:
            taped = self.tape.gradient(self.outputs.split(cotangent))
            self.last_by_tape = cotangent, self.select_moved(taped)
        return self.last_by_tape[1]

    def one_step_later(self, cotangents: Cotangents) -> list[Array] | None:
        """The tape's gradients of the moved inputs if an iteration that a comparison stopped runs
        one step further; None if no such iteration was recorded, or if its value had not converged
        to rounding.

        The gradient of an iteration's operations converges later than its value. The change by one
        more step shows its distance from the limit, which is the gradient in a backward that solves
        for it.
        """
        tape = self.tape
        assert tape is not None
        ends = [k for k, c in enumerate(tape.choices) if c.dtype.kind == "b" and c.size == 1]
        if len(ends) < 2:
            return None
        count = iter(range(ends[-1] + 1))

        def change(name: str, output: Array, number: int) -> None:
            if (
                chooses(name, output)
                and next(count, -1) == ends[-1]
                and output.flags.writeable
                and output.dtype.kind == "b"
            ):
                output[...] = ~output

        self.spent.count_run(evaluations=1)
        recording = self.runs.recording(self.inputs, change)
        assert recording is not None
        later = Tape(recording)
        if later.incomplete:
            return None
        pairs = zip(later.outputs, self.outputs.arrays, strict=True)
        converged = max(CLEAR * EPS, MANY * self.given_epsilon)
        if not all(
            a.shape == b.shape and largest(a - b) <= converged * largest(b) for a, b in pairs
        ):
            return None
        return self.moved_gradients(later.gradient(cotangents))

    # --------------------------------------------- rounding, measured
    def noise(self, line: Line, step: int, random: np.random.Generator) -> Array:
        """The bound η on the change of every flat real output between the point and a step ahead on
        a line; the line takes its samples at that step.
        """
        ahead = move_along(self.x, line.direction, RATIO**step)
        start, end = (self.measured_outputs(x, random) for x in (self.x, ahead))
        if self.replays:
            line.extend((step,))
        else:
            line.take(step, flat_real(end.plain))
        bounds, farther = (measured.bounds(absolute=True) for measured in (start, end))
        # outside of the domain no bound is known, and none is needed
        bounds = np.maximum(bounds, np.where(np.isfinite(farther), farther, 0.0))
        bounds = bounds + self.problem.nondet * of_each_largest(start.plain)
        # A change has two ends, and both are rounded.
        return 2 * bounds.repeat(self.outputs.numbers)

    def measured_outputs(self, moved: Sequence[Array], random: np.random.Generator) -> Measured:
        """The active outputs with the moved inputs replaced, and the error bound of each."""
        known = None
        if moved is self.x and self.tape is not None:  # the outputs are known
            known = self.outputs.selected, self.tape.choices
        measured = Measured(
            lambda c: self.perturbed_outputs(moved, c),
            self.epsilon,
            random,
            known,
            self.problem.nondet,
        )
        measured.draw()
        self.opaque |= not self.replays and bool(self.runs.leaks)
        return measured

    @property
    def replays(self) -> bool:
        """Whether perturbed runs of forward are replays of the tape."""
        return self.tape is not None and self.tape.replays

    def perturbed_outputs(self, moved: Sequence[Array], change: Change) -> list[Array]:
        """The active outputs with the moved inputs replaced and every intermediate result
        perturbed.
        """
        inputs = [rounded_input(x, change) for x in moved]
        if not self.replays:
            return self.forward(inputs, change)
        assert self.tape is not None
        recording = self.tape.recording
        outputs = recording.outputs_among(recording.recompute(self.all_inputs(inputs), change))
        return self.outputs.select(outputs)

    def measured_claim(
        self,
        cotangents: Cotangents,
        random: np.random.Generator,
        keep_casts: bool = False,
    ) -> Measured:
        """The claimed gradients of the moved inputs, and their error bounds; `keep_casts`: in the
        user's precision.
        """
        inputs = list(self.problem.inputs) if keep_casts else self.inputs

        def compute(change: Change) -> list[Array]:
            self.spent.count_run(vjps=1)
            return self.moved_gradients(self.runs.gradients(inputs, cotangents, change, keep_casts))

        return Measured(compute, self.epsilon, random, nondet=self.problem.nondet)

    def measured_tape(
        self,
        tape: Tape,
        cotangents: Cotangents,
        taped: Sequence[Array],
        random: np.random.Generator,
        keep_casts: bool = False,
    ) -> Measured:
        """The error bounds of a tape's gradients of the moved inputs, next to the given
        gradients.
        """
        recording = tape.recording

        def compute(change: Change) -> list[Array]:
            inputs = [
                rounded_input(x, change) if k in self.moved else x.copy()
                for k, x in enumerate(recording.arrays[: recording.inputs])
            ]
            self.spent.count_run(evaluations=int(not tape.replays))
            again: Recording | None
            if tape.replays:
                again = recording.replay(inputs, change)
            else:
                again = self.runs.recording(inputs, change, keep_casts)
            assert again is not None
            if again.error is not None:  # only perturbed results make the call raise
                raise again.error
            return self.moved_gradients(perturbed_gradient(Tape(again), cotangents, change))

        plain = taped, tape.choices
        return Measured(compute, self.epsilon, random, plain, self.problem.nondet)

    # ---------------------------------------------------------- names
    @property
    def complex(self) -> bool:
        """Whether an input or output is complex."""
        return 2 in (self.outputs.numbers, self.numbers)

    def place(self, entry: Entry) -> str:
        """The name in reports of an entry's input element."""
        named = self.name_entry(entry)
        return element(named.input, named.index)

    def name_entry(self, entry: Entry) -> WrongEntry:
        """An entry with the names of its input and output."""
        number = self.moved[entry.input]
        place = np.unravel_index(entry.index, self.inputs[number].shape)
        output, output_index = "Σ ± out", tuple[int, ...]()
        if entry.output != SUM_OF_OUTPUTS:
            k, output_index = self.outputs.locate(entry.output)
            output, output_index = self.problem.located(self.problem.output_names[k], output_index)
        name, index = self.problem.located(self.problem.names[number], tuple(int(i) for i in place))
        return WrongEntry(
            input=name,
            index=index,
            output=output,
            output_index=output_index,
            analytic=entry.analytic,
            numeric=entry.numeric,
            error_bound=entry.bar,
        )
