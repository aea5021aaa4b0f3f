"""The one edit of a backward that makes it right, as reports show it; none where none is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle

PyLayer: Any = paddle.autograd.PyLayer
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((3, 4))
W = RANDOM.standard_normal((4, 5))
HERE = Path(__file__).name


def layer(backward: Any, forward: Any) -> Any:
    """A layer with this forward and backward."""
    return type("Own", (PyLayer,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def tanh_forward(ctx, x):
    y = paddle.tanh(x)
    ctx.save_for_backward(y)
    return y


def softmax_forward(ctx, x):
    p = paddle.nn.functional.softmax(x, axis=-1)
    ctx.save_for_backward(p)
    return p


def linear_forward(ctx, x, w, b):
    ctx.save_for_backward(x, w)
    return x @ w + b


def power_forward(ctx, x, n=3):
    ctx.n = n
    ctx.save_for_backward(x)
    return x**n


def wrong_power(ctx, dy):
    (y,) = ctx.saved_tensor()
    return dy * (1 - y)


def wrong_axis(ctx, dp):
    (p,) = ctx.saved_tensor()
    return p * (dp - (dp * p).sum(axis=0, keepdim=True))


def not_summed(ctx, dy):
    x, w = ctx.saved_tensor()
    return dy @ w.t(), x.t() @ dy, dy


def wrong_number(ctx, dy):
    (x,) = ctx.saved_tensor()
    return 2 * dy * x ** (ctx.n - 1)


def stray_minus(ctx, dp):
    (p,) = ctx.saved_tensor()
    return p * (dp - -(dp * p).sum(axis=-1, keepdim=True))


def axis_before_the_last(ctx, dp):
    (p,) = ctx.saved_tensor()
    return p * (dp - (dp * p).sum(axis=-2, keepdim=True))


def round_forward(ctx, x):
    return paddle.round(x)


def straight_through(ctx, dy):
    return dy


def sine_forward(ctx, x):
    ctx.save_for_backward(x)
    return paddle.sin(x)


def one_entry_scaled(ctx, dy):
    (x,) = ctx.saved_tensor()
    dx = dy * paddle.cos(x)
    dx[1, 2] *= 1.25
    return dx


def bias_forward(ctx, x, b):
    ctx.ndim = b.ndim
    return x + b


def mean_over_rows(ctx, dy):
    """Many edits of it go on for ever, such as `db = db` in the loop."""
    db = dy
    while db.ndim > ctx.ndim:
        db = db.mean(axis=0)
    return dy, db


def does_not_run(ctx, dp):
    (p,) = ctx.saved_tensor()
    return p * (dp - (dp * p).sum(axis=7, keepdim=True))


CASES = [
    (tanh_forward, wrong_power, [X], "return dy * (1 - y * y)"),
    (softmax_forward, wrong_axis, [X], "return p * (dp - (dp * p).sum(axis=-1, keepdim=True))"),
    # not axis=1, which is the last one of two
    (softmax_forward, axis_before_the_last, [X], "return p * (dp - (dp * p).sum(axis=-1, keepdim=True))"),
    # not dp + -(…), which makes up for one slip by another
    (softmax_forward, stray_minus, [X], "return p * (dp - (dp * p).sum(axis=-1, keepdim=True))"),
    (round_forward, straight_through, [X], "return paddle.zeros_like(dy)"),  # not dy - dy
    (linear_forward, not_summed, [X, W, RANDOM.standard_normal(5)], "return dy @ w.t(), x.t() @ dy, dy.sum(axis=0)"),
    # not 3, which is right where n is 3
    (power_forward, wrong_number, [X], "return ctx.n * dy * x ** (ctx.n - 1)"),
    (bias_forward, mean_over_rows, [X, X[0]], "db = db.sum(axis=0)"),
]


@pytest.mark.parametrize(("forward", "backward", "inputs", "line"), CASES, ids=[case[1].__name__ for case in CASES])
def test_one_edit_repairs_it(forward: Any, backward: Any, inputs: list[Any], line: str) -> None:
    result = gradcheck.check(layer(backward, forward), *inputs)
    assert result.fix is not None
    assert result.fix.source_line == line
    assert f"fix: {HERE}:{result.fix.line} │ {line}" in str(result).replace(f"{Path(__file__).parent}/", "").replace(
        "tests/deriving/", ""
    )
    source = Path(__file__).read_text().splitlines()[result.fix.line - 1]
    changed = source[: result.fix.column] + result.fix.replacement + source[result.fix.end_column :]
    assert changed.strip() == line


def test_html_shows_it() -> None:
    result = gradcheck.check(layer(wrong_power, tanh_forward), X)
    assert "fix: " in result._repr_html_()


@pytest.mark.parametrize("expect", ["differs", "straight-through", "zero"])
def test_nothing_is_repaired_that_is_meant_so(expect: Any) -> None:
    assert gradcheck.check(layer(wrong_power, tanh_forward), X, expect=expect).fix is None


def test_effort_least_does_not_look_for_it() -> None:
    result = gradcheck.check(layer(wrong_power, tanh_forward), X, effort="least")
    assert result.fix is None
    assert result.diagnosis


def test_a_right_backward_has_no_fix() -> None:
    def right(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * (1 - y * y)

    result = gradcheck.check(layer(right, tanh_forward), X)
    assert result
    assert result.fix is None


def test_what_is_not_saved_cannot_be_repaired_by_an_edit() -> None:
    def forward(ctx, x):
        ctx.save_for_backward(paddle.ones([1]))
        return paddle.sin(x)

    def backward(ctx, dy):
        (one,) = ctx.saved_tensor()
        return dy * one

    assert gradcheck.check(layer(backward, forward), X).fix is None


def test_what_is_written_to_is_not_edited() -> None:
    """`(-dx)[1, 2] *= 1.25` would write into a copy, and so repair by doing nothing."""
    fix = gradcheck.check(layer(one_entry_scaled, sine_forward), X).fix
    assert fix is None or "dx[1, 2]" in fix.source_line


def test_a_layer_inside_a_function_is_repaired() -> None:
    wrong = layer(wrong_power, tanh_forward)
    result = gradcheck.check(lambda x: (wrong.apply(2 * x) ** 2).sum(), X)
    assert result.fix is not None
    assert result.fix.replacement == "y * y"
    assert wrong.backward is wrong_power


def test_a_backward_that_is_not_what_its_file_says_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    text = "def backward(ctx, dy):\n    (y,) = ctx.saved_tensor()\n    return dy * (1 - y)\n"
    scope: dict[str, Any] = {}
    exec(compile(text, str(file), "exec"), scope)
    file.write_text(text.replace("1 - y", "7 - y * y"))
    assert gradcheck.check(layer(scope["backward"], tanh_forward), X).fix is None


SPEC = """\
schema: gradcheck/v1
scenarios:
  - id: tanh-own
    layer: |
      class Own(PyLayer):
          @staticmethod
          def forward(ctx, x):
              y = paddle.tanh(x)
              ctx.save_for_backward(y)
              return y

          @staticmethod
          def backward(ctx, dy):
              y, = ctx.saved_tensor()
              return dy * (1 - y)
    inputs:
      x: {shape: [2, 3]}
