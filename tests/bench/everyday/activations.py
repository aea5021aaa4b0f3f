"""Activations, in NumPy and in Paddle operations."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from everyday.definition import Layer

import pylayer.paddle as paddle

C = math.sqrt(2 / math.pi)
SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
erf = np.vectorize(math.erf, otypes=[float])


def wide(r: Any) -> Any:
    return [3 * r.standard_normal((32, 64))]


def np_sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def np_softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def np_gelu(x: Any) -> Any:
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def np_gelu_vjp(x: Any, y: Any, g: Any) -> Any:
    return g * (0.5 * (1 + erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi))


def np_gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(C * (x + 0.044715 * x**3)))


def np_gelu_tanh_vjp(x: Any, y: Any, g: Any) -> Any:
    t = np.tanh(C * (x + 0.044715 * x**3))
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * C * (1 + 3 * 0.044715 * x * x))


def np_silu_vjp(x: Any, y: Any, g: Any) -> Any:
    s = np_sigmoid(x)
    return g * (s + y * (1 - s))


def np_mish_vjp(x: Any, y: Any, g: Any) -> Any:
    t = np.tanh(np_softplus(x))
    return g * (t + x * (1 - t * t) * np_sigmoid(x))


def np_selu(x: Any) -> Any:
    return SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(np.minimum(x, 0)))


def np_selu_vjp(x: Any, y: Any, g: Any) -> Any:
    return g * np.where(x > 0, SELU_SCALE, y + SELU_SCALE * SELU_ALPHA)


def np_hardswish_vjp(x: Any, y: Any, g: Any) -> Any:
    return g * np.where(x < -3, 0, np.where(x > 3, 1, (2 * x + 3) / 6))


def np_prelu(x: Any, a: Any) -> Any:
    return np.where(x > 0, x, a[:, None] * x)


def np_prelu_vjp(x: Any, a: Any, y: Any, g: Any) -> Any:
    return g * np.where(x > 0, 1, a[:, None]), (g * np.minimum(x, 0)).sum((0, 2))


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + paddle.erf(x / math.sqrt(2)))


def gelu_vjp(x: Any, y: Any, g: Any) -> Any:
    return g * (0.5 * (1 + paddle.erf(x / math.sqrt(2))) + x * paddle.exp(-x * x / 2) / math.sqrt(2 * math.pi))


def gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + paddle.tanh(C * (x + 0.044715 * x**3)))


def gelu_tanh_vjp(x: Any, y: Any, g: Any) -> Any:
    t = paddle.tanh(C * (x + 0.044715 * x**3))
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * C * (1 + 3 * 0.044715 * x * x))


def softplus(x: Any) -> Any:
    return paddle.maximum(x, paddle.zeros_like(x)) + paddle.log1p(paddle.exp(-paddle.abs(x)))


def mish(x: Any) -> Any:
    return x * paddle.tanh(softplus(x))


def mish_vjp(x: Any, y: Any, g: Any) -> Any:
    t = paddle.tanh(softplus(x))
    return g * (t + x * (1 - t * t) * paddle.nn.functional.sigmoid(x))


def swish(x: Any, beta: Any) -> Any:
    return x * paddle.nn.functional.sigmoid(beta * x)


def swish_vjp(x: Any, beta: Any, y: Any, g: Any) -> Any:
    s = paddle.nn.functional.sigmoid(beta * x)
    return g * (s + beta * y * (1 - s)), (g * x * x * s * (1 - s)).sum(0)


def elu(x: Any) -> Any:
    return paddle.where(x > 0, x, paddle.expm1(x))


def elu_vjp(x: Any, y: Any, g: Any) -> Any:
    return paddle.where(x > 0, g, g * (y + 1))


def hardsigmoid(x: Any) -> Any:
    return paddle.clip(x / 6 + 0.5, 0.0, 1.0)


def hardsigmoid_vjp(x: Any, y: Any, g: Any) -> Any:
    return g * paddle.logical_and(x > -3, x < 3).astype(g.dtype) / 6


def swiglu(x: Any, w: Any, v: Any) -> Any:
    return paddle.nn.functional.silu(x @ w) * (x @ v)


def swiglu_vjp(x: Any, w: Any, v: Any, y: Any, g: Any) -> Any:
    a, b = x @ w, x @ v
    s = paddle.nn.functional.sigmoid(a)
    da, db = g * b * s * (1 + a * (1 - s)), g * a * s
    return da @ w.T + db @ v.T, x.T @ da, x.T @ db


in_numpy, in_paddle = partial(Layer, style="numpy"), partial(Layer, style="paddle")

LAYERS = [
    in_numpy("gelu, erf", forward=np_gelu, backward=np_gelu_vjp, inputs=wide),
    in_numpy("gelu, tanh", forward=np_gelu_tanh, backward=np_gelu_tanh_vjp, inputs=wide),
    in_numpy("silu", forward=lambda x: x * np_sigmoid(x), backward=np_silu_vjp, inputs=wide),
    in_numpy("mish", forward=lambda x: x * np.tanh(np_softplus(x)), backward=np_mish_vjp, inputs=wide),
    in_numpy("softplus, beta 2", forward=lambda x: np_softplus(2 * x) / 2,
             backward=lambda x, y, g: g * np_sigmoid(2 * x), inputs=wide),
    in_numpy("selu", forward=np_selu, backward=np_selu_vjp, inputs=wide),
    in_numpy("hardswish", forward=lambda x: x * np.clip(x + 3, 0, 6) / 6, backward=np_hardswish_vjp, inputs=wide),
    in_numpy("softsign", forward=lambda x: x / (1 + np.abs(x)),
             backward=lambda x, y, g: g / (1 + np.abs(x)) ** 2, inputs=wide),
    in_numpy("prelu per channel", forward=np_prelu, backward=np_prelu_vjp,
             inputs=lambda r: [r.standard_normal((4, 8, 25)), r.uniform(0.05, 0.3, 8)]),
    in_paddle("gelu, erf, in operations", forward=gelu, backward=gelu_vjp, inputs=wide),
    in_paddle("gelu, tanh, in operations", forward=gelu_tanh, backward=gelu_tanh_vjp, inputs=wide),
    in_paddle("softplus in operations", forward=softplus,
              backward=lambda x, y, g: g * paddle.nn.functional.sigmoid(x), inputs=wide),
    in_paddle("mish in operations", forward=mish, backward=mish_vjp, inputs=wide),
    in_paddle("swish with learned slopes", forward=swish, backward=swish_vjp,
              inputs=lambda r: [r.standard_normal((64, 32)), r.uniform(0.5, 2, 32)]),
    in_paddle("elu", forward=elu, backward=elu_vjp, inputs=wide),
    in_paddle("hardsigmoid", forward=hardsigmoid, backward=hardsigmoid_vjp, inputs=wide),
    in_paddle("tanhshrink", forward=lambda x: x - paddle.tanh(x),
              backward=lambda x, y, g: g * (x - y) * (x - y), inputs=wide),
    in_paddle("swiglu", forward=swiglu, backward=swiglu_vjp,
              inputs=lambda r: [r.standard_normal((8, 16)), *(r.standard_normal((2, 16, 24)) / 4)]),
]  # fmt: skip
