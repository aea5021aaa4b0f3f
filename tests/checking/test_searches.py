"""Values that come through comparisons: the tape of a search is a constant, and the differences decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from claims import NOT_FAIL, NOT_GREEN, Claim, in_both, in_numpy, in_paddle, judging, normal, verdict_on

import pylayer.paddle as paddle
from gradcheck.checking.differences import Line
from gradcheck.checking.searches import jumps_carry

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.clause(id="V8")]

GOLDEN = (math.sqrt(5) - 1) / 2


def bisected(m: Any, low: Any, high: Any, below: Callable[[Any], Any], steps: int) -> Any:
    """Where `below` turns false, with the half selected by `where`."""
    for _ in range(steps):
        middle = (low + high) / 2
        left = below(middle)
        low, high = m.where(left, middle, low), m.where(left, high, middle)
    return (low + high) / 2


def of_module(module: Any, forward: Any, vjp: Callable[[float], Any], wrong: Sequence[float]) -> tuple[Any, Any, Any]:
    """A forward, its right backward, and backwards that are wrong by factors."""

    def scaled(factor: float) -> Any:
        return lambda x, y, g: vjp(factor)(module, x, y, g)

    return lambda x: forward(module, x), scaled(1), [scaled(factor) for factor in wrong]


of_numpy, of_paddle = partial(of_module, np), partial(of_module, paddle)


def cubic_root(steps: int) -> Any:
    return lambda m, x: bisected(m, x * 0 - 3.0, x * 0 + 3.0, lambda y: y * y * y + y < x, steps)


def of_cubic_root(factor: float) -> Any:
    return lambda m, x, y, g: factor * g / (3 * y * y + 1)


def by_masks(steps: int) -> Any:
    """The same root, with steps that a mask multiplies."""

    def forward(m: Any, x: Any) -> Any:
        y, step = x * 0 - 3.0, 3.0
        for _ in range(steps):
            y, step = y + step * (((y + step) ** 3 + y + step) <= x).astype(x.dtype), step / 2
        return y

    return forward


def by_counter(bits: int) -> Any:
    """The root of tanh(y) + y, its bits counted in integers."""

    def forward(m: Any, x: Any) -> Any:
        count, unit = (x * 0).astype("int64"), 8.0 / 2**bits
        for k in reversed(range(bits)):
            y = (count + 2**k).astype(x.dtype) * unit - 4.0
            count = count + 2**k * (m.tanh(y) + y <= x).astype("int64")
        return count.astype(x.dtype) * unit - 4.0

    return forward


def of_counted(factor: float) -> Any:
    return lambda m, x, y, g: factor * g / (2 - m.tanh(y) ** 2)


def golden_section(steps: int) -> Any:
    """Where cosh(y) − x y is least."""

    def forward(m: Any, x: Any) -> Any:
        low, high = x * 0 - 3.0, x * 0 + 3.0
        for _ in range(steps):
            a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
            left = m.cosh(a) - x * a < m.cosh(b) - x * b
            low, high = m.where(left, low, a), m.where(left, b, high)
        return (low + high) / 2

    return forward


def of_golden_section(factor: float) -> Any:
    return lambda m, x, y, g: factor * g / m.sqrt(1 + x * x)


def entmax(power: int, steps: int) -> Any:
    """Sparsemax for a power of 1, entmax of 1.5 for 2."""

    def forward(m: Any, x: Any) -> Any:
        z, shape = x / power, [x.shape[0], 1]
        threshold, step = z.max(-1).reshape(shape) - 1.0, 1.0
        for _ in range(steps):
            step /= 2
            total = (m.maximum(z - threshold - step, 0 * z) ** power).sum(-1).reshape(shape)
            threshold = m.where(total >= 1, threshold + step, threshold)
        return m.maximum(z - threshold, 0 * z) ** power

    return forward


def of_entmax(power: int, share: float) -> Any:
    def backward(m: Any, x: Any, y: Any, g: Any) -> Any:
        shape = [x.shape[0], 1]
        slope = (y > 0).astype(x.dtype) if power == 1 else m.sqrt(y)
        return slope * (g - share * (g * slope).sum(-1).reshape(shape) / slope.sum(-1).reshape(shape))

    return backward


def weighted_root(m: Any, a: Any, b: Any) -> Any:
    return bisected(m, b * 0 - 6.0, b * 0 + 6.0, lambda y: y + m.exp(a) * m.tanh(y) < b, 36)


def of_weighted_root(first: float, second: float) -> Any:
    def backward(m: Any, a: Any, b: Any, y: Any, g: Any) -> Any:
        slope = 1 + m.exp(a) * (1 - m.tanh(y) ** 2)
        return -first * g * m.exp(a) * m.tanh(y) / slope, second * g / slope

    return backward


def times_root(m: Any, x: Any) -> Any:
    return cubic_root(34)(m, x) * m.exp(x)


def of_times_root(direct: float, implicit: float) -> Any:
    return lambda m, x, y, g: g * (direct * y + implicit * m.exp(x) / (3 * (y * m.exp(-x)) ** 2 + 1))


def moving_bracket(m: Any, x: Any) -> Any:
    return bisected(m, x - 1.0, x + 1.0, lambda y: y + m.tanh(y) / 2 < x, 34)


SEARCHES = [
    in_both("bisection in 30", cubic_root(30), of_cubic_root(1), [of_cubic_root(2), of_cubic_root(0)], normal((4,))),
    in_both("float32 bisection", cubic_root(24), of_cubic_root(1), [of_cubic_root(2), of_cubic_root(0)],
            normal((4,), dtype="float32")),
    in_both("masks", by_masks(40), of_cubic_root(1), [of_cubic_root(2), of_cubic_root(0)], normal((4,))),
    in_both("counter", by_counter(36), of_counted(1), [of_counted(2), of_counted(0)], normal((4,))),
    in_both("golden section", golden_section(36), of_golden_section(1), [of_golden_section(-1), of_golden_section(0)],
            normal((4,)), of_wrong=NOT_GREEN),
    in_both("sparsemax", entmax(1, 32), of_entmax(1, 1), [of_entmax(1, 0), of_entmax(1, 2)], normal((2, 5))),
    in_both("entmax", entmax(2, 32), of_entmax(2, 1), [of_entmax(2, 0), of_entmax(2, 2)], normal((2, 5))),
    in_both("two inputs", weighted_root, of_weighted_root(1, 1), [of_weighted_root(0, 1), of_weighted_root(1, 0)],
            normal((3,), (3,))),
    in_both("a direct share", times_root, of_times_root(1, 1), [of_times_root(1, 0), of_times_root(0, 1)],
            normal((4,))),
    in_both("a bracket that moves", moving_bracket, lambda m, x, y, g: g / (1.5 - m.tanh(y) ** 2 / 2),
            lambda m, x, y, g: g, normal((4,))),
]  # fmt: skip
"""Each in NumPy and in Paddle's operations, which are recorded alike."""

