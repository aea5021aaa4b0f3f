"""The verdict on a gradient: PASS, FAIL, KINK or INCONCLUSIVE, from error bars alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradcheck.check.problem import Problem
from gradcheck.numeric.derivative import Array, Derivative, flat, module_of, spacing
from gradcheck.numeric.kink import one_sided
from gradcheck.numeric.probe import Comparison, Entry, Point, compare, diagonal_entries, weights, wrong_entries
from gradcheck.result import GradientSummary, Status, WrongEntry

PROBES = 2
COTANGENT_SIZES = (1.0, 64.0)
"""Overall sizes of the cotangents, probe by probe:
a backward that clips or squares its cotangent shows at some size."""
WIDEST_BAR = 1e-2
"""A derivative whose bar is wider than this, relative to itself or to its output, decides nothing."""
MOST_LISTED = 20
"""Wrong entries that a summary lists of an input, worst first; all are counted."""
UNITS = 32
"""Units in the last place that a backward in low precision may be off, relative to the largest gradient."""
SUM_OF_OUTPUTS = -1
"""In place of an output element: the sum of all outputs with random signs."""


def check_gradient(
    problem: Problem, *, seed: int = 0, probes: int = PROBES, rtol: float | None = None
) -> GradientSummary:
    """Hold the vjp that `problem` claims against numerical derivatives.

    Random projections uᵀJ d are compared from both sides; where they disagree, single wrong entries are searched for,
    and only a confirmed entry gives FAIL. The differences are taken in float64 whatever the inputs' dtype, unless the
    layer cannot.

    Args:
        seed: of the directions and cotangents.
        rtol: widens the bars, relative to the derivative; never narrows them.

    Raises:
        Exception: whatever the layer raises.
    """
    return Check(problem, seed, rtol or 0.0).run(probes)


@dataclass
class Outputs:
    """The outputs at the point, those that have a derivative one after the other in a flat vector."""

    arrays: list[Array]
    active: list[int]

    @property
    def vector(self) -> Array:
        """The active outputs, flat."""
        return flat([self.arrays[k] for k in self.active])

    def split(self, cotangent: Array) -> list[Array | None]:
        """A flat cotangent as one array per output, of its dtype; None for outputs without a derivative."""
        parts: list[Array | None] = [None] * len(self.arrays)
        start = 0
        for k in self.active:
            array = self.arrays[k]
            part = cotangent[start : start + array.size].reshape(array.shape)
            parts[k] = (part if array.dtype.kind == "c" else part.real).astype(array.dtype)
            start += array.size
        return parts

    def locate(self, position: int) -> tuple[int, tuple[int, ...]]:
        """Which output, and which element of it, a position in the flat vector is."""
        for k in self.active:
            size = self.arrays[k].size
            if position < size:
                return k, tuple(int(i) for i in np.unravel_index(position, self.arrays[k].shape))
            position -= size
        raise IndexError(position)


def is_differentiable(array: Array) -> bool:
    """Whether an array holds real floating-point or complex numbers; NumPy's kind V is bfloat16."""
    return array.dtype.kind in "fcV"


def widened(array: Array) -> Array:
    """A floating array in float64, a complex one in complex128; others unchanged."""
    return array.astype("complex128" if array.dtype.kind == "c" else "float64") if is_differentiable(array) else array


