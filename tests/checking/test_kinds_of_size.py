"""Kinds of layers on which gradient checkers err because of how large numbers are: subnormal, huge, or a small share.

Right backwards are green, wrong ones FAIL.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from claims import NOT_GREEN, factor, in_both, in_numpy, in_paddle, judging, normal

import pylayer.paddle as paddle

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
F: Any = paddle.nn.functional


# ------------------------------------------------------------------- range
def np_softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_vjp(x: Any, y: Any, g: Any) -> Any:
    return y * (g - (g * y).sum(-1, keepdim=True))


def rbf(x: Any, z: Any) -> Any:
    return np.exp(-((x[:, None] - z[None]) ** 2).sum(-1))


def rbf_vjp(sign: float) -> Any:
    def backward(x: Any, z: Any, y: Any, g: Any) -> Any:
        weighted = 2 * (g * y)[:, :, None] * (x[:, None] - z[None])
        return -weighted.sum(1), sign * weighted.sum(0)

    return backward


def bell_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    return -2 * g * x * y


RANGE = [
    *in_both("exp(−x²) with a subnormal", lambda m, x: m.exp(-x * x), bell_vjp, factor(2, bell_vjp), [[26.7, 1.0]]),
    *in_both("exp at 709", lambda m, x: m.exp(x), lambda m, x, y, g: g * y, lambda m, x, y, g: 1.01 * g * y,
             [[709.0, 0.3]]),
    *in_both("x² at 1e150", lambda m, x: x * x, lambda m, x, y, g: 2 * x * g, lambda m, x, y, g: x * g,
             [[1e150, -2e150]]),
    *in_both("1/x at 1e-150", lambda m, x: 1 / x, lambda m, x, y, g: -g * y * y, lambda m, x, y, g: g * y * y,
             [[1e-150, -2e-149]]),
    *in_both("log at 1e-300", lambda m, x: m.log(x), lambda m, x, y, g: g / x, lambda m, x, y, g: 1.01 * g / x,
             [[1e-300, 2.0]]),
    *in_both("1e-300 · tanh", lambda m, x: 1e-300 * m.tanh(x), lambda m, x, y, g: 1e-300 * g * (1 - m.tanh(x) ** 2),
             lambda m, x, y, g: 1e-300 * g * (1 - m.tanh(x)), normal((5,))),
    *in_numpy("an rbf matrix of distant points", rbf, rbf_vjp(1), rbf_vjp(-1), normal((8, 4), (9, 4), size=8), seeds=2),
    *in_numpy("softmax of 150 randn", np_softmax, lambda x, y, g: y * (g - (g * y).sum(-1, keepdims=True)),
              lambda x, y, g: g, normal((6, 20), size=150), seeds=2),
    *in_paddle("softmax of 150 randn", lambda x: F.softmax(x, axis=-1), softmax_vjp, lambda x, y, g: g,
               normal((6, 20), size=150), seeds=2),
    *in_both("exp(−x²), float32 subnormals", lambda m, x: m.exp(-x * x), bell_vjp, lambda m, x, y, g: -g * x * y,
             [np.array([9.5, 1.0, -9.4], "float32")]),
]  # fmt: skip


# ------------------------------------------------------------------- small shares
def doubled_first(right: Any) -> Any:
    """A backward whose first entry is twice as large."""

    def backward(m: Any, x: Any, y: Any, g: Any) -> Any:
        d = right(m, x, y, g)
        twice = np.where(np.arange(d.shape[0]) == 0, 2.0, 1.0)
        return d * (twice if m is np else m.to_tensor(twice))

    return backward


def square_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    return 2 * g * x


def weighted_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    return g * WEIGHTS if m is np else g * m.to_tensor(WEIGHTS)


def square_of_sum_vjp(first: float) -> Any:
    def backward(m: Any, x: Any, y: Any, g: Any) -> Any:
        by = np.where(np.arange(5) == 0, first, 1.0)
        return 2 * g * x.sum() * (by if m is np else m.to_tensor(by))

    return backward


WEIGHTS = np.array([1e-8, 1.0, -2.0, 0.5, 3.0])
SHARES = [
    *in_both("(Σx)² at [1e-9, 1, −3, 2, 0.3]", lambda m, x: x.sum() ** 2, square_of_sum_vjp(1),
             [square_of_sum_vjp(1.1), square_of_sum_vjp(1.01)], [[1e-9, 1.0, -3.0, 2.0, 0.3]], seeds=4),
    *in_both("Σx² at [1e-3, 1e3]", lambda m, x: (x * x).sum(), square_vjp, doubled_first(square_vjp), [[1e-3, 1e3]]),
    *in_both("a weighted sum with a weight of 1e-8", lambda m, x: weighted_vjp(m, x, None, x).sum(),
             weighted_vjp, doubled_first(weighted_vjp), normal((5,)), seeds=2),
    *in_both("tanh(a) + 1e-12·b", lambda m, a, b: m.tanh(a) + 1e-12 * b,
             lambda m, a, b, y, g: (g * (1 - m.tanh(a) ** 2), 1e-12 * g),
             [lambda m, a, b, y, g: (g * (1 - m.tanh(a) ** 2), 2e-12 * g),
              lambda m, a, b, y, g: (g * (1 - m.tanh(a) ** 2), 0 * g)], normal((6,), (6,)), seeds=2),
    *in_both("a bias of 1e-9", lambda m, x, w, b: x @ w + 1e-9 * b,
             lambda m, x, w, b, y, g: (g @ w.T, x.T @ g, 1e-9 * g.sum(0)),
             lambda m, x, w, b, y, g: (g @ w.T, x.T @ g, -1e-9 * g.sum(0)), normal((4, 3), (3, 5), (5,)), seeds=2),
    *in_both("a penalty of 1e-7", lambda m, x, w: ((x @ w) ** 2).mean() + 1e-7 * (w * w).sum(),
             lambda m, x, w, y, g: (g * 2 * (x @ w) @ w.T / 24, g * (2 * x.T @ (x @ w) / 24 + 2e-7 * w)),
             lambda m, x, w, y, g: (g * 2 * (x @ w) @ w.T / 24, g * (2 * x.T @ (x @ w) / 24 + 1e-7 * w)),
             normal((6, 5), (5, 4)), seeds=2),
    *in_both("outputs of 1e6 and of 1e-6", lambda m, x: m.stack([1e6 * m.sin(x), 1e-6 * m.tanh(x)]),
             lambda m, x, y, g: 1e6 * m.cos(x) * g[0] + 1e-6 * (1 - m.tanh(x) ** 2) * g[1],
             lambda m, x, y, g: 1e6 * m.cos(x) * g[0] + 1e-6 * (1 - m.tanh(x)) * g[1], normal((6,)), seeds=2),
]  # fmt: skip


# ------------------------------------------------------------------- constants: all of the gradient cancels
def np_sum_vjp(rows: float) -> Any:
    """Of the sum of a softmax: `rows` of the row sum's share."""

    def backward(x: Any, y: Any, g: Any) -> Any:
        s, wide = np_softmax(x), g[..., None]
        return s * (wide - rows * (wide * s).sum(-1, keepdims=True))

    return backward


