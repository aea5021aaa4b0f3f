"""A scenario with ``explore``: what it finds, what it says, and what it leaves as the scenario has it."""

from __future__ import annotations

import pytest

from gradcheck.case.execute import execute
from gradcheck.result import Status
from gradcheck.run.plan import plan
from gradcheck.spec.read import read_bytes

pytest.importorskip("hypothesis")

SCENARIO = """\
schema: gradcheck/v1
scenarios:
  - id: scale
    layer: |
      class Scale(PyLayer):
          @staticmethod
          def forward(ctx, x, w):
              ctx.save_for_backward(x, w)
              return x * w
          @staticmethod
          def backward(ctx, dy):
              x, w = ctx.saved_tensor()
              return dy * w, WEIGHT
"""
RIGHT, FIRST_ROW = "(dy * x).sum(0)", "dy[0] * x[0]"


@pytest.fixture
def explore():
    """The result of a scenario whose backward gives `weight` as the gradient of w."""

    def run(weight, inputs="{x: [B, C], w: [C]}", extra="explore: {examples: 60, seconds: 20}"):
        text = SCENARIO.replace("WEIGHT", weight) + f"    inputs: {inputs}\n    {extra}\n"
        (case,) = plan([read_bytes(text.encode(), "t.grad.yaml")], ["numpy"])
        return execute(case)

    return run


def test_a_mistake_that_needs_two_rows_is_found_and_shrunk_to_them(explore):
    result = explore(FIRST_ROW)
    assert result.status is Status.FAIL
    assert "smallest that is wrong: B = 2, C = 1" in "\n".join(result.details)


def test_what_was_found_is_shown_as_a_scenario_has_it(explore):
    written = [line for line in explore(FIRST_ROW).details if line.startswith(("x: {values: ", "w: {values: "))]
    again = explore(FIRST_ROW, "{" + ", ".join(written) + "}", "seed: 0")
    assert again.status is Status.FAIL


def test_a_right_layer_passes_and_says_what_was_tried(explore):
    result = explore(RIGHT)
    assert result.status is Status.PASS
    assert "60 examples (sizes B, C from 0 to 33)" in result.details[0]


def test_sizes_that_are_given_are_kept(explore):
    result = explore(FIRST_ROW, extra="sizes: {B: 3}\n    explore: {examples: 60}")
    assert "smallest that is wrong: C = 1" in "\n".join(result.details)


def test_values_that_are_given_are_kept(explore):
    result = explore(FIRST_ROW, "{x: [B, 2], w: {values: [1, 2]}}")
    assert result.status is Status.FAIL
    assert not any(line.startswith("w: ") for line in result.details)


def test_a_layer_that_always_raises_is_undecided(explore):
    result = explore("undefined")
    assert result.status is Status.INCONCLUSIVE
    assert "NameError" in "\n".join(result.details)
