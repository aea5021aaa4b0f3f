"""Backwards that are declared not to be the derivative: held against what they are declared to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from gradcheck.backends.base import is_differentiable
from gradcheck.case.function import TensorFunction
from gradcheck.case.gradient_check import GAVE_LESS, Settings, gradient_summary
from gradcheck.case.no_gradient import refused
from gradcheck.checking.arrays import Array, wide
from gradcheck.checking.problem import Problem
from gradcheck.codes import is_contract
from gradcheck.result import UNFINISHED, GradientSummary, Status, element

Expectation = Literal["matches", "differs", "straight-through", "zero"]
"""What a backward is: the derivative; not the derivative; the cotangent unchanged, of a function in steps; zero."""

MARKS = {
    "differs": "expected to differ",
    "straight-through": "expected to be straight-through",
    "zero": "expected to be zero",
}
AGREES = "expected a backward that is not the derivative, but here it is"
"""Begins the reason of a failure that another point may put right: there the two may differ."""

LARGER = 64
"""How much larger the second cotangent is that is passed through: a backward that clips shows at some size."""
SMALL_MOVE, LARGE_MOVE = 2.0**-20, 2.0**-14
"""Two small moves, relative to an input's element, by which steps are told from slopes."""
FLAT = 2.0**-36
"""A change of an output, relative to the largest, between what rounding (2⁻⁵²) and a slope of 1 (`SMALL_MOVE`) make."""


def as_expected(function: TensorFunction, settings: Settings, expect: Expectation) -> GradientSummary:
    """The summary of the gradient check, its verdict being whether backward is what it is expected to be.

    Where it is declared not to be the derivative and passes, `wrong` still lists where the two were seen to differ.

    Raises:
        Exception: whatever the function raises.
    """
    summary = gradient_summary(function, settings)
    if expect == "matches":
        return summary
    # contracts hold whatever a backward is declared to be
    broken = any(is_contract(d.code) for d in summary.diagnosis)
    if broken or (summary.why and function.unchecked):
        return summary
    try:
        why = deviation(function.problem(), expect, np.random.default_rng(settings.seed))
    except Exception as error:
        found = refused(error)
        if found is None:
            raise
        return found
    if not why and expect == "differs" and summary.verdict is Status.INCONCLUSIVE:
        return summary
    if not why and expect == "differs" and summary.verdict in (Status.PASS, Status.KINK):
        why = f"{AGREES} (expect='differs')"
    # how backward was held against the derivative is not what is told; that it was cut short is
    marks = tuple(mark for mark in summary.marks if mark == GAVE_LESS or mark.startswith(UNFINISHED))
    if why:
        return GradientSummary(
            verdict=Status.FAIL, why=why, seed=summary.seed, evaluations=summary.evaluations, marks=marks
        )
    marks = (*marks, MARKS[expect])
    passed = {"verdict": Status.PASS, "why": "", "diagnosis": (), "worst_error": 0.0, "marks": marks}
    return summary.model_copy(update=passed)


def agrees(summary: GradientSummary) -> bool:
    """Whether a failure is only that backward and derivative agree at this point."""
    return summary.verdict is Status.FAIL and summary.why.startswith(AGREES)


def deviation(problem: Problem, expect: Expectation, random: np.random.Generator) -> str:
    """In which way backward is not what it is declared to be; empty if it is."""
    if expect == "straight-through":
        return not_straight_through(problem, random)
    return not_zero(problem, random) if expect == "zero" else ""


def not_zero(problem: Problem, random: np.random.Generator) -> str:
    """The first element of a gradient that is not zero."""
    for size in (1, LARGER):
        for name, gradient, _ in gradients(problem, [cotangent(a, size, random) for a in outputs_of(problem)]):
            place = first(gradient, lambda a: wide(a) != 0)
            if gradient is not None and place is not None:
                value = f"the gradient of {element(name, place)} is {gradient[place]:.8g}"
                return f"expected a gradient of zeros (expect='zero'), but {value}"
    return ""


