"""Gradients of a real Paddle's layers and functions, checked from Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as engine
from gradcheck.result import GradientSummary, Status

X = np.random.default_rng(0).standard_normal((3, 4))


def layer(paddle: Any, forward: Callable[[Any], Any], backward: Callable[[Any, Any], Any]) -> Any:
    """The PyLayer of one input whose backward gets the cotangent and the input."""

    class Layer(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensor()
            return backward(dy, x)

    return Layer


def square(paddle: Any, backward: Callable[[Any, Any], Any]) -> Any:
    """The layer x² with a backward of its own."""
    return layer(paddle, lambda x: x * x, backward)


def codes(summary: GradientSummary) -> list[str]:
    return [found.code for found in summary.diagnosis]


# --------------------------------------------------------------------------- layers
def test_right_and_wrong_layers(real: Any) -> None:
    assert gradcheck.check(square(real, lambda dy, x: dy * 2 * x), X).verdict is Status.PASS
    wrong = gradcheck.check(square(real, lambda dy, x: dy * x), X)
    assert wrong.verdict is Status.FAIL
    assert wrong.wrong_counts == {"x": (12, 12)}


def test_the_line_of_a_mistake(real: Any) -> None:
    class Softmax(real.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = real.nn.functional.softmax(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (y,) = ctx.saved_tensor()
            return y * dy

    for layer in (Softmax, Softmax.apply):
        with pytest.raises(gradcheck.GradientMismatch) as caught:
            gradcheck.assert_gradients(layer, X)
        assert "test_api_paddle.py" in str(caught.value)
        assert "│ y = real.nn.functional.softmax(x)" in str(caught.value)


def test_the_line_of_what_the_double_backward_takes_for_a_constant(real: Any) -> None:
    class Swish(real.autograd.PyLayer):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            s = real.nn.functional.sigmoid(x)
            ctx.save_for_backward(x, s)
            return x * s

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, s = ctx.saved_tensor()
            return dy * (s + x * s * (1 - s))

    assert gradcheck.check(Swish, X).verdict is Status.PASS
    found = gradcheck.check(Swish, X, order=2)
    assert [d.code for d in found.diagnosis] == ["GC140", "GC117"]
    assert found.diagnosis[1].source_line.strip() == "s = real.nn.functional.sigmoid(x)"


def test_a_layer_among_other_operations(real: Any) -> None:
    right, wrong = square(real, lambda dy, x: dy * 2 * x), square(real, lambda dy, x: dy)
    assert gradcheck.check(lambda x: right.apply(x * 2) * 3, X).verdict is Status.PASS
    assert gradcheck.check(lambda x: wrong.apply(x * 2) * 3, X).verdict is Status.FAIL


def test_several_inputs_some_of_which_are_no_tensors(real: Any) -> None:
    class Scaled(real.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, factor: float) -> Any:
            ctx.save_for_backward(x, w)
            ctx.factor = factor
            return x * w * factor

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensor()
            return dy * w * ctx.factor, dy * x * ctx.factor

    assert gradcheck.check(Scaled, X, X + 1, 0.5).wrong_counts == {"x": (0, 12), "w": (0, 12)}


def test_integer_inputs_take_no_gradient(real: Any) -> None:
    class Gather(real.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any, rows: Any) -> Any:
            ctx.save_for_backward(x, rows)
            return real.gather(x, rows)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, rows = ctx.saved_tensor()
            return real.scatter(real.zeros_like(x), rows, dy, overwrite=False), None

    assert gradcheck.check(Gather, X, np.array([0, 2])).wrong_counts == {"x": (0, 12)}


def test_the_second_order(real: Any) -> None:
    assert gradcheck.check(square(real, lambda dy, x: dy * 2 * x), X, order=2).verdict is Status.PASS
    detached = layer(real, lambda x: x * x * x, lambda dy, x: dy * 3 * (x * x).detach())
    assert gradcheck.check(detached, X).verdict is Status.PASS
    assert "GC140" in codes(gradcheck.check(detached, X, order=2))


def test_a_backward_that_calls_paddle_grad(real: Any) -> None:
    def backward(dy: Any, x: Any) -> Any:
        with real.enable_grad():
            x = x.detach()
            x.stop_gradient = False
            return real.grad([x * x], [x], [dy])[0]

    assert gradcheck.check(square(real, backward), X).verdict is Status.PASS
    with pytest.raises(NotImplementedError, match="second derivative"):
        gradcheck.check(square(real, backward), X, order=2)


# --------------------------------------------------------------------------- contracts
BROKEN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "of integers": lambda paddle, dy, x: paddle.ones(x.shape, dtype="int64"),
    "of booleans": lambda paddle, dy, x: x > 0,
    "of rank 0": lambda paddle, dy, x: (dy * 2 * x).sum(),
    "of a larger rank": lambda paddle, dy, x: paddle.stack([dy, dy]),
    "of another length": lambda paddle, dy, x: dy[1:],
    "two for one input": lambda paddle, dy, x: (dy * 2 * x, dy),
    "no Tensor": lambda paddle, dy, x: dy.numpy(),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_no_gradient_is_a_broken_contract(real: Any, what: str) -> None:
    summary = gradcheck.check(square(real, lambda dy, x: BROKEN[what](real, dy, x)), X)
    assert summary.verdict is Status.FAIL
    assert codes(summary) == ["GC137"]
    assert "/paddle/" not in summary.summary()  # what Paddle says of its own source helps nobody


def test_a_gradient_without_shape_for_an_input_of_one_element(real: Any) -> None:
    summary = gradcheck.check(square(real, lambda dy, x: (dy * 2 * x).sum()), np.ones(1))
    assert summary.summary() == "backward returns a gradient of shape [] for an input of shape [1]"


def test_a_layer_of_several_contracts_within_others(real: Any) -> None:
    whole = square(real, lambda dy, x: real.ones(x.shape, dtype="int64"))  # Paddle casts it on the way to a non-leaf
    assert codes(gradcheck.check(lambda x: whole.apply(x * 2), X)) == ["GC137"]


def test_writing_into_the_cotangent(real: Any) -> None:
    assert "GC134" in codes(gradcheck.check(square(real, lambda dy, x: dy.scale_(2.0) * x), X))
    assert "GC134" not in codes(gradcheck.check(square(real, lambda dy, x: dy.scale(2.0) * x), X))


def test_returning_the_memory_of_an_input(real: Any) -> None:
    assert "GC135" in codes(gradcheck.check(square(real, lambda dy, x: x), X))


# --------------------------------------------------------------------------- functions
def test_functions_with_plain_arrays(real: Any) -> None:
    gelu = real.nn.functional.gelu

    def through_another(x: Any) -> Any:
        return own(x) + 1

    def own(x: Any) -> Any:
        assert isinstance(x, real.Tensor)
        return real.exp(x)

    softmax = functools.partial(real.nn.functional.softmax, axis=0)
    for function in (real.tanh, gelu, own, through_another, lambda x: real.log(x * x + 1), softmax):
        assert gradcheck.check(function, X).verdict is Status.PASS


def test_methods_and_objects_to_call(real: Any) -> None:
    class Model:
        def predict(self, x: Any) -> Any:
            return real.tanh(x)

        __call__ = predict

    for function in (Model().predict, Model(), real.to_tensor(X).matmul):
        assert gradcheck.check(function, X.T.copy()).verdict is Status.PASS


def test_layers_with_parameters(real: Any) -> None:
    class Net(real.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.linear = real.nn.Linear(4, 2)

        def forward(self, x: Any) -> Any:
            return real.tanh(self.linear(x))

    net = Net()
    assert gradcheck.check(net, X.astype("float32")).verdict is Status.PASS
    assert gradcheck.check(net.forward, X.astype("float32")).verdict is Status.PASS
    assert all(parameter.grad is None for parameter in net.parameters())


def test_a_layer_within_a_layer_with_parameters(real: Any) -> None:
    class Scaled(real.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensor()
            return dy * w, (dy * x).sum(0)

    class Net(real.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.weight = self.create_parameter([4], dtype="float64")

        def forward(self, x: Any) -> Any:
            return Scaled.apply(real.tanh(x), self.weight)

    net, held = Net(), [real.to_tensor(np.ones(4), stop_gradient=False)]
    for function in (
        net,
        lambda x: net(x) * 2,
        lambda x: Scaled.apply(x, held[0]),
        functools.partial(Net.forward, net),
    ):
        assert gradcheck.check(function, X).verdict is Status.PASS
        assert gradcheck.check(function, X, order=2).verdict is Status.PASS
    assert net.weight.grad is None
    assert held[0].grad is None


def test_the_engine_beside_an_imported_paddle(real: Any) -> None:
    def of_the_engine(x: Any) -> Any:
        assert isinstance(x, engine.Tensor)
        return engine.tanh(x)

    for function in (engine.tanh, of_the_engine, square(engine, lambda dy, x: dy * 2 * x)):
        assert gradcheck.check(function, X).verdict is Status.PASS


def test_a_function_that_wants_tensors_with_a_gradient(real: Any) -> None:
    def wanting(x: Any) -> Any:
        assert not x.stop_gradient
        return real.tanh(x)

    assert gradcheck.check(wanting, X).verdict is Status.PASS


def test_plain_numbers_stay_numbers(real: Any) -> None:
    def shifted(x: Any, eps: Any, times: Any, on: Any) -> Any:
        assert (type(eps), type(times), type(on)) == (float, int, bool)
        return real.tanh(x) * times + eps

    assert gradcheck.check(shifted, X, 1e-6, 3, True).wrong_counts == {"x": (0, 12)}


def test_dtypes_and_shapes_of_inputs(real: Any) -> None:
    for x in (np.float64(0.5), np.array(0.5), X.T, X.astype("float32"), X + 1j * X):
        assert gradcheck.check(real.exp, x).verdict is Status.PASS


def test_bfloat16(real: Any) -> None:
    x = real.to_tensor(X, dtype="bfloat16", stop_gradient=False)
    assert gradcheck.check(lambda x: x * x, x).verdict is Status.PASS
    assert gradcheck.check(square(real, lambda dy, x: dy * 2 * x), x).verdict is Status.PASS
    assert gradcheck.check(square(real, lambda dy, x: dy * x), x).verdict is Status.FAIL


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_operations_that_paddle_lacks_are_looked_at_in_float32(real: Any, dtype: str) -> None:
    x = real.to_tensor(X, dtype=dtype, stop_gradient=False)
    right = layer(real, real.tanh, lambda dy, x: dy * (1 - real.tanh(x) * real.tanh(x)))
    wrong = layer(real, real.tanh, lambda dy, x: dy * (1 - real.tanh(x)))
    for function, verdict in ((real.exp, Status.PASS), (right, Status.PASS), (wrong, Status.FAIL)):
        summary = gradcheck.check(function, x)
        assert summary.verdict is verdict
        assert f"in float32, as Paddle lacks an operation in {dtype} here" in summary.marks


@pytest.mark.parametrize("function", ["a list of arrays", "no derivative", "no element"])
def test_a_call_that_leaves_nothing_to_check(real: Any, function: str) -> None:
    calls = {
        "a list of arrays": lambda x: [real.tanh(x).numpy()],
        "no derivative": lambda x: real.argmax(x),
        "no element": lambda x: real.tanh(x)[:0],
    }
    summary = gradcheck.check(calls[function], X)
    assert summary.verdict is Status.INCONCLUSIVE
    assert summary.why.startswith("nothing was checked: ")


def test_several_points_and_dtypes(real: Any) -> None:
    assert gradcheck.check(real.tanh, X, points=3, dtypes=["float64", "float32"]).verdict is Status.PASS
    coarse = layer(real, lambda x: x * 3, lambda dy, x: dy * (3 if dy.dtype == real.float64 else 2))
    assert gradcheck.check(coarse, X, dtypes=["float64", "float32"]).where == "float32"


def test_declared_backwards(real: Any) -> None:
    rounded = layer(real, real.round, lambda dy, x: dy)
    assert gradcheck.check(rounded, 3 * X).verdict is Status.FAIL
    assert gradcheck.check(rounded, 3 * X, expect="straight-through").verdict is Status.PASS
    assert gradcheck.check(rounded, 3 * X, expect="differs").verdict is Status.PASS
    assert gradcheck.check(rounded, 3 * X, expect="zero").verdict is Status.FAIL


def test_the_gradients_of_a_parameter_are_the_user_s(real: Any) -> None:
    linear = real.nn.Linear(4, 2)
    gradcheck.assert_gradients(linear, X.astype("float32"))
    assert linear.weight.grad is None
    linear(real.ones([1, 4])).sum().backward()
    gradcheck.assert_gradients(linear, X.astype("float32"))
    assert linear.weight.grad.numpy().tolist() == [[1.0, 1.0]] * 4


def test_some_outputs_of_a_layer_are_looked_at_without_paddle_grad(real: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 3.3 that dies."""

    class Both(real.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, dy: Any, dz: Any) -> Any:
            return dy * 2 + dz * 3

    monkeypatch.setattr(real, "grad", None)
    gradcheck.assert_gradients(Both, X)


def test_less_than_the_documents_ask_for_passes_with_a_mark(real: Any) -> None:
    def scaled(answer: Callable[..., Any]) -> Any:
        class Scaled(real.autograd.PyLayer):
            @staticmethod
            def forward(ctx: Any, x: Any, w: Any, s: Any) -> Any:
                ctx.save_for_backward(x, w)
                return x * w + s

            @staticmethod
            def backward(ctx: Any, dy: Any) -> Any:
                return answer(dy, *ctx.saved_tensor())

        return Scaled

    stopped = real.to_tensor(X)
    asked = gradcheck.check(scaled(lambda dy, x, w: (dy * w, dy * x, None)), X, X, stopped)
    less = gradcheck.check(scaled(lambda dy, x, w: (dy * w, dy * x)), X, X, stopped)
    wrong = gradcheck.check(scaled(lambda dy, x, w: (dy * w, None)), X, X, stopped)
    mark = ("the documents ask for one gradient per Tensor input",)
    assert [(r.verdict, r.marks) for r in (asked, less)] == [(Status.PASS, ()), (Status.PASS, mark)]
    assert (wrong.verdict, wrong.wrong_counts["w"], wrong.marks) == (Status.FAIL, (12, 12), mark)
