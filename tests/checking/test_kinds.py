"""Kinds of layers on which gradient checkers err because of how numbers are rounded, each with several members.

Right backwards are green. Wrong ones FAIL, except where no difference can show it and no operations can be seen: there
they are INCONCLUSIVE.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from claims import FAIL, GREEN, NOT_GREEN, Claim, factor, in_both, in_numpy, in_paddle, judging, normal, verdict_of
from few import seeds

import pylayer.paddle as paddle

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
F: Any = paddle.nn.functional
C = math.sqrt(2 / math.pi)


# ------------------------------------------------------------------- a dtype coarser than the inputs' on the way
def rms(x: Any, w: Any) -> Any:
    h = x.astype("float32")
    r = paddle.rsqrt((h * h).mean(-1, keepdim=True) + 1e-6)
    return w * (h * r).astype(x.dtype)


def rms_vjp(share: float) -> Any:
    def backward(x: Any, w: Any, y: Any, g: Any) -> Any:
        h, d = x.astype("float32"), (g * w).astype("float32")
        r = paddle.rsqrt((h * h).mean(-1, keepdim=True) + 1e-6)
        dx = r * d - share * h * r**3 * (d * h).mean(-1, keepdim=True)
        return dx.astype(x.dtype), (g * (h * r).astype(g.dtype)).sum(0)

    return backward


def np_norm(x: Any) -> Any:
    h = x.astype("float32")
    c = h - h.mean(-1, keepdims=True)
    return (c / np.sqrt((c * c).mean(-1, keepdims=True) + np.float32(1e-5))).astype(x.dtype)


def np_norm_vjp(mean: float) -> Any:
    def backward(x: Any, y: Any, g: Any) -> Any:
        r = 1 / np.sqrt(x.astype("float32").var(-1, keepdims=True) + np.float32(1e-5))
        return r * (g - mean * g.mean(-1, keepdims=True) - y * (g * y).mean(-1, keepdims=True))

    return backward


def softmax_vjp(rows: float) -> Any:
    return lambda x, y, g: y * (g - rows * (g * y).sum(-1, keepdim=True))


def thrice(sign: float) -> Any:
    return lambda x, y, g: (g.astype("float32") * (3 * sign)).astype(g.dtype)


def through(dtype: str) -> Any:
    return lambda x: 2 * paddle.tanh(x).astype(dtype).astype(x.dtype)


def float32_product(a: Any, b: Any) -> Any:
    return (a.astype("float32") @ b.astype("float32")).astype(a.dtype)


LOW: list[Claim] = []
for dtype in ("float64", "float32"):
    LOW += in_paddle(
        f"{dtype} rms norm in float32", rms, rms_vjp(1), rms_vjp(0), normal((8, 16), (16,), dtype=dtype), seeds=3
    )
    LOW += in_numpy(
        f"{dtype} norm in float32", np_norm, np_norm_vjp(1), np_norm_vjp(0), normal((8, 16), dtype=dtype), seeds=2
    )
    LOW += in_paddle(
        f"{dtype} softmax in float32",
        lambda x: F.softmax(x.astype("float32"), axis=-1).astype(x.dtype),
        softmax_vjp(1),
        softmax_vjp(0),
        normal((6, 12), size=2, dtype=dtype),
        seeds=2,
    )
    LOW += in_paddle(
        f"{dtype} matmul in float32",
        float32_product,
        lambda a, b, y, g: (float32_product(g, b.T), float32_product(a.T, g)),
        lambda a, b, y, g: (float32_product(g, b.T), -float32_product(a.T, g)),
        normal((8, 12), (12, 4), dtype=dtype),
        seeds=2,
    )
    for coarse in ("float16", "bfloat16"):
        LOW += in_paddle(
            f"{dtype} tanh through {coarse}",
            through(coarse),
            lambda x, y, g: 2 * g * (1 - paddle.tanh(x) ** 2),
            [lambda x, y, g: -g, lambda x, y, g: 6 * g * (1 - paddle.tanh(x) ** 2)],
            normal((6, 5), dtype=dtype),
        )
LOW += in_paddle(
    "a backward in float32", lambda x: 3 * x, thrice(1), thrice(-1), normal((20,), dtype="float32"), seeds=2
)


# ------------------------------------------------------------------- one row in eight, inputs in float32, no tape
def one_row(right: Any, size: float) -> Any:
    """A backward whose gradient is wrong in its third row, by a share of it."""

    def backward(*a: Any) -> Any:
        d = np.array(right(*a))
        d[2] *= 1 + size
        return d

    return backward


def in_float32(right: Any) -> Any:
    """A backward that computes in float32, whatever it is given."""
    return lambda x, y, g: right(*(a.astype("float32") for a in (x, y, g))).astype(x.dtype)


def cumsum_vjp(x: Any, y: Any, g: Any) -> Any:
    return np.cumsum(g[:, ::-1], 1)[:, ::-1]


def np_softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def np_softmax_vjp(x: Any, y: Any, g: Any) -> Any:
    return y * (g - (g * y).sum(-1, keepdims=True))


def product_vjp(x: Any, y: Any, g: Any) -> Any:
    return g @ MIXING.T.astype(g.dtype)


THIRD = 3 * float(np.float32(1 / 3))
"""What is left of 1 where backward alone takes a constant from float32."""
MIXING = np.random.default_rng(1).standard_normal((40, 30))
for title, forward, right in (
    ("cumsum", lambda x: np.cumsum(x, 1), cumsum_vjp),
    ("softmax", np_softmax, np_softmax_vjp),
    ("a product", lambda x: x @ MIXING.astype(x.dtype), product_vjp),
):
    LOW += in_numpy(
        f"float32 {title}, a row of eight",
        forward,
        [right, in_float32(right), factor(THIRD, right)],
        [one_row(right, 1e-3), one_row(in_float32(right), 1e-3)],
        normal((8, 40), dtype="float32"),
        seeds=6,
    )
for dtype in ("float64", "float32"):
    LOW += in_numpy(
        f"{dtype} norm in float32, a row of eight",
        np_norm,
        np_norm_vjp(1),
        one_row(np_norm_vjp(1), 0.05),
        normal((8, 16), dtype=dtype),
        seeds=6,
    )


# ------------------------------------------------------------------- tails
WIDE = normal((32, 64), size=3)
erf = np.vectorize(math.erf, otypes=[float])


def erf_of(m: Any, x: Any) -> Any:
    return erf(x) if m is np else m.erf(x)


def gelu_tanh(m: Any, x: Any) -> Any:
    return 0.5 * x * (1 + m.tanh(C * (x + 0.044715 * x**3)))


def gelu_tanh_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    t = m.tanh(C * (x + 0.044715 * x**3))
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * C * (1 + 0.134145 * x * x))


def gelu_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    return g * (0.5 * (1 + erf_of(m, x / math.sqrt(2))) + x * m.exp(-x * x / 2) / math.sqrt(2 * math.pi))


def cut(right: Any) -> Any:
    """A backward that is 0 where x < −3."""
    return lambda m, x, *a: m.where(x < -3, 0 * x, right(m, x, *a))


def sigmoid(m: Any, x: Any) -> Any:
    return 1 / (1 + m.exp(-x))


def sigmoid_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    return g * sigmoid(m, x) * sigmoid(m, -x)


TAILS = [
    *in_both("gelu by erf", lambda m, x: 0.5 * x * (1 + erf_of(m, x / math.sqrt(2))), gelu_vjp,
             [factor(1.01, gelu_vjp), cut(gelu_vjp)], WIDE, seeds=3),
    *in_both("gelu by tanh", gelu_tanh, gelu_tanh_vjp,
             [factor(1.01, gelu_tanh_vjp), cut(gelu_tanh_vjp)], WIDE, seeds=3),
    *in_both("tanh of 10 randn", lambda m, x: m.tanh(x), lambda m, x, y, g: g * (1 - y * y),
             lambda m, x, y, g: g * (1 - y), normal((200,), size=10), seeds=2),
    *in_both("sigmoid of 15 randn", sigmoid, sigmoid_vjp, factor(-1, sigmoid_vjp), normal((200,), size=15), seeds=2),
    *in_both("the logarithm of a sigmoid", lambda m, x: m.log(sigmoid(m, x)),
             lambda m, x, y, g: g * sigmoid(m, -x), lambda m, x, y, g: g * sigmoid(m, x),
             normal((100,), size=8), seeds=2),
    *in_both("swish of 10 randn", lambda m, x: x * sigmoid(m, x),
             lambda m, x, y, g: g * sigmoid(m, x) * (1 + x * sigmoid(m, -x)), lambda m, x, y, g: g * sigmoid(m, x),
             normal((150,), size=10), seeds=2),
    *in_numpy("1 − erf at 5", lambda x: 1 - erf(x), lambda x, y, g: -g * 2 / math.sqrt(math.pi) * np.exp(-x * x),
              lambda x, y, g: -g * np.exp(-x * x), [[3.0, 4.0, 5.0, 0.5]]),
]  # fmt: skip


# ------------------------------------------------------------------- cancellation
def root_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    return -g / (2 * m.sqrt(x) * m.sqrt(x + 1) * (m.sqrt(x) + m.sqrt(x + 1)))


CANCELLATION = [
    *in_both("exp(x) − 1 at 1e-8", lambda m, x: m.exp(x) - 1, lambda m, x, y, g: g * m.exp(x),
             [lambda m, x, y, g: 1.01 * g, lambda m, x, y, g: g * y], normal((5,), size=1e-8), seeds=3),
    *in_both("1 − cos at 1e-8", lambda m, x: 1 - m.cos(x), lambda m, x, y, g: g * m.sin(x),
             [lambda m, x, y, g: g * 1.5 * m.sin(x), lambda m, x, y, g: g * m.cos(x)], normal((4,), size=1e-8), seeds=2,
             of_wrong_numpy=NOT_GREEN),
    *in_both("1 − cos at 1e-5", lambda m, x: 1 - m.cos(x), lambda m, x, y, g: g * m.sin(x),
             lambda m, x, y, g: g * 1.5 * m.sin(x), normal((4,), size=1e-5), seeds=2, of_wrong_numpy=NOT_GREEN),
    *in_both("log(1 + exp(x)) at −30", lambda m, x: m.log(1 + m.exp(x)), lambda m, x, y, g: g * sigmoid(m, x),
             lambda m, x, y, g: 2 * g * sigmoid(m, x), [[-30.0, -29.3, -31.0]]),
    *in_both("(x + 1e8) − 1e8", lambda m, x: (x + 1e8) - 1e8, lambda m, x, y, g: 1.0 * g, lambda m, x, y, g: 1.01 * g,
             normal((6,)), seeds=2),
    *in_both("√(x + 1) − √x at 1e8", lambda m, x: m.sqrt(x + 1) - m.sqrt(x),
             root_vjp, factor(2, root_vjp),
             [[1e8, 3e8]], of_wrong_numpy=NOT_GREEN),
    *in_both("the mean square less the squared mean", lambda m, x: (x * x).mean() - x.mean() ** 2,
             lambda m, x, y, g: g * 2 * (x - x.mean()) / 20, lambda m, x, y, g: g * 2 * x / 20,
             lambda seed: [1e4 + np.random.default_rng(seed).standard_normal(20)], seeds=2),
    *in_both("sinh by exp at 1e-9", lambda m, x: (m.exp(x) - m.exp(-x)) / 2, lambda m, x, y, g: g * m.cosh(x),
             lambda m, x, y, g: g * y, normal((4,), size=1e-9), seeds=2),
]  # fmt: skip


KINDS = (LOW, TAILS, CANCELLATION)


test_a_right_backward_is_green, test_a_wrong_backward_is_not = judging(*KINDS)


@seeds(4)
@pytest.mark.parametrize("approximate", [False, True])
def test_the_engines_own_gelu_is_green_and_fails_where_a_factor_is_detached(approximate: bool, seed: int) -> None:
    x = 3 * np.random.default_rng(seed).standard_normal((32, 64))
    assert verdict_of(lambda x: F.gelu(x, approximate=approximate), x, seed=seed) in GREEN
    assert verdict_of(lambda x: F.gelu(x, approximate=approximate) * x.detach(), x, seed=seed) in FAIL
