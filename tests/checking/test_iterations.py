"""Gradients of what an iteration tends to, of iterations that stop: by a tolerance, early or when nothing changes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from claims import paddle_layer, verdict_of
from few import few

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.clause(id="V9")]

WEIGHTS = 0.15 * np.random.default_rng(0).standard_normal((5, 5))
X = np.random.default_rng(1).standard_normal(5)
COSTS = np.random.default_rng(2).random((3, 3))


def fixed_point(tolerance: float) -> tuple[Any, Any, Any]:
    """y = tanh(W y + x)."""

    def forward(x: Any) -> Any:
        y, weights = x * 0, paddle.to_tensor(WEIGHTS)
        for _ in range(1000):
            before, y = y, paddle.tanh(weights @ y + x)
            if paddle.abs(y - before).max() < tolerance:
                break
        return y

    def backward(x: Any, y: Any, g: Any) -> Any:
        slope = 1 - y.numpy() ** 2
        return paddle.to_tensor(slope * np.linalg.solve((np.eye(5) - slope[:, None] * WEIGHTS).T, g.numpy()))

    return forward, backward, X


def newton(tolerance: float) -> tuple[Any, Any, Any]:
    """y³ + y = x, with steps halved, which converge by a factor."""

    def forward(x: Any) -> Any:
        y = x * 0
        while True:
            step = 0.8 * (y**3 + y - x) / (3 * y * y + 1)
            y = y - step
            if paddle.abs(step).max() < tolerance:
                return y

    return forward, lambda x, y, g: g / (3 * y * y + 1), X


def sinkhorn(tolerance: float) -> tuple[Any, Any, Any]:
    """The plan of transport between even weights."""

    def forward(costs: Any) -> Any:
        kernel = paddle.exp(-costs)
        u = kernel.sum(1) * 0 + 1.0
        for _ in range(1000):
            v = 1 / (paddle.transpose(kernel, [1, 0]) @ u)
            before, u = u, 1 / (kernel @ v)
            if paddle.abs(u / before - 1).max() < tolerance:
                break
        return u.reshape([3, 1]) * kernel * v.reshape([1, 3])

    def backward(costs: Any, plan: Any, g: Any) -> Any:
        p, shares = plan.numpy(), g.numpy() * plan.numpy()
        system = np.block([[np.diag(p.sum(1)), p], [p.T, np.diag(p.sum(0))]])
        duals = np.linalg.lstsq(system, np.concatenate([shares.sum(1), shares.sum(0)]), rcond=None)[0]
        return paddle.to_tensor(p * (duals[:3, None] + duals[None, 3:]) - shares)

    return forward, backward, COSTS


ITERATIONS = (fixed_point, newton, sinkhorn)
each = pytest.mark.parametrize("iteration", ITERATIONS)


def scaled(backward: Any, by: Any) -> Any:
    """A backward whose entries are multiplied by numbers."""
    return lambda *a: backward(*a) * paddle.to_tensor(by)


@each
@pytest.mark.parametrize("tolerance", few([3e-15, 1e-13, 2e-14]))
def test_what_has_converged_to_rounding_passes(iteration: Any, tolerance: float) -> None:
    forward, backward, x = iteration(tolerance)
    assert verdict_of(paddle_layer(forward, backward), x) is Status.PASS


@pytest.mark.parametrize("iteration", [newton, sinkhorn])
@pytest.mark.parametrize(("by", "verdict"), [(1.0, Status.PASS), (1.01, Status.FAIL)])
def test_what_has_converged_to_rounding_in_float32_passes(iteration: Any, by: float, verdict: Status) -> None:
    forward, backward, x = iteration(1e-6)

    def scaled_backward(x: Any, y: Any, g: Any) -> Any:
        return by * backward(x, y, g).astype(x.dtype)

    layer = paddle_layer(forward, scaled_backward)
    assert verdict_of(layer, x.astype("float32")) is verdict


@each
@pytest.mark.parametrize("error", few([1e-9, -1.0, 1e-4]))
def test_and_what_is_wrong_by_more_than_its_last_step_fails(iteration: Any, error: float) -> None:
    forward, backward, x = iteration(1e-13)
    by = np.ones(x.shape)
    by.flat[0] += error
    assert verdict_of(paddle_layer(forward, scaled(backward, by)), x) is Status.FAIL


@pytest.mark.parametrize(
    ("iteration", "tolerance"),
    [
        (fixed_point, 1e-10),
        (newton, 1e-10),
        (sinkhorn, 1e-6),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in [(fixed_point, 1e-6), (newton, 1e-6), (sinkhorn, 1e-10)]
        ),
    ],
)
def test_an_iteration_that_stops_early_is_told_with_an_rtol_that_passes(iteration: Any, tolerance: float) -> None:
    forward, backward, x = iteration(tolerance)
    layer = paddle_layer(forward, backward)
    result = gradcheck.check(layer, x)
    (told,) = (d for d in result.diagnosis if d.code == "GC126")
    off, rtol = (float(v) for v in re.findall(r"right to (\S+) of|rtol=(\S+) lets", told.text) for v in v if v)
    assert result.verdict is Status.FAIL
    assert tolerance / 100 < off < 1000 * tolerance
    assert off < rtol <= 100 * off
    assert verdict_of(layer, x, rtol=rtol) is Status.PASS
    assert verdict_of(paddle_layer(forward, scaled(backward, np.full(x.shape, 1.01))), x, rtol=rtol) is (Status.FAIL)


def test_rtol_is_of_the_largest_entry() -> None:
    """An entry of 1e-6 beside one of 1 may be off by as much as that one."""
    weights = paddle.to_tensor(np.array([1.0, 1e-6]))
    for error, verdict in ((1e-5, Status.PASS), (1e-3, Status.FAIL)):
        off = paddle.to_tensor(np.array([0.0, error]))
        layer = paddle_layer(lambda x: (weights * x).sum(), lambda x, y, g, off=off: g * (weights + off))
        assert verdict_of(layer, np.array([0.3, 0.7]), rtol=1e-4) is verdict


def test_a_gradient_off_by_a_percent_or_more_is_no_approximation() -> None:
    layer = paddle_layer(paddle.sin, lambda x, y, g: g * (paddle.cos(x) + 0.02 * x * x * x))
    assert not [d for d in gradcheck.check(layer, X).diagnosis if d.code == "GC126"]
