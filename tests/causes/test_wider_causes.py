"""Mistakes that are tried where no plain one explains the gradient, and the edit that speaks instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Diagnosis, Fix, Status

X = np.random.default_rng(0).standard_normal((3, 4))
U, V = np.random.default_rng(1).standard_normal((2, 4, 4))
W = np.random.default_rng(2).uniform(0.5, 1.5, 4)


@pytest.fixture(autouse=True)
def no_fix_is_searched() -> None:
    """One is: the edit is a cause where there is no other."""


def rms_norm(x: Any, w: Any) -> Any:
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    return x * r * w


def weight_twice(x: Any, w: Any, g: Any) -> Any:
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    n = g * w
    return n * r - x * r**3 * (n * w * x).mean(-1, keepdims=True), (g * x * r).sum(0)


def gated(x: Any, u: Any, v: Any) -> Any:
    a, b = x @ u, x @ v
    return np.tanh(a) * b


def gradient_of_the_other(x: Any, u: Any, v: Any, g: Any) -> Any:
    a, b = x @ u, x @ v
    da, db = g * b * (1 - np.tanh(a) ** 2), g * np.tanh(a)
    return da @ u.T + db @ v.T, x.T @ db, x.T @ db


def logs(x: Any) -> Any:
    s = x * x + 0.1
    return np.log(s)


def another_constant(x: Any, g: Any) -> Any:
    return g * 2 * x / (x * x + 0.01)


CASES = [
    (rms_norm, weight_twice, [X, W], "multiplies the gradient of `x * r` by w once too often", "x * r"),
    (gated, gradient_of_the_other, [X, U, V], "takes the gradient of `x @ v` for that of `x @ u`", "a, b = "),
    (logs, another_constant, [X], "computes s with 0.1 times the constant", "s = x"),
]


@pytest.mark.parametrize(("forward", "backward", "inputs", "text", "line"), CASES, ids=[c[1].__name__ for c in CASES])
def test_it_is_named_at_its_line(forward: Any, backward: Any, inputs: Any, text: str, line: str) -> None:
    (cause,) = gradcheck.check(forward, *inputs, backward=backward, effort="least").diagnosis
    assert text in cause.text
    assert line in cause.source_line


def test_a_cause_of_one_of_two_wrong_inputs_says_so() -> None:
    def backward(x: Any, w: Any, g: Any) -> Any:
        return weight_twice(x, w, g)[0], (g * g * x).sum(0)

    result = gradcheck.check(rms_norm, X, W, backward=backward)
    assert result.verdict is Status.FAIL
    texts = [cause.text for cause in result.diagnosis if cause.line]
    assert all("(explains x; the gradient of w is wrong as well)" in text for text in texts)


class Affine(paddle.autograd.PyLayer):
    """A layer of which no single rule of forward explains the mistake."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = paddle.tanh(x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, y = ctx.saved_tensor()
        return dy * (1 - y * x * y * x)


def test_the_edit_speaks_where_no_cause_does() -> None:
    result = gradcheck.check(Affine, X)
    assert result.fix is not None
    (cause,) = result.diagnosis
    assert (cause.code, cause.line.rpartition(":")[2]) == ("GC127", str(result.fix.line))
    assert f"where `{result.fix.replacement}` is right" in cause.text


class Gate(paddle.autograd.PyLayer):
    """A layer whose backward reads another value than a rule of forward does."""

    @staticmethod
    def forward(ctx: Any, x: Any, z: Any) -> Any:
        a = paddle.tanh(x)
        ctx.save_for_backward(x, a, z)
        return a * z

    @staticmethod
    def backward(ctx, dy):
        x, a, z = ctx.saved_tensor()
        return dy * z * (1 - a * a), dy * x


def test_an_edit_speaks_in_place_of_a_far_fetched_cause() -> None:
    def cause(effort: str) -> Any:
        (found,) = gradcheck.check(Gate, X, X + 1, effort=effort).diagnosis
        return found

    assert "reads x in place of a in the rule of `a * z`" in cause("least").text
    assert (cause("usual").code, cause("usual").source_line.strip()) == ("GC127", "return dy * z * (1 - a * a), dy * x")


def test_a_gradient_that_is_not_affine_in_the_cotangent_has_no_other_cause() -> None:
    def backward(x: Any, w: Any, g: Any) -> Any:
        return [-2 * abs(gradient) for gradient in weight_twice(x, w, g)]

    result = gradcheck.check(rms_norm, X, W, backward=backward)
    assert [cause.code for cause in result.diagnosis] == ["GC110"]


def test_a_cause_of_all_wrong_inputs_stays_beside_an_edit() -> None:
    from gradcheck.causes.words import in_step_with

    fix = Fix(path="a.py", line=1, column=0, end_line=1, end_column=1, replacement="y", source_line="y")
    cause = Diagnosis(code="GC119", text="a rule", inputs=("x", "w"), line="a.py:3")
    assert in_step_with(fix, ["x"], [cause]) == [cause]
    (edit,) = in_step_with(fix, ["x", "w"], [cause, cause])
    assert edit.code == "GC127"


@pytest.mark.parametrize("forward", [lambda x: x, lambda x: paddle.assign(x)], ids=["input itself", "copy"])
def test_a_forward_without_an_operation_to_blame_has_its_search_ended(forward: Any) -> None:
    class Passed(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_not_inplace(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return paddle.flip(dy, 0) * 2

    result = gradcheck.check(Passed, np.random.default_rng(3).standard_normal(6))
    assert result.verdict is Status.FAIL
    assert not any("diagnosis stopped" in mark for mark in result.marks)


def test_another_value_that_a_later_operation_refuses_is_left_out() -> None:
    class LogDeterminant(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return 2 * paddle.log(paddle.diagonal(paddle.linalg.cholesky(a))).sum()

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (a,) = ctx.saved_tensor()
            return dy * paddle.tril(paddle.inverse(a))

    def log_determinant(x: Any) -> Any:
        return LogDeterminant.apply(x @ x.t() + paddle.eye(3, dtype=x.dtype))

    result = gradcheck.check(log_determinant, np.random.default_rng(0).standard_normal((3, 3)))
    assert (result.verdict, result.marks) == (Status.FAIL, ())
