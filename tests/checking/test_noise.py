"""The noise from close values: about the rounding error, more often above than below, and blind to the function's own
structure.

It is an estimate from a few values, so that single ones may be off by a small factor.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scans import line_of

from gradcheck.backends.base import Array
from gradcheck.checking.differences import from_close_values, scale_of
from gradcheck.checking.precision import EPS, MANY

pytestmark = pytest.mark.clause(id="V6")

Function = Callable[[Array], Array]
ROUNDING = 2.0**-53


def noise_of(f: Function, x: object, hidden: bool = False) -> Array:
    """The noise of every output of an elementwise function; with what is hidden between close values, if wanted."""
    return from_close_values(line_of(f, np.atleast_1d(np.asarray(x, dtype=float))), hidden)


def errors_beside(f: Function, exact: Callable[[Fraction], Fraction], x: float, reach: float) -> list[float]:
    """|f − exact| at random points nearby."""
    random = np.random.default_rng(0)
    scale = float(scale_of(np.array([x]))[0])
    points = x + reach * scale * random.uniform(-1, 1, 50)
    return [abs(float(Fraction(float(f(np.array([p]))[0])) - exact(Fraction(float(p))))) for p in points]


def horner(coefficients: list[float]) -> Callable[[object], object]:
    """A polynomial, of arrays or of fractions."""

    def f(x: object) -> object:
        total = x * 0
        for c in coefficients:
            total = total * x + (Fraction(c) if isinstance(x, Fraction) else c)
        return total

    return f


EXACT: dict[str, tuple[Function, Callable[[Fraction], Fraction], float]] = {
    "a polynomial": (horner([3.0, -1.5, 0.25]), horner([3.0, -1.5, 0.25]), 0.7),
    "(x − 1)⁵, expanded": (horner([1.0, -5, 10, -10, 5, -1]), horner([1.0, -5, 10, -10, 5, -1]), 1.0371),
    "a sum that cancels": (lambda x: (1.1 * x + 1e8) - 1e8, lambda x: Fraction(1.1) * x, 1.3),
    "a difference of two": (lambda x: 1 / (1 - x) - 1 - x, lambda x: 1 / (1 - x) - 1 - x, 3e-4),
    "a quotient": (lambda x: (x + 1 / x) / 7, lambda x: (x + 1 / x) / 7, -3.3),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_the_rounding_error_nearby_is_within_the_noise(name: str) -> None:
    f, exact, x = EXACT[name]
    largest = max(errors_beside(f, exact, x, 2.0**-10))
    assert largest <= noise_of(f, x, hidden=True)[0] <= max(100 * largest, MANY * EPS * max(1.0, abs(x)))


def test_the_rounding_error_of_polynomials_is_within_their_noise() -> None:
    random = np.random.default_rng(1)
    shares = []
    for _ in range(200):
        f = horner(list(random.uniform(-10, 10, random.integers(2, 7))))
        x = float(random.choice([-1, 1]) * 10 ** random.uniform(-4, 4))
        shares.append(max(errors_beside(f, f, x, 2.0**-20)) / noise_of(f, x)[0])
    assert np.quantile(shares, 0.9) <= 1
    assert max(shares) <= 4
    assert np.median(shares) >= 0.1


@pytest.mark.parametrize("deviation", [1e-12, 1e-6, 1e-2])
def test_noise_that_was_put_there_is_found_at_its_size(deviation: float) -> None:
    random = np.random.default_rng(3)
    noise = noise_of(lambda x: np.tanh(x) + deviation * random.standard_normal(x.shape), np.full(2000, 0.7))
    assert 2 * deviation <= np.median(noise) <= 20 * deviation
    assert (noise >= deviation).mean() >= 0.9
    assert noise.min() >= deviation / 20
    assert noise.max() <= 40 * deviation


def test_every_output_has_its_own() -> None:
    random = np.random.default_rng(0)
    deviations = np.array([1e-3, 0, 1e-9, 0])
    noise = noise_of(lambda x: np.tanh(x) + deviations * random.standard_normal(4), [0.3, 0.5, -0.7, 0.9])
    assert (noise >= deviations / 20).all()
    assert (noise <= 20 * deviations + 1e-14).all()


def test_of_a_sum_it_is_that_of_the_sum() -> None:
    x, weights = np.linspace(0.1, 2, 500), np.random.default_rng(0).standard_normal(500)
    noise = float(from_close_values(line_of(np.tanh, x, weights=weights), thoroughly=False)[0])
    assert ROUNDING * abs(float(weights @ np.tanh(x))) <= noise <= 64 * ROUNDING * abs(weights * np.tanh(x)).sum()


@pytest.mark.parametrize("f", [np.zeros_like, np.ones_like, lambda x: 1 + x])
def test_where_nothing_changes_numbers_of_size_1_may_hide_it(f: Function) -> None:
    assert noise_of(f, 1e-20)[0] >= ROUNDING


@pytest.mark.parametrize("bits", [4, 8, 12])
def test_stairs_of_the_function_are_no_noise(bits: int) -> None:
    assert noise_of(lambda x: np.round(x * 2**bits) / 2**bits, 0.7003, hidden=True)[0] <= 1e3 * ROUNDING


# --------------------------------------------------------------------------- what is no noise
SMOOTH = [np.tanh, np.exp, np.square, lambda x: 1 / x, np.sqrt, lambda x: x**7]


@pytest.mark.parametrize("f", SMOOTH)
@pytest.mark.parametrize("x", [0.7, 1.3, 3e-5, 40.0])
@pytest.mark.parametrize("hidden", [False, True])
def test_a_smooth_function_is_no_noise(f: Function, x: float, hidden: bool) -> None:
    on_the_way = MANY * EPS * max(1.0, x) if hidden else 0.0
    assert noise_of(f, x, hidden)[0] <= max(1e3 * ROUNDING * abs(f(np.array([x]))[0]), on_the_way)


@pytest.mark.parametrize("distance", [0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(
    "bent",
    [
        lambda x, at, side: np.maximum(side * (x - at), 0),
        lambda x, at, side: np.where(side * (x - at) > 0, 1.0, 0.0),
        lambda x, at, side: np.where(side * (x - at) > 0, np.nan, 0.0),
    ],
    ids=["kink", "jump", "edge of the domain"],
)
def test_what_lies_on_one_side_is_no_noise(bent: Function, side: int, distance: float) -> None:
    x, at = 1.3, 1.3 * (1 + side * distance)
    assert noise_of(lambda v: np.tanh(v) + bent(v, at, side), x, hidden=True)[0] <= 1e-13


# --------------------------------------------------------------------------- what hides between close values
GRIDS: dict[str, tuple[Function, float]] = {
    "a cast to float32": (lambda x: np.tanh(x).astype("float32"), 2.0**-24),
    "round to 6 digits": (lambda x: np.round(np.tanh(x), 6), 1e-6),
    "round to 7 digits": (lambda x: np.round(np.tanh(x), 7), 1e-7),
    "a sum in float32": (lambda x: (np.tanh(x).astype("float32") + np.float32(100)) - np.float32(100), 2.0**-17),
}
"""By name: a function, and the distance of the numbers it is rounded to."""


@pytest.mark.parametrize("name", GRIDS)
def test_rounding_to_a_coarse_grid_is_noise_though_close_values_do_not_show_it(name: str) -> None:
    f, grid = GRIDS[name]
    random = np.random.default_rng(1)
    noise = noise_of(f, random.uniform(0.6, 0.95, 2000) * random.choice([-1, 1], 2000), hidden=True)
    assert grid / 2 <= np.median(noise) <= 5 * grid
    assert (noise >= grid / 12**0.5).mean() >= 0.7  # the deviation of a uniform error


def test_hidden_noise_is_never_less_than_what_shows() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal(300)
    for f in (np.tanh, lambda v: np.tanh(v).astype("float32"), lambda v: (v + 1e8) - 1e8):
        assert (noise_of(f, x, hidden=True) >= noise_of(f, x)).all()
