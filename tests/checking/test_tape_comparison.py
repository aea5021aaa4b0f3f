"""Two right formulas differ by rounding; wrong ones by more, in the entries that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from taped import layer, problem_of

import pylayer.paddle as paddle
from gradcheck.checking.point import Point
from gradcheck.checking.probe import Comparison, tape_diff

pytestmark = pytest.mark.clause(id="V9")

F = paddle.nn.functional


def by_cosh(x: Any, g: Any) -> Any:
    c = paddle.cosh(x)
    return g / (c * c)


def sigmoid_by_exp(x: Any, g: Any) -> Any:
    e = paddle.exp(-x)
    return g * e / ((1.0 + e) * (1.0 + e))


def softmax_backward(x: Any, g: Any) -> Any:
    y = F.softmax(x, -1)
    return y * (g - (y * g).sum(-1, keepdim=True))


def normed(x: Any) -> Any:
    c = x - x.mean(-1, keepdim=True)
    return c * paddle.rsqrt((c * c).mean(-1, keepdim=True) + 1e-3)


def normed_backward(x: Any, g: Any) -> Any:
    c = x - x.mean(-1, keepdim=True)
    s = paddle.rsqrt((c * c).mean(-1, keepdim=True) + 1e-3)
    n = c * s
    return s * (g - g.mean(-1, keepdim=True) - n * (g * n).mean(-1, keepdim=True))


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape)


RIGHT: list[tuple[Callable[..., Any], Callable[..., Any], np.ndarray]] = [
    (paddle.tanh, by_cosh, np.linspace(5, 18, 50)),
    (F.sigmoid, sigmoid_by_exp, np.array([40.0, 30.0, 1.0])),
    (lambda x: F.softmax(x, -1), softmax_backward, random(4, 32).astype(np.float16)),
    (lambda x: F.softmax(x, -1), softmax_backward, 20 * random(4, 32)),
    (normed, normed_backward, random(4, 32).astype(np.float16)),
    (normed, normed_backward, random(4, 32).astype(np.float32) + 30),
    (lambda x: paddle.log1p(paddle.exp(x)), lambda x, g: g * F.sigmoid(x), np.array([-30.0, 0.5, 30.0])),
]


def at(forward: Callable[..., Any], backward: Callable[..., Any], *arrays: np.ndarray) -> Point:
    return Point(problem_of(layer(forward, backward), *arrays))


def compared(point: Point, masks: Any = None, rtol: float = 0.0) -> Comparison:
    cotangent = np.random.default_rng(1).standard_normal(point.outputs.vector.size)
    return tape_diff(point, cotangent, point.vjp(cotangent), masks, rtol)


@pytest.mark.parametrize(("forward", "backward", "x"), RIGHT)
def test_right_formulas_agree_within_rounding(
    forward: Callable[..., Any], backward: Callable[..., Any], x: np.ndarray
) -> None:
    assert compared(at(forward, backward, x)).wrong is None


@pytest.mark.parametrize(("forward", "backward", "x"), RIGHT)
def test_gradients_off_by_a_hundredth_do_not(
    forward: Callable[..., Any], backward: Callable[..., Any], x: np.ndarray
) -> None:
    found = compared(at(forward, lambda x, g: backward(x, g) * 1.01, x))
    assert found.wrong is not None
    assert found.wrong[0].mean() > 0.3
    assert (abs(found.claimed[0] - found.taped[0]) > found.bounds[0])[found.wrong[0]].all()


def off_at(index: int, by: float) -> Callable[..., Any]:
    """The gradient of a square with one entry off."""
    factor = np.ones(9)
    factor[index] += by
    return lambda x, g: 2.0 * g * x * paddle.to_tensor(factor)


def test_the_entry_that_is_wrong_is_the_one_that_is_said_to_be() -> None:
    point = at(lambda x: x * x, off_at(4, 1e-9), np.linspace(1, 2, 9))
    found = compared(point)
    assert found.wrong is not None
    assert np.flatnonzero(found.wrong[0]).tolist() == [4]


def test_what_is_allowed_relative_to_an_entry_is_not_wrong() -> None:
    point = at(lambda x: x * x, off_at(4, 1e-9), np.linspace(1, 2, 9))
    assert compared(point, rtol=1e-8).wrong is None
    assert compared(point, rtol=1e-10).wrong is not None


def test_entries_outside_of_the_masks_cannot_be_wrong() -> None:
    point = at(lambda x: x * x, off_at(4, 1.0), np.linspace(1, 2, 9))
    mask = np.arange(9) != 4
    assert compared(point, [mask]).wrong is None
    assert compared(point, [~mask]).wrong is not None
    assert compared(point, [None]).wrong is None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_beside_a_finite_entry_is_wrong(value: float) -> None:
    def backward(x: Any, g: Any) -> Any:
        return paddle.where(x > 1.9, paddle.full_like(x, value), 2.0 * g * x)

    found = compared(at(lambda x: x * x, backward, np.linspace(1, 2, 9)))
    assert found.wrong is not None
    assert np.flatnonzero(found.wrong[0]).tolist() == [8]


def test_an_entry_of_which_no_digit_is_left_is_unsure_and_not_wrong() -> None:
    """eˣ + 1e15 − 1e15 comes in steps of 1/8, with half of that in steps of 1/16: here both always differ."""

    def forward(x: Any) -> Any:
        return ((paddle.exp(x) + 1e15) - 1e15) ** 2

    def backward(x: Any, g: Any) -> Any:
        return 2.0 * g * ((paddle.exp(x) * 1.0 + 0.5e15) - 0.5e15) * paddle.exp(x)

    found = compared(at(forward, backward, np.log([1.19, 1.31, 1.44, 1.56, 1.69])))
    assert found.wrong is None
    assert found.unsure is not None
    assert found.unsure[0].all()


def test_nothing_is_measured_where_both_agree_at_once() -> None:
    point = at(lambda x: x * x, lambda x, g: 2.0 * g * x, np.linspace(1, 2, 9))
    cotangent = point.outputs.vector
    claimed = point.vjp(cotangent)
    assert point.tape is not None
    before = point.spent.runs
    found = tape_diff(point, cotangent, claimed, None, 0.0)
    assert point.spent.runs == before
    assert not any(bounds.any() for bounds in found.bounds)
    assert found.wrong is None
    assert found.unsure is None


# --------------------------------------------------------------------------- what is heard of a projection
def test_what_is_heard_of_the_tape_is_its_gradient_along_the_direction() -> None:
    point = at(lambda x: x * x, off_at(4, 0.5), np.linspace(1, 2, 9))
    direction = np.linspace(-1, 1, 9)
    found = compared(point)
    heard = found.tape_estimate([direction])
    assert heard is not None
    assert heard.rejects
    assert heard.value == pytest.approx(float(found.taped[0] @ direction), rel=1e-12)


def test_a_tape_that_is_mostly_rounding_is_not_heard() -> None:
    gradients = [np.array([1.0, -2.0])]
    of_claim, of_tape = [np.array([0.2, 0.3])], [np.array([0.1, 0.1])]
    noisy = Comparison(gradients, gradients, [np.array([3.0, 1.0])], of_claim, of_tape, mostly_rounding=True)
    known = Comparison(gradients, gradients, [np.array([0.3, 0.4])], of_claim, of_tape)
    assert noisy.tape_estimate([np.ones(2)]) is None
    heard = known.tape_estimate([np.ones(2)])
    assert heard is not None
    assert (heard.value, heard.rejects, heard.bar, heard.of_claim) == (-1.0, False, 0.2, 0.5)
