"""A layer in NumPy that rounds to few digits on the way is checked as if it kept them, where casts can be left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from claims import numpy_layer

import gradcheck
from gradcheck.result import Status

LOW = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def rms_norm(low: Any) -> Callable[[Any], Any]:
    return lambda x: (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)).astype(low)


def rms_norm_vjp(x: Any, y: Any, g: Any) -> Any:
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    return r * (g - x * r * r * (g * x).mean(-1, keepdims=True))


def one_entry(x: Any, y: Any, g: Any) -> Any:
    gradient = rms_norm_vjp(x, y, g)
    gradient[0, 0] *= 1.5
    return gradient


def checked(low: str, backward: Callable[..., Any], seed: int, dtype: str = "float64") -> Any:
    x = np.random.default_rng(seed).standard_normal((8, 16)).astype(dtype)
    return gradcheck.check(numpy_layer(rms_norm(LOW[low]), backward), x, seed=seed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("low", LOW)
def test_a_right_norm_that_rounds_its_outputs_passes(low: str, dtype: str, seed: int) -> None:
    assert checked(low, rms_norm_vjp, seed, dtype).verdict is Status.PASS


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("backward", [lambda x, y, g: 1.5 * rms_norm_vjp(x, y, g), one_entry])
def test_a_wrong_one_fails(backward: Callable[..., Any], low: str, seed: int) -> None:
    assert checked(low, backward, seed).verdict is Status.FAIL


@pytest.mark.parametrize("seed", range(3))
def test_one_that_is_wrong_by_less_than_the_dtype_rounds_is_not_green(seed: int) -> None:
    found = checked("bfloat16", lambda x, y, g: 1.05 * rms_norm_vjp(x, y, g), seed)
    assert found.verdict in (Status.FAIL, Status.INCONCLUSIVE)


@pytest.mark.parametrize("seed", range(3))
def test_a_layer_of_which_a_part_is_in_float16_is_checked_as_a_formula(seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal(12)

    def result(factor: float) -> Any:
        backward = lambda x, y, g: factor * g * (2 - np.tanh(x) ** 2)  # noqa: E731
        return gradcheck.check(numpy_layer(lambda x: x + np.tanh(x.astype("float16")), backward), x, seed=seed)

    assert result(1).verdict is Status.PASS
    assert result(1.05).verdict is Status.FAIL


@pytest.mark.parametrize("seed", range(3))
def test_a_backward_that_cancels_in_float32_is_right_and_loses_digits(seed: int) -> None:
    x = np.random.default_rng(seed).uniform(-12, -3, 12)

    def codes(factor: float) -> list[str]:
        backward = lambda x, y, g: factor * g * (1 + np.tanh(x.astype("float32")))  # noqa: E731
        layer = numpy_layer(lambda x: x + np.log(np.cosh(x)), backward)
        return [d.code for d in gradcheck.check(layer, x, seed=seed).diagnosis]

    assert codes(1) == ["GC113"]
    assert codes(1.05) != ["GC113"]


@pytest.mark.parametrize("scale", [1e6, 1e-9])
def test_a_backward_that_overflows_or_underflows_in_its_dtype_is_not_put_right(scale: float) -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        return ((g * scale).astype("float16") / scale) * (1 - np.tanh(x) ** 2)

    found = gradcheck.check(numpy_layer(lambda x: np.tanh(x), backward), np.linspace(-1, 1, 12))
    assert found.verdict is Status.FAIL


def test_a_broken_contract_is_not_put_right() -> None:
    def not_linear(x: Any, y: Any, g: Any) -> Any:
        g = g.astype("float32").astype(x.dtype)
        return g * np.sign(g) * (1 - np.tanh(x) ** 2)  # not linear in g

    found = gradcheck.check(numpy_layer(lambda x: np.tanh(x.astype("float16")), not_linear), np.linspace(-1, 1, 12))
    assert found.verdict is Status.FAIL


def test_a_cast_to_a_dtype_by_its_name_is_left_out_though_the_values_were_taken_out() -> None:
    def result(factor: float) -> Any:
        forward = lambda x: np.array(np.tanh(np.array(x.tolist())), dtype="float16")  # noqa: E731
        backward = lambda x, y, g: factor * g * (1 - np.tanh(x) ** 2)  # noqa: E731
        return gradcheck.check(numpy_layer(forward, backward), np.linspace(-1, 1, 12))

    assert result(1).verdict is Status.PASS
    assert result(1.001).verdict is Status.FAIL
