"""What was not checked is not green, and what cannot be asked is an error; plain arguments are passed as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims import GREEN, numpy_layer, verdict_of
from hypothesis import given, settings
from hypothesis import strategies as st
from layers import problem

import gradcheck
import pylayer.paddle as paddle
from gradcheck.case.gradient_check import check_gradient
from gradcheck.result import GradientSummary, Status

PyLayer: Any = paddle.autograd.PyLayer
X = np.random.default_rng(0).standard_normal((3, 4))
Tanh = numpy_layer(np.tanh, lambda x, y, g: g * (1 - y * y))


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: x[:0] * 2, X),
        (lambda x: x * 2, np.zeros((0, 3))),
        (Tanh, np.zeros((0, 3))),
        (lambda x: [x.numpy()], X),
        (lambda x: x.numpy() * 2, X),
        (lambda x: float(x.sum()), X),
        (lambda x: None, X),
        (lambda x: [], X),
        (print, X),
        (lambda x: paddle.argmax(x, axis=-1), X),
        (lambda x: (x * x).astype("int64"), X),
    ],
)
def test_where_nothing_is_checked_the_verdict_is_not_green(function: Any, x: Any) -> None:
    assert verdict_or_error(function, x) not in GREEN


def checked(forward: Any, backward: Any, *inputs: Any) -> GradientSummary:
    return check_gradient(problem(forward, backward, *inputs))


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(lambda shape: 0 in shape),
    st.sampled_from([1.0, 2.0, np.nan]),
)
def test_what_is_claimed_of_nothing_is_not_checked(shape: list[int], factor: float) -> None:
    empty, full = np.zeros(shape), np.ones(3)
    nothing_in_and_out = checked(np.tanh, lambda x, y, g: factor * g * (1 - y * y), empty)
    nothing_in = checked(lambda x: np.asarray(x.sum() + 1.0), lambda x, y, g: factor * g + 0 * x, empty)
    nothing_out = checked(lambda x: x[:0] * 2, lambda x, y, g: factor * x * 0, full)
    for summary in (nothing_in_and_out, nothing_in, nothing_out):
        assert summary.verdict is Status.INCONCLUSIVE
        assert "nothing was checked" in summary.why
        assert not summary.certified


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(lambda shape: 0 in shape))
def test_an_empty_input_beside_another_is_no_obstacle(shape: list[int]) -> None:
    def backward(factor: float) -> Any:
        return lambda x, e, y, g: (factor * g * (1 - y * y), 0 * e)

    x = X[0]
    assert checked(lambda x, e: np.tanh(x) + e.sum(), backward(1.0), x, np.zeros(shape)).verdict is Status.PASS
    assert checked(lambda x, e: np.tanh(x) + e.sum(), backward(2.0), x, np.zeros(shape)).verdict is Status.FAIL


def test_an_empty_input_or_output_beside_others_is_no_obstacle() -> None:
    assert verdict_of(lambda x, e: (x * x, e * 2), X, np.zeros((0, 2))) is Status.PASS
    assert verdict_of(lambda x: (paddle.tanh(x), paddle.argmax(x, axis=-1)), X) is Status.PASS


@pytest.mark.parametrize(
    "options",
    [
        {"rtol": np.inf}, {"rtol": -1.0}, {"rtol": np.nan}, {"rtol": 1.0}, {"rtol": 7.0}, {"rtol": "0.1"},
        {"mode": "x"}, {"mode": ""}, {"mode": None}, {"mode": 3},
        {"order": 0}, {"order": 3}, {"order": "2"}, {"order": 1.5},
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_an_error(options: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        gradcheck.check(Tanh, X, **options)


@pytest.mark.parametrize("options", [{"rtol": 0}, {"rtol": 0.0}, {"rtol": 0.5}, {"mode": "full"}, {"mode": "probe"}])
def test_what_can_be_asked_is_checked(options: dict[str, Any]) -> None:
    assert verdict_of(Tanh, X, **options) is Status.PASS


class Scaled(PyLayer):  # type: ignore[misc]
    """y = x·factor + shift, if asked for; factor and shift are plain numbers."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float, shift: int, wanted: bool = True) -> Any:
        assert isinstance(factor, float)
        assert isinstance(shift, int)
        ctx.factor = factor
        return x * factor + shift if wanted else x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.factor


class ScaledWrongly(Scaled):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.factor**2


def test_plain_numbers_are_passed_as_they_are() -> None:
    assert verdict_of(Scaled, X, 3.0, 2, True) is Status.PASS
    assert verdict_of(ScaledWrongly, X, 3.0, 2, True) is Status.FAIL


def test_an_array_of_integers_needs_no_gradient() -> None:
    class Gather(PyLayer):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, table: Any, rows: Any) -> Any:
            ctx.save_for_backward(rows)
            ctx.count = table.shape[0]
            return paddle.gather(table, rows)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (rows,) = ctx.saved_tensor()
            return paddle.nn.functional.one_hot(rows, ctx.count).astype(g.dtype).T @ g, None

    assert verdict_of(Gather, X, np.array([2, 0, 2, 1])) is Status.PASS


@pytest.mark.parametrize(
    ("backward", "x"),
    [
        (lambda x, g: g.astype("int64"), X),
        (lambda x, g: paddle.to_tensor(2 * (x.numpy() * g.numpy()).sum()), np.array([1.3])),
        (lambda x, g: (2 * x * g).reshape([-1]), X),
        (lambda x, g: (2 * x * g).unsqueeze(0), X),
        (lambda x, g: g.scale_(2.0) * x, X),
    ],
)
def test_a_gradient_of_another_dtype_or_shape_or_at_the_cost_of_its_cotangent_fails(backward: Any, x: Any) -> None:
    class Square(PyLayer):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensor()
            return backward(x, g)

    result = verdict_or_error(Square, x)
    assert result is Status.FAIL or isinstance(result, (TypeError, ValueError))


def verdict_or_error(function: Any, *inputs: Any) -> Status | Exception:
    try:
        return verdict_of(function, *inputs)
    except (TypeError, ValueError) as error:
        return error
