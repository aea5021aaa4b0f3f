"""``gradcheck explore FILE ID``: what it finds, what it says, and what it leaves as the scenario has it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from gradcheck.commands import main

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
def explore(tmp_path, monkeypatch):
    """Explore a scenario whose backward gives `weight` as the gradient of w."""
    monkeypatch.chdir(tmp_path)

    def run(weight, inputs="{x: [B, C], w: [C]}", extra="sizes: {B: 2, C: 3}", options=("--allow-code",)):
        text = SCENARIO.replace("WEIGHT", weight) + f"    inputs: {inputs}\n    {extra}\n"
        (tmp_path / "t.grad.yaml").write_text(text)
        return CliRunner().invoke(main, ["explore", "t.grad.yaml", "scale", "--examples", "60", *options])

    return run


def test_a_mistake_that_needs_two_rows_is_found_and_shrunk_to_them(explore):
    result = explore(FIRST_ROW)
    assert result.exit_code == 1
    assert "smallest failing example: B = 2, C = 1" in result.output


def test_what_was_found_is_shown_as_a_scenario_has_it(explore):
    lines = [line.strip() for line in explore(FIRST_ROW).output.splitlines()]
    written = [line for line in lines if line.startswith(("x: {values: ", "w: {values: "))]
    again = explore(FIRST_ROW, "{" + ", ".join(written) + "}", "seed: 0")
    assert again.exit_code == 1


def test_a_right_layer_passes_and_says_what_was_tried(explore):
    result = explore(RIGHT)
    assert result.exit_code == 0
    assert "60 examples (sizes B, C from 0 to 33)" in result.output


def test_sizes_that_are_no_capital_letters_are_kept(explore):
    result = explore(FIRST_ROW, "{x: [rows, C], w: [C]}", "sizes: {rows: 3, C: 2}")
    assert "smallest failing example: C = 1" in result.output


def test_values_that_are_given_are_kept(explore):
    result = explore(FIRST_ROW, "{x: [B, 2], w: {values: [1, 2]}}", "sizes: {B: 2}")
    assert result.exit_code == 1
    assert "w: {" not in result.output


def test_a_layer_that_always_raises_is_undecided(explore):
    result = explore("1 / 0")
    assert result.exit_code == 5
    assert "ZeroDivisionError" in result.output


@pytest.mark.parametrize(
    ("extra", "options", "said"),
    [
        ("sizes: {B: 2, C: 3}", (), "allow it with --allow-code"),
        ("sizes: {B: 2, C: 3}", ("-i", "x=B"), "are for a layer"),
        ("sizes: {B: 2, C: 3}\n    expect: {grads: {w: null}}", (), "'grads' holds only at certain inputs"),
        (
            "sizes: {B: 2, C: 3}\n    expect: {gradient: differs}",
            (),
            "'gradient: differs' leaves nothing to search for",
        ),
        ("sizes: {B: 2, C: 3}\n    world: 2", (), "it has a world"),
    ],
)
def test_what_cannot_be_explored_is_refused(explore, extra, options, said):
    result = explore(RIGHT, extra=extra, options=options)
    assert result.exit_code == 2
    assert said in result.output
