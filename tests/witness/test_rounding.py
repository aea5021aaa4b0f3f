"""Two right formulas differ by rounding; wrong ones by more."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from taped import layer, problem_of

import pylayer.paddle as paddle
from gradcheck.witness.rounding import REPLAYS, claim_rounding, mover, tape_rounding

F = paddle.nn.functional


def by_cosh(x: Any, g: Any) -> Any:
    c = paddle.cosh(x)
    return g / (c * c)


def sigmoid_by_exp(x: Any, g: Any) -> Any:
    e = paddle.exp(-x)
    return g * e / ((1.0 + e) * (1.0 + e))


def softmax_backward(x: Any, g: Any) -> Any:
    y = F.softmax(x, -1)
    return y * (g - (y * g).sum(-1, keepdim=True))


def normed(x: Any) -> Any:
    c = x - x.mean(-1, keepdim=True)
    return c * paddle.rsqrt((c * c).mean(-1, keepdim=True) + 1e-3)


def normed_backward(x: Any, g: Any) -> Any:
    c = x - x.mean(-1, keepdim=True)
    s = paddle.rsqrt((c * c).mean(-1, keepdim=True) + 1e-3)
    n = c * s
    return s * (g - g.mean(-1, keepdim=True) - n * (g * n).mean(-1, keepdim=True))


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape)


RIGHT: list[tuple[Callable[..., Any], Callable[..., Any], np.ndarray]] = [
    (paddle.tanh, by_cosh, np.linspace(5, 18, 50)),
    (F.sigmoid, sigmoid_by_exp, np.array([40.0, 30.0, 1.0])),
    (lambda x: F.softmax(x, -1), softmax_backward, random(4, 32).astype(np.float16)),
    (lambda x: F.softmax(x, -1), softmax_backward, 20 * random(4, 32)),
    (normed, normed_backward, random(4, 32).astype(np.float16)),
    (normed, normed_backward, random(4, 32).astype(np.float32) + 30),
    (lambda x: paddle.log1p(paddle.exp(x)), lambda x, g: g * F.sigmoid(x), np.array([-30.0, 0.5, 30.0])),
]


def disagreement(forward: Callable[..., Any], backward: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    """|claim − tape| over the rounding of both, element by element."""
    problem = problem_of(layer(forward, backward), x)
    assert problem.record is not None
    tape = problem.record(problem.inputs)
    assert tape is not None
    u = [np.random.default_rng(1).standard_normal(out.shape).astype(out.dtype) for out in tape.outputs]
    claim, truth = problem.vjp(problem.inputs, u)[0], tape.gradient(u)[0]
    bar = tape.rounding(u)[0]
    return np.asarray(abs(claim - truth) / bar)


@pytest.mark.parametrize(("forward", "backward", "x"), RIGHT)
def test_right_formulas_agree_within_rounding(
    forward: Callable[..., Any], backward: Callable[..., Any], x: np.ndarray
) -> None:
    assert disagreement(forward, backward, x).max() < 1


@pytest.mark.parametrize(("forward", "backward", "x"), RIGHT)
def test_a_gradient_off_by_a_tenth_does_not(
    forward: Callable[..., Any], backward: Callable[..., Any], x: np.ndarray
) -> None:
    wrong = disagreement(forward, lambda x, g: backward(x, g) * 1.1, x)
    if x.dtype != np.float16:
        assert (wrong > 1).mean() > 0.3
    assert wrong.max() > 1


def test_equal_values_are_seldom_moved_alike_in_every_replay() -> None:
    """Their difference would then seem to be exact: moves of one size do that to one element of 2^6."""
    values, apart = np.random.default_rng(2).uniform(1, 2, 10_000), np.zeros(10_000)
    for seed in range(REPLAYS):
        move, one, other = mover(np.random.default_rng(seed)), values.copy(), values.copy()
        move("exp", one, 0)
        move("exp", other, 1)
        apart = np.maximum(apart, abs(one - other))
    assert (apart == 0).mean() < 1e-3


def test_values_that_are_exact_are_not_moved() -> None:
    problem = problem_of(layer(lambda x: paddle.max(x * 1.0, -1) * 2.0), np.array([1.0, 1.0, 0.5]))
    assert problem.record is not None
    tape = problem.record(problem.inputs)
    assert tape is not None
    *_, bars = tape_rounding(tape, [np.array(1.0)], tape.replays)
    assert bars[0][2] == 0


def test_a_backward_that_computes_in_a_coarser_dtype_is_granted_its_rounding() -> None:
    def narrow(x: Any, g: Any) -> Any:
        return (g.astype("float32") * 3.0).astype("float64")

    problem = problem_of(layer(lambda x: x * 3.0, narrow), np.array([1.0, 2.0]))
    assert problem.record is not None
    tape = problem.record(problem.inputs)
    assert tape is not None
    u = [np.array([1.0, 1 / 3])]
    assert tape.coarsest == 2.0**-52
    *_, bars = claim_rounding(tape, u, tape.replays)
    assert (abs(problem.vjp(problem.inputs, u)[0] - tape.gradient(u)[0]) <= bars[0]).all()


def test_what_is_infinite_on_the_way_is_not_moved() -> None:
    """A mask of −inf in a softmax: what it hides rounds no worse than the rest."""
    mask = np.where(np.tril(np.ones((4, 4))), 0.0, -np.inf)

    def attended(x: Any) -> Any:
        return F.softmax(x * 2.0 + paddle.to_tensor(mask), -1)

    def backward(x: Any, g: Any) -> Any:
        p = attended(x)
        return 2.0 * p * (g - (p * g).sum(-1, keepdim=True))

    problem = problem_of(layer(attended, backward), random(4, 4))
    assert problem.record is not None
    tape = problem.record(problem.inputs)
    assert tape is not None
    for of in (tape_rounding, claim_rounding):
        *_, bars = of(tape, [random(4, 4)], tape.replays)
        assert float(bars[0].max()) < 1e-12


def test_what_may_be_off_only_grows_until_it_is_enough() -> None:
    problem = problem_of(layer(lambda x: paddle.exp(paddle.sin(x))), np.linspace(-2, 2, 9))
    assert problem.record is not None
    tape = problem.record(problem.inputs)
    assert tape is not None
    bars = [bar for (bar,) in tape_rounding(tape, [np.ones(9)], tape.replays)]
    assert len(bars) > 1
    assert all((a <= b).all() for a, b in itertools.pairwise(bars))
