"""Backwards that give less than the documents ask for, and what every release takes: judged, and marked so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck.case.execute import execute
from gradcheck.case.observe import GAVE_LESS
from gradcheck.result import Result, Status
from gradcheck.run.plan import plan
from gradcheck.spec.read import read

PyLayer: Any = paddle.autograd.PyLayer
X = np.random.default_rng(0).standard_normal((2, 3))
STOPPED = paddle.to_tensor(X)


def layer(answer: Callable[..., Any], forward: Callable[..., Any] = lambda x, w, s: x * w + s) -> Any:
    """The layer of x, w and s whose backward returns `answer` of the cotangent, x and w."""

    class Layer(PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, s: Any) -> Any:
            ctx.save_for_backward(x, w)
            return forward(x, w, s)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return answer(dy, *ctx.saved_tensor())

    return Layer


def verdict(answer: Callable[..., Any], *inputs: Any, **options: Any) -> tuple[Status, bool]:
    """The verdict, and whether it is marked."""
    result = gradcheck.check(layer(answer, **options), *inputs)
    return result.verdict, GAVE_LESS in result.marks


# --------------------------------------------------------------------------- from Python
def test_one_gradient_per_input_has_no_mark() -> None:
    assert verdict(lambda dy, x, w: (dy * w, dy * x, None), X, X, STOPPED) == (Status.PASS, False)


def test_gradients_left_out_for_stopped_inputs_pass_with_a_mark() -> None:
    assert verdict(lambda dy, x, w: (dy * w, dy * x), X, X, STOPPED) == (Status.PASS, True)


def test_none_for_an_input_that_has_no_influence_passes_with_a_mark() -> None:
    assert verdict(lambda dy, x, w: (dy, None), X, X, STOPPED, forward=lambda x, w, s: x + s) == (Status.PASS, True)


def test_a_wrong_none_is_compared_as_zeros_and_fails() -> None:
    result = gradcheck.check(layer(lambda dy, x, w: (dy * w, None, None)), X, X, STOPPED)
    assert result.verdict is Status.FAIL
    assert result.summary() == "gradient of w: 6 of 6 entries wrong; x right"
    assert all(entry.analytic == 0 for entry in result.wrong)
    assert str(result).startswith("FAIL [the documents ask for one gradient per Tensor input]: gradient of w")


def test_a_gradient_left_out_for_an_input_that_needs_it_is_a_broken_contract() -> None:
    result = gradcheck.check(layer(lambda dy, x, w: (dy * w, dy * x)), X, X, X)
    assert [found.code for found in result.diagnosis] == ["GC137"]


def test_none_within_a_list_of_gradients_is_seen() -> None:
    class Weighted(PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any, others: Any) -> Any:
            return x * 2 + others[1]

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy * 2, [None, dy]

    result = gradcheck.check(lambda x, a, b: Weighted.apply(x, [a, b]), X, X, X)
    assert (result.verdict, GAVE_LESS in result.marks) == (Status.PASS, True)


@pytest.mark.parametrize("stopped", [True, False])
def test_a_cross_entropy_with_integer_labels_is_right(stopped: bool) -> None:
    class CrossEntropy(PyLayer):
        @staticmethod
        def forward(ctx: Any, z: Any, labels: Any) -> Any:
            ctx.save_for_backward(z, labels)
            chosen = paddle.take_along_axis(z, labels.unsqueeze(1), 1).squeeze(1)
            return (paddle.logsumexp(z, 1) - chosen).mean()

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            z, labels = ctx.saved_tensor()
            one_hot = paddle.nn.functional.one_hot(labels, z.shape[1]).astype(z.dtype)
            return dy * (paddle.nn.functional.softmax(z, 1) - one_hot) / z.shape[0], None

    labels = paddle.to_tensor([0, 2], stop_gradient=stopped)
    result = gradcheck.check(CrossEntropy, X, labels)
    assert (result.verdict, result.marks) == (Status.PASS, ())


# --------------------------------------------------------------------------- in scenarios
LAYER = """\
class Scaled(PyLayer):
    @staticmethod
    def forward(ctx, x, w, k):
        ctx.save_for_backward(x, w)
        return x * w
    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensor()
        return {returned}
"""
INPUTS = "inputs: {x: [3], w: [3], k: {shape: [2], dtype: int64, init: integers}}"


@pytest.fixture
def run(tmp_path: Path, process_as_before: None) -> Callable[..., Result]:
    def run_scenario(returned: str, *keys: str) -> Result:
        code = indent(LAYER.format(returned=returned), " " * 6)
        lines = ["schema: gradcheck/v1", "scenarios:", "  - id: own", "    layer: |", code]
        file = tmp_path / "own.grad.yaml"
        file.write_text("\n".join([*lines, *(f"    {key}" for key in keys)]) + "\n")
        return execute(plan([read(file)], ["numpy"])[0])

    return run_scenario


@pytest.mark.parametrize("expected", ["gradient: matches", "grads: {k: null}"])
def test_a_scenario_about_gradients_takes_what_releases_take(run: Callable[..., Result], expected: str) -> None:
    result = run("dy * w, dy * x", INPUTS, f"expect: {{{expected}}}")
    assert result.status is Status.PASS
    assert result.gradient is not None
    assert result.gradient.marks == (GAVE_LESS,)


def test_an_integer_input_of_a_scenario_needs_no_gradient(run: Callable[..., Result]) -> None:
    result = run("dy * w, dy * x, None", INPUTS)
    assert result.status is Status.PASS
    assert result.gradient is not None
    assert result.gradient.marks == ()


def test_a_scenario_about_the_rule_itself_holds_to_the_documents(run: Callable[..., Result]) -> None:
    raises = "expect: {raises: {type: ValueError, message: should not return empty at 1 position}}"
    assert run("dy * w, None, None", INPUTS, raises).status is Status.PASS
    assert run("dy * w, None, None", INPUTS).status is Status.FAIL  # as a gradient: zeros, and wrong ones
