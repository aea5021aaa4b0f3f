"""The derivative of the gradient: what is wrong about it is named with its line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status

PyLayer: Any = paddle.autograd.PyLayer
X = np.array([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])


class ScaledExp(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        e = paddle.exp(x)
        ctx.save_for_backward(x, e)
        return e * x

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        x, e = ctx.saved_tensor()
        return dy * (e * x + e)


class Gated(PyLayer):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        s = paddle.nn.functional.sigmoid(a)
        ctx.save_for_backward(a, b)
        ctx.s = s
        return a * s * b

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        a, b = ctx.saved_tensor()
        return dy * b * (ctx.s + a * ctx.s * (1 - ctx.s)), dy * a * ctx.s


class Normed(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        r = paddle.rsqrt(paddle.mean(x * x, axis=-1, keepdim=True) + 1e-3)
        ctx.save_for_backward(x, r)
        return x * r

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        x, r = ctx.saved_tensor()
        return r * dy - x * r**3 * paddle.mean(x * dy, axis=-1, keepdim=True)


class SineSlope(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any, dy: Any) -> Any:
        ctx.save_for_backward(x, dy)
        return dy * paddle.cos(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, dy = ctx.saved_tensor()
        return g * dy * paddle.sin(x), g * paddle.cos(x)


class Sine(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return paddle.sin(x)

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return SineSlope.apply(*ctx.saved_tensor(), dy)


class Cube(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x


class DetachedCube(Cube):
    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return dy * 3 * x.detach() ** 2


class NumPyCube(Cube):
    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        slope = paddle.to_tensor(3 * x.numpy() ** 2)
        return dy * slope


class UnrecordedCube(Cube):
    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        with paddle.no_grad():
            slope = 3 * x * x
        return dy * slope


@pytest.mark.parametrize(
    ("layer", "inputs", "text", "source"),
    [
        (ScaledExp, (X,), "ignores how the gradient depends on e", "e = paddle.exp(x)"),
        (
            Gated,
            (X, X + 1),
            "ignores how the gradient depends on s",
            "s = paddle.nn.functional.sigmoid(a)",
        ),
        (Normed, (X,), "ignores how the gradient depends on `x * x`", "r = paddle.rsqrt("),
        (Sine, (X,), "with the wrong sign", "return dy * paddle.cos(x)"),
        (DetachedCube, (X,), "depends on `x.detach() ** 2`", "return dy * 3 * x.detach() ** 2"),
        (
            NumPyCube,
            (X,),
            "depends on `x.numpy() ** 2`",
            "slope = paddle.to_tensor(3 * x.numpy() ** 2)",
        ),
        (UnrecordedCube, (X,), "depends on slope", "slope = 3 * x * x"),
    ],
)
def test_what_the_second_derivative_gets_wrong_is_named_at_its_line(
    layer: Any, inputs: tuple[Any, ...], text: str, source: str
) -> None:
    assert gradcheck.check(layer, *inputs).verdict is Status.PASS
    found = gradcheck.check(layer, *inputs, order=2)
    first, cause = found.diagnosis
    assert (found.verdict, first.code) == (Status.FAIL, "GC140")
    assert cause.text.startswith("double backward ")
    assert text in cause.text
    assert cause.source_line.strip().startswith(source)


class Softmax(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = paddle.nn.functional.softmax(x.astype("float32"), axis=-1).astype(x.dtype)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (y,) = ctx.saved_tensor()
        return (dy - (dy * y).sum(-1, keepdim=True)) * y


class Recomputed(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        with paddle.enable_grad():
            (slope,) = paddle.grad(x**3, x, create_graph=True)
        return dy * slope


class Pair(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x * x, paddle.sin(x)

    @staticmethod
    def backward(ctx: Any, du: Any, dv: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return sum((g * slope for g, slope in ((du, 2 * x), (dv, paddle.cos(x))) if g is not None), 0 * x)


def around(layer: Any) -> Any:
    """A function of a layer and an operation, each the other's argument."""
    return lambda x: paddle.tanh(layer.apply(paddle.exp(-x) + x)) * x


@pytest.mark.parametrize("layer", [Softmax, Recomputed, Pair, Pair.apply, around(Recomputed), around(Softmax)])
def test_a_right_second_derivative_passes(layer: Any) -> None:
    assert gradcheck.check(layer, X, order=2).verdict is Status.PASS
