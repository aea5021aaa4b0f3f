"""Backwards that are declared not to be the derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status

PyLayer: Any = paddle.autograd.PyLayer
X = 3 * np.random.default_rng(0).standard_normal((3, 4))


def layer(forward: Callable[[Any], Any], backward: Callable[[Any], Any]) -> Any:
    """The PyLayer of one input whose backward sees the cotangent alone."""

    class Layer(PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return forward(x)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return backward(dy)

    return Layer


STEPS: dict[str, Callable[[Any], Any]] = {
    "round": paddle.round,
    "floor": paddle.floor,
    "sign": paddle.sign,
    "255 levels": lambda x: paddle.round(255 * x) / 255,
    "65535 levels": lambda x: paddle.round(65535 * x) / 65535,
    "levels within limits": lambda x: paddle.clip(paddle.round(8 * x), -8, 7) / 8,
    "round in NumPy": lambda x: paddle.to_tensor(np.round(x.numpy())),
    "small values cut off": lambda x: x * (x.abs() > 1).astype(x.dtype),
}
SLOPES: dict[str, Callable[[Any], Any]] = {
    "tanh": paddle.tanh,
    "twice": lambda x: 2 * x,
    "square": lambda x: x * x,
    "mean taken off": lambda x: x - x.mean(),
}


def said(summary: gradcheck.CheckResult) -> str:
    """Why a check failed."""
    assert summary.verdict is Status.FAIL
    assert not summary.marks
    return summary.summary()


# --------------------------------------------------------------------------- straight-through
@pytest.mark.parametrize("function", STEPS)
def test_a_function_in_steps_whose_cotangent_passes_unchanged(function: str) -> None:
    summary = gradcheck.check(layer(STEPS[function], lambda dy: dy * 1), X, expect="straight-through")
    assert summary.verdict is Status.PASS
    assert summary.marks == ("expected to be straight-through",)


def test_the_idiom_of_a_detached_difference() -> None:
    summary = gradcheck.check(lambda x: x + (paddle.round(x) - x).detach(), X, expect="straight-through")
    assert summary.verdict is Status.PASS


@pytest.mark.parametrize("x", [[0.5, 1.5], [0.0, 2.0]])
def test_at_a_jump_itself(x: list[float]) -> None:
    for function in (paddle.round, paddle.floor):
        summary = gradcheck.check(layer(function, lambda dy: dy * 1), np.array(x), expect="straight-through")
        assert summary.verdict is Status.PASS


CHANGED: dict[str, Callable[[Any], Any]] = {
    "half": lambda dy: dy * 0.5,
    "negative": lambda dy: -dy,
    "zero": lambda dy: dy * 0,
    "clipped": lambda dy: paddle.clip(dy, -1, 1),
    "clipped far out": lambda dy: paddle.clip(dy, -10, 10),
    "flipped": lambda dy: paddle.flip(dy, [0]),
    "one element missing": lambda dy: dy * paddle.to_tensor(np.arange(12).reshape(3, 4) != 7).astype(dy.dtype),
}


@pytest.mark.parametrize("backward", CHANGED)
def test_a_cotangent_that_is_changed(backward: str) -> None:
    text = said(gradcheck.check(layer(paddle.round, CHANGED[backward]), X, expect="straight-through"))
    assert "pass the cotangent on unchanged" in text
    assert "the gradient of x[" in text


@pytest.mark.parametrize("function", SLOPES)
def test_a_function_with_a_slope_is_not_straight_through(function: str) -> None:
    text = said(gradcheck.check(layer(SLOPES[function], lambda dy: dy * 1), X, expect="straight-through"))
    assert "expected a step function" in text


def test_an_identity_needs_no_such_word() -> None:
    text = said(gradcheck.check(layer(lambda x: x * 1, lambda dy: dy * 1), X, expect="straight-through"))
    assert "expected a backward that is not the derivative" in text


def test_shapes_that_differ() -> None:
    summed = layer(lambda x: paddle.round(x).sum(), lambda dy: dy * paddle.ones([3, 4], dtype="float64"))
    assert "x gets one of shape [3, 4]" in said(gradcheck.check(summed, X, expect="straight-through"))
    two = gradcheck.check(lambda x: (paddle.round(x), paddle.floor(x)), X, expect="straight-through")
    assert "2 outputs that claim a gradient" in said(two)


def test_zeros_are_moved_too() -> None:
    zeros = np.zeros((2, 2))
    passed = gradcheck.check(layer(paddle.round, lambda dy: dy * 1), zeros, expect="straight-through")
    assert passed.verdict is Status.PASS
    curved = gradcheck.check(layer(lambda x: 2 * paddle.sin(x), lambda dy: dy * 1), zeros, expect="straight-through")
    assert "slope" in said(curved)


# --------------------------------------------------------------------------- zero
def test_a_gradient_of_zeros() -> None:
    for forward in (paddle.round, paddle.tanh):
        summary = gradcheck.check(layer(forward, lambda dy: dy * 0), X, expect="zero")
        assert (summary.verdict, summary.marks) == (Status.PASS, ("expected to be zero",))
    assert "the gradient of x[0,0] is" in said(gradcheck.check(paddle.tanh, X, expect="zero"))


# --------------------------------------------------------------------------- differs
def test_a_backward_that_differs() -> None:
    summary = gradcheck.check(layer(paddle.tanh, lambda dy: dy * 1), X, expect="differs")
    assert (summary.verdict, summary.marks) == (Status.PASS, ("expected to differ",))
    assert len(summary.wrong) == 12
    reversal = layer(lambda x: x * 1, lambda dy: -dy)
    assert gradcheck.check(reversal, X, expect="differs").verdict is Status.PASS


def test_a_backward_that_is_the_derivative_after_all() -> None:
    text = said(gradcheck.check(paddle.tanh, X, expect="differs"))
    assert text == "expected a backward that is not the derivative, but here it is (expect='differs')"


def test_one_point_at_which_it_differs_is_enough() -> None:
    beyond = layer(lambda x: paddle.where(x > 1, x * x, x), lambda dy: dy * 1)
    x = np.array([0.9, 0.8, 0.95])
    assert gradcheck.check(beyond, x, expect="differs").verdict is Status.FAIL
    assert gradcheck.check(beyond, x, points=5, expect="differs").verdict is Status.PASS


# --------------------------------------------------------------------------- what no expectation excuses
@pytest.mark.parametrize("expect", ["differs", "straight-through", "zero"])
def test_broken_contracts_stay_broken(expect: Any) -> None:
    writes = gradcheck.check(layer(paddle.round, lambda dy: dy.scale_(2.0)), X, expect=expect)
    assert (writes.verdict, writes.diagnosis[0].code) == (Status.FAIL, "GC134")
    shape = gradcheck.check(layer(paddle.round, lambda dy: dy.sum()), X, expect=expect)
    assert (shape.verdict, shape.diagnosis[0].code) == (Status.FAIL, "GC137")


@pytest.mark.parametrize("expect", ["differs", "straight-through", "zero"])
def test_nothing_checked_is_not_green_whatever_was_expected(expect: Any) -> None:
    assert gradcheck.check(lambda x: x[:0], X, expect=expect).verdict is Status.INCONCLUSIVE
