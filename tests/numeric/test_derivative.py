"""Directional derivatives: the value, and a bar that covers its error."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gradcheck.numeric.derivative import at_a_small_step, directional, scale_of
from gradcheck.numeric.scan import FIRST_STEPS, GOOD, LARGER_STEPS, STEPS, USUAL_STEPS, Derivative, step_size

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

Function = Callable[[np.ndarray], np.ndarray]


def derivative(f: Function, x: float | list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Elementwise derivative and bar of `f` at `x`."""
    point = np.atleast_1d(np.asarray(x, dtype=float))
    scale = scale_of(point)
    found = directional(lambda inputs: [f(inputs[0])], [point], [scale])
    assert 2 * FIRST_STEPS <= found.evaluations <= 2 * (STEPS + LARGER_STEPS)
    return found.value / scale, found.bar / scale


@pytest.mark.parametrize(
    ("f", "x", "true"),
    [
        (np.tanh, 0.7, 1 - math.tanh(0.7) ** 2),
        (lambda x: 1 / x, 1e-5, -1e10),
        (lambda x: x * x, 1e8, 2e8),
        (np.log, 1e-7, 1e7),
        (np.sqrt, 1e-300, 0.5e150),
        (lambda x: np.sin(1e6 * x), 0.3, 1e6 * math.cos(3e5)),
        (np.exp, -50.0, math.exp(-50)),
        (np.exp, 50.0, math.exp(50)),
        (lambda x: (x + 1e8) - 1e8, 1.3, 1.0),
        (lambda x: x**3, 0.0, 0.0),
        (np.sin, 0.0, 1.0),
    ],
)
def test_the_truth_lies_within_the_bar(f: Function, x: float, true: float) -> None:
    value, bar = derivative(f, x)
    assert abs(value[0] - true) <= bar[0]
    assert bar[0] <= 1e-3 * max(abs(true), 1e-3)


@pytest.mark.parametrize("f", [np.floor, lambda x: x * 0 + 3, np.sign])
def test_a_flat_function_has_derivative_zero(f: Function) -> None:
    value, bar = derivative(f, 2.3)
    assert value[0] == 0
    assert bar[0] <= 1e-7


def test_noise_at_every_scale_has_no_bar() -> None:
    random = np.random.default_rng(0)
    _, bar = derivative(lambda x: x + random.standard_normal(x.shape), 1.0)
    assert bar[0] == np.inf


def test_every_output_has_a_bar_of_its_own() -> None:
    random = np.random.default_rng(0)

    def noisy_first(x: np.ndarray) -> np.ndarray:
        y = np.tanh(x)
        y[0] += random.standard_normal()
        return y

    _, bar = derivative(noisy_first, [0.3, 0.4, 1e-6, 1e4])
    assert bar[0] == np.inf
    assert (bar[1:] < 1e-9).all()


def test_points_outside_the_domain_are_left_out() -> None:
    value, bar = derivative(np.log, 1e-3)  # steps downwards stay positive
    assert abs(value[0] - 1e3) <= bar[0]
    value, bar = derivative(lambda x: np.where(x > 0.9, np.nan, x * x), 0.8)
    assert abs(value[0] - 1.6) <= bar[0] < 1e-6


def test_the_scale_is_the_power_of_two_below_and_for_zeros_that_of_the_tensor() -> None:
    np.testing.assert_array_equal(scale_of(np.array([3.0, -0.3, 0.0, 1.0])), [2.0, 0.25, 1.0, 1.0])
    np.testing.assert_array_equal(scale_of(np.zeros(2)), [1.0, 1.0])
    assert scale_of(np.zeros((0, 3))).shape == (0, 3)


ELEMENTARY: dict[str, tuple[Function, Function]] = {
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "sin": (np.sin, np.cos),
    "atan": (np.arctan, lambda x: 1 / (1 + x * x)),
    "square": (np.square, lambda x: 2 * x),
    "asinh": (np.arcsinh, lambda x: 1 / np.sqrt(1 + x * x)),
    "rational": (lambda x: x / (1 + x * x), lambda x: (1 - x * x) / (1 + x * x) ** 2),
    "softplus": (lambda x: np.logaddexp(x, 0), lambda x: 1 / (1 + np.exp(-x))),
}


@settings(max_examples=200, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(ELEMENTARY)), min_size=1, max_size=4),
    exponent=st.floats(-6, 4),
    sign=st.sampled_from([-1.0, 1.0]),
)
def test_compositions_lie_within_their_bars(names: list[str], exponent: float, sign: float) -> None:
    x = np.array([sign * 10.0**exponent])

    def f(v: np.ndarray) -> np.ndarray:
        for name in names:
            v = ELEMENTARY[name][0](v)
        return v

    true, v = np.ones(1), x
    for name in names:
        true, v = true * ELEMENTARY[name][1](v), ELEMENTARY[name][0](v)
    assume(abs(true[0] * x[0]) * step_size(STEPS) < max(1.0, abs(v[0])))  # else sin of 1e13 is random at every step
    value, bar = derivative(f, float(x[0]))
    rounding = 1e-14 * abs(true[0])  # of the product of derivatives itself
    assert bar[0] == np.inf or abs(value[0] - true[0]) <= bar[0] + rounding


# --------------------------------------------------------------------------- a brief look
def brief(f: Function, x: np.ndarray) -> Derivative:
    return directional(lambda inputs: [f(inputs[0])], [x], [scale_of(x)], briefly=True)


@pytest.mark.parametrize("name", ELEMENTARY)
def test_a_brief_look_is_enough_for_smooth_functions(name: str) -> None:
    x = np.random.default_rng(3).standard_normal(3000)
    f, slope = ELEMENTARY[name]
    found = brief(f, x[abs(slope(x) * x) > 1e-2 * abs(f(x))])
    assert (found.evaluations, found.brief, found.kinked) == (2 * len(USUAL_STEPS), True, None)
    true = (slope(x) * scale_of(x))[abs(slope(x) * x) > 1e-2 * abs(f(x))]
    assert (abs(found.value - true) <= found.bar).all()
    assert (found.bar <= GOOD * abs(found.value)).all()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sin(1e6 * x),
        lambda x: (1.1 * x + 1e8) - 1e8,
        lambda x: np.round(np.tanh(x), 8),
        lambda x: np.tanh(x).astype("float32"),
        lambda x: np.maximum(x, 0.7 + 1e-5),
        np.floor,
        np.zeros_like,
    ],
)
def test_others_get_the_whole_scan(f: Function) -> None:
    found = brief(f, np.array([0.7]))
    assert not found.brief
    whole = directional(lambda inputs: [f(inputs[0])], [np.array([0.7])], [np.array([0.5])])
    assert (found.value, found.bar, found.evaluations) == (whole.value, whole.bar, whole.evaluations)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(ELEMENTARY)), st.integers(0, 2**32 - 1))
def test_two_evaluations_along_another_direction_are_within_their_bars(name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    x = random.uniform(0.3, 0.9, 8)
    f, slope = ELEMENTARY[name]
    like = brief(f, x)
    assert like.brief
    direction = scale_of(x) * random.choice([-1.75, -1.0, 1.25, 2.0], 8)
    found = at_a_small_step(lambda inputs: [f(inputs[0])], [x], [direction], like)
    assert found.evaluations == 2
    assert (abs(found.value - slope(x) * direction) <= found.bar).all()
    assert (found.bar <= 1e-4 * abs(found.value)).all()
