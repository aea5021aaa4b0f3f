"""Weights that are no arguments: leaves that a function reads, and that are trained as its inputs are."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from claims import verdict_of

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status
from pylayer.layer.recompute import recompute

X = np.random.default_rng(0).standard_normal((2, 3))
nn: Any = paddle.nn

GLOBAL: Any = paddle.to_tensor([0.5, -1.0, 2.0], dtype="float64", stop_gradient=False)


def weight(dtype: str = "float64") -> Any:
    return paddle.to_tensor([0.5, -1.0, 2.0], dtype=dtype, stop_gradient=False)


def product(factor: float) -> Any:
    """sin(x) · w, the gradient of w times a factor."""

    class Product(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return paddle.sin(x) * w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensor()
            return g * w * paddle.cos(x), factor * (g * paddle.sin(x)).sum(0)

    return Product


def of_a_closure(layer: Any, w: Any) -> Any:
    return lambda x: layer.apply(x, w)


def of_an_attribute(layer: Any, w: Any) -> Any:
    held = SimpleNamespace(scale=w)
    return lambda x: 2 * layer.apply(x, held.scale)


def of_a_method(layer: Any, w: Any) -> Any:
    class Model:
        def __init__(self) -> None:
            self.gain = w

        def run(self, x: Any) -> Any:
            return layer.apply(x, self.gain)

    return Model().run


def of_a_dict(layer: Any, w: Any) -> Any:
    table = {"gamma": w}
    return lambda x: layer.apply(x, table["gamma"])


def of_a_list(layer: Any, w: Any) -> Any:
    weights = [w]
    return lambda x: layer.apply(x, weights[0])


def of_slots(layer: Any, w: Any) -> Any:
    class Slots:
        __slots__ = ("hidden",)

    held = Slots()
    held.hidden = w
    return lambda x: layer.apply(x, held.hidden)


def of_a_layer(layer: Any, w: Any) -> Any:
    class Net(nn.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = self.create_parameter([3], dtype="float64")
            self.weight.set_value(w.numpy())

        def forward(self, x: Any) -> Any:
            return layer.apply(x, self.weight)

    return Net()


def of_layers_in_a_function(layer: Any, w: Any) -> Any:
    net = nn.Sequential(of_a_layer(layer, w), nn.Tanh())
    return lambda x: net(x) * 2


def recomputed(layer: Any, w: Any) -> Any:
    """The gradient of w is added to w by a backward inside of backward."""
    return lambda x: recompute(lambda v: layer.apply(v, w), x)


def of_a_default(layer: Any, w: Any) -> Any:
    return lambda x, scale=w: layer.apply(x, scale)


def of_a_keyword(layer: Any, w: Any) -> Any:
    return lambda x, *, scale=w: layer.apply(x, scale)


PLACES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "a closure": (of_a_closure, "w"),
    "a default": (of_a_default, "scale"),
    "a keyword's default": (of_a_keyword, "scale"),
    "an attribute": (of_an_attribute, "scale"),
    "an attribute of a method's": (of_a_method, "gain"),
    "a dict": (of_a_dict, "gamma"),
    "a list": (of_a_list, "w"),
    "slots": (of_slots, "a leaf of shape [3]"),
    "a parameter": (of_a_layer, "weight"),
    "a parameter within": (of_layers_in_a_function, "0.weight"),
    "recompute": (recomputed, "w"),
}


@pytest.mark.clause(id="V29")
@pytest.mark.parametrize(("factor", "wanted"), [(1.0, Status.PASS), (1.1, Status.FAIL), (0.0, Status.FAIL)])
@pytest.mark.parametrize(("make", "name"), PLACES.values(), ids=PLACES)
def test_the_gradient_of_a_weight(make: Any, name: str, factor: float, wanted: Status) -> None:
    w = weight()
    result = gradcheck.check(make(product(factor), w), X)
    assert result.verdict is wanted
    if wanted is Status.FAIL:
        assert result.summary().endswith("3 of 3 entries wrong; x right")
        if make is not of_a_list:  # the variable of the test holds it as well
            assert f"gradient of {name}:" in result.summary()
    assert (w.numpy().tolist(), w.dtype, w.grad, w.is_leaf) == ([0.5, -1.0, 2.0], paddle.float64, None, True)


@pytest.mark.clause(id="V29")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("factor", "wanted"), [(1.0, Status.PASS), (1.1, Status.FAIL)])
def test_in_the_dtypes_and_at_the_points_of_the_inputs(factor: float, wanted: Status, dtype: str) -> None:
    w = weight(dtype)
    function = of_a_closure(product(factor), w)
    assert verdict_of(function, X.astype(dtype), points=2, dtypes=["float64", "float32"]) is wanted
    assert verdict_of(function, X.astype(dtype), order=2) is wanted
    assert (w.numpy().tolist(), str(w.dtype)) == ([0.5, -1.0, 2.0], f"paddle.{dtype}")


@pytest.mark.clause(id="V29")
@pytest.mark.parametrize(("factor", "wanted"), [(1.0, Status.PASS), (1.1, Status.FAIL)])
def test_a_global_and_an_input_of_the_same_name(factor: float, wanted: Status) -> None:
    layer = product(factor)
    result = gradcheck.check(lambda GLOBAL_: layer.apply(GLOBAL_, GLOBAL), X)
    assert result.verdict is wanted
    assert wanted is Status.PASS or "gradient of GLOBAL:" in result.summary()
    w = weight()
    same = gradcheck.check(lambda x, y: layer.apply(x, w) + y, X, X)
    assert same.verdict is wanted
    x = weight()
    named = gradcheck.check((lambda layer, leaf: lambda x: layer.apply(x, leaf))(layer, x), X)
    assert wanted is Status.PASS or "gradient of leaf:" in named.summary()


@pytest.mark.clause(id="V29")
def test_a_weight_that_forward_reads_and_backward_does_not_know() -> None:
    w = weight()

    class Scaled(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * w

    result = gradcheck.check(Scaled, X)
    assert (result.verdict, result.summary()) == (Status.FAIL, "gradient of w: 3 of 3 entries wrong; x right")
    w.stop_gradient = True
    assert verdict_of(Scaled, X) is Status.PASS


@pytest.mark.clause(id="V29")
def test_a_gradient_that_a_weight_has_stays_its_own() -> None:
    w = weight()
    (3 * w).sum().backward()
    assert verdict_of(recomputed(product(1.0), w), X) is Status.PASS
    assert verdict_of(of_a_closure(product(1.0), w), X) is Status.PASS
    assert w.grad.tolist() == [3.0, 3.0, 3.0]


@pytest.mark.clause(id="V29")
def test_what_raises_leaves_a_weight_as_it_was() -> None:
    w, calls = weight(), list[int]()

    def raises_later(x: Any) -> Any:
        calls.append(1)
        if len(calls) > 5:
            raise LookupError("of the user's")
        return x * w

    with pytest.raises(LookupError):
        gradcheck.check(raises_later, X)
    assert w.numpy().tolist() == [0.5, -1.0, 2.0]


# --------------------------------------------------------------------------- what is no weight
@pytest.mark.clause(id="V29")
def test_leaves_that_each_call_makes_are_none() -> None:
    class Local(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            leaf = x.detach()
            leaf.stop_gradient = False
            with paddle.enable_grad():
                y = paddle.sin(leaf)
            (ctx.slope,) = paddle.grad(y, leaf, paddle.ones_like(y))
            return y.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.slope

    gc.disable()
    try:
        result = gradcheck.check(Local, X)
    finally:
        gc.enable()
    assert (result.verdict, result.marks) == (Status.PASS, ())


@pytest.mark.clause(id="V29")
def test_constants_and_statistics_are_none() -> None:
    constant = paddle.to_tensor(X)
    norm = nn.BatchNorm1D(3)
    norm.eval()
    assert verdict_of(lambda x: paddle.round(constant) + norm(x.astype("float32")), X) is Status.PASS


@pytest.mark.clause(id="V29")
@pytest.mark.parametrize(("expect", "answer"), [("straight-through", 1.0), ("zero", 0.0)])
def test_what_is_declared_is_said_of_the_inputs(expect: Any, answer: float) -> None:
    w = weight()

    class Rounded(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            return paddle.round(x) + 0 * w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return answer * g, 7 * g.sum(0)

    assert verdict_of(lambda x: Rounded.apply(x, w), X, expect=expect) is Status.PASS
