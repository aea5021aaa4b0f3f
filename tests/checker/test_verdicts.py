"""Verdicts on kinks, jumps, saturation and structure: where there is no derivative, none to be seen, or much of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import problem

from gradcheck.checker.gradient import check_gradient
from gradcheck.result import GradientSummary, Status

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
RANDOM = np.random.default_rng(11)
X = RANDOM.standard_normal((6, 4))


def check(forward: Any, backward: Any, *inputs: Any, **options: Any) -> GradientSummary:
    return check_gradient(problem(forward, backward, *inputs), **options)


def zero(x: Any, y: Any, g: Any) -> Any:
    return g * 0


def tanh_vjp(x: Any, y: Any, g: Any) -> Any:
    return g * (1 - y * y)


@pytest.mark.parametrize(
    ("forward", "backward", "x"),
    [
        (lambda x: np.maximum(x, 0), lambda x, y, g: g * (x > 0), [0.0, 1.0, -1.0]),
        (lambda x: np.maximum(x, 0), lambda x, y, g: g * (x >= 0), [0.0, 1.0, -1.0]),
        (np.abs, lambda x, y, g: g * np.where(x < 0, -1, 1), [0.0, 3.0, -1e-5]),
        (lambda x: np.where(x < 0, 0.1 * x, x), lambda x, y, g: g * np.where(x < 0, 0.1, 1), [0.0, -2.0]),
        (lambda x: np.clip(x, -1, 1), lambda x, y, g: g * (np.abs(x) <= 1), [1.0, 0.3, -1.0]),
        (np.floor, zero, [2.0]),
        (np.floor, zero, [2.0, 0.3, -7.0]),
        (np.round, zero, [0.5, 2.5, 1.2]),
        (lambda x: np.floor(x) + x, lambda x, y, g: g * 1.0, [3.0, 0.5]),
    ],
)
def test_kinks_and_jumps_pass_marked_if_the_gradient_lies_between_the_sides(
    forward: Any, backward: Any, x: Any
) -> None:
    summary = check(forward, backward, x)
    assert summary.verdict is Status.KINK
    assert [d.code for d in summary.diagnosis] == ["GC120"]


@pytest.mark.parametrize(
    ("forward", "backward", "x"),
    [
        (lambda x: np.maximum(x, 0), lambda x, y, g: g * np.where(x == 0, 2, x > 0), [0.0, 1.0, -1.0]),
        (lambda x: np.maximum(x, 0), lambda x, y, g: g * 1.0, [0.0, 1.0, -1.0]),
        (np.floor, lambda x, y, g: g * 1.0, [2.3]),
        (np.round, lambda x, y, g: g * 1.0, [0.2, 1.3]),
        (np.abs, lambda x, y, g: g * 1.0, [0.0, 3.0, -1.0]),
    ],
)
def test_a_gradient_beyond_the_sides_or_off_the_kink_fails(forward: Any, backward: Any, x: Any) -> None:
    assert check(forward, backward, x).verdict is Status.FAIL


def test_a_saturated_element_among_others_is_no_obstacle() -> None:
    assert check(np.tanh, tanh_vjp, [0.3, 40.0, -1.0]).verdict is Status.PASS


@pytest.mark.parametrize("function", [np.floor, np.sign, np.zeros_like])
def test_a_gradient_of_zero_of_a_flat_function_passes(function: Any) -> None:
    assert check(function, zero, [2.3, -0.7]).verdict is Status.PASS


def test_the_step_from_one_rounded_number_to_the_next_is_no_jump() -> None:
    def forward(x: Any) -> Any:
        return np.log(np.sqrt(np.sqrt(1 + x * x)))

    x = -1.2710166533584833e-06  # 1 + x² is about to be rounded to the next number
    assert check(forward, lambda x, y, g: g * x / (1 + x * x) / 2, x).verdict is Status.PASS
    assert check(forward, zero, x).verdict is Status.FAIL


def test_overlapping_memory_is_no_matter() -> None:
    x = np.lib.stride_tricks.as_strided(np.linspace(-1, 1, 8), (5, 4), (8, 8))
    assert check(np.tanh, tanh_vjp, x).verdict is Status.PASS
    assert check(np.tanh, lambda x, y, g: g * (1 - y), x).verdict is Status.FAIL


def attention(q: Any, k: Any) -> Any:
    e = np.exp(q @ k.T)
    return e / e.sum(-1, keepdims=True)


def attention_vjp(q: Any, k: Any, y: Any, g: Any) -> Any:
    d = y * (g - (g * y).sum(-1, keepdims=True))
    return d @ k, d.T @ q


@pytest.mark.parametrize(
    ("forward", "backward", "inputs"),
    [
        (np.tanh, tanh_vjp, [X]),
        (lambda x: x.sum(0), lambda x, y, g: np.broadcast_to(g, x.shape) * 1.0, [X]),
        (lambda x: np.cumsum(x, 0), lambda x, y, g: np.cumsum(g[::-1], 0)[::-1], [X]),
        (np.transpose, lambda x, y, g: g.T, [X]),
        (attention, attention_vjp, [X, X[::-1].copy()]),
        (lambda x, b: x + b, lambda x, b, y, g: (g * 1.0, g.sum(0)), [X, X[0].copy()]),
        (lambda x: (x * 2, x.sum()), lambda x, y, g: sum(p for p in (
            None if g[0] is None else 2 * g[0], None if g[1] is None else g[1] + 0 * x) if p is not None), [X]),
    ],
)  # fmt: skip
def test_mode_full_certifies_every_entry(forward: Any, backward: Any, inputs: Any) -> None:
    summary = check(forward, backward, *inputs, mode="full")
    assert (summary.verdict, summary.certified) == (Status.PASS, True)


@pytest.mark.parametrize("mode", ["auto", "full"])
def test_one_surplus_entry_off_the_pattern_is_found(mode: Any) -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        gradient = tanh_vjp(x, y, g)
        gradient[0, 0] += 1e-6 * g[5, 3]
        return gradient

    summary = check(np.tanh, backward, X, mode=mode)
    assert summary.verdict is Status.FAIL
    assert [(e.index, e.output_index) for e in summary.wrong] == [((0, 0), (5, 3))]


def test_an_elementwise_jacobian_costs_no_more_in_full() -> None:
    x = RANDOM.standard_normal(3000)
    auto, full = (check(np.tanh, tanh_vjp, x, mode=mode) for mode in ("auto", "full"))
    assert full.evaluations <= auto.evaluations + 20
    assert auto.certified
    assert full.certified
