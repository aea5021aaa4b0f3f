"""Forwards that write into an argument: a broken contract, however they write and wherever the layer is applied.

The values are those of softmax behind the write, and backward is right for them: nothing but the write is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status

X = np.random.default_rng(0).uniform(0.2, 2, (2, 3))
SOFTMAX: Any = paddle.nn.functional.softmax  # type: ignore[attr-defined]


def by_slice(x: Any) -> None:
    x[:] = 0.5 * x


def under_no_grad(x: Any) -> None:
    with paddle.no_grad():
        x.scale_(0.5)


WAYS: dict[str, Callable[[Any], Any]] = {
    "x[:] =": by_slice,
    "scale_": lambda x: x.scale_(0.5),
    "add_": lambda x: x.add_(paddle.ones_like(x)),
    "fill_": lambda x: x.fill_(0.5),
    "zero_": lambda x: x.zero_(),
    "exp_": lambda x: x.exp_(),
    "assign": lambda x: paddle.assign(0.5 * x, output=x),
    "detach": lambda x: x.detach().scale_(0.5),
    "no_grad": under_no_grad,
    "data": lambda x: x.data.scale_(0.5),
    "reshape": lambda x: x.reshape([-1]).scale_(0.5),
    "a slice": lambda x: x[:1].scale_(0.5),
    "set_value": lambda x: x.set_value(0.5 * x),
    "copy_": lambda x: x.copy_(0.5 * x, True),
    "memory": lambda x: x.array.__imul__(0.5),
}


def layer(write: Callable[[Any], Any], answer: Callable[[Any, Any], Any] = lambda x, y: y) -> Any:
    """Softmax of what `write` leaves in its argument; `answer` is returned, of the argument and the softmax."""

    class Layer(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            write(x)
            y = SOFTMAX(x)
            ctx.save_for_backward(y)
            return answer(x, y)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensor()
            return y * (g - (g * y).sum(-1, keepdim=True))

    return Layer


def codes(result: Any) -> list[str]:
    return [found.code for found in result.diagnosis]


@pytest.mark.clause(id="V27")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("write", WAYS.values(), ids=WAYS)
def test_a_layer_that_writes_into_its_argument(write: Callable[[Any], Any], dtype: str) -> None:
    result = gradcheck.check(layer(write), X.astype(dtype))
    assert (result.verdict, "GC133" in codes(result)) == (Status.FAIL, True)
    assert "forward writes into x" in str(result)


@pytest.mark.clause(id="V27")
@pytest.mark.parametrize("write", WAYS.values(), ids=WAYS)
def test_one_that_is_applied_inside_of_a_function(write: Callable[[Any], Any]) -> None:
    inner = layer(write)
    result = gradcheck.check(lambda v: 2 * inner.apply(v * 1.5), X)
    assert (result.verdict, "GC133" in codes(result)) == (Status.FAIL, True)
    assert "forward writes into argument x of Layer" in str(result)


@pytest.mark.clause(id="V27")
@pytest.mark.parametrize(
    "call",
    [lambda inner, v: inner.apply([v * 1.5]), lambda inner, v: inner.apply(x=[v * 1.5])],
    ids=["a list", "a keyword"],
)
def test_arguments_in_lists_and_by_keyword(call: Callable[..., Any]) -> None:
    class Layer(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x[0].scale_(0.5)
            return x[0] * 3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return [3 * g]

    result = gradcheck.check(lambda v: call(Layer, v), X)
    assert "GC133" in codes(result)
    assert "forward writes into argument x of Layer" in str(result)


@pytest.mark.clause(id="V27")
def test_a_write_by_a_layer_inside_of_another_is_one_of_both() -> None:
    inner = layer(lambda x: x.scale_(0.5))

    class Outer(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, v: Any) -> Any:
            ctx.y = inner.apply(v)
            return ctx.y * 1.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 0.5 * ctx.y * (g - (g * ctx.y).sum(-1, keepdim=True))

    assert "forward writes into v" in str(gradcheck.check(Outer, X))


@pytest.mark.clause(id="V27")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "write",
    [
        lambda x: np.multiply(x, 0.5, out=x),
        lambda x: x.__setitem__(slice(None), 0.5 * x),
        lambda x: x.reshape(-1).__imul__(0.5),
        lambda x: x.T.sort(),
    ],
    ids=["out=", "x[:] =", "a view", "sort"],
)
def test_functions_of_arrays_that_write_into_one(write: Callable[[Any], Any], dtype: str) -> None:
    def forward(pair: Any) -> Any:
        write(pair[0])
        return pair[0] + 2 * pair[1]

    x = X[::-1].copy().astype(dtype)
    result = gradcheck.check(forward, [x, x.copy()], backward=lambda pair, g: [g, 2 * g])
    assert "GC133" in codes(result)
    assert "forward writes into pair[0]" in str(result)


# --------------------------------------------------------------------------- what is no breach
@pytest.mark.clause(id="V27")
@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (lambda ctx, x: x.scale_(3.0), lambda ctx, g: 3 * g),
        (lambda ctx, x: (x.scale_(3.0), x * 2.0), lambda ctx, g, h: 3 * g + 6 * h),
        (lambda ctx, x: x.clone().scale_(3.0), lambda ctx, g: 3 * g),
        (lambda ctx, x: paddle.to_tensor(np.multiply(x.numpy(), 3.0)), lambda ctx, g: 3 * g),
    ],
    ids=["in place", "in place beside another", "a clone", "numpy's copy"],
)
def test_what_is_returned_is_changed_in_place(forward: Any, backward: Any) -> None:
    Layer = type("Layer", (paddle.autograd.PyLayer,), {})
    Layer.forward, Layer.backward = staticmethod(forward), staticmethod(backward)
    result = gradcheck.check(lambda v: Layer.apply(v * 1.5), X)  # type: ignore[attr-defined]
    assert (result.verdict, result.diagnosis) == (Status.PASS, ())


@pytest.mark.clause(id="V27")
def test_what_is_returned_as_a_new_tensor_may_not_be_changed() -> None:
    class Layer(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_not_inplace(x)
            return x.scale_(3.0)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 3 * g

    assert "GC133" in codes(gradcheck.check(lambda v: Layer.apply(v * 1.5), X))


@pytest.mark.clause(id="V27")
def test_running_statistics_may_be_changed() -> None:
    class Centred(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any, mean: Any) -> Any:
            mean.scale_(0.9).add_(0.1 * x.mean(0))
            return x - x.mean(0)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g - g.mean(0), None

    result = gradcheck.check(Centred, X, paddle.to_tensor(np.ones(3)))
    assert (result.verdict, result.diagnosis) == (Status.PASS, ())
