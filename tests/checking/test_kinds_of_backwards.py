"""Kinds of backwards that round otherwise than forward does, or whose masks rounding turns over: right ones are green,
wrong ones FAIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from claims import FAIL, GREEN, Claim, in_paddle, judging, normal, recorded_layer, right_ones, verdict_on
from taped import problem_of

import gradcheck
import pylayer.paddle as paddle
from gradcheck.case.gradient_check import check_gradient
from gradcheck.result import Status

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
F: Any = paddle.nn.functional
BOTH = ("float64", "float32")


# ------------------------------------------------------------------- a backward that loses digits on its own
def layer_norm(x: Any) -> Any:
    d = x - x.mean(-1, keepdim=True)
    return d / paddle.sqrt((d * d).mean(-1, keepdim=True) + 1e-5)


def one_pass(share: float) -> Callable[..., Any]:
    """With the variance as E[x²] − E[x]²."""

    def backward(x: Any, y: Any, g: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) - mean * mean + 1e-5)
        h = (x - mean) * r
        return r * (g - g.mean(-1, keepdims=True) - share * h * (g * h).mean(-1, keepdims=True))

    return backward


def kernel(x: Any) -> Any:
    d = x.unsqueeze(1) - x.unsqueeze(0)
    return paddle.exp(-(d * d).sum(-1) / 2)


def kernel_vjp(share: float) -> Callable[..., Any]:
    """With the distances as |x|² + |y|² − 2 x·y."""

    def backward(x: Any, y: Any, g: Any) -> Any:
        q = (x * x).sum(1)
        w = (g + g.T) * np.exp(-(q[:, None] + q[None] - 2 * x @ x.T) / 2)
        return w @ x - share * w.sum(1)[:, None] * x

    return backward


def shifted(by: float, *shape: int, dtype: str) -> Callable[[int], list[Any]]:
    return lambda seed: [(np.random.default_rng(seed).standard_normal(shape) + by).astype(dtype)]


LOST = [
    Claim(f"{name} at {by} of {dtype}, in NumPy beside the tape", recorded_layer, forward, [vjp(1)], [vjp(1.01)],
          shifted(by, *shape, dtype=dtype), seeds=4)
    for dtype in BOTH
    for by in (0, 10, 30, 1000)
    for name, forward, vjp, shape in (
        ("a one-pass variance", layer_norm, one_pass, (4, 16)), ("an rbf kernel", kernel, kernel_vjp, (5, 3)),
    )
    if by < 1000 or forward is layer_norm
]  # fmt: skip


# ------------------------------------------------------------------- a backward in float32, where little is left of 1
def in_float32(vjp: Callable[..., Any], factor: float = 1) -> Callable[..., Any]:
    return lambda *values: factor * vjp(*(v.astype(np.float32) for v in values)).astype(np.float64)


def silu_vjp(x: Any, y: Any, g: Any) -> Any:
    s = 1 / (1 + np.exp(-x))
    return g * s * (1 + x * (1 - s))


TAILS = [
    Claim(f"{name} of 5 · randn, its backward in float32", recorded_layer, forward, [in_float32(vjp)],
          [in_float32(vjp, 1.01), in_float32(vjp, -1)], normal((30,), size=5.0), of_right=FAIL, seeds=4)
    for name, forward, vjp in (
        ("tanh", paddle.tanh, lambda x, y, g: g * (1 - y * y)), ("sigmoid", F.sigmoid, lambda x, y, g: g * y * (1 - y)),
        ("silu", F.silu, silu_vjp),
        ("softmax", lambda x: F.softmax(x, axis=-1), lambda x, y, g: y * (g - (y * g).sum(-1, keepdims=True))),
    )
]  # fmt: skip


# ------------------------------------------------------------------- one input whose gradient cancels, one small
def modulated(x: Any, b: Any, s: Any) -> Any:
    return layer_norm(x + b) * (1 + s)


def modulated_vjp(of_s: float) -> Callable[..., Any]:
    def backward(x: Any, b: Any, s: Any, y: Any, g: Any) -> Any:
        d = x + b - (x + b).mean(-1, keepdims=True)
        r = 1 / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)
        q = g * (1 + s)
        dz = r * (q - q.mean(-1, keepdims=True) - d * r * (q * d * r).mean(-1, keepdims=True))
        return dz, dz.sum(-1, keepdims=True), of_s * (g * d * r).sum(0)

    return backward


def small_last(size: float, dtype: str) -> Callable[[int], list[Any]]:
    drawn = normal((3, 6), (3, 1), (6,), dtype=dtype)
    return lambda seed: [*drawn(seed)[:2], (size * drawn(seed)[2]).astype(dtype)]


CANCELS = [
    Claim(f"a modulated norm, scale {size:g} of {dtype}", recorded_layer, modulated, [modulated_vjp(1)],
          [modulated_vjp(1.01), modulated_vjp(-1)], small_last(size, dtype), seeds=3)
    for dtype in BOTH for size in (1e-3, 1e-5, 1e-8)
]  # fmt: skip


# ------------------------------------------------------------------- numbers that one side holds in float32
SLOPE = np.float32(0.01)

CONSTANTS = [
    *in_paddle("x · 0.1 with 0.1 in float32", lambda x: x * paddle.to_tensor(np.float32(0.1)), lambda x, y, g: g * 0.1,
               [lambda x, y, g: g * 0.1001, lambda x, y, g: g * 0.2], normal((12,), dtype="float32"), seeds=3),
    Claim("a leaky rectifier, its slope in float32", recorded_layer, lambda x: paddle.where(x > 0, x, 0.01 * x),
          [lambda x, y, g: g * np.where(x > 0, np.float32(1), SLOPE)],
          [lambda x, y, g: g * np.where(x > 0, 1, 1.01 * SLOPE)], normal((12,), dtype="float32"), seeds=3),
    Claim("a mean of 7, with 1/7 in float32", recorded_layer, lambda x: x.mean(-1),
          [lambda x, y, g: np.repeat(g[:, None] * np.float32(1 / 7), 7, 1)],
          [lambda x, y, g: np.repeat(g[:, None] / 6, 7, 1)], normal((5, 7), dtype="float32"), seeds=3),
]  # fmt: skip


# ------------------------------------------------------------------- small parameters, small entries
def scaled(x: Any, gamma: Any) -> Any:
    narrow = x.astype("float32") + gamma.astype("float32") * paddle.tanh(x.astype("float32"))
    return narrow.astype(x.dtype)


def scaled_vjp(of_gamma: float) -> Callable[..., Any]:
    return lambda x, gamma, y, g: (
        g * (1 + gamma * (1 - np.tanh(x) ** 2)), of_gamma * (g * np.tanh(x)).sum(0)
    )  # fmt: skip


def layer_scale(size: float, dtype: str) -> Callable[[int], list[Any]]:
    drawn = normal((4, 6), dtype=dtype)
    return lambda seed: [*drawn(seed), np.full(6, size, dtype)]


def cube_vjp(last: float) -> Callable[..., Any]:
    return lambda x, y, g: 3 * x * x * g * np.where(np.arange(len(x)) == len(x) - 1, last, 1)


SMALL = [
    Claim(f"a scale of {size:g} in float32, of {dtype}", recorded_layer, scaled, [scaled_vjp(1)],
          [scaled_vjp(0), scaled_vjp(2)], layer_scale(size, dtype), seeds=2)
    for dtype in BOTH for size in (1e-3, 1e-5, 1e-6)
] + [
    Claim(f"x³ at {x}", recorded_layer, lambda x: x * x * x, [cube_vjp(1)],
          [cube_vjp(2), cube_vjp(-1), cube_vjp(0)], [x], seeds=2)
    for x in ([2.0, 1e-7], [100.0, 1e-6])
]  # fmt: skip


# ------------------------------------------------------------------- masks of equality, computed again
def pooled(x: Any, b: Any) -> Any:
    return (x + b).reshape([3, 4, 2]).max(-1)


def pooled_vjp(of_b: float) -> Callable[..., Any]:
    def backward(x: Any, b: Any, y: Any, g: Any) -> Any:
        z = (x + b).reshape([3, 4, 2])
        d = ((z == y.unsqueeze(-1)).astype(z.dtype) * g.unsqueeze(-1)).reshape([3, 8])
        return d, of_b * d.sum(0)

    return backward


def small_bias(size: float, dtype: str) -> Callable[[int], list[Any]]:
    drawn = normal((3, 8), (8,), dtype=dtype)
    return lambda seed: [drawn(seed)[0], (size * drawn(seed)[1]).astype(dtype)]


MASKS = [
    claim
    for dtype in BOTH for size in (1, 1e-3, 1e-6)
    for claim in in_paddle(f"max pooling of x + {size:g} b of {dtype}", pooled, pooled_vjp(1),
                           [pooled_vjp(2), pooled_vjp(-1)], small_bias(size, dtype), seeds=3)
]  # fmt: skip


# ------------------------------------------------------------------- where one element has nearly all of a softmax
def contrasted(a: Any, b: Any) -> Any:
    s = a @ b.T
    return (paddle.logsumexp(s, axis=-1) - paddle.diagonal(s)).mean()


def contrasted_vjp(share: float) -> Callable[..., Any]:
    def backward(a: Any, b: Any, y: Any, g: Any) -> Any:
        d = g * (paddle.nn.functional.softmax(a @ b.T, axis=-1) - share * paddle.eye(12, dtype=a.dtype)) / 12
        return d @ b, d.T @ a

    return backward


DOMINATED = [
    claim
    for size in (1, 5, 7)
    for claim in in_paddle(f"a contrastive loss of {size} randn", contrasted, contrasted_vjp(1),
                           [contrasted_vjp(0), contrasted_vjp(0.99)], normal((12, 16), (12, 16), size=size), seeds=8)
]  # fmt: skip


# ------------------------------------------------------------------- equal eigenvalues
def root(a: Any) -> Any:
    values, q = paddle.linalg.eigh(a)
    return (q * paddle.sqrt(values)) @ q.T


def root_vjp(share: float) -> Callable[..., Any]:
    """Of a symmetric square root S: X with S X + X S = g; `share` of what is beside the diagonal in its basis."""

    def backward(a: Any, y: Any, g: Any) -> Any:
        values, q = np.linalg.eigh(a)
        r = np.sqrt(values)
        x = (q.T @ ((g + g.T) / 2) @ q) / (r[:, None] + r[None])
        return q @ (x * np.where(np.eye(len(r)), 1, share)) @ q.T

    return backward


def repeated(seed: int) -> list[Any]:
    q = np.linalg.qr(np.random.default_rng(seed).standard_normal((4, 4)))[0]
    a = (q * np.array([0.5, 0.5, 1.0, 2.0])) @ q.T
    return [(a + a.T) / 2]


EQUAL = [Claim("√A with two equal eigenvalues", recorded_layer, lambda a: root((a + a.T) / 2), [root_vjp(1)],
               [root_vjp(0), root_vjp(0.9)], repeated, seeds=6)]  # fmt: skip

test_a_right_backward_is_judged_by_its_digits, test_a_wrong_backward_fails = judging(
    LOST, TAILS, CANCELS, CONSTANTS, SMALL, MASKS, DOMINATED, EQUAL
)


@right_ones(TAILS)
def test_a_backward_in_float32_of_a_float64_layer_fails_for_lost_digits_and_passes_loosely(
    claim: Claim, backward: Any, seed: int
) -> None:
    problem = problem_of(claim.make(claim.forward, backward), *claim.drawn(seed))
    assert [d.code for d in check_gradient(problem, seed=seed).diagnosis] == ["GC113"]
    loose = check_gradient(problem, seed=seed, precision="loose")
    assert loose.verdict in GREEN
    assert any("of 16 digits are lost in float64, with casts to float32" in mark for mark in loose.marks)


def test_entries_that_the_tape_cannot_give_are_had_from_the_differences() -> None:
    """At A = I all differences of eigenvalues are 0: the tape of eigh is NaN."""
    claim = EQUAL[0]
    assert verdict_on(claim, root_vjp(1), 0) in (Status.PASS, Status.KINK)
    layer = claim.make(claim.forward, lambda a, y, g: 2 * root_vjp(1)(a, y, g))
    result = gradcheck.check(layer, np.eye(4))
    assert result.verdict is Status.FAIL
    assert result.wrong
    assert all(np.isclose(entry.analytic, 2 * entry.numeric, rtol=1e-4) for entry in result.wrong)