"""


def test_reports_of_a_scenario_have_the_line_of_the_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from gradcheck.commands import main

    monkeypatch.chdir(tmp_path)
    Path("own.grad.yaml").write_text(SPEC)
    reports = ["--report", "json:r.json", "--report", "sarif:r.sarif", "--report", "github:r.txt"]
    done = CliRunner().invoke(main, ["run", "own.grad.yaml", "--allow-code", *reports])
    line = "fix: own.grad.yaml:15 │ return dy * (1 - y * y)"
    likely = done.stdout.index("likely: ")
    assert likely < done.stdout.index(line) < done.stdout.index("why: ")
    fix = json.loads(Path("r.json").read_text())["results"][0]["gradient"]["fix"]
    assert (fix["line"], fix["replacement"], fix["source_line"]) == (15, "y * y", "return dy * (1 - y * y)")
    (change,) = json.loads(Path("r.sarif").read_text())["runs"][0]["results"][0]["fixes"][0]["artifactChanges"]
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 15, "startColumn": 32, "endLine": 15, "endColumn": 33},
            "insertedContent": {"text": "y * y"},
        }
    ]
    assert line in Path("r.txt").read_text()


UNFIT = {
    "gradient of another shape": ("dy @ w.t(), dy.t() @ x", "dy @ w.t(), (dy.t() @ x).t()", "FAIL"),
    "first gradient raises": ("dy @ w, x.t() @ dy", "dy @ w.t(), x.t() @ dy", "ERROR"),
    "last gradient raises": ("dy @ w.t(), x @ dy", "dy @ w.t(), x.t() @ dy", "ERROR"),
}


@pytest.mark.parametrize(("wrong", "right", "status"), UNFIT.values(), ids=UNFIT)
def test_a_backward_that_raises_in_a_scenario_has_a_fix(
    wrong: str, right: str, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from gradcheck.commands import main

    monkeypatch.chdir(tmp_path)
    layer = SPEC.replace("forward(ctx, x)", "forward(ctx, x, w)").replace("paddle.tanh(x)", "x @ w")
    layer = layer.replace("save_for_backward(y)", "save_for_backward(x, w)").replace("y, =", "x, w =")
    layer = layer.replace("dy * (1 - y)", wrong).replace(
        "x: {shape: [2, 3]}", "x: {shape: [2, 3]}\n      w: {shape: [3, 5]}"
    )
    Path("own.grad.yaml").write_text(layer)
    done = CliRunner().invoke(main, ["run", "own.grad.yaml", "--allow-code", "--report", "json:r.json"])
    assert f"fix: own.grad.yaml:15 │ return {right}\n" in done.stdout, done.output
    (result,) = json.loads(Path("r.json").read_text())["results"]
    assert (result["status"], result["gradient"]["fix"]["line"]) == (status, 15)


def test_a_scenario_that_is_expected_to_differ_has_no_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from gradcheck.commands import main

    monkeypatch.chdir(tmp_path)
    Path("own.grad.yaml").write_text(SPEC + "    expect: {gradient: differs}\n")
    done = CliRunner().invoke(main, ["run", "own.grad.yaml", "--allow-code", "--report", "json:r.json"])
    assert done.exit_code == 0, done.stdout
    assert json.loads(Path("r.json").read_text())["results"][0]["gradient"]["fix"] is None


MODULE = """import pylayer.paddle as paddle
from pylayer.paddle.autograd import PyLayer


