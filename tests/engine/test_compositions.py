"""Functions made of several operations, checked like those: first and second order, by the project's checker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from test_ops import first_order, second_order

import pylayer.paddle as paddle
from gradcheck.case.gradient_check import check_gradient
from gradcheck.result import Status
from pylayer.ops.indexing import add_at
from pylayer.tensor.tensor import Tensor

F = paddle.nn.functional


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).standard_normal(shape)


FUNCTIONS: dict[str, tuple[Callable[..., Tensor], list[np.ndarray[Any, Any]]]] = {
    "logcumsumexp": (lambda x: paddle.logcumsumexp(x, 1) + paddle.logcumsumexp(x, 0), [numbers(2, 3)]),
    "adding at one place twice": (lambda x, y: add_at(x, ([0, 1, 1], [2, 0, 0]), y), [numbers(2, 3), numbers(3)]),
    "adding at a row": (lambda x, y: add_at(x, 0, y), [numbers(2, 3), numbers(3)]),
    "adding what is broadcast": (lambda x, y: add_at(x, [0, 0], y), [numbers(2, 3), numbers(2, 1)]),
}


class Composed:
    """A function as `test_ops.Call` has an operation: of the Tensors that it is differentiated in."""

    def __init__(self, function: Callable[..., Tensor], inputs: list[np.ndarray[Any, Any]]) -> None:
        self.function, self.inputs = function, inputs

    def __call__(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        return [self.function(*inputs)]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("order", [first_order, second_order])
def test_the_gradient_is_the_derivative(name: str, order: Callable[[Any], Any]) -> None:
    found = check_gradient(order(Composed(*FUNCTIONS[name])))
    assert found.verdict is Status.PASS, (found.why, found.wrong[:3])
