"""Kinks and jumps: seen where they are, with the slopes of both sides, and harmless where they are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scans import Array, look

from gradcheck.checking.kinks import Slopes

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

Function = Callable[[Array], Array]

SIDES: dict[str, tuple[Function, float, float, float]] = {
    "abs": (np.abs, 0.0, -1.0, 1.0),
    "relu": (lambda x: np.maximum(x, 0), 0.0, 0.0, 1.0),
    "leaky": (lambda x: np.where(x > 2.5, 1, 0.9) * (x - 2.5), 2.5, 0.9, 1.0),
    "a curve and relu": (lambda x: x * x + np.maximum(x - 3, 0), 3.0, 6.0, 7.0),
    "clip": (lambda x: np.clip(x, -1, 1), 1.0, 1.0, 0.0),
    "a small kink": (lambda x: x + 1e-4 * np.abs(x - 1), 1.0, 1 - 1e-4, 1 + 1e-4),
    "max of two curves": (lambda x: np.maximum(np.exp(x - 1), x**3), 1.0, 1.0, 3.0),
}  # fmt: skip
"""By name: a function, its kink, the derivatives on the left and on the right."""


@pytest.mark.parametrize("name", SIDES)
@pytest.mark.parametrize("slope", [0.0, -2.5, 40.0])
def test_a_kink_is_seen_with_the_slopes_of_both_sides(name: str, slope: float) -> None:
    f, x, left, right = SIDES[name]
    found = look(lambda v: f(v) + slope * v, x)
    assert found.derivative.kinked[0]
    assert [float(side[0]) for side in found.sides] == pytest.approx(sorted([left + slope, right + slope]), abs=1e-5)
    for share in (0.0, 0.3, 1.0):
        assert found.allows(slope + left + share * (right - left))
    for outside in (min(left, right) - 0.5, max(left, right) + 0.5):
        assert not found.allows(slope + outside)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (np.floor, 2.0),
        (np.sign, 0.0),
        (np.round, 0.5),
        (lambda x: np.where(x > 1, x, 0), 1.0),
        (lambda x: np.where(x >= 1, x, 0), 1.0),
        (lambda x: np.floor(x) + np.tanh(x), -3.0),
        (lambda x: np.where(x > 1, 1e-3, 0) + x, 1.0),
    ],
)
def test_a_jump_at_the_point_is_seen(f: Function, x: float) -> None:
    found = look(f, x)
    assert found.derivative.kinked[0]


@pytest.mark.parametrize("distance", [0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("name", SIDES)
def test_beside_a_kink_the_derivative_is_that_of_its_side(name: str, side: int, distance: float) -> None:
    f, kink, *_ = SIDES[name]
    x = kink + side * distance * (abs(kink) or 1.0)
    far = look(f, x + side * 1e-9)
    found = look(f, x)
    assert not found.derivative.kinked[0]
    assert far.value[0] == pytest.approx(found.value[0], abs=far.bar[0] + found.bar[0] + 1e-6)
    assert found.bar[0] <= 1e-2


@settings(max_examples=150, deadline=None)
@given(
    exponent=st.floats(-16, -1),
    side=st.sampled_from([1, -1]),
    left=st.integers(-16, 16),
    right=st.integers(-16, 16),
    jump=st.sampled_from([0.0, 0.0, 1.0, 1e-3]),
    curve=st.sampled_from([0.0, 1.0]),
)
def test_however_near_a_kink_or_a_jump_is_the_derivative_is_not_excluded(
    exponent: float, side: int, left: int, right: int, jump: float, curve: float
) -> None:
    at, x = 1.3, 1.3 * (1 + side * 10.0**exponent)

    def f(v: Array) -> Array:
        return np.where(v > at, right / 8 * (v - at) + jump, left / 8 * (v - at)) + curve * v * v

    true = (right if x > at else left) / 8 + 2 * curve * x
    found = look(f, x)
    assert found.allows(true) or not np.isfinite(found.bar[0])


@pytest.mark.parametrize("distance", [1e-9, 1e-10, 1e-11])
def test_where_a_kink_is_too_near_to_tell_the_result_says_so(distance: float) -> None:
    found = look(lambda x: np.maximum(x - 1.3, 0), 1.3 * (1 + distance))
    assert found.derivative.kinked[0] or found.bar[0] <= 1e-3 or found.bar[0] == np.inf
    assert found.allows(1.0)


# --------------------------------------------------------------------------- between which slopes a gradient may be
def slopes(rows: list[list[float]], moves: list[list[float]], groups: list[int], further: bool = False) -> Slopes:
    """Gradients ahead and behind along each move, exact to 1e-9."""
    return Slopes(np.array(rows), np.array(moves), np.array(groups), np.full(len(groups), 1e-9), further)


MAX_OF_TWO = slopes([[1, 0], [0, 1], [0, 1], [1, 0]], [[1, -2], [-1, 1.5], [1, 1.2]], [0, 0])


@pytest.mark.clause(id="V19")
@pytest.mark.parametrize("gradient", [(1, 0), (0, 1), (0.5, 0.5)])
def test_of_two_tied_numbers_the_shares_of_one_are_between_the_slopes(gradient: tuple[float, float]) -> None:
    assert MAX_OF_TWO.complete.all()
    assert not MAX_OF_TWO.outside(np.array(gradient)).any


@pytest.mark.clause(id="V19")
@pytest.mark.parametrize("gradient", [(0, 0), (1, 1), (1.2, -0.2)])
def test_of_two_tied_numbers_other_shares_are_not(gradient: tuple[float, float]) -> None:
    assert MAX_OF_TWO.outside(np.array(gradient)).any


@pytest.mark.clause(id="V19")
def test_a_number_that_is_outside_is_seen_beside_many_that_are_not() -> None:
    n = 500
    rows = [np.ones(n), -np.ones(n)]
    beside = slopes(rows, [np.ones(n)], list(range(n)))  # type: ignore[arg-type, list-item]
    wrong = np.zeros(n)
    wrong[123] = 2.0
    assert np.flatnonzero(beside.outside(wrong).entries).tolist() == [123]


@pytest.mark.clause(id="V19")
def test_of_many_pieces_what_was_not_seen_may_lie_beyond_by_as_much_as_they_are_apart() -> None:
    rows = [[0.0], [4.0], [2.0], [0.0]]
    assert slopes(rows, [[1.0], [-2.0]], [0]).outside(np.array([5.0])).any
    assert not slopes(rows, [[1.0], [-2.0]], [0], further=True).outside(np.array([5.0])).any
    assert slopes(rows, [[1.0], [-2.0]], [0], further=True).outside(np.array([6.5])).any


@pytest.mark.clause(id="V19")
def test_of_a_function_that_is_neither_convex_nor_concave_the_ends_are_not_the_whole_range() -> None:
    rows = [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert not slopes(rows, [[1.0, 1.5], [-1.0, 1.2]], [0, 0]).complete.any()


@pytest.mark.clause(id="V19")
def test_a_number_that_no_point_knows_is_not_outside() -> None:
    assert not slopes([[np.nan], [np.nan]], [[1.0]], [0]).outside(np.array([3.0])).any