def not_straight_through(problem: Problem, random: np.random.Generator) -> str:
    """The first element of a gradient that is not the cotangent's, or of the output that follows its input."""
    expected = "expected backward to pass the cotangent on unchanged (expect='straight-through'), but"
    outputs = outputs_of(problem)
    if len(outputs) != 1 or not is_differentiable(outputs[0]):
        return f"{expected} the function has {len(outputs)} outputs that claim a gradient, not one floating one"
    for size in (1, LARGER):
        given = cotangent(outputs[0], size, random)
        assert given is not None
        for name, gradient, x in gradients(problem, [given]):
            if gradient is None or given.shape != x.shape:
                got = "none" if gradient is None else f"one of shape {list(x.shape)}"
                return f"{expected} {name} gets {got}, where the cotangent has shape {list(given.shape)}"
            place = first(gradient, lambda a, g=given: wide(a) != wide(g))  # type: ignore[misc]
            if place is not None:
                values = (
                    f"the gradient of {element(name, place)} is {gradient[place]:.8g}, the cotangent {given[place]:g}"
                )
                return f"{expected} {values}"
    place, steps = sloping_element(problem, random)
    if place is not None:
        name = problem.output_names[0]
        return (
            f"expected a function in steps (expect='straight-through'), but {element(name, place)} follows its inputs "
            f"with a slope: what backward passes on is not its derivative"
        )
    return "" if steps else f"{AGREES} (expect='straight-through')"


def outputs_of(problem: Problem) -> Sequence[Array]:
    """The outputs at the inputs."""
    return problem.forward(list(problem.inputs)) if problem.outputs is None else problem.outputs


def cotangent(output: Array, size: int, random: np.random.Generator) -> Array | None:
    """Multiples of 1/8 up to 2 in size, times `size`: every floating dtype holds them exactly."""
    if not is_differentiable(output):
        return None
    eighths = random.integers(1, 17, output.shape) * random.choice([-1, 1], output.shape)
    return (wide(output) * 0 + size * eighths / 8).astype(output.dtype)


def gradients(problem: Problem, cotangents: list[Array | None]) -> list[tuple[str, Array | None, Array]]:
    """The names of the inputs that need a gradient, what backward gives them, and the inputs."""
    found = problem.vjp(list(problem.inputs), cotangents)
    rows = zip(problem.names, found, problem.inputs, problem.differentiable, strict=True)
    return [(name, gradient, x) for name, gradient, x, needed in rows if needed]


def sloping_element(problem: Problem, random: np.random.Generator) -> tuple[tuple[int, ...] | None, bool]:
    """The first element of the output that follows its inputs other than one to one, and whether any is in steps.

    The outputs at two small moves, one 64 times the other, are held against those at the point. In steps they do not
    change, or jump by as much for both; along a slope they change in proportion. Where a function that is in steps
    elsewhere is the identity, as a threshold that lets large values through, the cotangent is passed on rightly.
    """
    inputs = [wide(x) for x in problem.inputs]
    moves = [random_move(x, random) if need else x * 0 for x, need in zip(inputs, problem.differentiable, strict=True)]

    def change(t: float) -> Array:
        there = [x + t * d if need else x for x, d, need in zip(inputs, moves, problem.differentiable, strict=True)]
        return wide(problem.forward(there)[0]) - start

    try:
        start = wide(problem.forward(inputs)[0])
        near, far = change(SMALL_MOVE), change(LARGE_MOVE)
    except Exception:  # it takes its own dtype alone, in which a move so small may be none
        return None, True
    same = sum(SMALL_MOVE * d for d, need in zip(moves, problem.differentiable, strict=True) if need)
    one_to_one = abs(near - same) <= SMALL_MOVE * abs(same)
    sloping = (abs(near * (LARGE_MOVE / SMALL_MOVE) - far) <= abs(far) / 2) & (abs(near) > FLAT * abs(start).max())
    return first(sloping & ~one_to_one, lambda a: a), not bool(one_to_one.all())


def random_move(x: Array, random: np.random.Generator) -> Array:
    """A direction: every element of an input with a random sign, zeros as large as the largest."""
    size = np.where(x == 0, abs(x).max(initial=0.0) or 1.0, abs(x))
    return size * random.choice([-1.0, 1.0], x.shape)


def first(array: Array | None, chosen: Callable[[Array], Array]) -> tuple[int, ...] | None:
    """The index of the first element that is chosen."""
    if array is None:
        return None
    found = np.argwhere(np.asarray(chosen(array)))
    return tuple(int(i) for i in found[0]) if len(found) else None
