"""Where a function is flat to the last bit, what can be verified all the same is, and nothing else passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import problem

from gradcheck.checker.gradient import check_gradient
from gradcheck.result import GradientSummary, Status

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SATURATED = [[30.0], [-40.0, 50.0]]


def check(forward: Any, backward: Any, *inputs: Any) -> GradientSummary:
    return check_gradient(problem(forward, backward, *inputs))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def zero(x: Any, y: Any, g: Any) -> Any:
    return g * 0


RIGHT = [
    (np.tanh, lambda x: 1 / np.cosh(x) ** 2),
    (lambda x: 1 + np.exp(-x * x), lambda x: -2 * x * np.exp(-x * x)),
    (lambda x: np.array([np.tanh(x).sum()]), lambda x: 1 / np.cosh(x) ** 2),
]


@pytest.mark.parametrize("x", [[23.0], [19.0, 25.0]])
@pytest.mark.parametrize(("forward", "slope"), RIGHT)
@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(1, Status.PASS), (1.01, Status.INCONCLUSIVE), (2, Status.INCONCLUSIVE), (-1, Status.INCONCLUSIVE)],
)
def test_a_gradient_passes_if_it_is_what_a_complex_step_gives(
    forward: Any, slope: Any, x: Any, factor: float, verdict: Status
) -> None:
    summary = check(forward, lambda x, y, g: g * slope(x) * factor, x)
    assert summary.verdict is verdict
    assert (summary.diagnosis == ()) is (factor == 1)
    assert (f"{factor:g} times what a complex step gives" in summary.why) is (factor != 1)


@pytest.mark.parametrize("x", SATURATED)
def test_without_a_complex_step_a_gradient_that_is_not_seen_does_not_pass(x: Any) -> None:
    summary = check(lambda x: np.tanh(abs(x)), lambda x, y, g: g * np.sign(x) / np.cosh(x) ** 2, x)
    assert (summary.verdict, [d.code for d in summary.diagnosis]) == (Status.INCONCLUSIVE, ["GC121"])


@pytest.mark.parametrize(
    ("forward", "backward", "x"),
    [
        *((np.tanh, lambda x, y, g: g * (1 - y * y), x) for x in SATURATED),
        (sigmoid, lambda x, y, g: g * y * (1 - y), [40.0]),
        (relu, lambda x, y, g: g * (x > 0), [-1.0, -20.0]),
        (relu, zero, [-1.0, -20.0]),  # of a function that responds nowhere near, zero is the gradient
        (lambda x: np.clip(x, -1, 1), lambda x, y, g: g * (abs(x) < 1), [5.0, -70.0]),
        *((function, zero, [2.3, -0.7]) for function in (np.floor, np.round, np.sign, np.zeros_like)),
    ],
)
def test_a_gradient_of_zero_passes_where_nothing_changes(forward: Any, backward: Any, x: Any) -> None:
    summary = check(forward, backward, x)
    assert (summary.verdict, summary.why) == (Status.PASS, "")


@pytest.mark.parametrize(
    ("forward", "x", "responds"),
    [
        (np.tanh, [30.0], "0.0625"),
        (np.tanh, [-300.0, 500.0], "0.015625"),
        (lambda x: np.tanh(abs(x)), [40.0], "0.0625"),
        (lambda x: np.clip(x, -1, 1), [5.0, -70.0], "0.0625"),
    ],
)
def test_a_gradient_of_zero_does_not_pass_if_it_is_zero_where_the_function_responds(
    forward: Any, x: Any, responds: str
) -> None:
    summary = check(forward, zero, x)
    assert summary.verdict is Status.INCONCLUSIVE
    assert f"at {responds} times the inputs, where it responds, the gradient is 0 as well" in summary.why


def test_a_backward_that_works_at_the_inputs_alone_is_not_asked_for_more() -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        if x != 30.0:
            raise ValueError("made for 30")
        return g * 0

    assert check(np.tanh, backward, [30.0]).verdict is Status.PASS


def test_one_output_that_is_seen_is_enough() -> None:
    assert check(np.tanh, lambda x, y, g: g * (1 - y * y), [0.3, 40.0, -1.0]).verdict is Status.PASS
