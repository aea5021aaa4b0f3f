"""``gradcheck explore``: from a layer and shapes with letters to the smallest example that fails."""

from __future__ import annotations

import textwrap

import pytest
from click.testing import CliRunner

from gradcheck.commands import main
from gradcheck.spec.read import read

LAYERS = """
    import paddle
    from paddle.autograd import PyLayer


    class Bias(PyLayer):
        @staticmethod
        def forward(ctx, x, b):
            return x + b

        @staticmethod
        def backward(ctx, dy):
            return dy, dy[0]


    class Double(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, dy):
            return 2 * dy
"""


@pytest.fixture
def explore(tmp_path, monkeypatch):
    """Run the command in a folder with a module of layers."""
    (tmp_path / "own.py").write_text(textwrap.dedent(LAYERS))
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(main, ["explore", *args])


def test_a_failure_is_shown_and_saved_as_a_scenario(explore, tmp_path):
    result = explore("own:Bias", "-i", "x=BxC", "-i", "b=C", "--examples", "200", "--save", "found.grad.yaml")
    assert result.exit_code == 1
    assert "smallest failing example: B = 2, C = 1" in result.output
    assert "gradient of b" in result.output
    (scenario,) = read(tmp_path / "found.grad.yaml").scenarios
    assert scenario.title.startswith("Found by gradcheck explore, seed 0: B = 2, C = 1")
    assert CliRunner().invoke(main, ["run", "found.grad.yaml", "--allow-code"]).exit_code == 1


def test_a_right_layer_ends_well_and_says_what_was_tried(explore):
    result = explore("own:Double", "-i", "x=BxC", "--examples", "20")
    assert result.exit_code == 0
    assert "(sizes B, C from 0 to 33)" in result.output
    assert "right" in result.output


def test_where_nothing_could_be_checked_nothing_is_green(explore):
    assert explore("own:Double", "-i", "x=Bx0", "--examples", "5").exit_code != 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["own:Bias"], "--input"),
        (["own:Bias", "-i", "x=BxC"], "--input b=BxC"),
        (["own:Bias", "-i", "x=bxc", "-i", "b=C"], "is not a shape"),
        (["own:Nothing", "-i", "x=B"], "has no 'Nothing'"),
        (["own:Double", "-i", "x=B", "--save", "found.yaml"], "write found.grad.yaml"),
    ],
)
def test_bad_input_is_answered(explore, args, said):
    result = explore(*args)
    assert result.exit_code == 2
    assert said in result.output


def test_complex_inputs_are_refused_with_what_to_do(explore):
    result = explore("own:Double", "-i", "x=B:complex64")
    assert result.exit_code == 2
    assert "draws no complex numbers" in result.output
