"""The definition of a function whose arguments do not fit, next to Python's message."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle
from gradcheck.support.foreign import describe_error

PyLayer: Any = paddle.autograd.PyLayer
numpy: Any = np


class Scale(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: float = 2.0) -> Any:
        return x * factor

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy


class Gate:
    def __init__(self, weight: Any) -> None:
        self.weight = weight

    def close(self, slope: float) -> None: ...


any_gate: Any = Gate


def takes_one(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(x: Any) -> Any:
        return function(x)

    return wrapper


@takes_one
def softplus(x: Any, beta: float = 1.0) -> Any:
    return x * beta


def described(call: Callable[[], Any]) -> str:
    with pytest.raises(TypeError) as raised:
        call()
    return describe_error(raised.value)


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: Scale.apply(np.ones(2), scale=2.5), "'scale'; it is defined as forward(ctx, x, factor=2.0)"),
        (lambda: Scale.apply(np.ones(2), factors=2.5), "forward(ctx, x, factor=2.0); did you mean factor?"),
        (lambda: Scale.apply(), "'x'; it is defined as forward(ctx, x, factor=2.0)"),
        (lambda: any_gate(weights=1), "it is defined as __init__(self, weight); did you mean weight?"),
        (lambda: any_gate(1).close(1, 2), "3 were given; it is defined as close(self, slope)"),
        (lambda: functools.partial(any_gate(1).close, slop=1)(), "close(self, slope); did you mean slope?"),
        (lambda: paddle.sum(paddle.ones([2]), axes=0), "sum(x, axis=None, dtype=None, keepdim=False); did you"),
        (lambda: numpy.sum(numpy.ones(2), axes=0), "it is defined as sum(a, axis=None, dtype=None, out=None"),
        (lambda: softplus(np.ones(2), beta=1.0), "'beta'; it is defined as softplus(x)"),
    ],
)  # fmt: skip
def test_the_definition_of_the_called_function_is_reported(call: Callable[[], Any], advice: str) -> None:
    assert advice in described(call)


def test_a_function_that_the_calling_code_does_not_name_is_not_guessed() -> None:
    table: list[Callable[..., Any]] = [lambda x: x]
    assert described(lambda: table[0](y=1)).endswith("argument 'y'")


def test_two_functions_of_one_name_are_not_guessed() -> None:
    calls = [numpy.sum]
    assert described(lambda: [calls[0](paddle.ones([2]), axes=0), paddle.sum, numpy.sum]).endswith("'axes'")
