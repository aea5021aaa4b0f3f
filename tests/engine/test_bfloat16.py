"""Gradients of bfloat16 Tensors are bfloat16: NumPy takes a Python float beside them for float32."""

from __future__ import annotations

import numpy as np
import pytest

import pylayer.paddle as paddle

NAMES = "celu elu gelu hardsigmoid hardswish leaky_relu log_sigmoid mish relu selu sigmoid silu softplus softsign swish"


@pytest.mark.parametrize("name", [*NAMES.split(), "tanh", "tanhshrink"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_an_activation_has_a_gradient_of_its_dtype(name: str, create_graph: bool) -> None:
    function = getattr(paddle.nn.functional, name)
    values = np.array([-1.5, 0.25, 2.0], "float32")
    low = paddle.to_tensor(values, dtype="bfloat16", stop_gradient=False)
    (gradient,) = paddle.grad(function(low), low, create_graph=create_graph)
    exact = paddle.to_tensor(values, stop_gradient=False)
    (expected,) = paddle.grad(function(exact), exact)
    assert gradient.dtype is paddle.bfloat16
    np.testing.assert_allclose(gradient.astype("float32").numpy(), expected.numpy(), atol=2**-5)


def test_a_cast_to_bfloat16_gives_back_the_dtype_of_its_input() -> None:
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    (x.astype("bfloat16") * 2.0).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (paddle.float32, [2.0, 2.0])