# Each check takes half a second. So of each search one of the two runs by default, of the first both; and of its wrong
# backwards, which are the same search again, the first. Once the interval of a search is one number, more steps change
# nothing.
USUAL = [
    *SEARCHES[0],
    *(pair[k % 2] for k, pair in enumerate(SEARCHES[1:])),
    *in_numpy("bisection in 60", *of_numpy(cubic_root(60), of_cubic_root, (-1, 0)), normal((2,))),
]
LONGER = [
    *(pair[1 - k % 2] for k, pair in enumerate(SEARCHES[1:])),
    *in_paddle("bisection in 60", *of_paddle(cubic_root(60), of_cubic_root, (-1, 0)), normal((2,))),
]

test_a_right_gradient_of_a_search_passes, test_a_wrong_gradient_of_a_search_fails = judging(USUAL, kept=1)
test_a_right_gradient_of_a_longer_one_passes, test_a_wrong_gradient_of_a_longer_one_fails = judging(LONGER, kept=0)


# --------------------------------------------------------------------------- searches over values in float32
def least_of(objective: Callable[[Any, Any, Any], Any], section: str, steps: int) -> Any:
    """Where an objective is least, by sections of golden or of equal lengths."""
    part = GOLDEN if section == "golden" else 2 / 3

    def forward(m: Any, x: Any) -> Any:
        low, high = x * 0 - 3.0, x * 0 + 3.0
        for _ in range(steps):
            a, b = high - part * (high - low), low + part * (high - low)
            left = objective(m, a, x) < objective(m, b, x)
            low, high = m.where(left, low, a), m.where(left, b, high)
        return (low + high) / 2

    return forward


