"""Code written for a real Paddle, run on the engine instead."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from taped import recorded

import gradcheck
import pylayer.paddle as engine
from gradcheck.backends.base import load_backend
from gradcheck.case.arguments import tensor_function
from gradcheck.case.engine_twin import twin_of
from gradcheck.causes.words import source_place
from gradcheck.result import Status

X = np.random.default_rng(0).standard_normal((3, 4))


@pytest.fixture
def norm(real: Any) -> Any:
    """A layer norm for Paddle, its forward calling a function beside it and its backward a method of its base."""

    def centred(x: Any) -> Any:
        assert isinstance(x, (real.Tensor, engine.Tensor))
        return x - x.mean(-1, keepdim=True)

    class Base(real.autograd.PyLayer):
        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            n, r, w = ctx.saved_tensor()
            gn = dy * w
            return r * (gn - gn.mean(-1, keepdim=True) - n * (gn * n).mean(-1, keepdim=True)), (dy * n).sum(0)

    class LayerNorm(Base):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, eps: float) -> Any:
            h = centred(x)
            r = real.rsqrt((h * h).mean(-1, keepdim=True) + eps)
            ctx.save_for_backward(h * r, r, w)
            return h * r * w

    return LayerNorm


def same(real: Any, function: Any, *inputs: Any) -> None:
    """The call and its twin have the same outputs and gradients."""
    theirs = tensor_function(load_backend("paddle"), function, inputs)
    ours = twin_of(theirs, function, inputs)
    assert ours is not None
    assert type(ours.call(ours.tensors())) is engine.Tensor
    a, b = ours.problem(), theirs.problem()
    assert (list(a.names), list(a.differentiable)) == (list(b.names), list(b.differentiable))
    cotangents = [np.cos(out) for out in a.outputs or []]
    for x, y in zip(a.forward(a.inputs), b.forward(b.inputs), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)
    for name, x, y in zip(a.names, a.vjp(a.inputs, cotangents), b.vjp(b.inputs, cotangents), strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            # layer_norm_grad of Paddle rounds epsilon to float32 for the gradient of the weight: 5e-11 beside a variance
            rounding = 1e-8 if name in (theirs.closed_over or ()) else 1e-10
            np.testing.assert_allclose(x, y, rtol=rounding, atol=1e-14)


def test_a_layer(real: Any, norm: Any) -> None:
    same(real, norm, X, np.ones(4), 1e-6)
    assert real.autograd.PyLayer in norm.__mro__  # the original is left as it was


def test_a_layer_within_a_function(real: Any, norm: Any) -> None:
    w = real.to_tensor(np.ones(4), stop_gradient=False)
    same(real, lambda x: norm.apply(real.tanh(x), w, 1e-6) * 2, X)


def test_functions_and_what_they_close_over(real: Any) -> None:
    def repeated(x: Any, n: int) -> Any:
        return x if n == 0 else real.tanh(repeated(x, n - 1))

    def importing(x: Any) -> Any:
        import paddle
        from paddle.nn import functional

        return functional.gelu(paddle.exp(x))

    class Model:
        def __init__(self) -> None:
            self.parts = [real.to_tensor(X), 2.0]

        def __call__(self, x: Any) -> Any:
            return real.sin(x * self.parts[0]) * self.parts[1]

    same(real, repeated, X, 3)
    same(real, importing, X)
    same(real, Model(), X)
    same(real, Model().__call__, X)
    same(real, functools.partial(real.nn.functional.softmax, axis=0), X)
    same(real, real.to_tensor(X).matmul, X.T.copy())
    same(real, lambda x: real.cast(x, real.float32).astype("float64"), X)


def test_layers_with_parameters(real: Any, norm: Any) -> None:
    class Net(real.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.linear = real.nn.Linear(4, 4)
            self.norm = real.nn.LayerNorm(4, epsilon=1e-3)
            self.weight = self.create_parameter([4], default_initializer=real.nn.initializer.Constant(2.0))
            self.parts = real.nn.Sequential(real.nn.GELU(), real.nn.Linear(4, 2))
            self.scale = 3.0

        def forward(self, x: Any) -> Any:
            return self.parts(norm.apply(self.norm(self.linear(x)), self.weight, 1e-6)) * self.scale

    real.seed(1)  # with weights whose results have a small variance, that rounding is larger
    net = Net().to(dtype="float64")
    same(real, net, X)
    same(real, lambda x: net(x) * 2, X)
    same(real, net.forward, X)


def test_what_has_no_twin(real: Any) -> None:
    inputs = [X.astype("float32")]
    hooked = real.nn.Linear(4, 3)
    hooked.register_forward_post_hook(lambda layer, x, y: y * 2)
    lacking = [hooked, real.nn.functional.dropout, lambda x: real.gammaincc(x, x)]
    for function in lacking:
        assert twin_of(tensor_function(load_backend("paddle"), function, inputs), function, inputs) is None


def test_a_layer_of_paddle_has_the_tape_of_its_twin(real: Any, norm: Any) -> None:
    inputs = [X, np.ones(4), 1e-6]
    function = tensor_function(load_backend("paddle"), norm, inputs)
    function.twin = twin_of(function, norm, inputs)
    problem = function.problem()
    tape = recorded(problem, lines=True)
    assert not tape.incomplete
    cotangent = np.cos(X)
    for found, expected in zip(tape.gradient([cotangent]), problem.vjp(problem.inputs, [cotangent]), strict=False):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)
    assert any(step.spot and "real.rsqrt" in source_place(step.spot).source for step in tape.recording.steps)


def test_a_layer_that_computes_in_a_coarser_dtype_has_one_too(real: Any) -> None:
    def scaled(x: Any) -> Any:
        h = x.astype("float32")
        return (h * real.rsqrt((h * h).mean(-1, keepdim=True) + 1e-6)).astype(x.dtype)

    function = tensor_function(load_backend("paddle"), scaled, [X])
    function.twin = twin_of(function, scaled, [X])
    assert not recorded(function.problem()).incomplete


def test_a_twin_that_gives_other_values_has_no_say(real: Any) -> None:
    def perturbed(x: Any) -> Any:
        return real.tanh(x) * (1 if isinstance(x, real.Tensor) and hasattr(x, "data_ptr") else 1 + 1e-4)

    assert twin_of(tensor_function(load_backend("paddle"), perturbed, [X]), perturbed, [X]) is None


def tanh_of(real: Any, forward: Any, factor: float) -> Any:
    """A tanh which on Paddle alone computes something else, or has a gradient that is off by a factor."""

    class Tanh(real.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = forward(x) if hasattr(x, "data_ptr") else real.tanh(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (y,) = ctx.saved_tensor()
            return dy * (1 - y * y) * (factor if hasattr(dy, "data_ptr") else 1)

    return Tanh


def test_what_the_original_gives_is_held_against_the_tape_of_its_twin(real: Any) -> None:
    """As if an operation of Paddle's had a wrong rule, in both precisions, or other values away from the point."""
    assert gradcheck.check(tanh_of(real, real.tanh, 1), X).verdict is Status.PASS
    assert gradcheck.check(tanh_of(real, real.tanh, 1 + 1e-9), X).verdict is Status.FAIL
    x = X.astype("float32")
    assert gradcheck.check(tanh_of(real, real.tanh, 1), x).verdict is Status.PASS
    assert gradcheck.check(tanh_of(real, real.tanh, 1 + 1e-3), x).verdict is Status.FAIL

    def elsewhere(x: Any) -> Any:
        return real.tanh(x) if float(x[0, 0]) == X[0, 0] else real.tanh(2 * x - real.to_tensor(X))

    assert gradcheck.check(tanh_of(real, elsewhere, 1), X).verdict is not Status.PASS
