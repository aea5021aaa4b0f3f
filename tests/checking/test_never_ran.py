"""A backward that did not run is not green (V28): on the engine, on an installed Paddle, static, in a world."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
import unrun
from unrun import DIRECT, NO_BACKWARD, OVERRIDDEN, X, never

import gradcheck
import pylayer.paddle as paddle
from gradcheck.case.case import Case
from gradcheck.case.execute import execute
from gradcheck.result import Result, Status
from gradcheck.spec.read import read_bytes

MEMBERS = unrun.members(paddle)
dist = paddle.distributed


@pytest.mark.clause(id="V28")
@pytest.mark.parametrize("name", MEMBERS)
def test_a_backward_that_did_not_run_is_not_green(name: str) -> None:
    member = MEMBERS[name]
    assert unrun.said(member) == (member.verdict, member.text)


def test_the_same_holds_on_an_installed_paddle() -> None:
    if find_spec("paddle") is None:
        pytest.skip("Paddle is not installed")
    command = [sys.executable, "-W", "ignore", unrun.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout.splitlines()[-1])
    wanted = {
        name: [member.verdict, member.text.replace("the engine's", "Paddle's")] for name, member in MEMBERS.items()
    }
    assert said == wanted


@pytest.mark.clause(id="V28")
def test_the_code_of_a_backward_that_never_ran() -> None:
    result = gradcheck.check(MEMBERS["directly"].function, X)
    assert [d.code for d in result.diagnosis] == ["GC125"]
    assert not result
    with pytest.raises(gradcheck.GradientMismatch, match="never ran"):
        gradcheck.assert_gradients(MEMBERS["directly"].function, X)


@pytest.mark.parametrize("expect", ["zero", "straight-through"])
def test_what_backward_is_declared_to_be_does_not_matter(expect: Any) -> None:
    class Rounded(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return paddle.round(x)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy if expect == "straight-through" else dy * 0

    assert gradcheck.check(Rounded, X, expect=expect).verdict is Status.PASS
    result = gradcheck.check(lambda x: Rounded.forward(None, x), X, expect=expect)
    assert (result.verdict, result.why) == (Status.INCONCLUSIVE, never("Rounded", DIRECT))


def test_a_wrong_gradient_stays_wrong_and_the_first_cause_is_named() -> None:
    class Cut(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * x.detach()

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy

    result = gradcheck.check(lambda x: Cut.forward(None, x), X)
    assert (result.verdict, result.diagnosis[0].code) == (Status.FAIL, "GC125")


def test_a_forward_in_numpy_that_is_called_directly_says_so() -> None:
    class InNumPy(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return paddle.to_tensor(np.tanh(x.numpy()))

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy

    result = gradcheck.check(lambda x: InNumPy.forward(None, x), X)
    assert (result.verdict, result.diagnosis[0].text) == (Status.FAIL, never("InNumPy", DIRECT))


def test_inputs_without_a_gradient_are_refused_as_before() -> None:
    with pytest.raises(TypeError, match="no input needs a gradient"):
        gradcheck.check(MEMBERS["layer"].function, paddle.to_tensor(X))


def test_a_layer_that_runs_at_one_of_two_points_is_not_green() -> None:
    Own = unrun.layers_of(paddle)["Own"]

    def one_point(x: Any) -> Any:
        return Own.apply(x) if float(x[0]) == X[0] else paddle.tanh(x)

    found = gradcheck.check(lambda x: one_point(x), X, points=2)
    assert (found.verdict, found.why) == (Status.INCONCLUSIVE, never("Own", unrun.NOT_TAKEN))


# --------------------------------------------------------------------------- a world of ranks
class Shifted(paddle.autograd.PyLayer):  # type: ignore[misc]
    """The sum over the ranks."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        total = dy.clone()
        dist.all_reduce(total)
        return total


