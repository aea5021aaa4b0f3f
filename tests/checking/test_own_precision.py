"""Digits that a backward loses on its own: told from mistakes, and let pass where that is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layers import problem
from taped import layer, problem_of

import pylayer.paddle as paddle
from gradcheck.case.gradient_check import check_gradient
from gradcheck.checking.contracts import digits
from gradcheck.result import GradientSummary, Status

pytestmark = pytest.mark.clause(id="V23")

X = np.random.default_rng(0).standard_normal(9)


@pytest.mark.parametrize(
    ("error", "name", "told"),
    [(6e-8, "float64", "9 of 16"), (1e-3, "float32", "4 of 7"), (2.0, "float64", "16 of 16"),
     (1e-16, "float64", "1 of 16"), (0.0, "float16", "1 of 3")],
)  # fmt: skip
def test_digits_are_counted_from_the_relative_error(error: float, name: str, told: str) -> None:
    assert digits(error, name) == f"right, but {told} digits are lost in {name}"


def unseen(backward: Callable[..., Any], **options: Any) -> GradientSummary:
    """The check of a tanh of which no operation is seen."""
    return check_gradient(problem(np.tanh, backward, X), **options)


def narrow(x: Any, y: Any, g: Any) -> Any:
    y, g = y.astype("float32"), g.astype("float32")
    return (g * (1 - y * y)).astype("float64")


def test_where_nothing_is_seen_a_backward_in_float32_loses_digits_and_is_no_mistake() -> None:
    found = unseen(narrow)
    assert (found.verdict, found.diagnosis[0].code) == (Status.FAIL, "GC113")
    loose = unseen(narrow, precision="loose")
    assert loose.verdict is Status.PASS
    assert loose.marks[-1] == found.diagnosis[0].text


@pytest.mark.parametrize("factor", [1 + 1e-4, 1.5, -1])
def test_a_mistake_is_one_however_loose(factor: float) -> None:
    for precision in ("strict", "loose"):
        found = unseen(lambda x, y, g: factor * narrow(x, y, g), precision=precision)
        assert found.verdict is Status.FAIL
        assert "GC113" not in [d.code for d in found.diagnosis]


def test_a_small_part_that_is_wrong_is_a_mistake_however_small() -> None:
    """Its share of the whole gradient is less than float32 rounds."""

    def backward(x: Any, w: Any, y: Any, g: Any) -> Any:
        return g, -g * 1e-8 * np.cos(w)

    found = check_gradient(problem(lambda x, w: x + 1e-8 * np.sin(w), backward, X, X), precision="loose")
    assert found.verdict is Status.FAIL


def test_a_backward_that_does_not_work_without_its_casts_is_checked_with_them() -> None:
    def backward(x: Any, g: Any) -> Any:
        zeros = paddle.zeros([4], "float32")
        return paddle.concat([zeros, g.astype("float32")])[4:].astype(g.dtype) * 2.0 * x

    found = check_gradient(problem_of(layer(lambda x: x * x, backward), X))
    assert (found.verdict, found.diagnosis[0].code) == (Status.FAIL, "GC113")
    assert check_gradient(problem_of(layer(lambda x: x * x, backward), X), precision="loose").verdict is Status.PASS
