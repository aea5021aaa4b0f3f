"""A gradient of another shape between two layers: the pair is judged, and the verdict marked (observed rule 33)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck.case.observe import GAVE_OTHER_SHAPES
from gradcheck.result import Status

PyLayer: Any = paddle.autograd.PyLayer
X = np.random.default_rng(0).standard_normal((2, 3))


class Flat(PyLayer):
    """Takes whatever shape the gradient has that it is given."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.sizes = x.shape
        return x.reshape([-1])

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy.reshape(ctx.sizes)


def square(factor: float, shape: Any) -> Any:
    """The squares; backward takes `factor` for 2, and returns a gradient that `shape` makes of the right one."""

    class Square(PyLayer):
        @staticmethod
        def forward(ctx: Any, y: Any) -> Any:
            ctx.save_for_backward(y)
            return y * y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (y,) = ctx.saved_tensor()
            return shape(dy * factor * y)

    return Square


SHAPES = [lambda g: g.reshape([2, 3]), lambda g: g.reshape([3, 2]), lambda g: g.reshape([1, 6])]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_pair_that_is_right_as_a_pair_passes_with_a_mark(shape: Any) -> None:
    layer = square(2.0, shape)
    result = gradcheck.check(lambda x: layer.apply(Flat.apply(x)), X)
    assert (result.verdict, result.marks) == (Status.PASS, (GAVE_OTHER_SHAPES,))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_pair_that_is_wrong_fails(shape: Any) -> None:
    layer = square(3.0, shape)
    result = gradcheck.check(lambda x: layer.apply(Flat.apply(x)), X)
    assert (result.verdict, GAVE_OTHER_SHAPES in result.marks) == (Status.FAIL, True)


def test_a_pair_of_one_shape_has_no_mark() -> None:
    layer = square(2.0, lambda g: g)
    assert gradcheck.check(lambda x: layer.apply(Flat.apply(x)), X).marks == ()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: square(2.0, lambda g: g[:4]).apply(Flat.apply(x)),  # which the other cannot take
        lambda x: square(2.0, lambda g: g.reshape([2, 3])).apply(x.reshape([-1])),  # to an operation
        lambda x: square(2.0, lambda g: g.reshape([3, 2])).apply(x),  # to the input itself
    ],
)
def test_a_gradient_of_another_shape_that_no_layer_takes_is_refused(function: Any) -> None:
    result = gradcheck.check(function, X)
    assert (result.verdict, [d.code for d in result.diagnosis]) == (Status.FAIL, ["GC137"])