class Doubled(paddle.autograd.PyLayer):  # type: ignore[misc]
    """No rank talks to another."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2.0

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy * 2.0


@pytest.mark.clause(id="V28")
def test_the_layers_of_all_ranks_count() -> None:
    x = np.linspace(0.1, 1, 8).reshape(2, 4)
    assert gradcheck.check(Shifted, x, world=2).marks == ()
    on_one = gradcheck.check(lambda x: Doubled.apply(x) if dist.get_rank() else x * 2.0, x, world=2)
    assert (on_one.verdict, on_one.marks) == (Status.PASS, ())
    direct = gradcheck.check(lambda x: Doubled.forward(None, x), x, world=2)
    assert (direct.verdict, direct.why) == (Status.INCONCLUSIVE, never("Doubled", DIRECT))
    plain = gradcheck.check(lambda x: x * 2.0, x, world=2)
    assert plain.marks == (NO_BACKWARD.format("the engine"),)


# --------------------------------------------------------------------------- scenarios
def run(tmp_path: Path, text: str, backend: str = "numpy") -> Result:
    spec = read_bytes(dedent(text).encode(), str(tmp_path / "own.grad.yaml"))
    return execute(Case(scenario=spec.scenarios[0], backend=backend, name="own"))


LAYER = """
    schema: gradcheck/v1
    scenarios:
      - id: own
        layer: |
          class Own(PyLayer):
              @staticmethod
              def forward(ctx, x):
                  return x * 2.0
              @staticmethod
              def backward(ctx, dy):
                  return dy * 2.0
              APPLY
        inputs: {x: {shape: [3]}}
"""
STATIC = """
    schema: gradcheck/v1
    scenarios:
      - id: own
        layer: |
          def forward_fn(x):
              return x * 2.0
          def backward_fn(dy):
              return dy * 2.0
        inputs: {x: {shape: [3]}}
"""


@pytest.mark.clause(id="V28")
def test_the_layer_of_a_scenario_has_to_run(tmp_path: Path) -> None:
    right = run(tmp_path, LAYER.replace("APPLY", ""))
    assert (right.status, right.gradient and right.gradient.marks) == (Status.PASS, ())
    overridden = run(tmp_path, LAYER.replace("APPLY", "apply = staticmethod(lambda x: x * 2.0)"))
    assert (overridden.status, overridden.message) == (Status.INCONCLUSIVE, never("Own", OVERRIDDEN))
    direct = run(tmp_path, LAYER.replace("APPLY", "") + "        call: Own.forward(None, x)\n")
    assert (direct.status, direct.message) == (Status.INCONCLUSIVE, never("Own", DIRECT))


@pytest.mark.clause(id="V28")
def test_the_backward_fn_of_a_static_layer_has_to_run(tmp_path: Path) -> None:
    assert run(tmp_path, STATIC).status is Status.PASS
    direct = run(tmp_path, STATIC + "        call: forward_fn(x)\n")
    why = never("backward_fn", "it was not passed to static_pylayer")
    assert (direct.status, direct.message) == (Status.INCONCLUSIVE, why)


def test_an_operation_that_a_scenario_names_is_not_marked(tmp_path: Path) -> None:
    text = """
        schema: gradcheck/v1
        scenarios:
          - {id: own, layer: {op: tanh}, inputs: {x: {shape: [3]}}}
    """
    result = run(tmp_path, text)
    assert (result.status, result.gradient and result.gradient.marks) == (Status.PASS, ())


def test_calls_are_counted_by_the_same_record(tmp_path: Path) -> None:
    counted = LAYER.replace("APPLY", "") + "        call: Own.apply(Own.apply(x))\n"
    assert run(tmp_path, counted + "        expect: {calls: {forward: 2, backward: 2}}\n").status is Status.PASS
    wrong = run(tmp_path, counted + "        expect: {calls: {backward: 1}}\n")
    assert (wrong.status, wrong.message) == (Status.FAIL, "backward ran 2 times, expected 1 (line 16 of the spec)")


def test_an_inherited_forward_that_is_called_directly_is_told_of_the_class_that_is_named() -> None:
    class Parent(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return paddle.tanh(x)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy

    class Derived(Parent):
        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return 2 * dy

    text = str(gradcheck.check(lambda x: Derived.forward(None, x), np.ones(3)))
    assert "backward of Derived never ran: its forward was called directly, not through apply" in text
    assert "another branch" not in text
    assert "likely" not in text