def np_normed(x: Any) -> Any:
    return x / np.sqrt((x * x).sum(-1, keepdims=True))


def np_length_vjp(along: float) -> Any:
    """Of the squared length of a normed vector: `along` of the share of the norm."""

    def backward(x: Any, y: Any, g: Any) -> Any:
        n = np_normed(x)
        wide = 2 * n * g[..., None]
        return (wide - along * n * (n * wide).sum(-1, keepdims=True)) / np.sqrt((x * x).sum(-1, keepdims=True))

    return backward


CONSTANTS = [
    *in_numpy("the sum of a softmax", lambda x: np_softmax(x).sum(-1), np_sum_vjp(1), [np_sum_vjp(0), np_sum_vjp(0.99)],
              normal((5, 7)), seeds=4),
    *in_numpy("the sum of a softmax in float32", lambda x: np_softmax(x).sum(-1), np_sum_vjp(1), np_sum_vjp(0),
              normal((5, 7), dtype="float32"), seeds=4),
    *in_numpy("the length of a normed vector", lambda x: (np_normed(x) ** 2).sum(-1), np_length_vjp(1),
              [np_length_vjp(0), np_length_vjp(1.01)], normal((5, 7)), seeds=4),
    *in_numpy("x / x", lambda x: x / x, lambda x, y, g: g / x - g * x / x**2, lambda x, y, g: g / x, normal((9,)),
              seeds=4),
    *in_paddle("correlations, those with oneself too", paddle.linalg.corrcoef,
               lambda x, y, g: corrcoef_vjp(x, g), lambda x, y, g: 2 * corrcoef_vjp(x, g),
               normal((4, 6), size=0.3), seeds=4),
]  # fmt: skip


