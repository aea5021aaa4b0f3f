"""Rounding by perturbation: what is measured bounds the error of what is computed, and is of its size."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from gradcheck.backends.base import Array
from gradcheck.checking.precision import EPS, EPSILON, UNKNOWN, Change, Measured, noting, perturb, perturbing

Computation = Callable[[Change], Sequence[Array]]


def measured(compute: Computation, *, epsilon: float = EPS, count: int = 4, seed: int = 0) -> Measured:
    """A computation, perturbed some times."""
    found = Measured(compute, epsilon, np.random.default_rng(seed))
    for _ in range(count):
        found.draw()
    return found


def by_steps(*steps: tuple[str, Callable[[Array], Array]], of: Array) -> Computation:
    """Operations one after the other, by their names in the engine."""

    def compute(change: Change) -> list[Array]:
        value = of
        for name, step in steps:
            value = np.array(step(value), dtype=value.dtype)
            change(name, value, -1)
        return [value]

    return compute


X = np.random.default_rng(7).uniform(0.3, 2, 50)


# --------------------------------------------------------------------------- the bound holds, and is of use
@pytest.mark.clause(id="V1")
def test_a_sum_that_cancels_is_as_rounded_as_its_terms() -> None:
    compute = by_steps(("scale", lambda x: 0.1 * x), ("add", lambda x: x + 1e8), ("subtract", lambda x: x - 1e8), of=X)
    found = measured(compute)
    exact = [Fraction(0.1) * Fraction(float(x)) for x in X]
    error = [abs(float(Fraction(float(v)) - e)) for v, e in zip(found.vector, exact, strict=True)]
    bound = found.bounds(absolute=True)
    assert max(error) > 1e-9
    assert (error <= bound).all()
    assert (bound <= 100 * EPS * 1e8).all()


@pytest.mark.clause(id="V1")
def test_a_slope_that_saturates_is_as_rounded_as_the_1_it_is_taken_from() -> None:
    x = np.array([[0.5], [3.0], [8.0], [12.0]])  # each is a row of its own
    steps = ("tanh", np.tanh), ("multiply", lambda y: y * y), ("subtract", lambda y: 1 - y)
    found = measured(by_steps(*steps, of=x))
    bound = found.bounds()
    assert (abs(found.vector - 1 / np.cosh(x.reshape(-1)) ** 2) <= bound).all()
    assert (bound >= EPS / 2).all()
    assert bound.max() <= 200 * EPS


def test_a_product_of_perturbed_values_is_as_rounded_as_all_of_them_together() -> None:
    def compute(change: Change) -> list[Array]:
        total = np.ones(50)
        for _ in range(30):
            factor = np.exp(X)
            change("exp", factor, -1)
            total = total / factor
            change("divide", total, -1)
        return [total]

    found = measured(compute)
    bound = found.bounds()
    relative = bound / found.vector
    assert (abs(found.vector * np.exp(30 * X) - 1) <= relative + 64 * EPS).all()
    assert (relative >= 8 * EPS).all()
    assert (relative <= 1000 * EPS).all()


@pytest.mark.clause(id="V2")
def test_one_entry_whose_response_is_small_by_chance_is_bounded_by_those_of_its_row() -> None:
    """Of 20,000 entries none has less than a tenth of what the half of them have."""
    compute = by_steps(("exp", np.exp), *[("multiply", lambda y: y * 1.1)] * 200, of=np.linspace(0, 1, 20000))
    found = measured(compute, count=1)
    relative = found.bounds() / found.vector
    assert (found.responses / found.vector).min() < 0.01 * np.median(found.responses / found.vector)
    assert relative.min() > 0.1 * np.median(relative)


@pytest.mark.parametrize("name", ["float64", "float32"])
def test_bounds_are_of_the_epsilon_that_is_computed_with(name: str) -> None:
    compute = by_steps(("exp", np.exp), of=X.astype(name))
    bound = measured(compute, epsilon=EPSILON[name]).bounds()
    relative = bound / np.exp(X)
    assert (relative >= EPSILON[name]).all()
    assert (relative <= 64 * EPSILON[name]).all()


# --------------------------------------------------------------------------- what holds no digits
NO_DIGITS = by_steps(("exp", np.exp), ("multiply", lambda y: y * 1e17), ("add", lambda y: y + 0.1),
                     ("subtract", lambda y: y - 1e17 * np.exp(X)), of=X)  # fmt: skip


@pytest.mark.clause(id="V3")
def test_an_entry_that_holds_no_digits_has_no_bound() -> None:
    found = measured(NO_DIGITS)
    assert (found.bounds() == np.inf).all()
    assert found.lost().all()


def test_as_an_absolute_error_it_has_one() -> None:
    bound = measured(NO_DIGITS).bounds(absolute=True)
    assert np.isfinite(bound).all()
    assert (bound >= EPS * 1e17).all()


def test_an_entry_with_few_digits_is_perturbed_by_less_and_has_a_bound() -> None:
    """e^x + 1e10 − 1e10 holds six digits: perturbations of 2^-34 of 1e10 move it by as much as it is."""
    steps = ("exp", np.exp), ("add", lambda y: y + 1e10), ("subtract", lambda y: y - 1e10)
    found = measured(by_steps(*steps, of=X))
    assert found.lost().any()
    bound = found.bounds()
    assert (abs(found.vector - np.exp(X)) <= bound).all()
    assert (bound <= UNKNOWN * np.exp(X)).all()


# --------------------------------------------------------------------------- choices, and exact operations
@pytest.mark.clause(id="V4")
def test_choices_of_the_plain_run_are_taken_by_those_that_are_perturbed() -> None:
    """Of values at a threshold a perturbation moves half to its other side."""

    def compute(change: Change) -> list[Array]:
        y = np.exp(np.zeros(100)) * 1.0
        change("exp", y, -1)
        mask = np.asarray(y >= 1.0)
        change("greater_equal", mask, -1)
        return [np.where(mask, y, 100 * y)]

    found = measured(compute)
    assert (found.bounds() < 100 * EPS).all()
    assert [choice.all() for choice in found.choices] == [True]


@pytest.mark.clause(id="V4")
def test_steps_and_orders_are_choices_as_well() -> None:
    choices: list[Array] = []
    note = noting(choices)
    note("exp", np.array([1.5]), -1)
    note("floor", np.array([1.0]), -1)
    note("argsort", np.array([1, 0]), -1)
    assert [c.tolist() for c in choices] == [[1.0], [1, 0]]
    change = perturbing(2.0**-10, np.random.default_rng(0), choices)
    other, order = np.array([2.0]), np.array([0, 1])
    change("floor", other, -1)
    change("argsort", order, -1)
    assert (other.tolist(), order.tolist()) == ([1.0], [1, 0])


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "sum", "matmul", "cumsum"])
def test_whole_numbers_are_exact_where_adding_and_multiplying_gave_them(name: str) -> None:
    out = np.array([3.0, -7.0, 0.5])
    perturbing(2.0**-10, np.random.default_rng(0), [])(name, out, -1)
    assert out[:2].tolist() == [3.0, -7.0]
    assert out[2] != 0.5


@pytest.mark.clause(id="V5")
@pytest.mark.parametrize("name", ["reshape", "maximum", "getitem", "where", "sort", "abs", "neg"])
def test_what_moves_or_selects_values_does_not_round(name: str) -> None:
    out = X.copy()
    perturbing(2.0**-10, np.random.default_rng(0), [])(name, out, -1)
    np.testing.assert_array_equal(out, X)


def test_every_element_moves_by_a_half_to_one_and_a_half_of_the_size_and_infinite_ones_not_at_all() -> None:
    x = np.array([1.0, -3e200, 0.0, np.inf, 2 + 0.0] * 100)
    moved = x.copy()
    perturb(moved, 2.0**-20, np.random.default_rng(0))
    finite = np.isfinite(x) & (x != 0)
    change = abs(moved[finite] - x[finite]) / abs(x[finite]) / 2.0**-20
    assert ((change > 0.49) & (change < 1.51)).all()
    np.testing.assert_array_equal(moved[~finite], x[~finite])


def test_of_complex_numbers_both_parts_move() -> None:
    x = np.full(20, 1 + 1j)
    moved = x.copy()
    perturb(moved, 2.0**-10, np.random.default_rng(0))
    assert (moved.real != 1).all()
    assert (moved.imag != 1).all()


# --------------------------------------------------------------------------- how often
def test_bounds_only_grow_with_every_run() -> None:
    found = Measured(by_steps(("exp", np.exp), of=X), EPS, np.random.default_rng(0))
    seen = []
    for _ in range(5):
        found.draw()
        seen.append(found.bounds())
    assert all((a <= b).all() for a, b in itertools.pairwise(seen))
