"""A layer in NumPy that rounds to few digits on the way is checked as if it kept them, where casts can be left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from claims import numpy_layer
from gradcheck.backends.unrounded import unrounded

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
def test_a_right_norm_that_rounds_its_outputs_passes_by_the_tape(low: str, dtype: str, seed: int) -> None:
    found = checked(low, rms_norm_vjp, seed, dtype)
    assert found.verdict is Status.PASS
    assert found.marks == ("by the tape",)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("backward", [lambda x, y, g: 1.5 * rms_norm_vjp(x, y, g), one_entry])
def test_a_wrong_one_fails(backward: Callable[..., Any], low: str, seed: int) -> None:
    assert checked(low, backward, seed).verdict is Status.FAIL


@pytest.mark.parametrize("seed", range(3))
def test_one_that_is_wrong_by_less_than_the_dtype_rounds_is_not_green(seed: int) -> None:
    found = checked("bfloat16", lambda x, y, g: 1.05 * rms_norm_vjp(x, y, g), seed)
    assert found.verdict in (Status.FAIL, Status.INCONCLUSIVE)


NOT_RIGHT_WITH_CASTS = {
    "a part in float16": (
        lambda x: x + np.tanh(x.astype("float16")),
        lambda x, y, g: g * (2 - np.tanh(x) ** 2),
        lambda random: random.standard_normal(12),
    ),
    "a backward in float32 that cancels": (
        lambda x: x + np.log(np.cosh(x)),
        lambda x, y, g: g * (1 + np.tanh(x.astype("float32"))),
        lambda random: random.uniform(-12, -3, 12),
    ),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NOT_RIGHT_WITH_CASTS)
def test_what_is_right_but_for_its_casts_passes_and_what_is_not_fails(name: str, seed: int) -> None:
    forward, backward, draw = NOT_RIGHT_WITH_CASTS[name]
    x = draw(np.random.default_rng(seed))
    assert gradcheck.check(numpy_layer(forward, backward), x, seed=seed).verdict is Status.PASS
    wrong = numpy_layer(forward, lambda x, y, g: 1.05 * backward(x, y, g))
    assert gradcheck.check(wrong, x, seed=seed).verdict is Status.FAIL


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


def test_a_cast_that_cannot_be_left_out_leaves_it_undecided() -> None:
    def forward(x: Any) -> Any:
        return np.array(np.tanh(np.array(x.tolist())), dtype="float16")  # a list has no casts that are seen

    found = gradcheck.check(
        numpy_layer(forward, lambda x, y, g: g * (1 - np.tanh(x) ** 2)),
        np.linspace(-1, 1, 12),
    )
    assert found.verdict is Status.INCONCLUSIVE
    assert not any("casts" in mark for mark in found.marks)


def test_an_array_keeps_its_digits_and_says_which_casts_it_left_out() -> None:
    left_out = set[str]()
    x = unrounded(np.array([1 / 3, 2.5]), left_out)
    np.testing.assert_array_equal((2 * x).astype("float16").astype(np.float32), [2 / 3, 5.0])
    assert left_out == {"float16", "float32"}
    assert x.astype("int64").tolist() == [0, 2]
    assert x.astype("complex128").dtype == np.complex128


def test_of_complex_numbers_casts_are_left_out_too() -> None:
    x = unrounded(np.array([1 / 3 + 1j]), set())
    assert complex(x.astype("complex64")[0]) == 1 / 3 + 1j
