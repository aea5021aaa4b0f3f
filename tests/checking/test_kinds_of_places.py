"""Kinds of places at which gradient checkers err: edges of the domain, poles nearby, iterations that stop.

Right backwards are green and wrong ones FAIL; an inverse of condition 1e6 and more without operations to see
may be undecided.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from claims import (
    GREEN,
    NOT_FAIL,
    NOT_GREEN,
    Claim,
    factor,
    in_both,
    in_numpy,
    in_paddle,
    judging,
    normal,
    right_ones,
    verdict_on,
)

import pylayer.paddle as paddle

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# ------------------------------------------------------------------- edges of the domain
NEAR_1 = [[1 - 1e-9, 0.3, -(1 - 1e-7)]]


def circle(m: Any, x: Any) -> Any:
    return m.sqrt((1 - x) * (1 + x))


def raising_root(x: Any) -> Any:
    if (x < 0).any():
        raise ValueError("negative")
    return np.sqrt(x)


def edge(name: str, forward: Any, right: Any, x: Any) -> list[Claim]:
    return in_both(name, forward, right, factor(1.01, right), x)


EDGES = [
    *edge("arccos", lambda m, x: m.acos(x), lambda m, x, y, g: -g / circle(m, x), NEAR_1),
    *edge("arcsin", lambda m, x: m.asin(x), lambda m, x, y, g: g / circle(m, x), NEAR_1),
    *edge("arctanh", lambda m, x: m.atanh(x), lambda m, x, y, g: g / ((1 - x) * (1 + x)), NEAR_1),
    *edge("√(1 − x²)", circle, lambda m, x, y, g: -g * x / y, NEAR_1),
    *edge("√x at 1e-30", lambda m, x: m.sqrt(x), lambda m, x, y, g: g / (2 * y), [[1e-30, 2.0]]),
    *edge("x·log x", lambda m, x: x * m.log(x), lambda m, x, y, g: g * (m.log(x) + 1), [[1e-15, 0.7]]),
    *edge("log(1 − x)", lambda m, x: m.log(1 - x), lambda m, x, y, g: -g / (1 - x), [[1 - 1e-10, 0.2]]),
    *in_numpy("a root that raises", raising_root, lambda x, y, g: g / (2 * y), lambda x, y, g: g / y, [[1e-6, 2.0]]),
]  # fmt: skip


# ------------------------------------------------------------------- poles nearby
def conditioned(condition: float) -> Any:
    def draw(seed: int) -> list[Any]:
        random = np.random.default_rng(seed)
        u, v = (np.linalg.qr(random.standard_normal((5, 5)))[0] for _ in range(2))
        return [u @ np.diag(np.geomspace(1, 1 / condition, 5)) @ v]

    return draw


POLES = [
    *in_numpy("an inverse, condition 1e6", np.linalg.inv, lambda a, y, g: -y.T @ g @ y.T, lambda a, y, g: -y @ g @ y,
              conditioned(1e6), seeds=3, of_wrong=NOT_GREEN),
    *in_numpy("an inverse, condition 1e9", np.linalg.inv, lambda a, y, g: -y.T @ g @ y.T, lambda a, y, g: -y @ g @ y,
              conditioned(1e9), seeds=3, of_right=NOT_FAIL, of_wrong=NOT_GREEN),
    *in_paddle("an inverse, condition 1e9", paddle.inverse, lambda a, y, g: -(y.T @ g @ y.T),
               lambda a, y, g: -(y @ g @ y), conditioned(1e9), seeds=3),
    *edge("1/x beside 0", lambda m, x: 1 / x, lambda m, x, y, g: -g * y * y, [[1e-9, 1.0, -2.0]]),
    *edge("tan beside π/2", lambda m, x: m.tan(x), lambda m, x, y, g: g * (1 + y * y), [[math.pi / 2 - 1e-4, 0.3]]),
    *edge("1/(1 − x) beside 1", lambda m, x: 1 / (1 - x), lambda m, x, y, g: g / (1 - x) ** 2, [[1 - 1e-7, 0.2]]),
]  # fmt: skip


# ------------------------------------------------------------------- iterations
W = np.random.default_rng(0).standard_normal((6, 6)) / 8


def solved(tolerance: float) -> Any:
    """z = tanh(W z + x), iterated until nothing changes by more than the tolerance."""

    def forward(x: Any) -> Any:
        z = np.zeros_like(x)
        for _ in range(200):
            z, before = np.tanh(W @ z + x), z
            if np.abs(z - before).max() <= tolerance:
                break
        return z

    return forward


def implicit(x: Any, y: Any, g: Any) -> Any:
    d = 1 - y * y
    return d * np.linalg.solve((np.eye(6) - d[:, None] * W).T, g)


def without_the_solve(x: Any, y: Any, g: Any) -> Any:
    return g * (1 - y * y)


def babylonian(steps: int) -> Any:
    def forward(x: Any) -> Any:
        z = (1 + x) / 2
        for _ in range(steps):
            z = (z + x / z) / 2
        return z

    return forward


def by_limit(x: Any, y: Any, g: Any) -> Any:
    return g / (2 * x**0.5)


def largest_eigenvalue(steps: int) -> Any:
    """Of the symmetric part, by power iteration: a Rayleigh quotient."""

    def forward(a: Any) -> Any:
        s, v = (a + a.T) / 2, np.ones(len(a))
        for _ in range(steps):
            v = s @ v
            v = v / np.sqrt(v @ v)
        return v @ s @ v

    return forward


def eigenvector_vjp(power: int) -> Any:
    def backward(a: Any, y: Any, g: Any) -> Any:
        v = np.linalg.eigh((a + a.T) / 2)[1][:, -1]
        return g * np.outer(v, v) ** power

    return backward


def dominated(seed: int) -> list[Any]:
    noise = np.random.default_rng(seed).standard_normal((5, 5))
    return [np.diag([6.0, 2.0, 1.0, 0.5, -1.0]) + 0.2 * noise + 0.1]


POSITIVE = [[0.3, 2.0, 3.7]]
CONVERGED = [
    *in_numpy("a fixed point to 1e-15", solved(1e-15), implicit, without_the_solve, normal((6,)), seeds=2),
    *in_numpy("a square root in 9 steps", babylonian(9), by_limit, lambda x, y, g: g / y, POSITIVE),
    *in_paddle("a square root in 9 steps", babylonian(9), by_limit, lambda x, y, g: g / y, POSITIVE),
    *in_numpy("the largest eigenvalue in 60 steps", largest_eigenvalue(60), eigenvector_vjp(1), eigenvector_vjp(2),
              dominated, seeds=2),
]  # fmt: skip
STOPPED = [
    *in_numpy("a fixed point to 1e-4", solved(1e-4), implicit, without_the_solve, normal((6,)), seeds=3),
    *in_numpy("a square root in 2 steps", babylonian(2), by_limit, lambda x, y, g: g / y, POSITIVE),
    *in_paddle("a square root in 2 steps", babylonian(2), by_limit, lambda x, y, g: g / y, POSITIVE),
]  # fmt: skip

KINDS = (EDGES, POLES, CONVERGED)


test_a_right_backward_is_green, test_a_wrong_backward_is_not = judging(*KINDS)


@right_ones(STOPPED)
def test_the_gradient_of_the_limit_of_an_iteration_that_stops_early_can_be_allowed(
    claim: Claim, backward: Any, seed: int
) -> None:
    assert verdict_on(claim, backward, seed) in NOT_GREEN
    assert verdict_on(claim, backward, seed, rtol=0.02) in GREEN
    assert verdict_on(claim, claim.wrong[0], seed, rtol=0.02) in NOT_GREEN
