"""Gradients checked from Python."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status

PyLayer: Any = paddle.autograd.PyLayer
X = np.random.default_rng(0).standard_normal((3, 4))


class Tanh(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (y,) = ctx.saved_tensor()
        return dy * (1 - y * y)


class WrongTanh(Tanh):
    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (y,) = ctx.saved_tensor()
        return dy * (1 - y)


class Detached(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return dy * 3 * x.detach() * x.detach()


class InPlace(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x.abs_()
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return dy * 2 * x


class WritesItsCotangent(Detached):
    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return dy.scale_(3.0) * x * x


class ReturnsItsInput(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return (x * x).sum() / 2

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return x


@pytest.mark.parametrize("mode", ["auto", "probe", "full"])
def test_the_verdict_on_a_layer(mode: Any) -> None:
    assert gradcheck.check(Tanh, X, mode=mode).verdict is Status.PASS
    assert gradcheck.check(WrongTanh, X, mode=mode).verdict is Status.FAIL


def test_a_right_elementwise_layer_is_certified_entry_by_entry() -> None:
    assert gradcheck.check(Tanh, X).certified
    assert gradcheck.check(lambda x: x @ x, X[:, :3], mode="full").certified


def test_a_mismatch_carries_the_panel_and_the_result() -> None:
    with pytest.raises(gradcheck.GradientMismatch) as caught:
        gradcheck.assert_gradients(WrongTanh, X)
    text = str(caught.value)
    assert text.startswith("FAIL: gradient of x: 12 of 12 entries wrong\n")
    assert "1 − out that should be 1 − out²" in text
    assert "gradcheck explain GC111" in text
    assert len(caught.value.result.wrong) == 12


def test_a_right_gradient_raises_nothing() -> None:
    assert gradcheck.assert_gradients(Tanh, X, order=2).verdict is Status.PASS


def test_a_first_derivative_alone_may_be_right() -> None:
    assert gradcheck.check(Detached, X).verdict is Status.PASS
    second = gradcheck.check(Detached, X, order=2)
    assert second.verdict is Status.FAIL
    assert second.diagnosis[0].code == "GC140"


@pytest.mark.parametrize(
    ("layer", "code"), [(InPlace, "GC133"), (WritesItsCotangent, "GC134"), (ReturnsItsInput, "GC135")]
)
def test_what_a_layer_changes_is_named(layer: Any, code: str) -> None:
    summary = gradcheck.check(layer, X)
    assert summary.verdict is Status.FAIL
    assert summary.diagnosis[0].code == code


def test_functions_tensors_and_other_arguments() -> None:
    x = paddle.to_tensor(X, stop_gradient=False)
    n = paddle.to_tensor(3)
    assert gradcheck.check(paddle.matmul, x, x.detach().t()).verdict is Status.PASS
    assert gradcheck.check(lambda x, n, scale: x * n * scale, x, n, 2).verdict is Status.PASS
    assert gradcheck.check(lambda *xs: xs[0] * xs[1], X, X).wrong_counts == {"x0": (0, 12), "x1": (0, 12)}


@pytest.mark.parametrize("inputs", [[], [3], [np.arange(3)], [paddle.ones([2])]])
def test_without_an_input_that_needs_a_gradient_there_is_nothing_to_check(inputs: Any) -> None:
    with pytest.raises(TypeError, match="no input needs a gradient"):
        gradcheck.check(lambda *x: paddle.ones([2]), *inputs)


def test_only_first_and_second_order_are_known() -> None:
    with pytest.raises(TypeError, match="order must be 1 or 2"):
        gradcheck.check(Tanh, X, order=3)


def test_the_package_itself_imports_no_numpy_and_takes_no_name_of_paddle() -> None:
    code = "import sys, gradcheck; print('numpy' in sys.modules); gradcheck.check; print('paddle' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout.split() == ["False", "False"]


def environment() -> dict[str, str]:
    import os

    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
