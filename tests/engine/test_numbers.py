"""A number next to a Tensor does not decide the dtype, whatever its class; as runs of Paddle 3.3.1 give it."""

from __future__ import annotations

import enum
import operator
from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle
from pylayer.paddle.nn import functional


class Derived(int):
    pass


class DerivedFloat(float):
    pass


class Member(enum.IntEnum):
    A = 2


NUMBERS = [Derived(2), DerivedFloat(2.0), Member.A, paddle.ones([2]).size, np.float64(2), np.float32(2), np.int64(2)]
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod, operator.floordiv]
FUNCTIONS: list[Any] = [
    lambda x, n: paddle.scale(x, n),
    lambda x, n: paddle.pow(x, n) if not isinstance(n, np.generic) else x,
    lambda x, n: paddle.lerp(x, x, n) if isinstance(n, float) else x,
    lambda x, n: paddle.clip(x, n),
    lambda x, n: paddle.full_like(x, n),
    lambda x, n: functional.leaky_relu(x, n),
    lambda x, n: functional.elu(x, n),
    lambda x, n: functional.hardtanh(x, -1.0, n),
    lambda x, n: functional.celu(x, n),
    lambda x, n: paddle.stanh(x, n),
    lambda x, n: x.clone().scale_(n),
    lambda x, n: x.sum() * n,
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_dtype_is_that_of_the_tensor(number: Any, dtype: str) -> None:
    x = paddle.to_tensor([1.0, 3.0], dtype)
    x.stop_gradient = False
    for function in OPERATORS:
        for y in (function(x, number), function(number, x)):
            assert y.dtype.name == dtype
        (gradient,) = paddle.grad(function(x, number).sum(), [x], allow_unused=True)
        assert gradient is None or gradient.dtype.name == dtype
    with paddle.no_grad():
        for function in FUNCTIONS:
            assert function(x, number).dtype.name == dtype


def test_complex_numbers_next_to_integers_are_of_the_default_precision() -> None:
    assert (paddle.to_tensor([1, 2]) + 2j).dtype.name == "complex64"


def test_a_0d_array_is_a_tensor() -> None:
    assert (paddle.to_tensor([1, 2]) + np.array(2.0)).dtype.name == "float64"
    assert (paddle.ones([2]) + np.array(2.0)).dtype.name == "float32"


@pytest.mark.parametrize("scalar", [np.bool_(True), np.int8(2), np.uint8(2), np.uint64(2)])
def test_other_scalars_of_numpy_are_refused(scalar: Any) -> None:
    x = paddle.ones([2])
    with pytest.raises(TypeError, match="must be int, float, bool or Tensor"):
        x * scalar
    assert (x == scalar) is False
    assert (x != scalar) is True


def test_a_0d_tensor_counts_in_extrema() -> None:
    x, wide = paddle.ones([2]), paddle.to_tensor(2.0, "float64")
    for function in (paddle.maximum, paddle.minimum, paddle.fmax, paddle.fmin, paddle.atan2, paddle.floor_divide):
        assert function(x, wide).dtype.name == "float64"


def test_integers_stay_integers() -> None:
    x = paddle.to_tensor([7, 8])
    assert paddle.remainder(x, 2.5).tolist() == [1, 0]
    assert paddle.copysign(x, -2.5).tolist() == [-7, -8]
    assert paddle.to_tensor([np.int32(2)]).dtype.name == "int64"


def test_normal_fills_both_parts_of_complex_tensors() -> None:
    paddle.seed(0)
    z = paddle.zeros([4000], "complex64")
    z.normal_(1.0 + 1.0j, 2.0)
    for part in (z.numpy().real, z.numpy().imag):
        assert part.mean() == pytest.approx(1, abs=0.1)
        assert part.std() == pytest.approx(2**0.5, abs=0.1)
    with pytest.raises(ValueError, match="real part equal imaginary part"):
        z.normal_(1.0 + 2.0j)


def test_the_0_norm_has_a_gradient_of_zeros() -> None:
    x, y = (paddle.to_tensor(v, stop_gradient=False) for v in ([1.0, 2.0], [1.0, 3.0]))
    paddle.dist(x, y, 0).backward()
    assert x.grad.tolist() == y.grad.tolist() == [0.0, 0.0]
