"""Layers that keep what backward needs where another call of theirs finds it, and layers that keep other things."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck.codes import is_contract
from gradcheck.result import Status

X = np.random.default_rng(0).standard_normal((2, 3))
F: Any = paddle.nn.functional  # type: ignore[attr-defined]
Forward = Callable[[dict[Any, Any], Any, Any], Any]
Backward = Callable[[dict[Any, Any], Any, Any], Any]


def layer(forward: Forward, backward: Backward) -> Any:
    """A layer whose `forward` gets what all calls share, its context and x; `backward` that, the context and g."""
    shared: dict[Any, Any] = {}

    class Layer(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return forward(shared, ctx, x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return backward(shared, ctx, g)

    return Layer


def keep(shared: dict[Any, Any], name: Any, value: Any) -> Any:
    shared[name] = value
    return value


def norm(shared: dict[Any, Any], ctx: Any, x: Any) -> Any:
    """Nothing but the norm is shared, which has no order and no signs."""
    ctx.save_for_backward(x)
    return x * keep(shared, "r", 1 / paddle.sqrt((x * x).sum()))


def of_norm(shared: dict[Any, Any], ctx: Any, g: Any) -> Any:
    (x,) = ctx.saved_tensor()
    r = shared["r"]
    return r * g - x * r**3 * (g * x).sum()


def in_one_buffer(shared: dict[Any, Any], ctx: Any, x: Any) -> Any:
    """What is saved is memory that the next call of this shape writes into."""
    array = x.numpy()
    ctx.y = shared.setdefault(array.dtype, np.empty(array.shape, array.dtype))
    np.exp(array, out=ctx.y)
    return paddle.to_tensor(ctx.y.copy())


SHARING: dict[str, tuple[Forward, Backward]] = {
    "the input": (lambda s, c, x: paddle.sin(keep(s, "x", x)), lambda s, c, g: g * paddle.cos(s["x"])),
    "the output": (lambda s, c, x: keep(s, "y", paddle.tanh(x)), lambda s, c, g: g * (1 - s["y"] ** 2)),
    "a mask": (lambda s, c, x: x * keep(s, "m", (x > 0).astype(x.dtype)), lambda s, c, g: g * s["m"]),
    "an index": (
        lambda s, c, x: paddle.take_along_axis(x, keep(s, "k", x.argmax(-1, keepdim=True)), 1),
        lambda s, c, g: g * F.one_hot(s["k"].squeeze(1), 3).astype(g.dtype),
    ),
    "a number": (norm, of_norm),
    "an array": (
        lambda s, c, x: paddle.to_tensor(np.sin(keep(s, "x", x.numpy()))),
        lambda s, c, g: paddle.to_tensor(g.numpy() * np.cos(s["x"])),
    ),
    "a buffer": (in_one_buffer, lambda s, c, g: paddle.to_tensor(g.numpy() * c.y)),
}


@pytest.mark.clause(id="V30")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("inside", [False, True], ids=["directly", "inside"])
@pytest.mark.parametrize("parts", SHARING.values(), ids=SHARING)
def test_what_another_call_overwrites(parts: tuple[Forward, Backward], inside: bool, dtype: str) -> None:
    shared = layer(*parts)
    call = (lambda v: 2 * shared.apply(1.5 * v)) if inside else shared
    result = gradcheck.check(call, X.astype(dtype))
    assert (result.verdict, [found.code for found in result.diagnosis]) == (Status.FAIL, ["GC138"])
    assert "keep what backward needs on ctx" in str(result)
    assert is_contract("GC138")


@pytest.mark.clause(id="V30")
@pytest.mark.parametrize("x", [np.array([0.7]), np.array(-0.7), np.full(3, 0.5), np.zeros(2), np.array([1.0, -1.0])])
def test_inputs_of_which_another_order_is_the_same(x: Any) -> None:
    result = gradcheck.check(layer(*SHARING["the output"]), x)
    assert [found.code for found in result.diagnosis] == ["GC138"]


@pytest.mark.clause(id="V30")
def test_functions_of_arrays_share_as_well() -> None:
    kept: dict[str, Any] = {}
    result = gradcheck.check(
        lambda x: np.sin(keep(kept, "x", x.copy())), X, backward=lambda x, g: g * np.cos(kept["x"])
    )
    assert [found.code for found in result.diagnosis] == ["GC138"]


@pytest.mark.clause(id="V30")
def test_an_input_that_insists_on_its_kind() -> None:
    """Only values that add up to 1 are taken: another order of them is."""
    kept: dict[str, Any] = {}

    def entropy(x: Any) -> Any:
        if abs(x.sum() - 1) > 1e-2:
            raise ValueError("no probabilities")
        return x * np.log(keep(kept, "x", x.copy()))

    result = gradcheck.check(entropy, np.array([0.2, 0.5, 0.3]), backward=lambda x, g: g * (1 + np.log(kept["x"])))
    assert "GC138" in [found.code for found in result.diagnosis]


# --------------------------------------------------------------------------- what is no state of a call
def cached(shared: dict[Any, Any], ctx: Any, x: Any) -> Any:
    ctx.key = tuple(x.shape)
    weights = shared.setdefault(ctx.key, np.arange(1.0, 7.0).reshape(2, 3))
    return x * paddle.to_tensor(weights).astype(x.dtype)


def counted(shared: dict[Any, Any], ctx: Any, x: Any) -> Any:
    shared["calls"] = shared.get("calls", 0) + 1
    shared["last"] = x
    ctx.save_for_backward(x)
    return paddle.sin(x)


def drawn(ctx: Any, like: Any) -> Any:
    with_state = paddle.get_rng_state()
    paddle.seed(7)
    mask = (paddle.rand(like.shape) > 0.4).astype(like.dtype)
    paddle.set_rng_state(with_state)
    return mask


def from_a_saved_state(like: Any, state: Any) -> Any:
    generator = np.random.RandomState()
    generator.set_state(state)
    return paddle.to_tensor(generator.uniform(1, 2, like.shape)).astype(like.dtype)


def with_state(shared: dict[Any, Any], ctx: Any, x: Any) -> Any:
    ctx.state = np.random.RandomState(5).get_state()
    return x * from_a_saved_state(x, ctx.state)


def masked(shared: dict[Any, Any], ctx: Any, x: Any) -> Any:
    paddle.seed(3)
    ctx.mask = (paddle.rand(x.shape) > 0.4).astype(x.dtype)
    return x * ctx.mask


KEEPING: dict[str, tuple[Forward, Backward]] = {
    "a cache by shape": (cached, lambda s, c, g: g * paddle.to_tensor(s[c.key]).astype(g.dtype)),
    "a count": (counted, lambda s, c, g: g * paddle.cos(c.saved_tensor()[0])),
    "a seed": (lambda s, c, x: x * drawn(c, x), lambda s, c, g: g * drawn(c, g)),
    "a saved state": (with_state, lambda s, c, g: g * from_a_saved_state(g, c.state)),
    "a saved mask": (masked, lambda s, c, g: g * c.mask),
}


@pytest.mark.clause(id="V30")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("inside", [False, True], ids=["directly", "inside"])
@pytest.mark.parametrize("parts", KEEPING.values(), ids=KEEPING)
def test_what_no_call_overwrites(parts: tuple[Forward, Backward], inside: bool, dtype: str) -> None:
    kept = layer(*parts)
    result = gradcheck.check((lambda v: 2 * kept.apply(1.5 * v)) if inside else kept, X.astype(dtype))
    assert (result.verdict, result.diagnosis) == (Status.PASS, ())


@pytest.mark.clause(id="V30")
def test_what_is_drawn_anew_keeps_its_own_codes() -> None:
    random = np.random.default_rng(0)
    fresh = layer(lambda s, c, x: x * paddle.to_tensor(random.random(x.shape)).astype(x.dtype), lambda s, c, g: g)
    assert [found.code for found in gradcheck.check(fresh, X).diagnosis] == ["GC131"]
    again = layer(lambda s, c, x: paddle.exp(x), lambda s, c, g: g * paddle.rand(g.shape).astype(g.dtype))
    assert "GC132" in [found.code for found in gradcheck.check(again, X).diagnosis]
