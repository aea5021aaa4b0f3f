"""One scenario of a file: ``file::id`` and ``file:line``; the slowest cases; a check that says more or less."""

from __future__ import annotations

import textwrap

import pytest
from click.testing import CliRunner

from gradcheck.commands import main

SPEC = """\
schema: gradcheck/v1
scenarios:
  - id: tanh
    layer: {op: tanh}
    inputs: {x: [2]}
  - id: square
    layer: {op: square}
    inputs: {x: [2]}
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a folder with a spec file and a module."""
    (tmp_path / "own.grad.yaml").write_text(SPEC)
    layer = """
        import paddle


        class Double(paddle.autograd.PyLayer):
            @staticmethod
            def forward(ctx, x):
                return 2 * x

            @staticmethod
            def backward(ctx, dy):
                return 2 * dy
    """
    (tmp_path / "own.py").write_text(textwrap.dedent(layer))
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(main, args)


@pytest.mark.parametrize(
    ("place", "id"),
    [("::tanh", "tanh"), ("::square", "square"), (":3", "tanh"), (":5", "tanh"), (":6", "square"), (":8", "square")],
)
def test_a_place_in_a_file_selects_its_scenario(run, place, id):
    result = run("run", f"own.grad.yaml{place}", "--format", "plain")
    assert result.exit_code == 0
    assert f"PASS {id}@numpy" in result.output
    assert "1 PASS" in result.output


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("::tahn", "has no scenario 'tahn'; did you mean tanh?"),
        (":1", "no scenario is on this line"),
        (":99", "the file has 8 lines"),
    ],
)
def test_a_place_without_a_scenario_is_answered(run, place, said):
    result = run("run", f"own.grad.yaml{place}")
    assert result.exit_code == 2
    assert said in result.output


def test_a_check_says_as_much_as_is_wanted(run):
    assert run("check", "own:Double", "-i", "x=2", "-q").output.startswith("1 PASS")
    assert "worst error" in run("check", "own:Double", "-i", "x=2", "--format", "rich").output
