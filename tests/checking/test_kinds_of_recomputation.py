"""Layers inside of `recompute`: what is saved there can be unpacked by the walk of backward alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from claims import verdict_of

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status
from pylayer.layer.recompute import recompute

X = np.random.default_rng(0).standard_normal((2, 3))
W = X[::-1].copy()


def product(factor: float) -> Any:
    """tanh(x) · w, the gradient of w times a factor."""

    class Product(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return paddle.tanh(x) * w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensor()
            t = paddle.tanh(x)
            return g * w * (1 - t * t), factor * g * t

    return Product


def alone(layer: Any, **options: Any) -> Callable[..., Any]:
    return lambda x, w: recompute(lambda a, b: paddle.exp(layer.apply(2 * a, b)), x, w, **options)


def behind_another(layer: Any, **options: Any) -> Callable[..., Any]:
    first = alone(layer, **options)
    return lambda x, w: recompute(layer.apply, first(x, w), w, **options)


def of_one_input(layer: Any, **options: Any) -> Callable[..., Any]:
    """What the function closes over is reached as well."""
    return lambda x, w: recompute(lambda a: layer.apply(a, paddle.sin(w)), x, **options)


def inside_another(layer: Any, **options: Any) -> Callable[..., Any]:
    """The outer one is a layer: two of the other kind in one another are refused, as by releases."""
    inner = alone(layer, **options)
    return lambda x, w: recompute(lambda a, b: layer.apply(inner(a, b), b), x, w)


@pytest.mark.clause(id="V8")
@pytest.mark.parametrize("preserve", [True, False])
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize(("factor", "wanted"), [(1.0, Status.PASS), (1.1, Status.FAIL)])
@pytest.mark.parametrize("function", [alone, behind_another, inside_another])
def test_a_layer_that_is_computed_again(
    function: Any, factor: float, wanted: Status, reentrant: bool, preserve: bool
) -> None:
    call = function(product(factor), use_reentrant=reentrant, preserve_rng_state=preserve)
    result = gradcheck.check(call, X, W)
    assert result.verdict is wanted
    assert result.wrong_counts.get("x", (0, 0))[0] == 0 or function is not alone
    assert wanted is Status.PASS or any(found.line for found in result.diagnosis) or function is not alone


@pytest.mark.clause(id="V8")
@pytest.mark.parametrize(("factor", "wanted"), [(1.0, Status.PASS), (1.1, Status.FAIL)])
def test_what_the_function_closes_over(factor: float, wanted: Status) -> None:
    assert verdict_of(of_one_input(product(factor), use_reentrant=False), X, W) is wanted


@pytest.mark.clause(id="V8")
@pytest.mark.parametrize(("slope", "wanted"), [(2.0, Status.PASS), (2.1, Status.FAIL)])
def test_what_is_packed_as_it_is_saved(slope: float, wanted: Status) -> None:
    """Packs are numbers of a list that only the forward has which made them."""

    class Square(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensor()
            return slope * x * g

    def function(x: Any) -> Any:
        kept: list[Any] = []

        def pack(tensor: Any) -> int:
            kept.append(tensor.detach())
            return len(kept) - 1

        with paddle.autograd.saved_tensors_hooks(pack, kept.__getitem__):
            return paddle.sin(Square.apply(x))

    assert verdict_of(function, X) is wanted
