"""Kinds of layers on which gradient checkers err because of the shape of the function: ties, steps, tables and joins,
each with several members.

At a tie or a kink, backwards in the hull of the slopes beside it are green; those outside of it FAIL. Elsewhere the
derivative is that of what is computed: 0 between steps, the slope of the segment in a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims import GREEN, Claim, factor, in_both, in_numpy, in_paddle, judging, normal, numpy_layer, verdict_of
from few import seeds
from layers import problem

import pylayer.paddle as paddle
from gradcheck.case.gradient_check import check_gradient
from gradcheck.result import Status

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


# ------------------------------------------------------------------- ties
def shares(a: float, b: float, larger: bool = True) -> Any:
    """A backward of the larger (or the smaller) of two inputs, right where they differ; these shares where not."""

    def backward(m: Any, x: Any, y: Any, out: Any, g: Any) -> Any:
        first, second = (x, y) if larger else (y, x)
        return (m.where(first > second, g, m.where(x == y, a * g, 0 * g)),
                m.where(first < second, g, m.where(x == y, b * g, 0 * g)))  # fmt: skip

    return backward


def windows(x: Any) -> Any:
    return x.reshape(2, 4, 3)


def pool_vjp(share: str) -> Any:
    """Of a maximum over windows of three: the whole gradient to the first maximum, to all, or in equal parts."""

    def backward(x: Any, y: Any, g: Any) -> Any:
        w = windows(x)
        mask = (w == y[..., None]).astype(float)
        if share == "first":
            mask = np.arange(3) == w.argmax(-1)[..., None]
        if share == "equal":
            mask = mask / mask.sum(-1, keepdims=True)
        return (mask * g[..., None]).reshape(x.shape)

    return backward


def tied_windows(seed: int) -> list[Any]:
    x = np.random.default_rng(seed).integers(0, 2, (2, 12)).astype(float)
    x[0, :2] = 1.0
    return [x]


def zeros(n: int) -> Any:
    """Numbers of which the first n are 0."""

    def draw(seed: int) -> list[Any]:
        x = np.random.default_rng(seed).standard_normal(12)
        x[:n] = 0.0
        return [x]

    return draw


def hundreds(seed: int) -> list[Any]:
    return [300 * np.random.default_rng(seed).standard_normal(8) * np.array([0, 1, 1, 0, 1, 1, 1, 1])]


def equal(n: int) -> Any:
    """Numbers of which the first n are the same."""
    return lambda seed: [np.where(np.arange(32) < n, 0.5, np.random.default_rng(seed).standard_normal(32))]


def neither(x: Any, y: Any, out: Any, g: Any) -> Any:
    """Of the larger of two, which gives nothing to either where they are the same."""
    return g * (x > y), g * (y > x)


def tied_pairs(seed: int) -> list[Any]:
    """Pairs, the first of them different, some the same."""
    random = np.random.default_rng(seed)
    x, y = random.integers(0, 4, 8) * 1.0, random.integers(0, 4, 8) * 1.0
    x[0], y[0], x[1], y[1] = 1.0, 2.0, 3.0, 3.0
    return [x, y]


def sort_vjp(kind: str) -> Any:
    def backward(x: Any, y: Any, g: Any) -> Any:
        order, d = np.argsort(x, kind="stable"), np.zeros_like(x)
        d[order] = g
        tied = x == 2.0
        if kind == "mean":
            d[tied] = d[tied].mean()
        if kind == "sum":
            d[tied] = d[tied].sum()
        return d if kind != "unsorted" else g * 1.0

    return backward


def largest_vjp(whole: bool) -> Any:
    def backward(x: Any, y: Any, g: Any) -> Any:
        mask = (paddle.abs(x) == y).astype(x.dtype)
        return g * paddle.sign(x) * (mask if whole else mask / mask.sum())

    return backward


def flat_at(value: float) -> Any:
    """The slope of a function that is 0 below 0 and x above, `value` at 0."""
    return lambda m, x, y, g: g * m.where(x > 0, 0 * x + 1, m.where(x < 0, 0 * x, 0 * x + value))


AB = [[1.0, -2.0, 0.5, 3.0], [1.0, -2.0, 0.5, 2.0]]
TIED = [[3.0, 2.0, 5.0, 2.0, 2.0, -1.0]]
TIES = [
    *in_both("max(x, y) with x = y", lambda m, x, y: m.maximum(x, y), [shares(1, 0), shares(0, 1), shares(0.5, 0.5)],
             [shares(1, 1), shares(0, 0), shares(2, -1), shares(0.5, 0.25)], AB),
    *in_both("min(x, y) with x = y", lambda m, x, y: m.minimum(x, y),
             [shares(1, 0, False), shares(0.25, 0.75, False)], [shares(1, 1, False), shares(0, 0, False)], AB),
    *in_both("where(x ≥ y, x, y) with x = y", lambda m, x, y: m.where(x >= y, x, y), shares(1, 0), shares(1, 1), AB),
    *in_numpy("max pooling with ties", lambda x: windows(x).max(-1), [pool_vjp("first"), pool_vjp("equal")],
              pool_vjp("all"), tied_windows, seeds=3),
    *[claim for n in (3, 8) for claim in in_numpy(
        f"Σ|x| with {n} zeros", lambda x: abs(x).sum(), lambda x, y, g: g * np.sign(x),
        [lambda x, y, g: g * np.where(x, np.sign(x), 1.5), lambda x, y, g: g * np.where(x, np.sign(x), 2)], zeros(n),
        seeds=3)],
    *[claim for n in (10, 30) for claim in in_numpy(
        f"sort with {n} equal values", np.sort, sort_vjp("permutation"), sort_vjp("unsorted"), equal(n), seeds=4)],
    *in_both("softsign with a 0 beside hundreds", lambda m, x: x / (1 + m.abs(x)),
             lambda m, x, y, g: g / (1 + m.abs(x)) ** 2, lambda m, x, y, g: g / (1 + m.abs(x)), hundreds, seeds=3),
    *in_both("softplus with a 0 beside hundreds", lambda m, x: m.maximum(x, 0 * x) + m.log1p(m.exp(-m.abs(x))),
             lambda m, x, y, g: g / (1 + m.exp(-x)), lambda m, x, y, g: g / (1.1 + m.exp(-x)), hundreds, seeds=3),
    *in_numpy("the larger of two, nothing to either at ties", np.maximum, [], neither, tied_pairs, seeds=3),
    *in_numpy("sort with three equal values", np.sort, [sort_vjp("permutation"), sort_vjp("mean")],
              [sort_vjp("sum"), sort_vjp("unsorted")], TIED),
    *in_paddle("sort with three equal values", paddle.sort,
               lambda x, y, g: paddle.put_along_axis(paddle.zeros_like(x), paddle.argsort(x), g, 0),
               lambda x, y, g: 1.0 * g, TIED),
    *in_paddle("the largest absolute value, tied", lambda x: paddle.abs(x).max(), largest_vjp(False), largest_vjp(True),
               [[3.0, -3.0, 1.0, 3.0]]),
    *in_both("relu at 0", lambda m, x: m.maximum(x, 0 * x), [flat_at(0), flat_at(1), flat_at(0.5)],
             [flat_at(2), flat_at(-0.5)], [[0.0, 1.0, -1.0]]),
    *in_both("abs at 0", lambda m, x: m.abs(x), [lambda m, x, y, g: g * m.sign(x)], [lambda m, x, y, g: g * 1.0],
             [[0.0, 3.0, -1e-5]]),
    *in_both("clip at its bounds", lambda m, x: m.clip(x, -1, 1),
             [lambda m, x, y, g: m.where(m.abs(x) < 1, g, 0 * g), lambda m, x, y, g: m.where(m.abs(x) <= 1, g, 0 * g)],
             [lambda m, x, y, g: 1.0 * g, lambda m, x, y, g: 0 * g], [[1.0, 0.3, -1.0, 4.0]]),
]  # fmt: skip


# ------------------------------------------------------------------- steps
def none(m: Any, x: Any, y: Any, g: Any) -> Any:
    return 0 * g


def straight_through(m: Any, x: Any, y: Any, g: Any) -> Any:
    return 1.0 * g


UNIT = normal((16, 16))
STEPS = [
    *in_both("round(255 x) / 255", lambda m, x: m.round(255 * x) / 255, none, straight_through, UNIT, seeds=2),
    *in_both("round(1e4 x) / 1e4", lambda m, x: m.round(1e4 * x) / 1e4, none, straight_through, UNIT, seeds=2),
    *in_both("floor at 1000.5", lambda m, x: m.floor(x), none, straight_through, [[1000.5, -3000.5, 0.3]]),
    *in_both("the ceiling", lambda m, x: m.ceil(3 * x), none, straight_through, UNIT, seeds=2),
    *in_both("the sign", lambda m, x: m.sign(x), none, straight_through, UNIT),
    *in_both("x + round(16 x) / 16", lambda m, x: x + m.round(16 * x) / 16, straight_through,
             lambda m, x, y, g: 2 * g, UNIT, seeds=2),
    *in_numpy("8 bits between the extremes", lambda x: np.round((x - x.min()) / 0.02) * 0.02, lambda x, y, g: 0 * g,
              lambda x, y, g: 1.0 * g, UNIT),
    *in_numpy("the largest as one-hot", lambda x: 1.0 * (x == x.max(-1, keepdims=True)), lambda x, y, g: 0 * g,
              lambda x, y, g: y * (g - (g * y).sum(-1, keepdims=True) / 2), UNIT),
]  # fmt: skip


# ------------------------------------------------------------------- tables
def table(count: int) -> tuple[Any, Any]:
    points = np.linspace(0, 1, count)
    return points, np.sin(5 * points)


def lookup(count: int) -> Any:
    return lambda x: np.interp(x, *table(count))


def lookup_vjp(count: int, shift: int = 0) -> Any:
    def backward(x: Any, y: Any, g: Any) -> Any:
        slopes = np.diff(table(count)[1]) * (count - 1)
        return g * slopes[(x * (count - 1)).astype(int) + shift]

    return backward


def lerp(x: Any) -> Any:
    values = paddle.to_tensor(table(257)[1])
    at = paddle.floor(x * 256).astype("int64")
    low, high = paddle.gather(values, at), paddle.gather(values, at + 1)
    return low + (x * 256 - at.astype(x.dtype)) * (high - low)


def lerp_vjp(x: Any, y: Any, g: Any) -> Any:
    values = paddle.to_tensor(table(257)[1])
    at = paddle.floor(x * 256).astype("int64")
    return g * 256 * (paddle.gather(values, at + 1) - paddle.gather(values, at))


def inside(seed: int) -> list[Any]:
    return [np.random.default_rng(seed).uniform(0.05, 0.9, 10)]


TABLES = [
    *in_numpy("65,537 points", lookup(65537), lookup_vjp(65537), factor(1.01, lookup_vjp(65537)), inside, seeds=4),
    *in_numpy("1,025 points", lookup(1025), lookup_vjp(1025), [factor(1.01, lookup_vjp(1025)), lookup_vjp(1025, 1)],
              inside, seeds=2),
    *in_numpy("17 points", lookup(17), lookup_vjp(17), [lookup_vjp(17, 1), lambda x, y, g: g * 5 * np.cos(5 * x)],
              inside, seeds=2),
    *in_paddle("257 points", lerp, lerp_vjp, [factor(1.01, lerp_vjp), lambda x, y, g: g * 5 * paddle.cos(5 * x)],
               inside, seeds=2),
    *in_numpy("the nearest of 4,097 points", lambda x: table(4097)[1][np.round(x * 4096).astype(int)],
              lambda x, y, g: 0 * g, lambda x, y, g: g * 5 * np.cos(5 * x), inside, seeds=2),
]  # fmt: skip


# ------------------------------------------------------------------- joins at 0
def smoothstep(m: Any, x: Any) -> Any:
    t = m.clip(x, 0, 1)
    return t * t * (3 - 2 * t)


def smoothstep_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    t = m.clip(x, 0, 1)
    return g * 6 * t * (1 - t)


def off_by_one_at_0(right: Any) -> Any:
    return lambda m, x, y, g: right(m, x, y, g) + m.where(x == 0, g, 0 * g)


def join(name: str, forward: Any, right: Any, *points: Any) -> list[Claim]:
    return [claim for k, x in enumerate(points)
            for claim in in_both(f"{name}, {k}", forward, right, off_by_one_at_0(right), [x])]  # fmt: skip


JOINS = [
    *join("relu²", lambda m, x: m.maximum(x, 0 * x) ** 2, lambda m, x, y, g: 2 * g * m.maximum(x, 0 * x),
          [0.0, 1.3, -0.7], [0.0]),
    *join("x·|x|", lambda m, x: x * m.abs(x), lambda m, x, y, g: 2 * g * m.abs(x), [0.0, 1.3, -0.7], [0.0]),
    *join("x − tanh x", lambda m, x: x - m.tanh(x), lambda m, x, y, g: g * m.tanh(x) ** 2, [0.0, 1.3, -0.7], [0.0]),
    *join("smoothstep", smoothstep, smoothstep_vjp, [0.0, 0.3, 1.0, -2.0], [0.0]),
    *join("x³", lambda m, x: x * x * x, lambda m, x, y, g: 3 * g * x * x, [0.0, 2.0], [0.0]),
    *join("√|x|³", lambda m, x: m.abs(x) * m.sqrt(m.abs(x)), lambda m, x, y, g: 1.5 * g * m.sign(x) * m.sqrt(m.abs(x)),
          [0.0, 2.0, -1.0]),
]  # fmt: skip


KINDS = (TIES, STEPS, TABLES, JOINS)


test_a_right_backward_is_green, test_a_wrong_backward_is_not = judging(*KINDS)


# ------------------------------------------------------------------- many pieces where nothing sees them
def median_vjp(x: Any, y: Any, g: Any) -> Any:
    return g * (np.arange(x.size) == np.argsort(x, kind="stable")[x.size // 2])


@seeds(3)
@pytest.mark.parametrize(
    ("forward", "backward", "x"),
    [
        (np.sort, sort_vjp("permutation"), np.r_[np.ones(10), 3.0, -1.0]),
        (np.sort, sort_vjp("permutation"), np.ones(30)),
        (lambda x: np.sort(x)[x.size // 2], median_vjp, np.ones(21)),
    ],
)
def test_in_code_that_nothing_sees_a_piece_that_was_not_seen_is_no_finding(
    forward: Any, backward: Any, x: Any, seed: int
) -> None:
    """Where pieces meet nothing is told of it; a median of equal numbers is smooth along every line."""
    assert check_gradient(problem(forward, backward, x), seed=seed).verdict is not Status.FAIL
    wrong = problem(forward, lambda *a: 1.3 * backward(*a), x)
    assert check_gradient(wrong, seed=seed).verdict not in GREEN


@seeds(6)
def test_a_gradient_that_is_wrong_on_one_side_of_a_kink_fails(seed: int) -> None:
    def forward(x: Any) -> Any:
        return np.clip(x.sum(), 0, 6)

    def backward(by: float) -> Any:
        return lambda x, y, g: by * g * (0 < x.sum() < 6) * np.ones_like(x)

    x = np.array([1.0, -1, 2, -2])
    assert verdict_of(numpy_layer(forward, backward(1)), x, seed=seed) is Status.KINK
    assert verdict_of(numpy_layer(forward, backward(1.3)), x, seed=seed) is Status.FAIL
