"""Points next to a kink or a jump: the derivative there is that of one side, however near the other is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from claims import numpy_layer, verdict_of
from few import few, seeds

import gradcheck
from gradcheck.result import Status

Function = Callable[[Any], Any]

GREEN = {Status.PASS, Status.KINK}

ONE_KINK: dict[str, tuple[Function, Function, float]] = {
    "relu": (lambda x: np.maximum(x - 2.5, 0), lambda x: (x > 2.5) * 1.0, 2.5),
    "abs": (lambda x: np.abs(x - 2.5), lambda x: np.sign(x - 2.5), 2.5),
    "clip from above": (lambda x: np.clip(x, 0.5, 2.5), lambda x: (x < 2.5) * 1.0, 2.5),
    "clip from below": (lambda x: np.clip(x, 0.5, 2.5), lambda x: (x > 0.5) * 1.0, 0.5),
    "floor": (np.floor, lambda x: x * 0, 2.0),
    "leaky": (lambda x: np.where(x > 2.5, 1, 0.01) * (x - 2.5), lambda x: np.where(x > 2.5, 1, 0.01), 2.5),
    "a curve and relu": (lambda x: x * x + np.maximum(x - 2.5, 0), lambda x: 2 * x + (x > 2.5), 2.5),
    "a jump of a curve": (lambda x: np.where(x > 2.5, x * x, x), lambda x: np.where(x > 2.5, 2 * x, 1), 2.5),
}  # fmt: skip
"""By name: the function, its derivative, and where it has none."""


def checked(f: Function, b: Callable[[Any, Any], Any], x: Any, seed: int = 0) -> gradcheck.CheckResult:
    return gradcheck.check(numpy_layer(f, lambda x, y, g: b(x, g)), x, seed=seed)


def verdict(f: Function, b: Callable[[Any, Any], Any], x: Any, seed: int = 0) -> Status:
    return verdict_of(numpy_layer(f, lambda x, y, g: b(x, g)), x, seed=seed)


@pytest.mark.parametrize("seed", few(range(3), 1))
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("distance", few([0.3, 1e-4, 1e-7, 1e-1, 1e-2, 1e-3, 1e-5, 1e-6], 3))
@pytest.mark.parametrize("name", ONE_KINK)
def test_a_kink_beside_the_point_does_no_harm(name: str, distance: float, side: int, seed: int) -> None:
    f, df, kink = ONE_KINK[name]
    x = np.array([kink * (1 + side * distance), kink * 0.68 + 1.83])
    assert verdict(f, lambda x, g: g * df(x), x, seed) is Status.PASS
    assert verdict(f, lambda x, g: g * (df(x) + np.array([0.5, 0])), x, seed) is Status.FAIL


@pytest.mark.parametrize("seed", few(range(3), 1))
@pytest.mark.parametrize("distance", few([0.0, 1e-8, 1e-12, 1e-9, 1e-10, 1e-14], 3))
@pytest.mark.parametrize("name", ONE_KINK)
def test_a_kink_as_good_as_at_the_point_is_marked(name: str, distance: float, seed: int) -> None:
    f, df, kink = ONE_KINK[name]
    x = np.array([kink * (1 + distance), kink * 0.68 + 1.83])
    of_right = verdict(f, lambda x, g: g * df(x), x, seed)
    assert of_right is Status.KINK or (distance > 0 and of_right is Status.PASS)
    assert verdict(f, lambda x, g: g * (df(x) + np.array([7.5, 0])), x, seed) is Status.FAIL


def test_a_gradient_that_is_the_mean_of_both_sides_is_marked_too() -> None:
    found = checked(lambda x: np.maximum(x, 0), lambda x, g: g * np.heaviside(x, 0.5), np.array([0.0, 1.0, -1.0]))
    assert found.verdict is Status.KINK
    assert "x0[0] (left 0, right 1)" in found.why


@pytest.mark.parametrize("seed", few(range(3), 1))
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("distance", few([0.0, 1e-7, 1e-10, 1e-6, 1e-8, 1e-9, 1e-12], 3))
@pytest.mark.parametrize("name", ["relu", "clip from above", "clip from below"])
def test_the_mean_of_both_sides_is_never_simply_right(name: str, distance: float, side: int, seed: int) -> None:
    f, df, kink = ONE_KINK[name]
    x = np.array([kink * (1 + side * distance), kink * 0.68 + 1.83])
    mean = np.array([0.5, df(x)[1]])
    assert verdict(f, lambda x, g: g * mean, x, seed) in (Status.KINK, Status.FAIL)


W = np.random.default_rng(1).standard_normal((30, 20))
MANY_KINKS: dict[str, tuple[Function, Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "hardtanh": (lambda x: np.clip(x, -1, 1), lambda x, g: g * (np.abs(x) < 1), (2000,)),
    "softshrink": (
        lambda x: np.where(x > 0.5, x - 0.5, np.where(x < -0.5, x + 0.5, 0)),
        lambda x, g: g * (np.abs(x) > 0.5), (30, 100),
    ),
    "a sum of relus": (lambda x: np.maximum(x - 0.3, 0).sum(), lambda x, g: g * (x > 0.3), (200,)),
    "a mean of clips": (
        lambda x: (np.clip(x, -1, 1) ** 2).mean(),
        lambda x, g: g * 2 * np.clip(x, -1, 1) * (np.abs(x) < 1) / x.size, (1000,),
    ),
    "a layer with relu": (
        lambda x: np.maximum(x @ W + 0.1, 0), lambda x, g: (g * (x @ W + 0.1 > 0)) @ W.T, (8, 30),
    ),
    "a maximum": (lambda x: x.max(-1), lambda x, g: g[:, None] * (x == x.max(-1, keepdims=True)), (50, 20)),
    "a median": (np.median, lambda x, g: g * (x == np.median(x)), (51,)),
    "huber": (
        lambda x: np.where(np.abs(x) < 1, x * x / 2, np.abs(x) - 0.5), lambda x, g: g * np.clip(x, -1, 1), (1000,),
    ),
    "steps": (lambda x: np.round(x * 16) / 16, lambda x, g: g * 0, (300,)),
}  # fmt: skip
"""By name: the function, its vjp, and the shape of its input, the elements of which are at all distances from kinks."""


@seeds(5)
@pytest.mark.parametrize("name", MANY_KINKS)
def test_many_elements_are_beside_some_kink(name: str, seed: int) -> None:
    f, b, shape = MANY_KINKS[name]
    random = np.random.default_rng(seed)
    x, wrong = random.standard_normal(shape), random.integers(np.prod(shape))

    def one_wrong(x: Any, g: Any) -> Any:
        out = np.array(b(x, g), dtype=float)
        out.reshape(-1)[wrong] += 0.3 * np.sum(g)
        return out

    assert verdict(f, b, x, seed) in GREEN
    assert verdict(f, one_wrong, x, seed) is Status.FAIL


@seeds(4)
def test_a_forward_that_rounds_is_not_taken_for_one_with_kinks(seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal(40)
    for f, slope in (
        (lambda x: (x + 1e8) - 1e8, 1.0),
        (lambda x: x + ((x + 1e8) - 1e8), 2.0),
        (lambda x: x.astype("float32").astype("float64") * 3, 3.0),
    ):
        assert verdict(f, lambda x, g, s=slope: g * s, x, seed) is Status.PASS
        assert verdict(f, lambda x, g, s=slope: g * (s + 0.5), x, seed) is Status.FAIL


def test_points_at_which_the_layer_raises_are_outside_of_its_domain() -> None:
    def root(x: Any) -> Any:
        if (x < 0).any():
            raise ValueError("negative")
        return np.sqrt(x)

    x = np.array([1e-3, 2.0])
    assert verdict(root, lambda x, g: g * 0.5 / np.sqrt(x), x) is Status.PASS
    assert verdict(root, lambda x, g: g / np.sqrt(x), x) is Status.FAIL


def test_a_layer_that_raises_everywhere_else_is_inconclusive_and_says_so() -> None:
    x = np.array([1.0, 2.0])

    def picky(v: Any) -> Any:
        if not (v == x).all():
            raise ValueError("only there")
        return v * 2

    found = checked(picky, lambda x, g: g * 2, x)
    assert found.verdict is Status.INCONCLUSIVE
    assert "the forward raises ValueError at nearby points: only there" in found.why


# --------------------------------------------------------------------------- what is tied but for its last digits
def shared(x: Any, extreme: Any) -> Any:
    """Shares of what is nearly the extreme, as a backward with a tolerance of its own has them."""
    near = (abs(x - extreme) <= 1e-3) * 1.0
    return near / near.sum()


NEARLY_TIED: dict[str, tuple[Function, Function, Function]] = {
    "max": (np.max, lambda x: x == x.max(), lambda x: shared(x, x.max())),
    "maximum": (lambda x: np.maximum(x[0], x[1]), lambda x: x == x.max(), lambda x: shared(x, x.max())),
    "minimum": (lambda x: np.minimum(x[0], x[1]), lambda x: x == x.min(), lambda x: shared(x, x.min())),
    "relu of a difference": (
        lambda x: np.maximum(x[1] - x[0], 0), lambda x: (x[1] > x[0]) * np.array([-1, 1]),
        lambda x: np.array([-0.5, 0.5]) if abs(x[1] - x[0]) < 1e-3 else (x[1] > x[0]) * np.array([-1, 1]),
    ),
    "sort": (
        lambda x: np.sort(x) @ np.array([1, 3], x.dtype), lambda x: np.where(x == x.max(), 3, 1),
        lambda x: np.array([2, 2]) if np.ptp(x) < 1e-3 else np.where(x == x.max(), 3, 1),
    ),
    "median": (
        lambda x: np.median(np.concatenate([x, np.array([9], x.dtype)])), lambda x: x == x.max(),
        lambda x: shared(x, x.max()),
    ),
}  # fmt: skip
"""By name: a function of two numbers, its gradient, and one that takes near numbers for equal ones."""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("spacings", [1, 9, 18])
@pytest.mark.parametrize("name", NEARLY_TIED)
def test_near_numbers_are_tied_within_their_rounding_alone(name: str, spacings: int, dtype: str) -> None:
    """Nine spacings of float64 are 2e-15. Those of float32 are none of the float64 that it is looked at in."""
    f, right, tolerant = NEARLY_TIED[name]
    x = np.array([3.0, 3.0 * (1 + spacings * float(np.finfo(dtype).eps))], dtype)
    of_right, of_tolerant = (
        verdict_of(f, x.copy(), backward=lambda x, g, b=b: (g * b(x)).astype(x.dtype)) for b in (right, tolerant)
    )
    assert of_right in GREEN
    if spacings == 1 and dtype == "float64":
        assert of_tolerant is Status.KINK
    elif name != "median" or dtype == "float32":  # which rounds the mean of both to the same number
        assert of_tolerant is Status.FAIL


@pytest.mark.clause(id="V12")
@pytest.mark.parametrize(
    ("rows", "weighted", "apart", "seed"),
    [(2, True, 2e-15, 4), (2, True, 2e-15, 8), (2, True, 2e-15, 35), (4, True, 4e-15, 12), (20, False, 2e-15, 18),
     (20, False, 2e-15, 36), (20, False, 1e-13, 20)],
)  # fmt: skip
def test_kinks_that_cancel_in_a_sum_do_not_outvote_the_tape(rows: int, weighted: bool, apart: float, seed: int) -> None:
    """In a weighted sum the sides' distances cancel, and what is left does not show how far the mean of both is off."""
    x = np.random.default_rng(3).uniform(1, 4, (rows, 1))
    x = np.concatenate([x, x * (1 + apart)], 1)
    weights = np.random.default_rng(4).normal(size=rows) + 0.3

    def forward(x: Any) -> Any:
        return x.max(1) @ weights if weighted else 1.7 * x.max(1)

    def backward(x: Any, g: Any, tolerance: float) -> Any:
        near = abs(x - x.max(1, keepdims=True)) <= tolerance
        return (g * weights if weighted else 1.7 * g)[:, None] * near / near.sum(1, keepdims=True)

    for tolerance, wanted in ((1e-4, Status.FAIL), (0.0, Status.PASS)):
        found = verdict_of(forward, x, backward=lambda x, g, t=tolerance: backward(x, g, t), seed=seed)
        assert found is wanted