def quartic(m: Any, y: Any, x: Any) -> Any:
    return (y - x) ** 2 + y**4 / 4


def flat(m: Any, y: Any, x: Any) -> Any:
    return 100 + (y - x) ** 2 + 0.2 * m.cosh(y)


def of_quartic(factor: float) -> Any:
    return lambda m, x, y, g: factor * g * 2 / (2 + 3 * y * y)


def of_flat(factor: float) -> Any:
    return lambda m, x, y, g: factor * g * 2 / (2 + 0.2 * m.cosh(y))


NARROW: dict[str, Any] = {"inputs": normal((4,), dtype="float32"), "of_right": NOT_FAIL, "of_wrong": NOT_GREEN}
FACTORS = (0.5, -1)
"""Of wrong backwards."""


def over_values(golden: Sequence[int], ternary: Sequence[int], bisection: Sequence[int]) -> list[Claim]:
    """Searches in float32, each with these numbers of steps."""
    forwards = {f"golden section in {n}": (least_of(quartic, "golden", n), of_quartic) for n in golden}
    forwards |= {f"ternary search in {n}": (least_of(quartic, "ternary", n), of_quartic) for n in ternary}
    forwards |= {f"float32 bisection in {n}": (cubic_root(n), of_cubic_root) for n in bisection}
    return [claim for name, pair in forwards.items() for claim in in_numpy(name, *of_numpy(*pair, FACTORS), **NARROW)]


SEARCHES_OVER_VALUES = [
    *over_values(golden=(20,), ternary=(30,), bisection=(30,)),
    *in_numpy("golden search of a flat objective", *of_numpy(least_of(flat, "golden", 40), of_flat, FACTORS), **NARROW),
    *in_paddle("golden section of a quartic", *of_paddle(least_of(quartic, "golden", 36), of_quartic, FACTORS),
               **NARROW),
]  # fmt: skip

test_a_search_over_values_keeps_the_digits_of_its_outputs, test_a_wrong_one_is_not_green = judging(
    SEARCHES_OVER_VALUES, kept=1
)
test_with_fewer_or_more_steps_as_well, test_a_wrong_one_is_not_green_with_those_steps = judging(
    over_values(golden=(30, 50), ternary=(80,), bisection=(20, 80)),
    in_numpy("ternary one of a flat objective", *of_numpy(least_of(flat, "ternary", 40), of_flat, FACTORS), **NARROW),
    kept=0,
)  # fmt: skip


# --------------------------------------------------------------------------- steps that are meant
def levels(count: int) -> Any:
    """Quantised in as many comparisons, one after the other."""

    def forward(m: Any, x: Any) -> Any:
        y = 0 * x
        for k in range(count):
            y = m.where(x > (k + 0.5) / count, x * 0 + (k + 1) / count, y)
        return y

    return forward


def nearest(m: Any, x: Any) -> Any:
    """The nearest of few values, element by element."""
    values = [-1.0, -0.25, 0.5, 1.5]
    parts = []
    for k in range(x.shape[0]):
        best, apart = x[k] * 0 + values[0], abs(x[k] - values[0])
        for value in values[1:]:
            nearer = abs(x[k] - value) < apart
            best, apart = m.where(nearer, x[k] * 0 + value, best), m.where(nearer, abs(x[k] - value), apart)
        parts.append(best)
    return m.stack(parts)


