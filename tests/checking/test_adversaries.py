"""Functions made against the method itself: what deceives differences, what deceives a tape, and both.

Of each: backwards that are green, backwards that FAIL, and, where said, the set of verdicts that is right for those
that nothing can decide. A right backward never FAILs and a wrong one is never green.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims import (
    GREEN,
    NOT_FAIL,
    NOT_GREEN,
    factor,
    in_both,
    in_numpy,
    in_paddle,
    judging,
    normal,
    slope,
    slopes,
    verdict_of,
    verdict_on,
)

import gradcheck
import pylayer.paddle as paddle
from gradcheck.backends.recording import Step
from gradcheck.result import Status

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
F: Any = paddle.nn.functional


def tied(share_a: float, share_b: float) -> Any:
    """A backward of max(2a, b), right where they differ; these slopes where not."""

    def backward(m: Any, a: Any, b: Any, y: Any, g: Any) -> Any:
        return (m.where(2 * a > b, 2 * g, m.where(2 * a == b, share_a * g, 0 * g)),
                m.where(2 * a < b, g, m.where(2 * a == b, share_b * g, 0 * g)))  # fmt: skip

    return backward


def constant(m: Any, values: Any, like: Any) -> Any:
    """Numbers as an array or a Tensor of the dtype of another."""
    return np.asarray(values, like.dtype) if m is np else paddle.to_tensor(np.asarray(values)).astype(like.dtype)


def scaled(right: Any, factors: Any) -> Any:
    """A backward whose gradient is wrong by a factor of its own in every element."""
    return lambda m, x, y, g: right(m, x, y, g) * constant(m, factors, x)


# ------------------------------------------------------------------- an element too small to be seen beside another
SMALL = [
    *in_paddle("Σx² at [1e-5, 1e5]", lambda x: (x * x).sum(), lambda x, y, g: 2 * g * x,
               [lambda x, y, g, f=f: 2 * g * x * paddle.to_tensor(f) for f in ([2.0, 1.0], [1.0, 2.0], [0.0, 1.0])],
               [[1e-5, 1e5]]),
    *in_numpy("Σx² at [1e-5, 1e5]", lambda x: (x * x).sum(), lambda x, y, g: 2 * g * x,
              [lambda x, y, g: 2 * g * x * np.array([2.0, 1.0])], [[1e-5, 1e5]],
              of_right=NOT_FAIL, of_wrong=NOT_GREEN),
    *in_numpy("Σx² at [1e-5, 1e5], the large one", lambda x: (x * x).sum(), lambda x, y, g: 2 * g * x,
              lambda x, y, g: 2 * g * x * np.array([1.0, 2.0]), [[1e-5, 1e5]], of_right=NOT_FAIL),
    *in_both("exp(−x²) among subnormals", lambda m, x: m.exp(-x * x), lambda m, x, y, g: -2 * g * x * y,
             scaled(lambda m, x, y, g: -2 * g * x * y, [1.0, 1.0, 2.0]), [[26.8, -26.9, 0.7]]),
    *in_paddle("exp(−x²) among subnormals, their sign", lambda x: paddle.exp(-x * x), lambda x, y, g: -2 * g * x * y,
               lambda x, y, g: -2 * g * x * y * paddle.to_tensor([-1.0, 1.0, 1.0]), [[26.8, -26.9, 0.7]]),
]  # fmt: skip

# ------------------------------------------------------------------- kinks among smooth entries
HALF = np.where(np.arange(64) % 2 == 0, 0.0, np.random.default_rng(1).standard_normal(64))
TWENTY = (np.cumsum(HALF > 0) <= 20) & (HALF > 0)


def relu(m: Any, x: Any) -> Any:
    return m.maximum(x, 0 * x)


def relu_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    return m.where(x > 0, g, 0 * g)


KINKS = [
    *in_both("relu, half zeros", relu, [relu_vjp, lambda m, x, y, g: m.where(x >= 0, g, 0 * g)],
             [scaled(relu_vjp, 1 + TWENTY), scaled(relu_vjp, 1 + 1e-3 * TWENTY), scaled(relu_vjp, 1.0 - TWENTY),
              slope(1.0), slope(0.0)], [HALF]),
    *in_both("round at 0.5", lambda m, x: m.round(x), slope(0.0), [slope(1.0), slope(-1.0)], [[0.5, 1.5]]),
    *in_both("floor at 2", lambda m, x: m.floor(x), slope(0.0), [slope(1.0), slope(0.5)], [[2.0]]),
    *in_both("x·(x > 1) at 1", lambda m, x: x * (x > 1).astype(x.dtype),
             [slopes(0, 1, 1, 1), slopes(0, 0, 1, 1), slopes(0, 0.4, 1, 1)],
             [slopes(0, 7, 1, 1), slopes(0, -1, 1, 1), slopes(0, 1.5, 1, 1), slope(7.0), slope(-1.0)], [[1.0]]),
    *in_both("sign at 0", lambda m, x: m.sign(x), slope(0.0), [slope(1.0), slope(2.0)], [[0.0]]),
    *in_both("sign at 0, among others", lambda m, x: m.sign(x), slope(0.0), slope(1.0), [[0.0, 0.7, -2.0]]),
    *in_both("max(2a, b) with 2a = b", lambda m, a, b: m.maximum(2 * a, b), [tied(2, 0), tied(0, 1), tied(1, 0.5)],
             [tied(2, 1), tied(1, 1), tied(0, 0), tied(-2, 2)], [[1.0, -0.7], [2.0, -1.4]]),
    *in_both("relu(x) − relu(−x) at 0", lambda m, x: relu(m, x) - relu(m, -x), slope(1.0),
             [slopes(1, 0, 1), slope(0.0)], [[0.0]], of_wrong=NOT_GREEN),
    *in_both("relu(x) − relu(−x) at 0, among others", lambda m, x: relu(m, x) - relu(m, -x), slope(1.0),
             [slopes(1, 0, 1), slope(2.0)], [[0.0, 1.0, -0.5]], of_wrong=NOT_GREEN),
    *in_both("|x| + x at 0", lambda m, x: m.abs(x) + x, [slopes(0, 0, 2), slopes(0, 2, 2), slopes(0, 1, 2)],
             [slopes(0, -1, 2), slopes(0, 3, 2), slope(3.0)], [[0.0]]),
]  # fmt: skip


# ------------------------------------------------------------------- rounding taken for news by a tape or a difference
def secant(m: Any, x: Any, y: Any, g: Any) -> Any:
    return g / m.cosh(x) ** 2


def np_softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def np_softmax_vjp(rows: float) -> Any:
    return lambda x, y, g: y * (g - rows * (g * y).sum(-1, keepdims=True))


def softmax_vjp(rows: float) -> Any:
    return lambda x, y, g: y * (g - rows * (g * y).sum(-1, keepdim=True))


def layer_norm(x: Any) -> Any:
    c = x - x.mean(-1, keepdim=True)
    return c * paddle.rsqrt((c * c).mean(-1, keepdim=True) + 1e-3)


def layer_norm_vjp(mean: float) -> Any:
    def backward(x: Any, y: Any, g: Any) -> Any:
        c = x - x.mean(-1, keepdim=True)
        r = paddle.rsqrt((c * c).mean(-1, keepdim=True) + 1e-3)
        return r * (g - mean * g.mean(-1, keepdim=True) - y * (g * y).mean(-1, keepdim=True))

    return backward


def logistic(m: Any, x: Any) -> Any:
    for _ in range(90):
        x = 3.99 * x * (1 - x)
    return x


def logistic_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    for _ in range(90):
        g, x = g * 3.99 * (1 - 2 * x), 3.99 * x * (1 - x)
    return g


HALVES = normal((6, 16), dtype="float16")
ROUNDING = [
    *in_both("tanh with 1/cosh²", lambda m, x: m.tanh(x), secant,
             [lambda m, x, y, g: g / m.cosh(x), factor(-1, secant), slope(0.0)], normal((64,), size=3), seeds=3),
    *in_both("tanh with 1/cosh² at 15 to 20", lambda m, x: m.tanh(x), secant, slope(1e-3), [[15.0, -17.0, 20.0]]),
    *in_both("sigmoid at 40", lambda m, x: 1 / (1 + m.exp(-x)),
             lambda m, x, y, g: g * m.exp(-x), slope(1e-3), [[40.0]]),
    *in_both("sigmoid at 40, of which 1 − y leaves nothing", lambda m, x: 1 / (1 + m.exp(-x)),
             lambda m, x, y, g: g * y * (1 - y), slope(1e-3), [[40.0]], of_right=NOT_FAIL),
    *in_both("sigmoid at −40", lambda m, x: 1 / (1 + m.exp(-x)), lambda m, x, y, g: g * y * (1 - y),
             [lambda m, x, y, g: 2 * g * y, slope(0.0)], [[-40.0]]),
    *in_numpy("float16 softmax", np_softmax, np_softmax_vjp(1), np_softmax_vjp(0), HALVES, seeds=3),
    *in_paddle("float16 softmax", lambda x: F.softmax(x, axis=-1), softmax_vjp(1), softmax_vjp(0), HALVES, seeds=3),
    *in_paddle("float16 layer norm", layer_norm, layer_norm_vjp(1), layer_norm_vjp(0), HALVES, seeds=3),
    *in_both("a chaotic recurrence", logistic, logistic_vjp, [slope(0.0), slope(1.0)], [[0.3, 0.61]],
             of_right=NOT_FAIL, of_wrong=NOT_GREEN),
    *in_numpy("a sine that no step resolves", lambda x: np.sin(x**3), lambda x, y, g: g * 3 * x * x * np.cos(x**3),
              [lambda x, y, g: g * 0, lambda x, y, g: g * 1.5 * x * x * np.cos(x**3)], [[1081.6568412236832]],
              of_right=NOT_FAIL, of_wrong=NOT_GREEN, seeds=6),
    *in_paddle("a sine that only a tape resolves", lambda x: paddle.sin(1e12 * x),
               lambda x, y, g: g * 1e12 * paddle.cos(1e12 * x), [lambda x, y, g: g, lambda x, y, g: 0 * g],
               normal((3, 4)), of_wrong=NOT_GREEN, seeds=3),
    *in_both("x − 1e8 near 1e8", lambda m, x: x - 1e8, slope(1.0), [slope(1.01), slope(0.0), slope(-1.0)],
             [[1e8 + 0.37, 1e8 - 2.5]]),
    *in_both("(x − 1e8)² near 1e8", lambda m, x: (x - 1e8) ** 2, lambda m, x, y, g: 2 * g * (x - 1e8),
             lambda m, x, y, g: 2 * g * x, [[1e8 + 0.37, 1e8 - 2.5]]),
    *in_both("the mean squared error at no residual", lambda m, x, t: ((x - t) ** 2).mean(),
             lambda m, x, t, y, g: (g * 2 * (x - t) / 5, -g * 2 * (x - t) / 5),
             [lambda m, x, t, y, g: (g * (2 * (x - t) + 1) / 5, -g * 2 * (x - t) / 5),
              lambda m, x, t, y, g: (g * 2 * x / 5, -g * 2 * t / 5)], lambda seed: 2 * normal((5,))(seed), seeds=2),
]  # fmt: skip


# ------------------------------------------------------------------- what a tape cannot say, or says of something else
def root_or_0(m: Any, x: Any) -> Any:
    return m.where(x > 0, m.sqrt(x), 0 * x)


def root_or_0_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    return m.where(x > 0, g / (2 * m.sqrt(m.abs(x))), 0 * g)


def entropy(m: Any, p: Any) -> Any:
    return m.where(p > 0, p * m.log(p), 0 * p)


def entropy_vjp(m: Any, p: Any, y: Any, g: Any) -> Any:
    return m.where(p > 0, g * (m.log(m.abs(p)) + 1), 0 * g)


def detached(x: Any) -> Any:
    e = paddle.exp(x - x.max(-1, keepdim=True).detach())
    return e / e.sum(-1, keepdim=True)


def levels(x: Any) -> Any:
    return np.clip(np.round(x / 0.1), -8, 7) * 0.1


TAPES = [
    *in_both("a root behind where", root_or_0, root_or_0_vjp, [factor(2, root_or_0_vjp), slope(1.0)],
             [[0.7, -1.3, 2.0, -0.1]]),
    *in_both("a logarithm behind where", entropy, entropy_vjp, factor(-1, entropy_vjp), [[0.7, -1.3, 0.2]]),
    *in_paddle("a stable softmax with a detached maximum", detached, softmax_vjp(1), [softmax_vjp(0), softmax_vjp(-1)],
               normal((6, 12), size=4), seeds=2),
    *in_numpy("a quantiser of 16 levels", levels, lambda x, y, g: 0 * g,
              [lambda x, y, g: g * (np.abs(x) < 0.8), lambda x, y, g: 1.0 * g], normal((8, 16)), seeds=3),
    *in_numpy("a quantiser of 8 bits", lambda x: np.round(x * 127).astype("int8") / 127.0, lambda x, y, g: 0 * g,
              lambda x, y, g: 1.0 * g, lambda seed: [np.random.default_rng(seed).uniform(-0.99, 0.99, 100)], seeds=3),
    *in_numpy("a quantiser by floor", lambda x: np.floor(x * 1000) / 1000, lambda x, y, g: 0 * g,
              lambda x, y, g: 1.0 * g, normal((50,)), seeds=3),
]  # fmt: skip

KINDS = (SMALL, KINKS, ROUNDING, TAPES)


test_a_right_backward_does_not_fail, test_a_wrong_backward_is_not_green = judging(*KINDS)


@pytest.mark.parametrize("name", ["round at 0.5", "floor at 2", "x·(x > 1) at 1", "max(2a, b) with 2a = b"])
def test_a_kink_is_marked(name: str) -> None:
    for claim in (claim for claim in KINKS if claim.name.startswith(f"{name} in")):
        assert verdict_on(claim, claim.right[0], 0) is Status.KINK


def test_a_function_without_a_backward_of_its_own_is_held_against_its_differences() -> None:
    x = normal((4, 6))(0)[0]
    assert verdict_of(detached, x) in GREEN
    assert verdict_of(lambda x: (x * x.detach()).sum(), x) is Status.FAIL
    assert verdict_of(lambda x: paddle.to_tensor(np.tanh(x.numpy())) + 0 * x, x) is Status.FAIL


def test_twenty_wrong_entries_are_named_and_the_kinks_beside_them_are_not() -> None:
    claim = KINKS[0]
    backward = claim.wrong[0]
    found = gradcheck.check(claim.make(claim.forward, backward), HALF)
    assert {entry.index[0] for entry in found.wrong} <= set(np.flatnonzero(TWENTY).tolist())
    assert len(found.wrong) >= 1


def test_an_overflow_of_the_cotangent_is_no_finding() -> None:
    x = np.array([1e200, 3e250])
    claim = in_numpy("x/2", lambda x: x / 2, lambda x, y, g: g / 2, lambda x, y, g: g, [x])[0]
    assert verdict_on(claim, claim.right[0], 0) in GREEN
    assert verdict_on(claim, claim.wrong[0], 0) is Status.FAIL


def test_witnesses_that_contradict_each_other_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backward and an operation's own rule agree, and what forward gives is 1 % off: the rule may be wrong."""
    right = Step.pull

    def pull(step: Step, cotangents: Any) -> Any:
        return ((k, number, 1.01 * g) for k, number, g in right(step, cotangents))

    monkeypatch.setattr(Step, "pull", pull)
    (claim,) = in_paddle("a sine", paddle.sin, lambda x, y, g: 1.01 * g * paddle.cos(x), [], normal((6,)))
    found = gradcheck.check(claim.make(claim.forward, claim.right[0]), *claim.drawn(0))
    assert found.verdict is Status.INCONCLUSIVE
    assert "the operations' own derivatives agree with backward" in found.why
