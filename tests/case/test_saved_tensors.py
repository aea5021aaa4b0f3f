"""Advice on a backward that reads the saved Tensors in a wrong way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pylayer.paddle as paddle
from gradcheck.case.saved_tensors import hint_of_saved_tensors

Backward = Callable[[Any, Any], Any]


def hint_of(backward: Backward, *saved: int) -> str:
    """The hint on a layer that saves its input, times each of some numbers."""

    class Layer(paddle.autograd.PyLayer):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            if saved:
                ctx.save_for_backward(*(x * factor for factor in saved))
            return x * 2

    Layer.backward = staticmethod(backward)
    x = paddle.ones([2])
    x.stop_gradient = False
    with pytest.raises((AttributeError, TypeError, ValueError)) as raised:
        Layer.apply(x).sum().backward()
    return hint_of_saved_tensors(raised.value)


def unpacks_two(ctx: Any, dy: Any) -> Any:
    x, y = ctx.saved_tensor()
    return dy * x * y


@pytest.mark.parametrize(("saved", "count"), [((), "no Tensors"), ((1,), "1 Tensor")])
def test_too_few_saved_tensors(saved: tuple[int, ...], count: str) -> None:
    wanted = f"forward saved {count}: pass those that backward reads to ctx.save_for_backward"
    assert hint_of(unpacks_two, *saved) == wanted


def compares(ctx: Any, dy: Any) -> Any:
    x = ctx.saved_tensor()
    return paddle.where(x > 0, dy, 2 * dy)


def multiplies(ctx: Any, dy: Any) -> Any:
    x = ctx.saved_tensor()
    return dy * x


def multiplies_in_place(ctx: Any, dy: Any) -> Any:
    x = ctx.saved_tensor()
    dy *= x
    return dy


def calls(ctx: Any, dy: Any) -> Any:
    x = ctx.saved_tensor()
    return dy * paddle.tanh(x)


def calls_by_keyword(ctx: Any, dy: Any) -> Any:
    x = ctx.saved_tensor()
    return dy * paddle.sum(x=x)


def reads_an_attribute(ctx: Any, dy: Any) -> Any:
    x = ctx.saved_tensor()
    return dy * x.tanh()


TUPLE_AS_TENSOR = [compares, multiplies, multiplies_in_place, calls, calls_by_keyword, reads_an_attribute]


@pytest.mark.parametrize("backward", TUPLE_AS_TENSOR)
def test_a_tuple_that_was_not_unpacked(backward: Any) -> None:
    line = backward.__code__.co_firstlineno + 1
    place = f"line {line}: ctx.saved_tensor() is a tuple: "
    assert hint_of(backward, 1) == f"{place}write `x, = ctx.saved_tensor()`"
    assert hint_of(backward, 1, 2) == f"{place}unpack its 2 Tensors"


def unpacks_later(ctx: Any, dy: Any) -> Any:
    saved = ctx.saved_tensor()
    (x,) = saved
    return dy * x * (1, 2)


def indexes(ctx: Any, dy: Any) -> Any:
    saved = ctx.saved_tensor()
    return paddle.where(saved[0], dy, (1, 2))


def unpacks_another(ctx: Any, dy: Any) -> Any:
    (x,) = ctx.saved_tensor()
    a, b = None  # type: ignore[misc]
    return dy * x * a * b


@pytest.mark.parametrize("backward", [unpacks_later, indexes, unpacks_another])
def test_other_errors_get_no_hint(backward: Backward) -> None:
    assert hint_of(backward, 1) == ""
