"""A single mistake in a backward is named at the line of forward whose share is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from causes_layers import attention, gates, losses, masks, norms, products, recurrent
from causes_layers.cases import Case
from causes_layers.nonsense import SCALARS, nonsense
from few import seeds

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status

PyLayer: Any = paddle.autograd.PyLayer

FIRST_CONTRACT = "GC130"
"""Codes from here on are broken contracts, not causes."""


def inputs(case: Case, seed: int) -> list[Any]:
    return [np.asarray(a) for a in case.inputs(np.random.default_rng([seed, 3]))]


def causes(result: Any) -> list[Any]:
    return [d for d in result.diagnosis if d.code < FIRST_CONTRACT]


@pytest.mark.parametrize(
    ("case", "name"),
    [
        (norms.LAYER_NORM, "the mean is a constant"),
        (norms.LAYER_NORM, "sign of the variance's share"),
        (norms.BATCH_NORM, "1/N of the mean forgotten"),
        (norms.STANDARDISE, "N for N − 1"),
        (attention.ATTENTION, "softmax without its row sum"),
        (attention.ATTENTION, "scale forgotten"),
        (recurrent.LSTM, "1 − t for 1 − t²"),
        (recurrent.LSTM, "forget gate forgotten"),
        (losses.FOCAL, "the weight is a constant"),
        (products.LINEAR_TANH, "transpose missing"),
        (masks.CLIPPED, "straight through the clip"),
        (gates.SWISH, "x forgotten"),
    ],
    ids=lambda value: value.name if isinstance(value, Case) else value,
)
def test_the_line_of_a_mistake_is_named(case: Case, name: str) -> None:
    mistake = case.mistake(name)
    result = gradcheck.check(case.broken(mistake), *inputs(case, 0))
    assert result.verdict is Status.FAIL
    named = causes(result)
    assert named, "no cause"
    right = case.lines(mistake)
    for cause in named:
        number = int(cause.line.rpartition(":")[2])
        assert number in right, (cause.line, cause.text, right)
        assert cause.source_line.strip() == right[number]


@pytest.mark.parametrize("case", [norms.LAYER_NORM, attention.ATTENTION, recurrent.LSTM], ids=lambda case: case.name)
def test_a_right_backward_has_no_cause(case: Case) -> None:
    result = gradcheck.check(case.layer, *inputs(case, 0))
    assert (result.verdict, result.diagnosis) == (Status.PASS, ())


@pytest.mark.parametrize("case", SCALARS, ids=lambda case: case.name)
@seeds(3)
def test_nonsense_has_no_cause(case: Case, seed: int) -> None:
    arrays = inputs(case, seed)
    # An edit of the nonsense repairs it, as the right gradient is a value in its code: that is no cause.
    result = gradcheck.check(nonsense(case, arrays, seed), *arrays, effort="least")
    assert (result.verdict, causes(result)) == (Status.FAIL, [])


def test_the_call_of_the_user_is_named_not_the_operation_behind_it() -> None:
    class Picked(PyLayer):
        @staticmethod
        def forward(ctx, x, i):
            ctx.save_for_backward(i)
            ctx.rows = x.shape[0]
            return paddle.gather(x, i) * 2

        @staticmethod
        def backward(ctx, dy):
            (i,) = ctx.saved_tensor()
            dx = paddle.zeros([ctx.rows, dy.shape[1]], dtype=dy.dtype)
            dx[i] = 2 * dy  # of rows that come twice only once
            return dx, None

    result = gradcheck.check(Picked, np.arange(15.0).reshape(5, 3), paddle.to_tensor([0, 2, 2, 1]))
    (cause,) = result.diagnosis
    assert cause.detail.startswith("the rule of gather is wrong")
    assert cause.operation == "gather"


def test_a_buffer_is_named_as_a_whole_not_by_what_was_written_into_it_last() -> None:
    class Filled(PyLayer):
        @staticmethod
        def forward(ctx, x):
            a = x.numpy()
            table = np.zeros((3, 3))
            for d in range(3):
                table[d, d] = a[d] * 3
                table[d, 0] = a[d] * 2
            ctx.table = table
            return paddle.to_tensor(np.exp(np.tanh(table)))

        @staticmethod
        def backward(ctx, dy):
            t = np.tanh(ctx.table)
            g = dy.numpy() * np.exp(t) * (1 - ctx.table)  # of 1 - t * t
            dx = g[:, 0] * 2
            dx[1:] += 3 * np.diag(g)[1:]
            return paddle.to_tensor(dx)

    result = gradcheck.check(Filled, np.array([0.3, -0.2, 0.5]))
    (cause,) = result.diagnosis
    assert cause.text == "backward takes 1 − table for the derivative of y = `np.tanh(table)`"
