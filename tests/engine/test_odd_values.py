"""Infinities, NaN and huge numbers give a result or an error of the engine, soon and without a warning."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle

HUGE = 2**62
X = np.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def tensor(values: Any) -> Any:
    return paddle.to_tensor(np.asarray(values, "float64"), stop_gradient=False)


RESULTS: dict[str, tuple[Callable[[], Any], Any]] = {
    "lgamma beyond float64": (lambda: paddle.lgamma(tensor([1e308, -1e308])), [math.inf, math.inf]),
    "diff of more than there is": (lambda: paddle.diff(tensor(X), n=10**9), np.zeros((2, 0))),
    "polygamma beyond any factorial": (lambda: paddle.polygamma(tensor([1.5, 2.0]), 10**9 + 1), [math.inf, math.inf]),
    "polygamma of an even order": (lambda: paddle.polygamma(tensor([1.5]), 200), [-math.inf]),
    "the power of the unit matrix": (lambda: paddle.linalg.matrix_power(tensor(np.eye(2)), HUGE), np.eye(2)),
    "the exponential of infinities": (
        lambda: paddle.linalg.matrix_exp(tensor(np.full((2, 2), math.inf))),
        np.full((2, 2), math.nan),
    ),
    "the exponential of the largest": (lambda: paddle.linalg.matrix_exp(tensor([[1e308]])), [[math.inf]]),
    "a float that single precision lacks": (lambda: paddle.to_tensor([1e308]), [math.inf]),
    "a cast that cannot be": (lambda: paddle.to_tensor(np.array([1e308]), "float32"), [math.inf]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_it_has_a_result(name: str) -> None:
    make, expected = RESULTS[name]
    np.testing.assert_array_equal(make().numpy(), expected)


REFUSED: dict[str, Callable[[], Any]] = {
    "arange to infinity": lambda: paddle.arange(0, math.inf),
    "arange to NaN": lambda: paddle.arange(0, math.nan),
    "a number beyond float64": lambda: paddle.full([2], 10**400),
    "a stride beyond any array": lambda: paddle.nn.functional.conv2d(
        tensor(np.ones((1, 1, 4, 4))), tensor(np.ones((1, 1, 2, 2))), stride=HUGE
    ),
    "a diagonal beyond any matrix": lambda: paddle.tril(tensor(X), 10**30),
    "repeats below 0": lambda: paddle.repeat_interleave(tensor(X), -1),
    "singular values of infinities": lambda: paddle.linalg.svd(tensor(np.full((3, 3), math.inf))),
    "eigenvalues of infinities": lambda: paddle.linalg.eig(tensor(np.full((3, 3), math.inf))),
    "symmetric eigenvalues of infinities": lambda: paddle.linalg.eigh(tensor(np.full((3, 3), math.inf))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="InvalidArgument"):
        REFUSED[name]()


def test_more_repeats_than_memory_are_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        paddle.repeat_interleave(tensor(X), 10**15)
