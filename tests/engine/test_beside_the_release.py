"""Values and dtypes that drawn calls beside Paddle 3.3.1 found to be wrong: the release's, or those of mathematics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle

F = paddle.nn.functional
NAN, INF = math.nan, math.inf


def tensor(values: Any, dtype: str = "float64") -> Any:
    made = paddle.to_tensor(np.asarray(values)).astype(dtype)
    made.stop_gradient = dtype.startswith("int")
    return made


def gradient(function: Callable[[Any], Any], values: Any) -> Any:
    x = tensor(values)
    function(x).sum().backward()
    return x.grad


def complex_gradient(function: Callable[[Any], Any]) -> Any:
    x = tensor(1 + 1j, "complex128")
    paddle.real(function(x)).backward()
    return x.grad


VALUES: dict[str, tuple[Callable[[], Any], Any]] = {
    "logit's derivative at its poles": (lambda: gradient(paddle.logit, [0.0, 0.5, 1.0]), [INF, 4, INF]),
    "a number to a complex power": (lambda: complex_gradient(lambda x: 2.0**x), np.conj(2.0 ** (1 + 1j) * math.log(2))),
    "the first power of an infinity": (
        lambda: paddle.linalg.matrix_power(tensor([[INF, 0.0], [0.0, 1.0]]), 1),
        [[INF, 0], [0, 1]],
    ),
    "special.softmax of three axes is along the first": (
        lambda: paddle.special.softmax(tensor(np.zeros((2, 1, 1)))),
        np.full((2, 1, 1), 0.5),
    ),
    "the power 0 of NaN": (lambda: paddle.linalg.matrix_power(tensor([[NAN, 1.0], [1.0, 1.0]]), 0), np.eye(2)),
    "triplet_margin_loss of NaN": (
        lambda: F.triplet_margin_loss(tensor([[NAN, 1.0]]), tensor([[0.0, 1.0]]), tensor([[2.0, 1.0]])),
        NAN,
    ),
    "cosine_embedding_loss of NaN": (
        lambda: F.cosine_embedding_loss(tensor([[NAN, 1.0]]), tensor([[0.0, 1.0]]), tensor([-1], "int64")),
        NAN,
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_its_value(name: str) -> None:
    make, expected = VALUES[name]
    np.testing.assert_allclose(make().numpy(), expected, rtol=1e-15)


def gradient_of(function: Callable[[Any], Any]) -> Any:
    x = tensor([-1.0, 2.0], "bfloat16")
    x.stop_gradient = False
    return paddle.grad(function(x).sum(), x)[0]


DTYPES: dict[str, tuple[Callable[[], Any], str]] = {
    "copysign of integers": (lambda: paddle.copysign(tensor([1, -2], "int64"), tensor([-1, 1], "int64")), "int64"),
    "heaviside of integers": (lambda: paddle.heaviside(tensor([0, 1], "int32"), tensor([3, 1], "int32")), "int32"),
    "hypot of integers": (lambda: paddle.hypot(tensor([3], "int64"), tensor([4], "int64")), "float32"),
    "how many complex numbers are not 0": (lambda: paddle.linalg.norm(tensor([1 + 1j, 0], "complex128"), 0), "float64"),
    "padded rows of bfloat16": (
        lambda: F.embedding(tensor([0, 1], "int64"), tensor(np.ones((2, 2)), "bfloat16"), 0),
        "bfloat16",
    ),
    "elu of bfloat16": (lambda: F.elu(tensor([-1.0, 2.0], "bfloat16"), 0.5), "bfloat16"),
    "leaky_relu of bfloat16": (lambda: F.leaky_relu(tensor([-1.0, 2.0], "bfloat16")), "bfloat16"),
    "relu6 of bfloat16": (lambda: F.relu6(tensor([-1.0, 2.0], "bfloat16")), "bfloat16"),
    "softplus of bfloat16": (lambda: F.softplus(tensor([-1.0, 2.0], "bfloat16")), "bfloat16"),
    "the gradient of elu of bfloat16": (lambda: gradient_of(F.elu), "bfloat16"),
    "the gradient of leaky_relu of bfloat16": (lambda: gradient_of(F.leaky_relu), "bfloat16"),
}


@pytest.mark.parametrize("name", DTYPES)
def test_its_dtype(name: str) -> None:
    make, expected = DTYPES[name]
    assert make().dtype.name == expected


def test_reduce_as_gives_a_tensor_of_its_own() -> None:
    x = tensor([1.0, 2.0]).detach()
    paddle.reduce_as(x, x).add_(paddle.ones([2], "float64"))
    np.testing.assert_array_equal(x.numpy(), [1.0, 2.0])


@pytest.mark.parametrize("name", ["irfft", "hfft"])
def test_a_transform_to_no_numbers_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="n\\(0\\)"):
        getattr(paddle.fft, name)(tensor([1 + 1j], "complex128"))
