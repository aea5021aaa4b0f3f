"""The complex step: right where differences see nothing, and not believed where code is not analytic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcheck.numeric.complex_step import by_complex_step
from gradcheck.numeric.derivative import scale_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def derivative(f: Callable[[Any], Any], x: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Elementwise derivative and bar of `f` at `x`; None if the complex step cannot tell."""
    point = np.atleast_1d(np.asarray(x, dtype=float))
    scale = scale_of(point)
    found = by_complex_step(lambda inputs: [f(inputs[0])], [point], [scale])
    return None if found is None else (found.value / scale, found.bar / scale)


@pytest.mark.parametrize(
    ("f", "x", "true"),
    [
        (np.tanh, 30.0, 4 * math.exp(-60) / (1 + math.exp(-60)) ** 2),
        (lambda x: 1 / (1 + np.exp(-x)), 50.0, math.exp(-50) / (1 + math.exp(-50)) ** 2),
        (lambda x: np.sqrt(1 + x**8), 1e-4, 4e-28),
        (np.cos, 1e-8, -1e-8),
        (lambda x: np.maximum(np.tanh(x), 0), 30.0, 4 * math.exp(-60) / (1 + math.exp(-60)) ** 2),
        (lambda x: np.sqrt(1 + np.exp(-x * x)), -20.0, 20 * math.exp(-400)),
    ],
)
def test_the_bar_covers_the_truth_where_no_difference_is_seen(f: Any, x: float, true: float) -> None:
    assert f(x * (1 + 2**-40)) == f(x * (1 - 2**-40))
    found = derivative(f, x)
    assert found is not None
    value, bar = found
    assert abs(value[0] - true) <= bar[0] <= 0.01 * abs(true)


@given(st.floats(19.0, 300.0), st.sampled_from([-1.0, 1.0]))
def test_of_a_saturated_tanh_every_size_is_right(x: float, sign: float) -> None:
    found = derivative(np.tanh, sign * x)
    assert found is not None
    assert found[0][0] == pytest.approx(4 * math.exp(-2 * x), rel=1e-3)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.tanh(x * abs(x)),
        lambda x: np.tanh(x * x.conj()),
        lambda x: np.tanh(x.real),
        lambda x: np.tanh(x * np.sign(x)),
        lambda x: np.tanh(x.astype("float64")),
        lambda x: np.array([math.tanh(v) if v.imag == 0 else math.nan for v in x]),
        np.ones_like,
        np.floor,
    ],
)
def test_it_is_not_believed_where_the_code_is_not_analytic_or_constant(f: Any) -> None:
    def real_where_it_raises(x: Any) -> Any:
        try:
            return f(x)
        except (TypeError, np.exceptions.ComplexWarning):
            return x.real * np.nan

    assert derivative(real_where_it_raises, [30.0, -40.0]) is None


def test_each_output_is_believed_by_itself() -> None:
    def f(x: Any) -> Any:
        return np.concatenate([np.tanh(x[:1]), np.tanh(x[1:] * abs(x[1:]))])

    found = derivative(f, [30.0, 30.0])
    assert found is not None
    assert np.isfinite(found[1]).tolist() == [True, False]
