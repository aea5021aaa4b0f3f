"""Layers at hard points, by kind: rows of zeros under an epsilon, smooth joins, inputs never seen, subnormal numbers.

Each kind has several members; what one of them teaches holds for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims import Claim, factor, in_both, in_numpy, judging, normal, numpy_layer, wrong_ones

import gradcheck
from gradcheck.result import Status

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

KINK = frozenset({Status.KINK})
PASS = frozenset({Status.PASS})
AT_0 = [np.array([0.0, 0.3, -1.0])]


def off_in(index: int, by: float, right: Any) -> Any:
    """A right backward of one input but for one row or element, which is multiplied by a number."""

    def backward(x: Any, y: Any, g: Any) -> Any:
        found = np.array(right(x, y, g))
        found[index] *= by
        return found

    return backward


# ------------------------------------------------------------------- what is 0, over a small number
def with_zero_row(seed: int) -> list[Any]:
    x = np.random.default_rng(seed).standard_normal((4, 5))
    x[1] = 0
    return [x]


def normalised(eps: float) -> tuple[Any, Any]:
    """Rows over their length or `eps`, and the gradient."""

    def length(x: Any) -> Any:
        return np.sqrt((x * x).sum(1, keepdims=True))

    def backward(x: Any, y: Any, g: Any) -> Any:
        along = y * (g * y).sum(1, keepdims=True) * (length(x) > eps)
        return (g - along) / np.maximum(length(x), eps)

    return lambda x: x / np.maximum(length(x), eps), backward


def zero_rows(eps: float) -> list[Claim]:
    forward, right = normalised(eps)
    wrong = [off_in(1, by, right) for by in (2, 0, 1.1)]
    return in_numpy(f"rows over their length or {eps:g}, one of zeros", forward, right, wrong, with_zero_row, seeds=2)


def over_size(eps: float) -> list[Claim]:
    def right(x: Any, y: Any, g: Any) -> Any:
        return g * eps / (np.abs(x) + eps) ** 2

    return in_numpy(f"x / (|x| + {eps:g}) at 0", lambda x: x / (np.abs(x) + eps), right,
                    [off_in(0, by, right) for by in (0, 1.1)], [np.array([0.0, 1.0, -2.0])],
                    of_right=PASS, seeds=3)  # fmt: skip


def steep(slope: float, dtype: str) -> list[Claim]:
    def right(x: Any, y: Any, g: Any) -> Any:
        return g * ((np.abs(x) < 1 / slope) * slope + 1)

    return in_numpy(f"clip({slope:g} x) + x at 0 in {dtype}", lambda x: np.clip(x * slope, -1, 1).astype(x.dtype) + x,
                    right, [off_in(0, by, right) for by in (0, 1.1)],
                    [np.array([0, 1, -1], dtype)], seeds=2)  # fmt: skip


UNDER_EPSILON = [claim for eps in (1e-3, 1e-5, 1e-7) for claim in zero_rows(eps)]
STEEP = [claim for dtype in ("float32", "float64") for slope in (2.0**19, 2.0**10) for claim in steep(slope, dtype)]
BARELY_OVER_0 = [*zero_rows(1e-12), *over_size(1e-12), *over_size(1e-6), *over_size(1e-2)]


# ------------------------------------------------------------------- joins that are smooth, but curved
def smooth(name: str, forward: Any, slope: Any, x: Any = AT_0) -> list[Claim]:
    def right(m: Any, x: Any, y: Any, g: Any) -> Any:
        return g * slope(m, x)

    return in_both(name, forward, right, factor(1.01, right), x, of_right=PASS, seeds=2)


CURVED = [
    *smooth("softsign(100 x) at 0", lambda m, x: 100 * x / (1 + m.abs(100 * x)),
            lambda m, x: 100 / (1 + m.abs(100 * x)) ** 2),
    *smooth("x / (|x| + 0.01) at 0", lambda m, x: x / (m.abs(x) + 0.01), lambda m, x: 0.01 / (m.abs(x) + 0.01) ** 2),
    *smooth("μ-law at 0", lambda m, x: m.sign(x) * m.log1p(255 * m.abs(x)), lambda m, x: 255 / (1 + 255 * m.abs(x))),
]  # fmt: skip
JOINS = [
    *(claim for beta in (100, 1000) for claim in smooth(
        f"a softplus with β = {beta} at 0",
        lambda m, x, beta=beta: m.maximum(x, 0 * x) + m.log1p(m.exp(-beta * m.abs(x))) / beta,
        lambda m, x, beta=beta: 1 / (1 + m.exp(-beta * x)))),
    *(claim for d in (1e-3, 1e-4) for claim in smooth(
        f"Huber at δ = {d:g}",
        lambda m, x, d=d: m.where(m.abs(x) <= d, x * x / 2, d * (m.abs(x) - d / 2)),
        lambda m, x, d=d: m.clip(x, -d, d), [np.array([d, 0.3, -d])])),
]  # fmt: skip


# ------------------------------------------------------------------- very many outputs, one of them at a kink
def many(seed: int) -> list[Any]:
    x = np.random.default_rng(seed).standard_normal(2**14 + 1)
    x[7] = 0
    return [x]


def one_of_many(name: str, forward: Any, slope: Any) -> list[Claim]:
    def right(m: Any, x: Any, y: Any, g: Any) -> Any:
        return g * slope(m, x)

    return in_both(name, forward, right, factor(2.0, right), many, of_right=KINK)


MANY = [
    *one_of_many("relu of very many", lambda m, x: m.maximum(x, 0 * x), lambda m, x: m.where(x > 0, 1 + 0 * x, 0 * x)),
    *one_of_many("abs of very many", lambda m, x: m.abs(x), lambda m, x: m.sign(x)),
]


# ------------------------------------------------------------------- an input that hardly counts
def attention(q: Any, k: Any, v: Any) -> Any:
    return weights(q, k) @ v


def weights(q: Any, k: Any) -> Any:
    s = q @ k.T / 2
    p = np.exp(s - s.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def attention_vjp(of_q: float, of_k: float) -> Any:
    def backward(q: Any, k: Any, v: Any, y: Any, g: Any) -> Any:
        p, dp = weights(q, k), g @ v.T
        ds = p * (dp - (dp * p).sum(1, keepdims=True)) / 2
        return of_q * (ds @ k), of_k * (ds.T @ q), p.T @ g

    return backward


HARDLY_COUNTING = [
    *in_numpy("attention of small numbers", attention, attention_vjp(1, 1),
              [attention_vjp(1.01, 1), attention_vjp(1, 1.01)], normal((6, 4), (6, 4), (6, 4), size=1e-6)),
    *in_numpy("a hyperbolic tangent and 1e-9 of another input", lambda a, b: np.tanh(a) + 1e-9 * b,
              lambda a, b, y, g: (g * (1 - np.tanh(a) ** 2), 1e-9 * g),
              [lambda a, b, y, g: (g * (1 - np.tanh(a) ** 2), 1.01e-9 * g)], normal((5,), (5,))),
]  # fmt: skip


# ------------------------------------------------------------------- numbers that are hardly there
TINY = [np.array([1e-310, 5e-324, -3e-312, 1])]
SUBNORMAL = [
    *in_numpy("2 x of subnormal numbers", lambda x: 2 * x, lambda x, y, g: 2 * g,
              [lambda x, y, g, k=k: g * np.where(np.arange(4) == k, 4, 2) for k in range(4)], TINY),
    *in_numpy("|x| of subnormal numbers", np.abs, lambda x, y, g: g * np.sign(x),
              [off_in(k, 2, lambda x, y, g: g * np.sign(x)) for k in range(4)], TINY),
]  # fmt: skip


# ------------------------------------------------------------------- two inputs with the same gradient
def ends_apart(a: Any, b: Any, y: Any, g: Any) -> Any:
    """Of a + b, wrong in one entry of the first input."""
    return g * np.array([1.5, 1, 1]), g


ALIKE = [
    *in_numpy("a + b", lambda a, b: a + b, lambda a, b, y, g: (g, g), ends_apart, normal((3,), (3,))),
    *in_numpy("a + 2 b", lambda a, b: a + 2 * b, lambda a, b, y, g: (g, 2 * g),
              lambda a, b, y, g: (g * np.array([2, 1, 1]), 2 * g), normal((3,), (3,))),
]  # fmt: skip


test_a_right_backward_is_green, test_a_wrong_backward_fails = judging(
    UNDER_EPSILON, STEEP, BARELY_OVER_0, CURVED, JOINS, MANY, HARDLY_COUNTING, SUBNORMAL
)


@wrong_ones(ALIKE)
def test_of_two_inputs_with_one_right_gradient_no_swap_is_named(claim: Claim, backward: Any, seed: int) -> None:
    found = gradcheck.check(claim.make(claim.forward, backward), *claim.drawn(seed), seed=seed)
    assert found.verdict is Status.FAIL
    assert found.wrong_counts["x1"][0] == 0
    assert "x1" not in " ".join(d.text for d in found.diagnosis)


# ------------------------------------------------------------------- digits
@pytest.mark.parametrize("place", [1e-9, 1e-7, 0.3])
def test_a_constant_that_depends_on_the_dtype_makes_no_other_function_of_it(place: float) -> None:
    def forward(p: Any) -> Any:
        return np.log(np.clip(p, np.finfo(p.dtype).eps, 1)).astype(p.dtype)

    def backward(p: Any, y: Any, g: Any) -> Any:
        eps = np.finfo(p.dtype).eps
        return np.where(p > eps, g / np.clip(p, eps, 1), 0)

    assert gradcheck.check(numpy_layer(forward, backward), np.array([place, 0.5], "float32")).verdict is Status.PASS


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (np.tanh, lambda x, y, g: (g.astype("float32") * (1 - y.astype("float32") ** 2)).astype(x.dtype)),
        (np.sin, lambda x, y, g: g * np.cos(x.astype("float32")).astype(x.dtype)),
    ],
)
def test_a_backward_that_loses_half_of_the_digits_is_said_to(forward: Any, backward: Any) -> None:
    found = gradcheck.check(numpy_layer(forward, backward), np.random.default_rng(3).standard_normal(8))
    assert (found.verdict, [d.code for d in found.diagnosis]) == (Status.FAIL, ["GC113"])