class Silu(PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * paddle.sigmoid(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        s = paddle.sigmoid(x)
        return dy * (s + x * s * (1 + s))
"""


def test_a_layer_of_a_module_that_imports_paddle_is_repaired(tmp_path: Path, monkeypatch: Any) -> None:
    """Python compiles a method of an imported module in another way than one of any other object."""
    (tmp_path / "silus.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    fix = gradcheck.check("silus:Silu", X).fix
    assert fix is not None
    assert (fix.line, fix.source_line.strip()) == (15, "return dy * (s + x * s * (1 - s))")


# --------------------------------------------------------------------------- NumPy pairs, an installed Paddle
def softplus(x, beta=1.0):
    return np.log1p(np.exp(beta * x)) / beta


def wrong_sign(x, g, beta=1.0):
    return g / (1 + np.exp(beta * x))


def norm(x, w):
    rms = np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)
    return x / rms * w


def sum_for_mean(x, w, dy):
    rms = np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)
    g = dy * w
    return g / rms - x * (g * x).sum(axis=-1, keepdims=True) / rms**3, (dy * x / rms).sum(axis=0)


@pytest.mark.parametrize(
    ("forward", "backward", "inputs", "line"),
    [
        (softplus, wrong_sign, [X], "return g / (1 + np.exp(beta * -x))"),
        (
            norm,
            sum_for_mean,
            [X, W[:, 0]],
            "return g / rms - x * (g * x).mean(axis=-1, keepdims=True) / rms**3, (dy * x / rms).sum(axis=0)",
        ),
    ],
)
def test_one_edit_repairs_a_pair_of_functions_of_arrays(
    forward: Any, backward: Any, inputs: list[Any], line: str
) -> None:
    result = gradcheck.check(forward, *inputs, backward=backward)
    assert result.fix is not None
    assert result.fix.source_line == line


def test_an_edit_of_a_numpy_layer_is_in_its_own_variables() -> None:
    def forward(ctx, x):
        ctx.y = np.tanh(x.numpy())
        return paddle.to_tensor(ctx.y)

    def backward(ctx, dy):
        y, g = ctx.y, dy.numpy()
        return paddle.to_tensor(g * (1 - y))

    fix = gradcheck.check(layer(backward, forward), X).fix
    assert fix is not None
    assert fix.source_line == "return paddle.to_tensor(g * (1 - y * y))"


def test_a_cotangent_is_not_an_input_of_the_same_seed() -> None:
    """Where a cotangent is the input by chance, a wrong name for it would be right."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return 2 * x * x

    fix = gradcheck.check(layer(backward, forward), np.random.default_rng(0).standard_normal((3, 4))).fix
    assert fix is not None
    assert "dy" in fix.source_line
