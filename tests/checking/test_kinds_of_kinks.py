"""More members of the kinds that the shape of a function makes: ties, steps, tables, joins, edges, poles.

Backwards in the hull of the slopes next to a kink are green, those outside of it FAIL.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from claims import NOT_GREEN, Claim, factor, in_both, in_numpy, in_paddle, judging, normal, slope, slopes

import pylayer.paddle as paddle

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


# ------------------------------------------------------------------- ties
def hinge_vjp(at: float) -> Any:
    def backward(m: Any, x: Any, t: Any, y: Any, g: Any) -> Any:
        active = m.where(t * x < 1, 0 * x + 1, m.where(t * x == 1, 0 * x + at, 0 * x))
        return -g * t * active, -g * x * active

    return backward


def tied_share(share: float) -> Any:
    """Of |x − t|: the sign, and at no residual shares of the cotangent of both signs."""

    def backward(m: Any, x: Any, t: Any, y: Any, g: Any) -> Any:
        d = g * m.where(x == t, 0 * x + share, m.sign(x - t))
        return d, -d

    return backward


def both_whole(m: Any, x: Any, t: Any, y: Any, g: Any) -> Any:
    d = g * m.where(x == t, 0 * x + 1, m.sign(x - t))
    return d, m.where(x == t, d, -d)


def top_vjp(kind: str) -> Any:
    def backward(x: Any, y: Any, g: Any) -> Any:
        if kind == "all":
            return g.sum() * (x >= y.min()).astype(x.dtype)
        return paddle.put_along_axis(paddle.zeros_like(x), paddle.topk(x, 2)[1], g, 0)

    return backward


def norm_at_0(direction: Any) -> Any:
    """Of |x|: x/|x|, and at the origin this direction."""

    def backward(m: Any, x: Any, y: Any, g: Any) -> Any:
        at = np.array(direction) if m is np else m.to_tensor(np.array(direction))
        return g * (at if float(y) == 0 else x / y)

    return backward


def running_max_vjp(whole: bool) -> Any:
    def backward(x: Any, y: Any, g: Any) -> Any:
        d = np.zeros_like(x)
        for k in range(len(x)):
            holders = [j for j in range(k + 1) if x[j] == y[k]]
            for j in holders if whole else holders[:1]:
                d[j] += g[k]
        return d

    return backward


TIES = [
    *in_both("a hinge at its margin", lambda m, x, t: m.maximum(1 - t * x, 0 * x), [hinge_vjp(0), hinge_vjp(1)],
             [hinge_vjp(2), hinge_vjp(-1)], [[1.0, -1.0, 0.25], [1.0, -1.0, 2.0]]),
    *in_both("|x − t| at no residual", lambda m, x, t: m.abs(x - t), [tied_share(0), tied_share(-1), tied_share(0.5)],
             [tied_share(2), both_whole], [[1.0, 2.0, 3.0], [1.0, 2.5, 3.0]]),
    *in_both("leaky relu at 0", lambda m, x: m.where(x > 0, x, 0.1 * x), [slopes(0.1, 0.1, 1), slopes(0.1, 1, 1)],
             [slopes(0.1, 0, 1), slopes(0.1, 1.1, 1)], [[0.0, 1.0, -1.0]]),
    *in_both("relu6 at 6", lambda m, x: m.clip(x, 0, 6), [slopes(1, 0, 0, 6), slopes(1, 1, 0, 6)],
             [slopes(1, -1, 0, 6), slopes(1, 2, 0, 6)], [[6.0, 3.0, 7.5]]),
    *in_both("elu of slope 2 at 0", lambda m, x: m.where(x > 0, x, 2 * m.expm1(x)),
             lambda m, x, y, g: g * m.where(x > 0, 0 * x + 1, 2 * m.exp(x)), slopes(2, 0, 1), [[0.0]]),
    *in_both("a norm at the origin", lambda m, x: m.sqrt((x * x).sum()),
             [norm_at_0([0.0, 0.0, 0.0]), norm_at_0([0.5, 0.0, 0.0])], norm_at_0([2.0, 2.0, -2.0]), [[0.0, 0.0, 0.0]]),
    *in_paddle("the two largest, tied within", lambda x: paddle.topk(x, 2)[0], top_vjp("permutation"), top_vjp("all"),
               [[3.0, 1.0, 3.0, -1.0]]),
    *in_numpy("a running maximum with ties", np.maximum.accumulate, running_max_vjp(False), running_max_vjp(True),
              [[1.0, 3.0, 3.0, 2.0, 5.0]]),
]  # fmt: skip


# ------------------------------------------------------------------- steps
def masked(m: Any, x: Any, y: Any, g: Any) -> Any:
    return m.where(x > 0.3, g, 0 * g)


STEPS = [
    *in_both("x − floor x", lambda m, x: x - m.floor(x), slope(1.0), slope(0.0), normal((40,), size=3)),
    *in_both("x − floor x at 2", lambda m, x: x - m.floor(x), slope(1.0), [slope(0.0), slope(2.0)], [[2.0, 0.3]]),
    *in_both("x where x > 0.3", lambda m, x: m.where(x > 0.3, x, 0 * x), masked, [slope(1.0), slope(0.0)],
             normal((60,)), seeds=2),
    *in_both("x·round(8 x)", lambda m, x: x * m.round(8 * x), lambda m, x, y, g: g * m.round(8 * x),
             [lambda m, x, y, g: g * 16 * x, lambda m, x, y, g: g * (m.round(8 * x) + 8 * x)], normal((60,)), seeds=2),
    *in_both("a Heaviside step at 0", lambda m, x: (x >= 0).astype(x.dtype), slope(0.0), slope(1.0), [[0.0, 1.0]]),
    *in_numpy("ranks", lambda x: 1.0 * np.argsort(np.argsort(x)), lambda x, y, g: 0 * g, lambda x, y, g: 1.0 * g,
              normal((30,))),
    *in_numpy("values of bins", lambda x: np.array([0.1, 0.7, -2.0, 5.0])[np.digitize(x, [-1, 0, 1])],
              lambda x, y, g: 0 * g, lambda x, y, g: 1.0 * g, normal((30,)), seeds=2),
    *in_numpy("the share above 0.3", lambda x: (x > 0.3).mean(), lambda x, y, g: 0 * x, lambda x, y, g: g + 0 * x,
              normal((30,))),
]  # fmt: skip

# ------------------------------------------------------------------- tables
LOG_POINTS = np.geomspace(1e-3, 1e3, 2049)
LOG_VALUES = np.sqrt(LOG_POINTS)
GRID = np.sin(np.arange(33)[:, None] / 5) * np.cos(np.arange(33)[None] / 7)


def in_segment(x: Any) -> Any:
    return np.searchsorted(LOG_POINTS, x, side="right") - 1


def segment_vjp(shift: int) -> Any:
    return lambda x, y, g: g * (np.diff(LOG_VALUES) / np.diff(LOG_POINTS))[in_segment(x) + shift]


def surface(x: Any, z: Any) -> Any:
    i, j = np.floor(x).astype(int), np.floor(z).astype(int)
    a, b = x - i, z - j
    low, high = (GRID[i + k, j] * (1 - b) + GRID[i + k, j + 1] * b for k in range(2))
    return low * (1 - a) + high * a


def surface_vjp(x: Any, z: Any, y: Any, g: Any) -> Any:
    i, j = np.floor(x).astype(int), np.floor(z).astype(int)
    a, b = x - i, z - j
    down = (GRID[i + 1, j] - GRID[i, j]) * (1 - b) + (GRID[i + 1, j + 1] - GRID[i, j + 1]) * b
    right = (GRID[i, j + 1] - GRID[i, j]) * (1 - a) + (GRID[i + 1, j + 1] - GRID[i + 1, j]) * a
    return g * down, g * right


def inside(seed: int) -> list[Any]:
    return [*np.random.default_rng(seed).uniform(1, 30, (2, 20))]


TABLES = [
    *in_numpy("points at equal ratios", lambda x: np.interp(x, LOG_POINTS, LOG_VALUES), segment_vjp(0),
              [segment_vjp(3), lambda x, y, g: g / (2 * np.sqrt(x)) * 1.01],
              lambda seed: [10 ** np.random.default_rng(seed).uniform(-2.5, 2.5, 12)], seeds=3),
    *in_numpy("a surface", surface, surface_vjp, lambda *a: surface_vjp(*a)[::-1], inside, seeds=2),
    *in_paddle("a table by searchsorted", lambda x: table_of(x)[0], lambda x, y, g: g * table_of(x)[1],
               lambda x, y, g: g * 3 * paddle.cos(3 * x) * 1.05, lambda seed: [np.random.default_rng(seed).uniform(
                   0.05, 0.9, 10)], seeds=2),
]  # fmt: skip


def table_of(x: Any) -> tuple[Any, Any]:
    """A table of sin 3x at uneven points: values and slopes."""
    points = paddle.to_tensor(np.linspace(0, 1, 130) ** 1.5)
    values = paddle.sin(3 * points)
    k = paddle.searchsorted(points, x, right=True) - 1
    left, right = paddle.gather(points, k), paddle.gather(points, k + 1)
    rise = (paddle.gather(values, k + 1) - paddle.gather(values, k)) / (right - left)
    return paddle.gather(values, k) + (x - left) * rise, rise


# ------------------------------------------------------------------- joins
JOINS = [
    *in_both("elu at 0", lambda m, x: m.where(x > 0, x, m.expm1(x)),
             lambda m, x, y, g: g * m.where(x > 0, 0 * x + 1, y + 1), slopes(0.5, 0, 1), [[0.0]]),
    *in_both("huber at 1", lambda m, x: m.where(m.abs(x) < 1, x * x / 2, m.abs(x) - 0.5),
             lambda m, x, y, g: g * m.clip(x, -1, 1), lambda m, x, y, g: g * m.where(m.abs(x) < 1, x, 0 * x),
             [[1.0, -1.0, 0.3, 2.0]]),
    *in_both("softsign at 0", lambda m, x: x / (1 + m.abs(x)), lambda m, x, y, g: g / (1 + m.abs(x)) ** 2,
             lambda m, x, y, g: g / (1 + m.abs(x)) ** 2 * m.abs(m.sign(x)), [[0.0, 1.0]]),
    *in_both("hardswish at ±3", lambda m, x: x * m.clip(x + 3, 0, 6) / 6,
             lambda m, x, y, g: g * m.where(x <= -3, 0 * x, m.where(x >= 3, 0 * x + 1, (2 * x + 3) / 6)), slope(1.0),
             [[-3.0, 3.0, 0.5]]),
    *in_both("x⁴ at 0", lambda m, x: x**4, lambda m, x, y, g: 4 * g * x**3, lambda m, x, y, g: 4 * g * x**3 + g,
             [[0.0]]),
    *in_both("1 − cos at 0", lambda m, x: 1 - m.cos(x), lambda m, x, y, g: g * m.sin(x),
             lambda m, x, y, g: g * m.cos(x), [[0.0, 0.0]]),
]  # fmt: skip


# ------------------------------------------------------------------- edges and poles
def edge(name: str, forward: Any, right: Any, *x: Any) -> list[Claim]:
    """The first element at the edge, with a wrong gradient everywhere, and at the edge alone: of that NumPy may be too
    coarse to tell more than that it was not seen."""

    def there_alone(m: Any, x: Any, y: Any, g: Any) -> Any:
        found = right(m, x, y, g)
        return m.where(x == x[0], 2 * found, found)

    return [
        *in_both(name, forward, right, factor(1.01, right), x),
        *in_both(f"{name}, there alone", forward, [], there_alone, x, of_wrong_numpy=NOT_GREEN),
    ]


def near_zero(m: Any, x: Any, y: Any, g: Any) -> Any:
    return (g - y * (g * y).sum()) / m.sqrt((x * x).sum())


EDGES = [
    *edge("logit at 1e-12", lambda m, p: m.log(p / (1 - p)), lambda m, p, y, g: g / (p * (1 - p)), [1e-12, 0.4]),
    *edge("arcosh at 1 + 1e-10", lambda m, x: m.acosh(x), lambda m, x, y, g: g / m.sqrt((x - 1) * (x + 1)),
          [1 + 1e-10, 3.0]),
    *edge("x^0.3 at 1e-20", lambda m, x: x**0.3, lambda m, x, y, g: g * 0.3 * y / x, [1e-20, 2.0]),
    *edge("p·log p at 1e-200", lambda m, p: p * m.log(p), lambda m, p, y, g: g * (m.log(p) + 1), [1e-200, 0.3]),
    *edge("arcsin in float32", lambda m, x: m.asin(x), lambda m, x, y, g: g / m.sqrt((1 - x) * (1 + x)),
          np.array([1 - 2**-20, 0.3], "float32")),
    *edge("√(1 − x) at 1 − 1e-12", lambda m, x: m.sqrt(1 - x), lambda m, x, y, g: -g / (2 * y), [1 - 1e-12, 0.3]),
    *edge("√x at 1e-300", lambda m, x: m.sqrt(x), lambda m, x, y, g: g / (2 * y), [1e-300, 1.0]),
    *edge("exp at 700 and at −700", lambda m, x: m.exp(x), lambda m, x, y, g: g * y, [700.0, -700.0, 1.0]),
    *edge("tan beside its pole", lambda m, x: m.tan(x), lambda m, x, y, g: g / m.cos(x) ** 2,
          [math.pi / 2 - 1e-6, 0.3]),
    *edge("log(1 − exp(x)) at −1e-6", lambda m, x: m.log(-m.expm1(x)), lambda m, x, y, g: g * m.exp(x) / m.expm1(x),
          [-1e-6, -2.0]),
]  # fmt: skip
POLES = [
    *in_both("log|sin| beside π", lambda m, x: m.log(m.abs(m.sin(x))), lambda m, x, y, g: g / m.tan(x),
             lambda m, x, y, g: g * m.tan(x), [[math.pi + 1e-6, 1.0]]),
    *in_both("1/(a − b) with a near b", lambda m, a, b: 1 / (a - b), lambda m, a, b, y, g: (-g * y * y, g * y * y),
             lambda m, a, b, y, g: (-g * y * y, -g * y * y), [[1.0, 2.0], [1.0 + 2**-24, 2.5]]),
    *in_both("a direction of length 1e-9", lambda m, x: x / m.sqrt((x * x).sum()), near_zero,
             lambda m, x, y, g: g / m.sqrt((x * x).sum()), normal((5,), size=1e-9), seeds=2),
    *in_numpy("the logarithm of a determinant, condition 1e8", lambda a: np.linalg.slogdet(a)[1],
              lambda a, y, g: g * np.linalg.inv(a).T, lambda a, y, g: g * np.linalg.inv(a), lambda seed: [
                  np.random.default_rng(seed).standard_normal((4, 4)) * np.array([1, 1, 1, 1e-8])], seeds=2),
]  # fmt: skip

KINDS = (TIES, STEPS, TABLES, JOINS, EDGES, POLES)


test_a_right_backward_is_green, test_a_wrong_backward_fails = judging(*KINDS)