def zero(m: Any, x: Any, y: Any, g: Any) -> Any:
    return 0 * g


def identity(m: Any, x: Any, y: Any, g: Any) -> Any:
    return g


def leaky(m: Any, x: Any) -> Any:
    """Twelve pieces that meet."""
    for k in range(12):
        x = m.where(x > 0.1 * k, x, 0.9 * x + 0.01 * k)
    return x


def of_leaky(factor: float) -> Any:
    def backward(m: Any, x: Any, y: Any, g: Any) -> Any:
        for k in range(12):
            g = m.where(x > 0.1 * k, g, 0.9 * g * factor)
            x = m.where(x > 0.1 * k, x, 0.9 * x + 0.01 * k)
        return g

    return backward


STEPS = [
    *in_both("16 levels", levels(16), zero, identity, [np.array([0.11, 0.47, 0.83])]),
    *in_both("the nearest of four", nearest, zero, identity, normal((5,))),
    *in_both("twelve pieces", leaky, of_leaky(1), of_leaky(0.5), [np.array([-0.7, 0.33, 0.58, 2.1])]),
]

test_a_step_function_of_many_comparisons_keeps_its_gradient, test_and_no_other_passes = judging(STEPS)


def test_ten_steps_of_a_bisection_are_steps() -> None:
    """Nothing tells them from a codebook of a thousand values, of which 0 is the gradient: the slope is no green."""
    (claim,) = in_numpy("a", lambda x: cubic_root(10)(np, x), lambda x, y, g: g / (3 * y * y + 1), [], normal((4,)))
    assert verdict_on(claim, claim.right[0], 0) in NOT_GREEN


# --------------------------------------------------------------------------- where jumps carry the change
def carried(function: Callable[[Any], Any], slope: Callable[[Any], Any], x: float) -> bool:
    point = np.array([x])
    line = Line(lambda moved: function(moved[0]), [point], [np.array([1.0])], function(point))
    return jumps_carry(line, lambda t, w: float((w * slope(point + t)).sum()), np.random.default_rng(0))


@pytest.mark.parametrize("width", [2.0**-k for k in (11, 13, 20, 30, 40, 52)])
def test_the_steps_of_a_fine_staircase_carry_its_change(width: float) -> None:
    assert carried(lambda x: np.floor(np.sin(x) / width) * width, lambda x: 0 * x, 0.7)


@pytest.mark.parametrize("width", [2.0**-k for k in (2, 4, 6, 8)])
def test_those_of_a_coarse_one_are_seen_as_steps(width: float) -> None:
    assert not any(carried(lambda x: np.floor(x / width) * width, lambda x: 0 * x, x) for x in (0.71, 0.37, 1.93))


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (np.exp, np.exp),
        (lambda x: x**9, lambda x: 9 * x**8),
        (lambda x: abs(x - 0.7), lambda x: np.sign(x - 0.7)),
        (lambda x: np.where(abs(x - 0.7) < 1e-6, 5e5 * (x - 0.7) ** 2, abs(x - 0.7)),
         lambda x: np.where(abs(x - 0.7) < 1e-6, 1e6 * (x - 0.7), np.sign(x - 0.7))),
        (lambda x: x + (x > 0.7 + 1e-7), lambda x: 1 + 0 * x),
        (lambda x: x + (x > 0.7 - 1e-5), lambda x: 1 + 0 * x),
        (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    ],
)  # fmt: skip
def test_pieces_and_single_jumps_carry_no_change(function: Any, slope: Any) -> None:
    assert not carried(function, slope, 0.7)


def test_where_the_tape_is_not_known_nothing_is_carried() -> None:
    assert not carried(lambda x: np.floor(x * 2**20), lambda x: x * np.nan, 0.7)
