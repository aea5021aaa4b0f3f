"""A check runs in dynamic mode, and leaves the mode as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status

X = np.random.default_rng(0).standard_normal((2, 3))


class Tanh(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensor()
        return g * (1 - y * y)


@pytest.fixture(params=[True, False], ids=["static", "dynamic"])
def static(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether static mode was on before."""
    if request.param:
        paddle.enable_static()
    yield request.param
    paddle.disable_static()


def of_arrays(slope: float, **options: Any) -> Any:
    return gradcheck.check(np.tanh, X, backward=lambda x, g: slope * g / np.cosh(x) ** 2, **options)


CHECKS: dict[str, Callable[[], Any]] = {
    "a function of arrays": lambda: of_arrays(1.0),
    "in float32, at two points": lambda: of_arrays(1.0, points=2, dtypes=["float32"]),
    "a layer": lambda: gradcheck.check(Tanh, X),
    "of second order": lambda: gradcheck.check(Tanh, X, order=2),
    "on two ranks": lambda: gradcheck.check(Tanh, X, world=2),
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_mode_before_makes_no_difference(check: Callable[[], Any], static: bool) -> None:
    assert check().verdict is Status.PASS
    assert paddle.in_dynamic_mode() is not static


def test_a_wrong_one_fails_in_either_mode(static: bool) -> None:
    assert of_arrays(2.0).verdict is Status.FAIL
    assert paddle.in_dynamic_mode() is not static


def test_an_error_leaves_the_mode_as_well(static: bool) -> None:
    def fails(x: Any) -> Any:
        raise LookupError("of the user's")

    with pytest.raises(LookupError):
        gradcheck.check(fails, X, backward=lambda x, g: g)
    assert paddle.in_dynamic_mode() is not static


def test_a_function_that_turns_static_mode_on_and_leaves_it_on(static: bool) -> None:
    def function(x: Any) -> Any:
        y = Tanh.apply(x)
        paddle.enable_static()
        return y

    assert gradcheck.check(function, X).verdict is Status.PASS
    assert of_arrays(1.0).verdict is Status.PASS
    assert paddle.in_dynamic_mode() is not static
