"""What Paddle's layers write into, share between calls and close over, checked from Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcheck
from gradcheck.result import Status

X = np.random.default_rng(0).uniform(0.2, 2, (2, 3))


def codes(result: Any) -> list[str]:
    return [found.code for found in result.diagnosis]


def layer(paddle: Any, forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    class Layer(paddle.autograd.PyLayer):
        pass

    Layer.forward, Layer.backward = staticmethod(forward), staticmethod(backward)
    return Layer


def without_gradients(paddle: Any, x: Any) -> None:
    with paddle.no_grad():
        x.scale_(0.5)


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "x[:] =": lambda paddle, x: x.__setitem__(slice(None), 0.5 * x),
    "scale_": lambda paddle, x: x.scale_(0.5),
    "fill_": lambda paddle, x: x.fill_(0.5),
    "assign": lambda paddle, x: paddle.assign(0.5 * x, output=x),
    "detach": lambda paddle, x: x.detach().scale_(0.5),
    "no_grad": without_gradients,
    "data": lambda paddle, x: x.data.scale_(0.5),
    "reshape": lambda paddle, x: x.reshape([-1]).scale_(0.5),
    "a slice": lambda paddle, x: x[:1].scale_(0.5),
    "set_value": lambda paddle, x: x.set_value(0.5 * x),
    "copy_": lambda paddle, x: x.copy_(0.5 * x, True),
}


@pytest.mark.parametrize("write", WAYS.values(), ids=WAYS)
def test_a_forward_that_writes_into_its_argument(real: Any, write: Callable[[Any, Any], Any]) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        write(real, x)
        ctx.y = real.nn.functional.softmax(x)
        return ctx.y * 1.0

    softmax = layer(real, forward, lambda ctx, g: ctx.y * (g - (g * ctx.y).sum(-1, keepdim=True)))
    assert "forward writes into x" in str(gradcheck.check(softmax, X))
    inside = gradcheck.check(lambda v: 2 * softmax.apply(1.5 * v), X)
    assert (inside.verdict, "GC133" in codes(inside)) == (Status.FAIL, True)
    assert "forward writes into argument x of Layer" in str(inside)


def test_what_is_returned_is_changed_in_place(real: Any) -> None:
    tripled = layer(real, lambda ctx, x: x.scale_(3.0), lambda ctx, g: 3 * g)
    result = gradcheck.check(lambda v: tripled.apply(1.5 * v), X)
    assert (result.verdict, result.diagnosis) == (Status.PASS, ())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("on_class", [True, False])
def test_state_of_a_call(real: Any, on_class: bool, dtype: str) -> None:
    shared = type("Shared", (), {})

    def forward(ctx: Any, x: Any) -> Any:
        (shared if on_class else ctx).kept = x
        return real.sin(x)

    kept = layer(real, forward, lambda ctx, g: g * real.cos((shared if on_class else ctx).kept))
    assert codes(gradcheck.check(kept, X.astype(dtype))) == (["GC138"] if on_class else [])


@pytest.mark.parametrize("twin", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("factor", "wanted"), [(1.0, Status.PASS), (1.1, Status.FAIL)])
def test_weights_that_are_no_arguments(real: Any, factor: float, wanted: Status, dtype: str, twin: bool) -> None:
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return real.to_tensor((real.sin(x) * w).numpy()) if not twin else real.sin(x) * w

    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensor()
        return g * w * real.cos(x), factor * (g * real.sin(x)).sum(0)

    product = layer(real, forward, backward)

    class Net(real.nn.Layer):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = self.create_parameter([3], dtype=dtype)
            if not twin:
                self.register_forward_post_hook(lambda net, given, out: out)

        def forward(self, x: Any) -> Any:
            return product.apply(x, self.weight)

    net = Net()
    (3 * net.weight).sum().backward()
    before = net.weight.numpy()
    for function in (net, lambda x: 2 * net(x)):
        result = gradcheck.check(function, X.astype(dtype))
        assert result.verdict is wanted
        assert wanted is Status.PASS or "gradient of weight:" in result.summary()
    assert (net.weight.numpy() == before).all()
    assert net.weight.grad.tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("preserve", [True, False])
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize(("factor", "wanted"), [(1.0, Status.PASS), (1.1, Status.FAIL)])
def test_recomputed_layers(real: Any, factor: float, wanted: Status, reentrant: bool, preserve: bool) -> None:
    from paddle.distributed.fleet.utils import recompute

    cube = layer(
        real,
        lambda ctx, x: ctx.save_for_backward(x) or x * x * x,
        lambda ctx, g: 3 * factor * ctx.saved_tensor()[0] ** 2 * g,
    )
    options = {"use_reentrant": reentrant, "preserve_rng_state": preserve}
    result = gradcheck.check(lambda x: recompute(lambda v: real.sin(cube.apply(v)), x, **options), X)
    assert result.verdict is wanted


def test_static_mode_makes_no_difference(real: Any) -> None:
    tanh = layer(real, lambda ctx, x: setattr(ctx, "y", real.tanh(x)) or ctx.y, lambda ctx, g: g * (1 - ctx.y * ctx.y))
    real.enable_static()
    try:
        assert gradcheck.check(tanh, X).verdict is Status.PASS
        assert not real.in_dynamic_mode()
    finally:
        real.disable_static()
