"""Functions with a removable singularity, such as sin(x) / x: next to it terms cancel that grow without bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcheck

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.clause(id="V19")]

Function = Callable[[Any], Any]
SINC: tuple[Function, Function, float] = (
    lambda u: np.sin(u) / u,
    lambda u: (np.cos(u) * u - np.sin(u)) / u**2,
    0.0,
)
RELATIVE_EXP: tuple[Function, Function, float] = (
    lambda u: (np.exp(u) - 1) / u,
    lambda u: (np.exp(u) * (u - 1) + 1) / u**2,
    0.5,
)


def verdict(case: tuple[Function, Function, float], pole: float, claim: float) -> str:
    """The verdict where the gradient is `claim` at the pole, and right next to it."""
    value, slope, _ = case

    def forward(x: Any) -> Any:
        safe = np.where(x == pole, pole + 1, x) - pole
        return np.where(x == pole, 1.0, value(safe))

    def backward(x: Any, g: Any) -> Any:
        safe = np.where(x == pole, pole + 1, x) - pole
        return g * np.where(x == pole, claim, slope(safe))

    return gradcheck.check(forward, np.array([pole, pole + 0.7]), backward=backward).verdict


@pytest.mark.parametrize("pole", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("case", [SINC, RELATIVE_EXP], ids=["sinc", "relative exp"])
def test_its_derivative_passes_and_nothing_else(case: Any, pole: float) -> None:
    right = case[2]
    assert verdict(case, pole, right) == "PASS"
    assert [verdict(case, pole, right + error) for error in (1e-3, -1e-3, 1.0)] == ["FAIL"] * 3


def test_a_series_near_0_is_smooth_there() -> None:
    def forward(x: Any) -> Any:
        small = np.abs(x) < 1e-4
        safe = np.where(small, 1.0, x)
        return np.where(small, 1 - x * x / 6, np.sin(safe) / safe)

    def backward(x: Any, g: Any) -> Any:
        small = np.abs(x) < 1e-4
        return g * np.where(small, -x / 3, SINC[1](np.where(small, 1.0, x)))

    assert gradcheck.check(forward, np.array([0.0, 0.5, 1e-5]), backward=backward).verdict == "PASS"


def test_a_kink_beside_it_is_one() -> None:
    def forward(x: Any) -> Any:
        safe = np.where(x == 0, 1.0, x)
        return np.where(x == 0, 1.0, np.sin(safe) / safe) + np.maximum(x, 0)

    def verdict_of(claim: float) -> str:
        def backward(x: Any, g: Any) -> Any:
            safe = np.where(x == 0, 1.0, x)
            return g * np.where(x == 0, claim, SINC[1](safe) + (x > 0))

        return gradcheck.check(forward, np.array([0.0, 0.5]), backward=backward).verdict

    assert [verdict_of(claim) for claim in (0.0, 0.5, 1.0)] == ["KINK"] * 3
    assert [verdict_of(claim) for claim in (-0.5, 2.0)] == ["FAIL"] * 2
