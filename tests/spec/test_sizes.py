"""Sizes by name, and memory that inputs share: what is read, and what is refused."""

from __future__ import annotations

import pytest

LAYER = """\
    layer: |
      class Scale(PyLayer):
          @staticmethod
          def forward(ctx, x, w):
              ctx.save_for_backward(x, w)
              return x * w
          @staticmethod
          def backward(ctx, dy):
              x, w = ctx.saved_tensor()
              return dy * w, dy * x
"""
HEAD = "schema: gradcheck/v1\nscenarios:\n  - id: scale\n" + LAYER


def scenario(*lines):
    return HEAD + "".join(f"    {line}\n" for line in lines)


def test_a_size_stands_for_its_length(accept):
    (one,) = accept(scenario("sizes: {B: 2, C: 3}", "inputs: {x: [B, C], w: [C]}")).scenarios
    assert one.input_at("x", {}).shape == (2, 3)


def test_a_parameter_of_the_matrix_and_a_size_go_together(accept):
    (one,) = accept(scenario("sizes: {C: 3}", "matrix: {n: [1, 4]}", "inputs: {x: [n, C], w: [C]}")).scenarios
    assert one.input_at("x", {"n": 4}).shape == (4, 3)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("sizes: {B: 2}", "inputs: {x: [B, C], w: [B]}"), "neither the matrix nor sizes has 'C'"),
        (("inputs: {x: [B], w: [2]}",), "neither the matrix nor sizes has 'B'"),
        (("sizes: {x: 2}", "inputs: {x: [2], w: [x]}"), "sizes: 'x' is already the name of something else"),
        (
            ("sizes: {B: 2}", "matrix: {B: [1]}", "inputs: {x: [B], w: [B]}"),
            "sizes: 'B' is already the name of something else",
        ),
        (("sizes: {B: [1, 2]}", "inputs: {x: [B], w: [B]}"), "B must be a whole number, not a list"),
        (("sizes: {B: -2}", "inputs: {x: [B], w: [B]}"), "B must be at least 0, not -2"),
        (("sizes: {B: 2, D: 3}", "inputs: {x: [B], w: [B]}"), "sizes: nothing uses 'D'"),
        (("sizes: {B: 100000}", "inputs: {x: [B, B], w: [B]}"), "10,000,000,000 elements in"),
        (("explore: {}", "sizes: {B: 2}", "inputs: {x: [B], w: [B]}"), "unknown key 'explore' in a scenario"),
        (("inputs: {x: [2], w: {layout: {aliased: y}}}",), "no input above with separate memory is called 'y'"),
        (("inputs: {x: {layout: {aliased: w}}, w: [2]}",), "no input above with separate memory is called 'w'"),
        (("inputs: {x: [2], w: {layout: {aliased: x}, shape: [2]}}",), "'aliased' and 'shape' exclude each other"),
        (("inputs: {x: [2], w: {layout: {alised: x}}}",), "unknown key 'alised' in layout"),
        (("world: 2", "inputs: {x: [2], w: {layout: {aliased: x}}}"), "'aliased' is not supported with a world"),
    ],
)
def test_a_mistake_is_one_message(mistakes, lines, message):
    (found,) = mistakes(scenario(*lines))
    assert message in found


def test_advice_on_unknown_sizes_names_all_of_them(diagnose):
    unknown = diagnose(scenario("inputs: {x: [B, C], w: [D]}"))
    assert {one.help for one in unknown} == {"write a number, or add 'sizes: {B: 2, C: 2, D: 2}'"}
    assert len(unknown) == 3


def test_a_scenario_with_explore_is_answered_with_the_command(diagnose):
    (one,) = diagnose(scenario("explore: {}", "inputs: {x: [2], w: [2]}"))
    assert "`gradcheck explore FILE ID`" in one.help
