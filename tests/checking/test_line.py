"""A function along a line: which rows it gives, which steps it takes, and at which scale."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scans import line_of

from gradcheck.checking.differences import Line, random_direction, scale_of
from gradcheck.checking.point import directional_derivative, flat_real
from gradcheck.checking.precision import coarsest, flat
from gradcheck.checking.probe import root_of_squares

FLOATS = st.floats(2.0**-300, 2.0**300).flatmap(lambda x: st.sampled_from([x, -x]))


def test_every_output_is_a_row_of_changes() -> None:
    line = line_of(lambda x: x * x, [3.0, -1.0], [2.0, 0.5])
    change, size = line.at(0.25)
    np.testing.assert_array_equal(change, [3.5**2 - 9, 0.875**2 - 1])
    np.testing.assert_array_equal(size, abs(change))
    np.testing.assert_array_equal(line.sizes, [9.0, 1.0])


def test_weights_make_one_row_of_all_outputs_and_the_size_of_what_cancels() -> None:
    line = line_of(lambda x: x * x, [3.0, -1.0], [2.0, 0.5], np.array([2.0, -4.0]))
    change, size = line.at(0.25)
    np.testing.assert_array_equal(change, [2 * 3.25 + 4 * (1 - 0.875**2)])
    np.testing.assert_array_equal(size, [2 * 3.25 + 4 * (1 - 0.875**2)])
    np.testing.assert_array_equal(line.sizes, [2 * 9.0 + 4 * 1.0])


def test_inputs_without_a_direction_stay_and_none_is_written_to() -> None:
    x = [np.array([1.0, 2.0]), np.array([5.0])]
    seen = []

    def f(v: list[np.ndarray]) -> np.ndarray:
        seen.append(v)
        return flat_real([v[0] * v[1], v[1]])

    line = Line(f, x, [np.array([1.0, 0.0]), None], f(x))
    np.testing.assert_array_equal(line.at(0.5).change, [2.5, 0.0, 0.0])
    assert seen[-1][1] is x[1]
    np.testing.assert_array_equal(x[0], [1.0, 2.0])


def test_a_complex_output_has_two_rows_an_element() -> None:
    x = np.array([1 + 2j])
    line = Line(lambda v: flat_real([v[0] * v[0]]), [x], [np.array([1j])], flat_real([x * x]))
    moved = (1 + 2.5j) ** 2 - (1 + 2j) ** 2
    np.testing.assert_array_equal(line.at(0.5).change, [moved.real, moved.imag])


# --------------------------------------------------------------------------- the scale and the direction
@given(FLOATS)
def test_the_scale_of_a_number_is_the_power_of_two_below_it(x: float) -> None:
    scale = float(scale_of(np.array([x]))[0])
    assert scale <= abs(x) < 2 * scale
    assert math.frexp(scale)[0] == 0.5


def test_the_scale_of_zeros_and_of_what_is_not_finite_is_that_of_the_others_up_to_1() -> None:
    np.testing.assert_array_equal(scale_of(np.array([3.0, -0.3, 0.0, 1.0])), [2.0, 0.25, 1.0, 1.0])
    np.testing.assert_array_equal(scale_of(np.array([0.25, np.inf, np.nan])), [0.25, 0.25, 0.25])
    np.testing.assert_array_equal(scale_of(np.array([400.0, 0.0])), [256.0, 1.0])
    np.testing.assert_array_equal(scale_of(np.zeros(2)), [1.0, 1.0])
    assert scale_of(np.zeros((0, 3))).shape == (0, 3)


@given(st.lists(FLOATS, min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_a_direction_is_once_to_twice_the_scale_of_every_element(values: list[float], seed: int) -> None:
    x = np.array(values)
    d = random_direction(x, scale_of(x), np.random.default_rng(seed))
    assert ((scale_of(x) <= abs(d)) & (abs(d) <= 2 * scale_of(x))).all()


def test_a_direction_points_both_ways_and_of_complex_inputs_everywhere() -> None:
    random = np.random.default_rng(0)
    assert set(np.sign(random_direction(np.ones(50), np.ones(50), random))) == {-1.0, 1.0}
    d = random_direction(np.ones(50) * 1j, np.ones(50), random)
    assert len({(np.sign(v.real), np.sign(v.imag)) for v in d}) == 4


@given(FLOATS, st.integers(0, 2**32 - 1), st.integers(1, 17))
def test_no_step_is_rounded_unless_it_leads_to_larger_numbers(x: float, seed: int, exponent: int) -> None:
    point = np.array([x])
    scale, h = scale_of(point), 4.0**-exponent
    d = random_direction(point, scale, np.random.default_rng(seed))
    exact = Fraction(x) + Fraction(h) * Fraction(float(d[0]))
    assume(abs(exact) < 2 * Fraction(float(scale[0])))
    assert Fraction(float((point + h * d)[0])) == exact


# --------------------------------------------------------------------------- arrays
def test_what_a_gradient_and_a_direction_give_together() -> None:
    assert directional_derivative([np.array([1.0, 2.0])], [np.array([3.0, -1.0])]) == 1.0
    assert directional_derivative([np.array([1 + 2j])], [np.array([3 - 1j])]) == ((1 - 2j) * (3 - 1j)).real


def test_a_flat_vector_is_complex_if_one_array_is() -> None:
    assert flat([np.ones((2, 2)), np.zeros(1)]).tolist() == [1, 1, 1, 1, 0]
    assert flat_real([np.ones(1), np.array([2 - 1j])]).tolist() == [1, 0, 2, -1]


@pytest.mark.parametrize(
    ("dtype", "digits"), [("float64", 52), ("float32", 23), ("float16", 10), (ml_dtypes.bfloat16, 7)]
)
def test_the_coarsest_of_every_dtype(dtype: str, digits: int) -> None:
    assert coarsest([np.zeros(1), np.zeros(1, dtype)]) == 2.0**-digits


def test_a_float32_input_moves_in_float32() -> None:
    x = np.array([1.0], "float32")
    seen = []

    def f(v: list[np.ndarray]) -> np.ndarray:
        seen.append(v[0].dtype.name)
        return flat_real(v)

    line = Line(f, [x], [np.array([1.0])], flat_real([x]))
    assert line.at(0.5).change.dtype == np.float64
    assert seen == ["float32"]


@pytest.mark.parametrize("unit", [0.0, 1.0, 1e-320, 1e-200, 1e300])
def test_the_root_of_squares_stays_in_the_range_of_float64(unit: float) -> None:
    assert root_of_squares(unit * np.array([3.0, -4.0])) == pytest.approx(5 * unit, rel=1e-3)
    assert root_of_squares(unit * np.array([3.0 - 4.0j])) == pytest.approx(5 * unit, rel=1e-3)
    assert root_of_squares(np.array([])) == 0.0
