"""Where a function is flat to the last bit, its gradient is worth what it is where the function responds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import problem

from gradcheck.checker.gradient import check_gradient
from gradcheck.result import GradientSummary, Status

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SATURATED = [[30.0], [-40.0, 50.0], [23.0], [27.0, -25.0]]


GREEN = {Status.PASS, Status.KINK}


def check(forward: Any, backward: Any, *inputs: Any) -> GradientSummary:
    return check_gradient(problem(forward, backward, *inputs))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def bell(x: Any) -> Any:
    return 1 + np.exp(-x * x)


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def zero(x: Any, y: Any, g: Any) -> Any:
    return g * 0


RIGHT: list[tuple[Any, Any]] = [
    (np.tanh, lambda x, y, g: g * (1 - y * y)),
    (np.tanh, lambda x, y, g: g / np.cosh(x) ** 2),
    (lambda x: np.tanh(abs(x)), lambda x, y, g: g * np.sign(x) / np.cosh(x) ** 2),
    (bell, lambda x, y, g: -2 * g * x * np.exp(-x * x)),
    (lambda x: np.array([np.tanh(x).sum()]), lambda x, y, g: g / np.cosh(x) ** 2),
]


@pytest.mark.parametrize("x", SATURATED)
@pytest.mark.parametrize(("forward", "backward"), RIGHT)
def test_a_right_gradient_passes_and_says_where_it_was_seen(forward: Any, backward: Any, x: Any) -> None:
    summary = check(forward, backward, x)
    assert (summary.verdict, summary.why) == (Status.PASS, "")
    assert any("flat here, right at" in mark for mark in summary.marks)


@pytest.mark.parametrize("x", SATURATED)
@pytest.mark.parametrize(("forward", "backward"), RIGHT)
@pytest.mark.parametrize("factor", [1.05, 2, 0.5, -1, 0])
def test_a_gradient_that_is_wrong_where_the_function_responds_is_not_green(
    forward: Any, backward: Any, x: Any, factor: float
) -> None:
    summary = check(forward, lambda x, y, g: factor * backward(x, y, g), x)
    assert summary.verdict not in GREEN
    assert summary.verdict is Status.FAIL or [d.code for d in summary.diagnosis] == ["GC121"]


@pytest.mark.parametrize(
    ("forward", "x"),
    [
        (np.tanh, [30.0]),
        (np.tanh, [-300.0, 500.0]),
        (lambda x: np.tanh(abs(x)), [40.0]),
        (lambda x: np.clip(x, -1, 1), [5.0, -70.0]),
        (bell, [-20.0]),
    ],
)
def test_a_gradient_of_zero_does_not_pass_if_it_is_zero_where_the_function_responds(forward: Any, x: Any) -> None:
    summary = check(forward, zero, x)
    assert summary.verdict is Status.INCONCLUSIVE
    assert "where it responds, the gradient is wrong" in summary.why


@pytest.mark.parametrize(
    ("forward", "backward", "x"),
    [
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


@pytest.mark.parametrize(("forward", "x"), [(np.tanh, [19.0, 25.0]), (np.tanh, [20.0]), (sigmoid, [40.0, 60.0])])
def test_a_gradient_of_zero_does_not_pass_where_the_function_is_about_to_respond(forward: Any, x: Any) -> None:
    assert check(forward, zero, x).verdict not in GREEN


@pytest.mark.parametrize(("forward", "x"), [(np.tanh, [20.0]), (sigmoid, [40.0, 60.0])])
def test_that_the_function_responds_far_away_makes_a_gradient_of_zero_green_for_no_seed(forward: Any, x: Any) -> None:
    about_to_respond = problem(forward, zero, x)
    assert all(check_gradient(about_to_respond, seed=seed).verdict not in GREEN for seed in range(12))


@pytest.mark.parametrize("seed", range(6))
def test_a_gradient_of_zero_does_not_pass_where_larger_steps_see_a_derivative(seed: int) -> None:
    nearly_1 = problem(lambda x: np.sqrt(np.sqrt(1 + np.log1p(x * x) ** 2)), zero, [2.4e-4])
    assert check_gradient(nearly_1, seed=seed).verdict not in GREEN


def test_a_backward_that_works_at_the_inputs_alone_is_not_asked_for_more() -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        if x != 30.0:
            raise ValueError("made for 30")
        return g * 0

    assert check(np.tanh, backward, [30.0]).verdict is Status.PASS


def test_one_output_that_is_seen_is_enough() -> None:
    assert check(np.tanh, lambda x, y, g: g * (1 - y * y), [0.3, 40.0, -1.0]).verdict is Status.PASS


QUANTISERS = [np.floor, np.round, np.trunc, lambda x: np.floor(x + 0.1), lambda x: np.sign(x) * np.floor(abs(x))]


@pytest.mark.parametrize("forward", QUANTISERS)
@pytest.mark.parametrize("x", [[0.2, 0.3], [0.4], [-0.3, 0.2, 0.1], [0.01]])
def test_on_its_first_step_a_quantiser_has_the_gradient_0_and_no_other(forward: Any, x: Any) -> None:
    assert check(forward, zero, x).verdict in GREEN
    assert check(forward, lambda x, y, g: g, x).verdict not in GREEN


@pytest.mark.parametrize("power", [4, 6])
@pytest.mark.parametrize("x", [-4.8e-4, 1e-3])
def test_what_is_wrong_where_few_digits_show_it_is_not_green(power: int, x: float) -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        s = np.sin(x**power)
        return -g * 2 * s * np.cos(x**power) * power * x ** (power - 1) / (1 + s * s) ** 2

    def forward(x: Any) -> Any:
        return 1 / (1 + np.sin(x**power) ** 2)

    assert check(forward, backward, [x]).verdict in GREEN
    assert check(forward, lambda x, y, g: 1.02 * backward(x, y, g), [x]).verdict not in GREEN


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (np.sqrt, lambda x, y, g: g * np.where(x == 0, 0, 0.5 / np.where(x == 0, 1, y))),
        (lambda x: x**1.5, lambda x, y, g: g * 1.5 * np.sqrt(x)),
    ],
)
def test_the_edge_of_the_domain_is_said_to_be_one(forward: Any, backward: Any) -> None:
    found = check(forward, backward, [0.0, 1.3, 0.7])
    assert found.verdict is Status.INCONCLUSIVE
    assert "edge of the function's domain" in found.why
