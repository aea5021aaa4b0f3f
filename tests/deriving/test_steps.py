"""An edit of a backward runs what depends on it, and gives what a run of the whole backward gives."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle
from gradcheck.deriving.call import LayerCall
from gradcheck.deriving.repair import Repair

PyLayer: Any = paddle.autograd.PyLayer
X = np.random.default_rng(0).standard_normal((3, 4))
CALLS: list[str] = []


def counted(name: str, value: Any) -> Any:
    CALLS.append(name)
    return value


def forward(ctx, x):
    y = paddle.tanh(x)
    ctx.save_for_backward(y)
    return y, y * y


def plus_for_minus(ctx, dy, dz):
    (y,) = ctx.saved_tensor()
    square = counted("square", y * y)
    total = dy + 2 * dz * y
    return total * (1 + square)


def names_set_twice(ctx, dy, dz):
    (y,) = ctx.saved_tensor()
    total = dz * y
    square = y * y
    total = dy + 3 * total
    return total * (1 - square)


def loop(ctx, dy, dz):
    (y,) = ctx.saved_tensor()
    total = dy
    for _ in range(2):
        total = total - dz * y
    return total * (1 - y * y)


def changes_in_place(ctx, dy, dz):
    (y,) = ctx.saved_tensor()
    total = 3 * dz
    total *= y
    total += dy
    return total * (1 - y * y)


def read_later(ctx, dy, dz):
    (y,) = ctx.saved_tensor()
    scaled = lambda value: value * slope  # noqa: E731
    slope = 1 + y * y
    return scaled(dy + 2 * dz * y)


def returns_a_list(ctx, dy, dz):
    (y,) = ctx.saved_tensor()
    gradients = [dy + 3 * dz * y]
    return (*[gradient * (1 - y * y) for gradient in gradients],)


def raises(ctx, dy, dz):
    (y,) = ctx.saved_tensor()
    total = dy + 2 * (dz @ y)
    return total * (1 - y * y)


def repair_of(backward: Callable[..., Any]) -> Repair:
    layer = type("Own", (PyLayer,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    return Repair(LayerCall.of(layer, [X], {}), backward, lambda edited: True)


def test_an_edit_runs_nothing_that_does_not_depend_on_it() -> None:
    repair = repair_of(plus_for_minus)
    places = {ast.unparse(node): node for node in ast.walk(repair.function) if isinstance(node, ast.expr)}
    place, square = places["1 + square"], places["y * y"]
    CALLS.clear()
    assert not repair.steps.is_right_with(place, "1 + 2 * square")
    assert repair.steps.is_right_with(place, "1 - square")
    assert CALLS == []
    assert repair.steps.is_right_with(square, "-y * y")
    assert CALLS == ["square"]


@pytest.mark.parametrize(
    ("backward", "line"),
    [
        (plus_for_minus, "return total * (1 - square)"),
        (names_set_twice, "total = dy + 2 * total"),
        (loop, "total = total + dz * y"),
        (changes_in_place, "total = 2 * dz"),
        (read_later, "slope = 1 - y * y"),
        (returns_a_list, "gradients = [dy + 2 * dz * y]"),
        (raises, "total = dy + 2 * (dz * y)"),
    ],
)
def test_a_backward_of_any_form_is_repaired(backward: Callable[..., Any], line: str) -> None:
    fix = repair_of(backward).fix()
    assert fix is not None
    assert fix.source_line == line


def test_a_backward_with_too_few_parameters_has_no_fix() -> None:
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * (1 - y * y)

    assert repair_of(backward).fix() is None


def test_a_search_ends_at_its_deadline() -> None:
    assert repair_of(plus_for_minus).fix(deadline=time.monotonic() + 60) is not None
    assert repair_of(plus_for_minus).fix(deadline=time.monotonic()) is None


def test_a_search_stops_after_some_runs_of_backward() -> None:
    def forward_of_more(ctx, x):
        ctx.save_for_backward(x)
        return paddle.sin(x)

    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return counted("whole", dy * x)

    layer = type("Own", (PyLayer,), {"forward": staticmethod(forward_of_more), "backward": staticmethod(backward)})
    repair = Repair(LayerCall.of(layer, [X], {}), backward, lambda edited: False)
    CALLS.clear()
    assert repair.fix(most=10) is None
    assert len(CALLS) <= 2 * 10 + 1