def corrcoef_vjp(x: Any, g: Any) -> Any:
    """By the engine's own derivatives, the limits at ±1 left out."""
    centred = x - x.mean(1, keepdim=True)
    length = (centred * centred).sum(1, keepdim=True).sqrt()
    n = centred / length
    wide = (g + g.T) @ n
    wide = wide - n * (n * wide).sum(1, keepdim=True)
    return (wide - wide.mean(1, keepdim=True)) / length


# ------------------------------------------------------------------- what float32 cannot hold, or a float32 row cancels
SINGLE: dict[str, Any] = {"dtype": "float32"}
IN_FLOAT32 = [
    *in_paddle("a product of 16 that underflows", paddle.prod, lambda x, y, g: g * y / x, lambda x, y, g: g * (y + x),
               normal((4, 4), size=1e-4, **SINGLE), seeds=2),
    *in_paddle("a running product that overflows", lambda x: paddle.cumprod(x, 0),
               lambda x, y, g: ((g * y).flip(0).cumsum(0).flip(0)) / x, lambda x, y, g: g * y / x,
               normal((16,), size=1e3, **SINGLE), seeds=2),
    *in_numpy("a saturated softmax", np_softmax, lambda x, y, g: y * (g - (g * y).sum(-1, keepdims=True)),
              lambda x, y, g: y * g, normal((5, 7), size=30, **SINGLE), seeds=6),
]  # fmt: skip


# ------------------------------------------------------------------- outputs of unlike sizes, known unlike well
def two_outputs(by: float) -> Any:
    return lambda x, y, g: by * (g[0] * 3e12 * np.exp(3 * x) + g[1] * 1e-9 * np.cos(x))


UNLIKE = in_numpy("exp of 1e12 beside sin of 1e-9", lambda x: (1e12 * np.exp(3 * x), 1e-9 * np.sin(x)), two_outputs(1),
                  [two_outputs(1.001), two_outputs(1.0001)], normal((5,)), seeds=3)  # fmt: skip


# ------------------------------------------------------------------- of some outputs little but rounding is left
STRIKES = np.array([104.27, 117.4])


def below(z: Any) -> Any:
    """The share of a normal distribution that lies below z."""
    return 0.5 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))


def calls(price: Any, volatility: Any) -> Any:
    """Call options over two years (Black and Scholes 1973), of which the first is far out of the money."""
    spread = volatility * math.sqrt(2)
    first = np.log(price / STRIKES) / spread + spread / 2
    return price * below(first) - STRIKES * below(first - spread)


def calls_vjp(by: float) -> Any:
    def backward(price: Any, volatility: Any, y: Any, g: Any) -> Any:
        spread = volatility * math.sqrt(2)
        first = np.log(price / STRIKES) / spread + spread / 2
        return g * below(first), by * g * price * np.exp(-first * first / 2) / math.sqrt(math.pi)

    return backward


LOST = in_numpy("options", calls, calls_vjp(1), [calls_vjp(1.01), calls_vjp(1.05)],
                [np.array([90.79, 112.53]), np.array([0.0145, 0.0319])], seeds=10)  # fmt: skip


# ------------------------------------------------------------------- outputs of a few hundred units of rounding
def second(by: float) -> Any:
    def backward(x: Any, y: Any, g: Any) -> Any:
        return g * np.array([1.0, by]) / (1 + (1e6 + x) ** 2)

    return backward


UNITS = in_numpy("arctan far out, less that at 1e6", lambda x: np.arctan(1e6 + x) - np.arctan(1e6), second(1),
                 [second(-1), second(0), second(2)], [[1.0, 0.1]], of_wrong=NOT_GREEN, seeds=5)  # fmt: skip


# ------------------------------------------------------------------- so many outputs that their sum is looked at
SMALL_ONE = np.where(np.arange(20_000) == 77, 1e-8, 1.0)


def one_of_many(by: float) -> Any:
    return lambda x, y, g: g * SMALL_ONE * (1 - np.tanh(x) ** 2) * np.where(SMALL_ONE < 1, by, 1)


MANY = in_numpy("tanh of 20,000, one of them times 1e-8", lambda x: np.tanh(x) * SMALL_ONE, one_of_many(1),
                [one_of_many(1.05), one_of_many(0)], normal((20_000,)), seeds=3)  # fmt: skip

KINDS = (RANGE, SHARES, CONSTANTS, IN_FLOAT32, UNLIKE, LOST, UNITS, MANY)


test_a_right_backward_is_green, test_a_wrong_backward_is_not = judging(*KINDS)