class Check:
    """One gradient check while it runs."""

    def __init__(self, problem: Problem, seed: int, rtol: float) -> None:
        self.problem = problem
        self.seed = seed
        self.rtol = rtol
        self.random = np.random.default_rng(seed)
        self.moved = [k for k, wanted in enumerate(problem.differentiable) if wanted]
        self.worst = 0.0
        self.inputs = list(problem.inputs)
        self.outputs = Outputs([], [])
        self.point: Point | None = None
        self.exhaustive = True
        self.right: set[int] = set()
        """The inputs whose gradient agreed when they were tried alone."""

    def summary(self, verdict: Status, why: str = "", wrong: Sequence[Entry] = ()) -> GradientSummary:
        """The result, with everything that was counted so far."""
        elements = {(entry.input, entry.index) for entry in wrong}
        counts = {}
        for number, k in enumerate(self.moved):
            count = sum(i == number for i, _ in elements)
            if count or number in self.right or verdict is not Status.FAIL:
                counts[self.problem.names[k]] = (count, self.inputs[k].size)
        listed = [e for k in range(len(self.moved)) for e in [e for e in wrong if e.input == k][:MOST_LISTED]]
        return GradientSummary(
            verdict=verdict,
            why=why,
            wrong=tuple(self.named(entry) for entry in listed),
            wrong_counts=counts,
            exhaustive=self.exhaustive,
            worst_error=self.worst,
            seed=self.seed,
            evaluations=self.point.evaluations if self.point else 0,
        )

    def run(self, probes: int) -> GradientSummary:
        """The whole check."""
        self.choose_precision()
        arrays = self.outputs.arrays
        for k in self.outputs.active:
            bad = (
                np.argwhere(~np.isfinite(np.asarray(abs(arrays[k]), dtype=float)))
                if arrays[k].size
                else np.empty((0, 0))
            )
            if len(bad):
                where = f"{self.problem.output_names[k]}{[int(i) for i in bad[0]]}"
                return self.summary(Status.INCONCLUSIVE, f"{where} is not finite here: choose another point")
        if not self.moved or not self.outputs.active or not self.outputs.vector.size:
            return self.summary(Status.PASS)
        if not sum(self.inputs[k].size for k in self.moved):
            return self.summary(Status.PASS)
        self.point = Point(self.forward, self.vjp, [self.inputs[k] for k in self.moved])
        unsure = ""
        for number in range(probes):
            found, why = self.probe(COTANGENT_SIZES[number % len(COTANGENT_SIZES)])
            if found is not None:
                return found
            unsure = unsure or why
        if unsure:
            return self.summary(Status.INCONCLUSIVE, unsure)
        return self.low_precision() or self.summary(Status.PASS)

    # ----------------------------------------------------------------- the function
    def choose_precision(self) -> None:
        """Take float64 copies of the inputs, unless the layer only takes its own dtype."""
        wide = [widened(x) for x in self.problem.inputs]
        try:
            arrays = self.problem.forward(wide)
        except Exception:
            if all(a.dtype == b.dtype for a, b in zip(wide, self.problem.inputs, strict=True)):
                raise
            wide = list(self.problem.inputs)
            arrays = self.problem.forward(wide)
        self.inputs = wide
        self.outputs = Outputs(arrays, [k for k, a in enumerate(arrays) if is_differentiable(a)])

    def forward(self, moved: Sequence[Array]) -> list[Array]:
        """The active outputs with the moved inputs replaced."""
        point = list(self.inputs)
        for k, x in zip(self.moved, moved, strict=True):
            point[k] = x
        outputs = self.problem.forward(point)
        return [outputs[k] for k in self.outputs.active]

    def vjp(
        self, cotangent: Array, inputs: Sequence[Array] | None = None, outputs: Outputs | None = None
    ) -> list[Array]:
        """The gradients of the moved inputs, None as zeros."""
        at = self.inputs if inputs is None else list(inputs)
        found = self.problem.vjp(at, (outputs or self.outputs).split(cotangent))
        return [widened(at[k] * 0 if found[k] is None else found[k]) for k in self.moved]

    # ----------------------------------------------------------------- one probe
    def probe(self, size: float) -> tuple[GradientSummary | None, str]:
        """A verdict, if this probe gives one, or why it could not tell."""
        assert self.point is not None
        direction = self.point.random_direction(self.random)
        derivative = self.point.along(direction)
        outputs = widened(self.outputs.vector)
        cotangent = size * weights(derivative, outputs, self.random)
        comparison = compare(cotangent, derivative, self.vjp(cotangent), direction, self.rtol)
        if comparison.ratio > 1:
            return self.disagreement(cotangent, direction)
        self.worst = max(self.worst, comparison.ratio)
        return None, self.too_wide(derivative, outputs, comparison, cotangent)

    def too_wide(self, derivative: Derivative, outputs: Array, comparison: Comparison, cotangent: Array) -> str:
        """Why a comparison that agrees says nothing, if so."""
        xp = module_of(outputs)
        reference = xp.maximum(xp.abs(derivative.value), xp.abs(outputs))
        wide = xp.flatnonzero((derivative.bar > WIDEST_BAR * reference) & (derivative.bar > 0))
        if not wide.size:
            return ""
        k, index = self.outputs.locate(int(wide[0]))
        name = f"{self.problem.output_names[k]}{list(index) if index else ''}"
        more = f" and of {wide.size - 1} other elements" if wide.size > 1 else ""
        return (
            f"the numerical derivative of {name}{more} has no usable error bar: the forward is too noisy, or "
            f"jumps, around this point. Use inputs further from such places, or a forward that keeps more digits"
        )

    def disagreement(self, cotangent: Array, direction: Sequence[Array]) -> tuple[GradientSummary | None, str]:
        """FAIL with the entries that are wrong, KINK where the function has no derivative, or why neither."""
        assert self.point is not None
        wrong: list[Entry] = []
        kinks: list[tuple[Entry, tuple[float, float]]] = []
        for entries, diagonal in self.suspects(cotangent, direction):
            for entry, sides in zip(entries, one_sided(self.point, entries, diagonal), strict=True):
                if sides is None or not between(entry, sides):
                    wrong.append(entry)
                else:
                    kinks.append((entry, sides))
        if wrong:
            self.worst = max(abs(e.analytic - e.numeric) / e.bar if e.bar else np.inf for e in wrong)
            wrong.sort(key=relative_error, reverse=True)
            return self.summary(Status.FAIL, "", wrong), ""
        if kinks:
            shown = [f"{self.place(entry)} (left {left:.6g}, right {right:.6g})" for entry, (left, right) in kinks]
            more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
            where = ", ".join(shown[:3]) + more
            why = f"not differentiable at {where}; the gradient lies between the one-sided derivatives"
            return self.summary(Status.KINK, why), ""
        return None, "the projections disagree, but no single entry does by more than its bar: the forward is too noisy"

    def suspects(self, cotangent: Array, direction: Sequence[Array]) -> list[tuple[list[Entry], bool]]:
        """Per input that is not right, the entries that are wrong by their bars, and whether its Jacobian is diagonal.

        Of a diagonal Jacobian all wrong entries are found, of another some.
        """
        assert self.point is not None
        gradients, found = self.vjp(cotangent), []
        for number in range(len(self.moved)):
            alone = [d if k == number else d * 0 for k, d in enumerate(direction)]
            derivative = self.point.along([d if k == number else None for k, d in enumerate(direction)])
            if compare(cotangent, derivative, gradients, alone, self.rtol).ratio <= 1:
                self.right.add(number)
                continue
            entries = diagonal_entries(self.point, number, cotangent, direction, self.rtol, self.random)
            if entries is not None:
                found.append((entries, True))
            else:
                self.exhaustive = False
                found.append((list(wrong_entries(self.point, cotangent, alone, derivative, self.rtol)), False))
        return found

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

    # ----------------------------------------------------------------- low precision
    def low_precision(self) -> GradientSummary | None:
        """FAIL if the backward in the inputs' own dtype strays from the one in float64, which was just found right.

        The bound per element: `UNITS` of the dtype, of the largest gradient, and as much as the gradient itself
        changes when the inputs are rounded to the dtype (the condition of the backward).
        """
        given = list(self.problem.inputs)
        if all(a.dtype == b.dtype for a, b in zip(given, self.inputs, strict=True)):
            return None
        arrays = self.problem.forward(given)
        own = Outputs(arrays, self.outputs.active)
        cotangent = widened(own.vector) * 0 + self.random.choice([-1.0, 1.0], own.vector.shape)
        low, high = self.vjp(cotangent, given, own), self.vjp(cotangent)
        eps = max(spacing(given[k]) for k in self.moved)
        nudged = [self.nudged(x, eps) for x in self.inputs]
        other = self.vjp(cotangent, nudged)
        wrong = []
        for number, (a, b, c) in enumerate(zip(low, high, other, strict=True)):
            if not a.size:
                continue
            xp = module_of(a)
            bar = UNITS * (eps * xp.abs(b).max() + xp.abs(c - b)) + self.rtol * xp.abs(b)
            for i in xp.flatnonzero(~(xp.abs(a - b) <= bar)).tolist():
                values = [float(v.reshape(-1)[i].real) for v in (a, b, bar)]
                wrong.append(Entry(number, i, SUM_OF_OUTPUTS, *values))
        self.right.update(range(len(self.moved)))
        return self.summary(Status.FAIL, "wrong only in the inputs' own dtype", wrong) if wrong else None

    def nudged(self, x: Array, eps: float) -> Array:
        """An input with every element moved by about one unit of the low precision."""
        return x * (1 + eps * self.random.choice([-1.0, 1.0], x.shape)) if is_differentiable(x) else x


def relative_error(entry: Entry) -> float:
    """|analytic − numeric| over the larger of both; inf if one of them is not finite."""
    error = abs(entry.analytic - entry.numeric) / max(abs(entry.analytic), abs(entry.numeric))
    return error if np.isfinite(error) else np.inf


def between(entry: Entry, sides: tuple[float, float]) -> bool:
    """Whether the gradient of an entry lies between its one-sided derivatives, both included."""
    low, high = sorted(sides)
    margin = 1e-6 * (high - low)
    return low - margin <= entry.analytic <= high + margin
