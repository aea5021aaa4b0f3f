"""Layers of which a part is computed in float32 and the rest in the inputs' dtype, as norms and gates are written.

Between close values the part in float32 does not change: a backward that takes it for a constant is right there, and
nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from claims import FAIL, GREEN, Claim, in_numpy, judging, normal, recorded_layer

import pylayer.paddle as paddle


def part(x: Any) -> Any:
    return x.astype("float32")


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def inverse_root(x: Any) -> Any:
    return (1 / np.sqrt((part(x) ** 2).mean(-1, keepdims=True) + np.float32(1e-6))).astype(x.dtype)


def rms(share: float) -> Callable[..., Any]:
    def backward(x: Any, w: Any, y: Any, g: Any) -> Any:
        r = inverse_root(x)
        return r * (g * w - share * x * r * r * (g * w * x).mean(-1, keepdims=True)), (g * x * r).sum(0)

    return backward


def normed(share: float) -> Callable[..., Any]:
    def backward(x: Any, y: Any, g: Any) -> Any:
        n = np.sqrt((x * x).sum(-1, keepdims=True))
        return (g - share * y * (g * y).sum(-1, keepdims=True)) / n

    return backward


def weighted(share: float) -> Callable[..., Any]:
    def backward(x: Any, y: Any, g: Any) -> Any:
        p = softmax(x)
        return g * p + share * p * (g * x - (g * x * p).sum(-1, keepdims=True))

    return backward


def in_both_dtypes(
    name: str, forward: Any, right: Any, wrong: Any, *shapes: tuple[int, ...], make: Any = None
) -> list[Claim]:
    claims = []
    for dtype in ("float64", "float32"):
        drawn = normal(*shapes, dtype=dtype)
        if make is None:
            claims += in_numpy(f"{name}, {dtype}", forward, right, wrong, drawn, seeds=3)
        else:
            claims.append(Claim(f"{name}, {dtype}", make, forward, [right], [wrong], drawn, seeds=3))
    return claims


IN_NUMPY = [
    *in_both_dtypes("an RMS norm", lambda x, w: x * inverse_root(x) * w, rms(1), [rms(0), rms(2)], (4, 8), (8,)),
    *in_both_dtypes("x + tanh", lambda x: x + np.tanh(part(x)).astype(x.dtype),
                    lambda x, y, g: g * (2 - np.tanh(x) ** 2), lambda x, y, g: g, (4, 6)),
    *in_both_dtypes("x · sigmoid", lambda x: x * sigmoid(part(x)).astype(x.dtype),
                    lambda x, y, g: g * sigmoid(x) * (1 + x * (1 - sigmoid(x))),
                    lambda x, y, g: g * sigmoid(x), (4, 6)),
    *in_both_dtypes("x / |x|", lambda x: x / np.sqrt((part(x) ** 2).sum(-1, keepdims=True)).astype(x.dtype),
                    normed(1), normed(0), (4, 6)),
    *in_both_dtypes("x − mean", lambda x: x - part(x).mean(-1, keepdims=True).astype(x.dtype),
                    lambda x, y, g: g - g.mean(-1, keepdims=True), lambda x, y, g: g, (4, 6)),
    *in_both_dtypes("x · softmax", lambda x: x * softmax(part(x)).astype(x.dtype), weighted(1), weighted(0), (4, 6)),
    *in_both_dtypes("x² + x³", lambda x: x * x + (part(x) ** 3).astype(x.dtype),
                    lambda x, y, g: g * (2 * x + 3 * x * x), lambda x, y, g: g * 2 * x, (6,)),
]  # fmt: skip


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(part(q @ k.T / 2)).astype(q.dtype) @ v


def attention_vjp(share: float) -> Callable[..., Any]:
    def backward(q: Any, k: Any, v: Any, y: Any, g: Any) -> Any:
        p = softmax(part(q @ k.T / 2)).astype(q.dtype)
        s = p * (g @ v.T - share * (g * y).sum(-1, keepdims=True)) / 2
        return s @ k, s.T @ q, p.T @ g

    return backward


def bell(x: Any, v: Any) -> Any:
    return np.exp(-(part(x) ** 2)).astype(x.dtype) * v


def bell_vjp(by: float) -> Callable[..., Any]:
    return lambda x, v, y, g: (-2 * by * x * y * g, np.exp(-x * x) * g)


TAILS = [
    claim
    for size in (2, 4, 6)
    for claim in in_numpy(f"exp(−x²) of {size} randn in float32", bell, bell_vjp(1), [bell_vjp(0), bell_vjp(1.05)],
                          normal((4, 4), (4, 4), size=size), seeds=6)
]  # fmt: skip
SHARP = [
    claim
    for size in (3, 5, 8)
    for claim in in_numpy(f"attention of {size} randn, softmax in float32", attention, attention_vjp(1),
                          attention_vjp(0), normal((4, 4), (4, 4), (4, 3), size=size), seeds=6)
]  # fmt: skip


# ------------------------------------------------------------------- where the outputs are 0
POINTS = np.linspace(-2, 2, 12).astype("float32")
MATRIX = np.random.default_rng(4).standard_normal((8, 5))


def centred_in_float32(x: Any) -> Any:
    return (part(x) - part(x).mean()).astype("float64") / 10


AT_ZERO = [
    *in_numpy("(x − c) / 10 at c", lambda x: (part(x) - POINTS).astype("float64") / 10, lambda x, y, g: g / 10,
              lambda x, y, g: g / 9.9, [POINTS.astype("float64")], seeds=3),
    *in_numpy("tanh x − tanh c at c", lambda x: (np.tanh(part(x)) - np.tanh(POINTS)).astype("float64") / 3,
              lambda x, y, g: g * (1 - np.tanh(x) ** 2) / 3, lambda x, y, g: g * (1 - np.tanh(x)) / 3,
              [POINTS.astype("float64")], seeds=3),
    *in_numpy("equal numbers less their mean", centred_in_float32, lambda x, y, g: (g - g.mean()) / 10,
              lambda x, y, g: g / 10, [np.ones(12)], seeds=3),
    *in_numpy("a product at 0", lambda x: (part(x) @ part(MATRIX)).astype("float64") * 0.7,
              lambda x, y, g: 0.7 * (g @ MATRIX.T), lambda x, y, g: 0.701 * (g @ MATRIX.T), [np.zeros((3, 8))],
              seeds=3),
]  # fmt: skip


# ------------------------------------------------------------------- forward in operations, backward in NumPy
def gate_vjp(share: float) -> Callable[..., Any]:
    def backward(x: Any, v: Any, y: Any, g: Any) -> Any:
        s = sigmoid(part(x))
        return share * part(g * v) * s * (1 - s), g * s

    return backward


def centred_vjp(share: float) -> Callable[..., Any]:
    return lambda x, y, g: g - share * part(g).mean(-1, keepdims=True)


def beside_sin(by: float) -> Callable[..., Any]:
    return lambda x, y, g: (np.float32(by) * part(g) * np.cos(part(x))).astype(x.dtype)


RECORDED = [
    *in_both_dtypes("a gate", lambda x, v: paddle.nn.functional.sigmoid(x.astype("float32")).astype(x.dtype) * v,
                    gate_vjp(1), gate_vjp(1.001), (4, 6), (4, 6), make=recorded_layer),
    *in_both_dtypes("x − mean on the tape", lambda x: x - x.astype("float32").mean(-1, keepdim=True).astype(x.dtype),
                    centred_vjp(1), centred_vjp(1.001), (4, 6), make=recorded_layer),
]  # fmt: skip

RECORDED += [
    Claim(f"sin of {dtype}, backward in float32 beside the tape", recorded_layer, paddle.sin, [beside_sin(1)],
          [beside_sin(1.05)], normal((3, 4), dtype=dtype), of_right=FAIL if dtype == "float64" else GREEN, seeds=6)
    for dtype in ("float64", "float32", "float16")
]  # fmt: skip


# ------------------------------------------------------------------- the same where what backward computes cancels
def soft(share: float) -> Callable[..., Any]:
    def backward(x: Any, y: Any, g: Any) -> Any:
        p = softmax(x)
        return share * p * (g - (p * g).sum(-1, keepdims=True))

    return backward


def mixed_vjp(share: float) -> Callable[..., Any]:
    def backward(a: Any, h: Any, y: Any, g: Any) -> Any:
        z, c = sigmoid(a), np.tanh(a)
        return share * g * ((h - c) * z * (1 - z) + (1 - z) * (1 - c * c)), g * z

    return backward


def mixed(a: Any, h: Any) -> Any:
    z = 1 / (1 + paddle.exp(-a))
    return (1 - z) * paddle.tanh(a) + z * h


def capped(q: Any, k: Any, v: Any) -> Any:
    """Attention with scores of at most 50, softmax in float32."""
    scores = (50 * paddle.tanh(q @ k.T / 100)).astype("float32")
    e = paddle.exp(scores - scores.max(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)).astype(q.dtype) @ v


def capped_vjp(share: float) -> Callable[..., Any]:
    def backward(q: Any, k: Any, v: Any, y: Any, g: Any) -> Any:
        t = np.tanh(q @ k.T / 100)
        p = softmax(part(50 * t)).astype(q.dtype)
        d = g @ v.T
        s = p * (d - share * (d * p).sum(-1, keepdims=True)) * (1 - t * t) / 2
        return s @ k, s.T @ q, p.T @ g

    return backward


SATURATED = [
    Claim(f"{name} of large numbers, backward in NumPy beside the tape", recorded_layer, forward, [vjp(1)],
          [vjp(1.05), vjp(0)], normal(*shapes, size=16), seeds=6)
    for name, forward, vjp, shapes in (
        ("softmax", lambda x: paddle.nn.functional.softmax(x, -1), soft, [(16, 4)]),
        ("a gated cell", mixed, mixed_vjp, [(4, 6), (4, 6)]),
    )
] + [
    Claim("capped attention of 5 randn, backward in NumPy beside the tape", recorded_layer, capped, [capped_vjp(1)],
          [capped_vjp(0.9)], normal((4, 4), (4, 4), (4, 3), size=5), seeds=4),
]  # fmt: skip


def causal(fill: float) -> Callable[..., Any]:
    def forward(q: Any, k: Any, v: Any) -> Any:
        n = q.shape[0]
        mask = paddle.to_tensor(np.where(np.tril(np.ones((n, n))), 0.0, fill)).astype(q.dtype)
        return paddle.nn.functional.softmax(q @ k.T / 2 + mask, -1) @ v

    return forward


def causal_vjp(share: float) -> Callable[..., Any]:
    """As flash attention computes it: the row sum of p · dp is that of g · y."""

    def backward(q: Any, k: Any, v: Any, y: Any, g: Any) -> Any:
        n = len(q)
        p = softmax(np.where(np.tril(np.ones((n, n))), q @ k.T / 2, -np.inf).astype(q.dtype))
        s = p * (g @ v.T - share * (g * y).sum(-1, keepdims=True)) / 2
        return s @ k, s.T @ q, p.T @ g

    return backward


MASKED = [
    claim
    for fill in (-np.inf, -1e30)
    for claim in in_both_dtypes(
        f"causal attention, {fill:g}", causal(fill), causal_vjp(1), causal_vjp(0.999), (16, 4), (16, 4), (16, 4),
        make=recorded_layer,
    )
]  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
test_a_right_backward_is_green, test_a_wrong_backward_fails = judging(
    IN_NUMPY, TAILS, SHARP, AT_ZERO, RECORDED, SATURATED, MASKED
)
