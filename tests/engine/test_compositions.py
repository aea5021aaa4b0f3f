"""Functions made of several operations, checked like those: first and second order, by the project's checker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from test_ops import first_order, second_order

import pylayer.paddle as paddle
from gradcheck.causes.summary import check_gradient
from gradcheck.result import Status
from pylayer.tensor import Tensor

F = paddle.nn.functional


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).standard_normal(shape)


def ints(values: Any) -> Tensor:
    return paddle.to_tensor(np.array(values), "int32")


def rnnt(scores: Tensor) -> Tensor:
    # without FastEmit, which changes the gradient but not the loss
    lengths = ints([[1, 2], [3, 0]]), ints([4, 3]), ints([2, 1])
    return F.rnnt_loss(scores, *lengths, fastemit_lambda=0.0, reduction="none")


def weight_norm(weight: Tensor, x: Tensor) -> Tensor:
    layer = paddle.nn.utils.weight_norm(paddle.nn.Linear(3, 2).to(dtype="float64"), dim=1)
    layer.weight_v.stop_gradient = layer.weight_g.stop_gradient = True
    v, g = paddle.assign(weight), paddle.exp(weight[0])
    del layer.weight_v, layer.weight_g
    layer.weight_v, layer.weight_g = v, g
    return layer(x)


def tree(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    path = [paddle.to_tensor(np.array(p)) for p in ([[0, 2, -1], [0, 1, 3]], [[0, 1, -1], [1, 0, 1]])]
    return F.hsigmoid_loss(x, paddle.to_tensor([0, 1]), 4, weight, bias, *path)


FUNCTIONS: dict[str, tuple[Callable[..., Tensor], list[np.ndarray[Any, Any]]]] = {
    "rnnt_loss": (rnnt, [numbers(2, 4, 3, 5)]),
    "hsigmoid_loss": (
        lambda x, w, b: F.hsigmoid_loss(x, paddle.to_tensor([0, 4, 2]), 5, w, b),
        [numbers(3, 2), numbers(4, 2), numbers(4, 1)],
    ),
    "hsigmoid_loss of a tree": (tree, [numbers(2, 3), numbers(4, 3), numbers(4, 1)]),
    "fractional_max_pool2d": (lambda x: F.fractional_max_pool2d(x, [3, 2], random_u=0.4), [numbers(1, 2, 5, 4)]),
    "fractional_max_pool3d": (lambda x: F.fractional_max_pool3d(x, 2, 2, 0.7), [numbers(1, 1, 4, 3, 4)]),
    "householder_product": (paddle.linalg.householder_product, [numbers(2, 4, 3), numbers(2, 3)]),
    "weight_norm": (weight_norm, [numbers(3, 2), numbers(2, 3)]),
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


def test_fastemit_makes_the_gradient_of_emitting_larger_and_leaves_the_loss() -> None:
    found = []
    for weight in (0.0, 0.5):
        scores = paddle.to_tensor(numbers(1, 2, 2, 3), stop_gradient=False)
        loss = F.rnnt_loss(scores, ints([[1]]), ints([2]), ints([1]), fastemit_lambda=weight)
        loss.backward()
        found.append((loss.item(), scores.grad.numpy()))
    (plain, before), (weighted, after) = found
    assert plain == weighted
    np.testing.assert_allclose(after[..., 1], 1.5 * before[..., 1])
    np.testing.assert_allclose(after[..., 0], before[..., 0])
