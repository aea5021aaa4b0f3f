"""Derivatives by differences: the truth is within the bar, whatever the function and the point; the bar is of use."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scans import Array, brief, line_of, look

from gradcheck.checking.differences import USUAL, balance_errors, derivative_of, quick, random_direction, scale_of

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.clause(id="V10")]

Function = Callable[[Array], Array]

NAMED: dict[str, tuple[Function, float, float]] = {
    "tanh": (np.tanh, 0.7, 1 - math.tanh(0.7) ** 2),
    "a pole nearby": (lambda x: 1 / x, 1e-5, -1e10),
    "a large number": (lambda x: x * x, 1e8, 2e8),
    "a small number": (np.log, 1e-7, 1e7),
    "a small value": (np.exp, -50.0, math.exp(-50)),
    "a large value": (np.exp, 50.0, math.exp(50)),
    "a stationary point": (lambda x: x**3, 0.0, 0.0),
    "zero": (np.sin, 0.0, 1.0),
    "beside a stationary point": (np.cos, 1e-6, -math.sin(1e-6)),
    "a cast to float32": (lambda x: np.tanh(x).astype("float32"), 0.7, 1 - math.tanh(0.7) ** 2),
    "rounded to 8 digits": (lambda x: np.round(np.tanh(x), 8), 0.7, 1 - math.tanh(0.7) ** 2),
    "a logarithm beside 1": (np.log, 1 + 1e-9, 1 / (1 + 1e-9)),
    "nearly saturated": (np.tanh, 15.0, 1 / math.cosh(15) ** 2),
    "a high power": (lambda x: x**40, 1.1, 40 * 1.1**39),
    "the edge of the domain nearby": (np.arcsin, 1 - 1e-6, 1 / math.sqrt(1 - (1 - 1e-6) ** 2)),
}  # fmt: skip
"""By name: a function, a point, its derivative there."""


@pytest.mark.parametrize("name", NAMED)
def test_the_truth_lies_within_the_bar(name: str) -> None:
    f, x, true = NAMED[name]
    found = look(f, x)
    assert found.holds(true)
    assert found.bar[0] <= 1e-2 * max(abs(true), 1e-3)
    assert not found.derivative.kinked[0]


@pytest.mark.parametrize("hidden", [False, True])
def test_a_curve_much_finer_than_the_inputs_scale_is_resolved(hidden: bool) -> None:
    found = look(lambda x: np.sin(1e6 * x), 0.3, hidden=hidden)
    true = 1e6 * math.cos(3e5)
    assert found.holds(true)
    assert found.bar[0] <= 1e-2 * abs(true)


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda x: (x + 1e8) - 1e8, np.ones_like),
        (lambda x: np.tanh(x).astype("float32"), lambda x: 1 - np.tanh(x) ** 2),
        (lambda x: np.round(np.tanh(x), 6), lambda x: 1 - np.tanh(x) ** 2),
    ],
)
def test_below_rounding_to_a_coarse_grid_the_derivative_is_seen(f: Function, slope: Function) -> None:
    x = np.random.default_rng(0).uniform(0.3, 1.5, 2000)
    found = look(f, x, seed=1)
    outside = ~(abs(found.value - slope(x)) <= found.bar)
    seen = found.bar <= 1e-2 * slope(x)
    assert outside.mean() <= 0.005
    assert seen.mean() >= 0.9


def test_one_noise_stands_for_that_of_every_output() -> None:
    points = np.linspace(0.5, 2, 7)
    line = line_of(np.exp, points)
    line.extend(USUAL)
    one, each = (derivative_of(line, np.full(size, 1e-16)) for size in (1, points.size))
    np.testing.assert_array_equal(one.value, each.value)
    np.testing.assert_array_equal(one.bar, each.bar)


def test_every_output_has_a_bar_of_its_own() -> None:
    random = np.random.default_rng(0)

    def noisy_first(x: Array) -> Array:
        y = np.tanh(x)
        y[0] += random.standard_normal()
        return y

    x = np.array([0.3, 0.4, 1e-6, -1.1])
    found = look(noisy_first, x, hidden=False)
    assert found.bar[0] > 1
    assert (abs(found.value - 1 + np.tanh(x) ** 2) <= found.bar)[1:].all()
    assert (found.bar[1:] < 1e-9).all()


@pytest.mark.parametrize("f", [np.floor, lambda x: x * 0 + 3, np.sign, lambda x: np.clip(x, -1, 1)])
def test_a_flat_function_has_derivative_zero_and_nothing_around(f: Function) -> None:
    found = look(f, [2.3, -7.7])
    assert found.value.tolist() == [0, 0]
    assert (found.bar <= 1e-7).all()
    assert not found.derivative.kinked.any()
    assert not found.derivative.nearby.any()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + np.sin(1e13 * x),
        lambda x: np.sin(1e11 * x) + 2,
    ],
)
def test_structure_finer_than_all_steps_leaves_nothing_to_be_seen(f: Function) -> None:
    assert look(f, 1.1234).bar[0] > 100  # times the slope of what is smooth about it


def test_random_numbers_leave_nothing_to_be_seen() -> None:
    random = np.random.default_rng(0)
    assert look(lambda x: x + random.standard_normal(x.shape), 1.0).bar[0] > 100


def test_a_tiny_output_may_be_all_rounding_of_numbers_of_size_1_on_the_way() -> None:
    """A GELU at −8 is x · (1 − 1) / 2, whose digits nothing shows between close values."""
    x, true = 1e-300, 0.5e150
    assert look(np.sqrt, x, hidden=False).holds(true)
    assert look(np.sqrt, x, hidden=False).bar[0] < 1e-6 * true
    assert look(np.sqrt, x).bar[0] > true


# --------------------------------------------------------------------------- the edge of the domain
def test_points_outside_of_the_domain_are_left_out() -> None:
    assert look(np.log, 1e-3).holds(1e3)
    for edge in (0.9, 0.8 * (1 + 1e-3), 0.8 * (1 + 1e-5)):
        for side in (1, -1):
            found = look(lambda x, e=edge, s=side: np.where(s * x > e, np.nan, x * x), side * 0.8)
            assert found.holds(side * 1.6)
            assert found.bar[0] < 1e-3


def test_a_function_that_is_defined_at_the_point_alone_has_no_derivative() -> None:
    found = look(lambda x: np.where(x == 0.8, x, np.nan), 0.8)
    assert found.bar[0] == np.inf


@pytest.mark.parametrize("name", ["tanh", "a pole nearby", "a stationary point", "zero", "a high power"])
def test_a_smooth_function_has_neither(name: str) -> None:
    f, x, true = NAMED[name]
    found = look(f, x)
    assert not found.derivative.kinked[0]
    for side in found.sides:
        assert side[0] == pytest.approx(true, rel=1e-3, abs=1e-6)


# --------------------------------------------------------------------------- functions at random
def horner(coefficients: list[Fraction], x: object) -> object:
    total = x * 0
    for c in coefficients:
        total = total * x + (c if isinstance(x, Fraction) else float(c))
    return total


def derived(coefficients: list[Fraction]) -> list[Fraction]:
    degree = len(coefficients) - 1
    return [c * (degree - k) for k, c in enumerate(coefficients[:-1])]


@settings(max_examples=150, deadline=None)
@given(
    coefficients=st.lists(st.integers(-50, 50), min_size=2, max_size=7),
    exponent=st.floats(-5, 4),
    sign=st.sampled_from([-1.0, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_polynomials_lie_within_their_bars(coefficients: list[int], exponent: float, sign: float, seed: int) -> None:
    x, c = sign * 10.0**exponent, [Fraction(v) for v in coefficients]
    found = look(lambda v: horner(c, v), x, seed=seed)
    assert found.holds(float(horner(derived(c), Fraction(x))))


ELEMENTARY: dict[str, tuple[Function, Function]] = {
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "sin": (np.sin, np.cos),
    "atan": (np.arctan, lambda x: 1 / (1 + x * x)),
    "square": (np.square, lambda x: 2 * x),
    "asinh": (np.arcsinh, lambda x: 1 / np.sqrt(1 + x * x)),
    "rational": (lambda x: x / (1 + x * x), lambda x: (1 - x * x) / (1 + x * x) ** 2),
    "softplus": (lambda x: np.logaddexp(x, 0), lambda x: 1 / (1 + np.exp(-x))),
}


@settings(max_examples=150, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(ELEMENTARY)), min_size=1, max_size=4),
    exponent=st.floats(-6, 2),
    sign=st.sampled_from([-1.0, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_compositions_lie_within_their_bars(names: list[str], exponent: float, sign: float, seed: int) -> None:
    x = np.array([sign * 10.0**exponent])

    def f(v: Array) -> Array:
        for name in names:
            v = ELEMENTARY[name][0](v)
        return v

    true, v, condition = np.ones(1), x, 1.0
    for name in names:
        true, v = true * ELEMENTARY[name][1](v), ELEMENTARY[name][0](v)
        condition = max(condition, float(abs(true * x)[0]))
    assume(condition < 1e6)  # else a sine of what is large is random at every step
    found = look(f, x, seed=seed)
    assert found.bar[0] == np.inf or found.holds(true, rounding=1e-14)


# --------------------------------------------------------------------------- few evaluations
@pytest.mark.parametrize("name", ELEMENTARY)
def test_a_brief_look_is_enough_for_smooth_functions(name: str) -> None:
    f, slope = ELEMENTARY[name]
    x = np.random.default_rng(3).uniform(0.3, 0.9, 3000) * np.random.default_rng(4).choice([-1, 1], 3000)
    found = brief(f, x)
    assert (abs(found.value - slope(x)) <= found.bar).all()
    assert (found.bar <= 1e-6 * abs(slope(x)) + 1e-9).all()


@pytest.mark.parametrize(
    ("f", "true"),
    [
        (lambda x: np.sin(1e6 * x), 1e6 * math.cos(0.7e6)),
        (lambda x: np.maximum(x, 0.7 + 1e-5), 0.0),
        (lambda x: np.maximum(x, 0.7 + 1e-3), 0.0),
        (lambda x: np.where(x > 0.7 + 1e-4, 5.0, x), 1.0),
        (lambda x: np.abs(x - 0.7), math.nan),
        (lambda x: np.floor(x / 0.7), math.nan),
    ],
)
def test_a_brief_look_does_not_promise_what_it_has_not_seen(f: Function, true: float) -> None:
    found = brief(f, 0.7)
    assert found.derivative.kinked[0] or found.bar[0] > 1e-2 or found.holds(true)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(ELEMENTARY)), st.integers(0, 2**32 - 1))
def test_a_quick_look_along_another_direction_is_within_its_bar(name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    f, slope = ELEMENTARY[name]
    x = random.uniform(0.3, 0.9, 8)
    noise = brief(f, x).derivative.noise
    direction = random_direction(x, scale_of(x), random)
    evaluated = list[Array]()

    def counted(x: Array) -> Array:
        evaluated.append(x)
        return f(x)

    found = quick(line_of(counted, x, direction), noise)
    assert (abs(found.value - slope(x) * direction) <= found.bar).all()
    assert (found.bar <= 1e-6 * abs(direction)).all()
    assert len(evaluated) < 9


# --------------------------------------------------------------------------- which of the steps
def at_steps(values: list[float], bars: list[float]) -> tuple[float, float, int]:
    """What balancing takes of values at steps, the smallest first: its value, its bar, and which step it is."""
    found, step = balance_errors(np.array(values)[:, None], np.array(bars)[:, None])
    return float(found.value[0]), float(found.bar[0]), int(step[0])


def test_the_largest_step_that_agrees_with_all_smaller_ones_is_taken() -> None:
    bars = [1.0, 0.1, 0.01, 0.001, 0.0001]
    value, bar, step = at_steps([2.3, 2.05, 2.004, 2.0009, 9.0], bars)
    assert (value, step) == (2.004, 2)
    assert bar == pytest.approx(2 * 0.01 + 0.5 * 0.0031)


def test_a_step_that_disagrees_ends_it_though_larger_ones_agree_again() -> None:
    value, bar, step = at_steps([2.0, 2.0, 5.0, 2.0, 2.0, 2.0], [1.0, 0.1, 0.01, 1e-4, 1e-6, 1e-8])
    assert (value, step) == (2.0, 0)
    assert bar >= 2.0


def test_where_no_two_agree_nothing_is_known() -> None:
    assert at_steps([1.0, 2.0, 4.0], [0.1, 0.1, 0.1])[1] == math.inf
    assert at_steps([1.0], [0.1])[1] == math.inf
    assert at_steps([math.nan, math.nan, 1.0], [0.1, 0.1, 0.1])[1] == math.inf


def test_it_starts_at_the_first_value_that_is_finite_and_ends_at_the_next_that_is_not() -> None:
    value, bar, step = at_steps([math.nan, 2.0, 2.0, 2.0, math.inf, 2.0], [1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5])
    assert (value, step) == (2.0, 2)
    assert bar == pytest.approx(0.02)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100), st.floats(0, 3))
def test_what_is_true_lies_within_the_bar_if_every_value_is_off_by_its_noise_and_a_shrinking_bias(
    seed: int, true: float, bias: float
) -> None:
    random, h = np.random.default_rng(seed), 4.0 ** np.arange(-10, 0)
    noise = 1e-9 / h
    values = true + noise * random.uniform(-1, 1, 10) + bias * h**2
    value, bar, _ = at_steps(list(values), list(noise))
    assert abs(value - true) <= bar
