"""`nondet`: results that differ from run to run by a bound that the user knows, as sums do that a kernel takes in
another order each time.

The noise of these layers is drawn anew in each run, and bounded: two runs differ by at most `noise` of the largest
entry. What is allowed follows from that alone.
"""

from __future__ import annotations

import numpy as np
import pytest

import gradcheck
from gradcheck.result import Status

pytestmark = pytest.mark.clause(id="V24")

SEEDS = range(4)
X = np.random.default_rng(1).uniform(0.5, 2.0, (3, 4))


class Noise:
    """Numbers that differ between any two runs by at most 1, and often by more than a half."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)

    def __call__(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.random.uniform(-0.5, 0.5, shape)


def pair(noise: float, factor: float = 1.0, in_forward: float = 0.0, seen: bool = True):
    """Cubes and their gradient times a factor, each with noise; unseen, element by element as Python's floats."""
    draw = Noise()

    def cube(x: np.ndarray) -> np.ndarray:
        return x**3 if seen else np.array([float(v) ** 3 for v in x.ravel()]).reshape(x.shape)

    def forward(x: np.ndarray) -> np.ndarray:
        return cube(x) + in_forward * X.max() ** 3 * draw(x.shape)

    def backward(x: np.ndarray, g: np.ndarray) -> np.ndarray:
        gradient = 3 * g * x**2 * factor
        return gradient + noise * abs(gradient).max() * draw(x.shape)

    return forward, backward


def verdicts(forward, backward, nondet: float, **options) -> list[gradcheck.CheckResult]:
    return [gradcheck.check(forward, X, backward=backward, nondet=nondet, seed=seed, **options) for seed in SEEDS]


def codes(result: gradcheck.CheckResult) -> list[str]:
    return [diagnosis.code for diagnosis in result.diagnosis]


@pytest.mark.parametrize("seen", [True, False], ids=["recorded", "unseen"])
class TestABackwardWithNoise:
    def test_below_the_bound_it_passes(self, seen: bool) -> None:
        for result in verdicts(*pair(1e-6, seen=seen), 1e-6):
            assert result.verdict is Status.PASS, result.why

    @pytest.mark.parametrize("nondet", [0.0, 1e-8])
    def test_above_the_bound_it_does_not_repeat_its_gradient(self, seen: bool, nondet: float) -> None:
        for result in verdicts(*pair(1e-6, seen=seen), nondet):
            assert result.verdict is Status.FAIL
            assert "GC132" in codes(result)

    def test_a_wrong_gradient_fails_as_before(self, seen: bool) -> None:
        for result in verdicts(*pair(1e-6, factor=1.02, seen=seen), 1e-6):
            assert result.verdict is Status.FAIL
            assert "GC132" not in codes(result)


@pytest.mark.parametrize("factor", [1 + 1e-4, 1 - 1e-4, -1.0])
def test_the_recorded_forward_shows_what_is_a_hundred_times_the_bound(factor: float) -> None:
    for result in verdicts(*pair(1e-6, factor=factor), 1e-6):
        assert result.verdict is Status.FAIL


def test_what_is_within_the_bound_cannot_be_told_from_noise() -> None:
    for result in verdicts(*pair(0.0, factor=1 + 1e-7), 1e-6):
        assert result.verdict is Status.PASS
    for result in verdicts(*pair(0.0, factor=1 + 1e-7), 0.0):
        assert result.verdict is Status.FAIL


def test_the_bound_is_shown_with_a_wrong_entry() -> None:
    for result in verdicts(*pair(1e-6, factor=1.01), 1e-6):
        for entry in result.wrong:  # the only entry of its row, so the largest
            assert 1e-6 <= entry.error_bound / abs(entry.numeric) < 1e-4


@pytest.mark.parametrize("seen", [True, False], ids=["recorded", "unseen"])
class TestAForwardWithNoise:
    def test_below_the_bound_it_passes(self, seen: bool) -> None:
        for result in verdicts(*pair(1e-6, in_forward=1e-6, seen=seen), 1e-6):
            assert result.verdict is Status.PASS, result.why

    def test_above_the_bound_it_does_not_repeat_its_values(self, seen: bool) -> None:
        for result in verdicts(*pair(0.0, in_forward=1e-6, seen=seen), 1e-8):
            assert codes(result) == ["GC131"]

    def test_a_wrong_gradient_fails_as_before(self, seen: bool) -> None:
        for result in verdicts(*pair(1e-6, factor=1.1, in_forward=1e-6, seen=seen), 1e-6):
            assert result.verdict is Status.FAIL


def test_noise_that_hides_the_derivative_is_not_a_pass() -> None:
    """Differences cannot resolve it, and nothing recorded it: neither right nor wrong was seen."""
    for factor in (1.0, 1.3):
        for result in verdicts(*pair(1e-3, factor=factor, in_forward=1e-3, seen=False), 2e-3):
            assert result.verdict is Status.INCONCLUSIVE


@pytest.mark.parametrize("dtypes", [["float32"], ["float64", "float32"]])
def test_every_dtype_has_the_bound(dtypes: list[str]) -> None:
    for result in verdicts(*pair(1e-6), 1e-6, dtypes=dtypes):
        assert result.verdict is Status.PASS, result.why


def test_the_derivative_of_the_gradient_has_it_as_well() -> None:
    draw = Noise()
    from pylayer import paddle

    class Cube(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensor()
            return 3 * g * x * x * paddle.to_tensor(1 + 1e-7 * draw(tuple(x.shape)))

    for seed in SEEDS:
        assert gradcheck.check(Cube, X, order=2, nondet=1e-6, seed=seed).verdict is Status.PASS
        assert gradcheck.check(Cube, X, order=2, seed=seed).verdict is Status.FAIL
