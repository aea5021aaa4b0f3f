"""What cannot be told is undecided, unless nothing changes at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims import numpy_layer
from few import seeds
from layers import problem

import gradcheck
from gradcheck.case.gradient_check import check_gradient
from gradcheck.result import GradientSummary, Status

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.clause(id="V11"),
    pytest.mark.clause(id="V17"),
]

SATURATED = [[30.0], [-40.0, 50.0], [31.0, -30.0]]


GREEN = {Status.PASS, Status.KINK}


def check(forward: Any, backward: Any, *inputs: Any) -> GradientSummary:
    return check_gradient(problem(forward, backward, *inputs))


def recorded(forward: Any, backward: Any, *inputs: Any, seed: int = 0) -> GradientSummary:
    """The verdict on a layer in NumPy as users write it: its operations are recorded."""
    return gradcheck.check(numpy_layer(forward, backward), *(np.asarray(x) for x in inputs), seed=seed)


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


def undecided(summary: GradientSummary) -> bool:
    return summary.verdict is Status.INCONCLUSIVE and [d.code for d in summary.diagnosis] == ["GC121"]


def nothing_changes(summary: GradientSummary) -> bool:
    return summary.verdict is Status.PASS and "nothing changes here" in summary.marks


@pytest.mark.parametrize("x", SATURATED)
@pytest.mark.parametrize(("forward", "backward"), RIGHT)
def test_where_nothing_changes_a_right_gradient_passes_and_says_so(forward: Any, backward: Any, x: Any) -> None:
    assert nothing_changes(check(forward, backward, x))


def test_a_gradient_that_would_show_fails_though_nothing_changes() -> None:
    for size in (1, 1e-3):
        assert check(np.tanh, lambda x, y, g, size=size: size * g, [30.0]).verdict is Status.FAIL


def test_a_gradient_that_might_show_is_undecided_though_nothing_changes() -> None:
    assert undecided(check(np.tanh, lambda x, y, g: 1e-12 * g, [30.0]))


@pytest.mark.parametrize(
    ("forward", "backward", "x"),
    [
        (np.tanh, zero, [17.0]),
        (np.tanh, lambda x, y, g: 2 * g / np.cosh(x) ** 2, [17.0]),
        (np.tanh, zero, [19.0, 25.0]),
        (np.tanh, zero, [23.0]),
        (sigmoid, zero, [30.0]),
        (sigmoid, zero, [40.0]),
        (sigmoid, zero, [36.5, 60.0]),
        *((function, zero, [2.3, -0.7]) for function in (np.floor, np.round, np.trunc)),
    ],
)
def test_where_the_outputs_respond_to_larger_steps_alone_nothing_is_decided(
    forward: Any, backward: Any, x: Any
) -> None:
    assert undecided(check(forward, backward, x))


@pytest.mark.parametrize(
    ("forward", "backward", "x"),
    [
        (np.tanh, zero, [30.0]),
        (sigmoid, zero, [60.0, 63.0]),
        (sigmoid, lambda x, y, g: g * y * (1 - y), [60.0]),
        (relu, lambda x, y, g: g * (x > 0), [-1.0, -20.0]),
        (relu, zero, [-1.0, -20.0]),
        (lambda x: np.clip(x, -1, 1), lambda x, y, g: g * (abs(x) < 1), [5.0, -70.0]),
        *((function, zero, [2.3, -0.7]) for function in (np.sign, np.zeros_like)),
    ],
)
def test_a_gradient_of_zero_passes_where_nothing_changes(forward: Any, backward: Any, x: Any) -> None:
    summary = check(forward, backward, x)
    assert (summary.verdict, summary.why) == (Status.PASS, "")


@seeds(6)
def test_a_gradient_of_zero_does_not_pass_where_larger_steps_see_a_derivative(seed: int) -> None:
    def nearly_1(x: Any) -> Any:
        return np.sqrt(np.sqrt(1 + np.log1p(x * x) ** 2))

    assert recorded(nearly_1, zero, [2.4e-4], seed=seed).verdict is Status.FAIL
    assert check_gradient(problem(nearly_1, zero, [2.4e-4]), seed=seed).verdict not in GREEN


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
@pytest.mark.parametrize("factor", [1, 1.02])
def test_of_a_gradient_too_small_to_change_any_bit_it_is_said_that_nothing_changes(
    power: int, x: float, factor: float
) -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        s = np.sin(x**power)
        return -factor * g * 2 * s * np.cos(x**power) * power * x ** (power - 1) / (1 + s * s) ** 2

    assert nothing_changes(check(lambda x: 1 / (1 + np.sin(x**power) ** 2), backward, [x]))


def test_a_finite_gradient_where_the_slope_is_infinite_is_not_green() -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        return g * np.where(x == 0, 0, 0.5 / np.where(x == 0, 1, y))

    assert recorded(np.sqrt, backward, [0.0, 1.3, 0.7]).verdict is Status.FAIL
    assert check(np.sqrt, backward, [0.0, 1.3, 0.7]).verdict not in GREEN


def test_the_one_sided_slope_at_the_edge_of_the_domain_is_green() -> None:
    assert check(lambda x: x**1.5, lambda x, y, g: g * 1.5 * np.sqrt(x), [0.0, 1.3, 0.7]).verdict in GREEN
