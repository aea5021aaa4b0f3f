"""Static layers, run in this process: their gradients come from programs and are held against numerical ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import indent

import pytest
from cases import case_of

import pylayer.paddle as paddle
from gradcheck.case.execute import execute
from gradcheck.result import Result, Status

pytestmark = pytest.mark.usefixtures("process_as_before")

Run = Callable[..., Result]

TANH = """
def forward_fn(a):
    return paddle.tanh(a)

def backward_fn(d):
    y = paddle.tanh(x)
    return d * (1 - y * y)
"""
WRONG = TANH.replace("1 - y * y", "1 - y")
DETACHED = TANH.replace("paddle.tanh(x)", "paddle.tanh(x).detach()")
PRODUCT = """
def forward_fn(a, b):
    return a * b, [a + b]

def backward_fn(d, e):
    return d * y + e, d * x + e
"""
X = "inputs: {x: {shape: [2, 3]}}"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run_scenario(code: str, *keys: str, kind: str = "layer") -> Result:
        head = "schema: gradcheck/v1\nscenarios:\n  - id: mine\n    title: t\n    source: {document: d}\n"
        head += f"    {kind}: |\n"
        path = tmp_path / "mine.grad.yaml"
        path.write_text(head + indent(code.strip("\n"), "      ") + "\n" + indent("\n".join(keys), "    ") + "\n")
        return execute(case_of(path))

    return run_scenario


@pytest.mark.parametrize(
    ("code", "keys", "status"),
    [
        (TANH, [X], Status.PASS),
        (TANH, [X, "expect: {order: 2}"], Status.PASS),
        (TANH, ["inputs: {x: {shape: [2, 3], dtype: float32}}"], Status.PASS),
        (TANH, ["inputs: {x: {shape: []}}"], Status.PASS),
        (WRONG, [X], Status.FAIL),
        (WRONG, [X, "expect: {gradient: differs}"], Status.PASS),
        (DETACHED, [X], Status.PASS),
        (DETACHED, [X, "expect: {order: 2}"], Status.FAIL),
        (PRODUCT, ["inputs: {x: {shape: [2, 3]}, y: {shape: [2, 3]}}", "expect: {order: 2}"], Status.PASS),
        (PRODUCT, ["inputs: {x: {shape: [2, 3]}, y: {shape: [2, 3], stop_gradient: true}}"], Status.PASS),
        (PRODUCT.replace("d * x + e", "d * x"), ["inputs: {x: {shape: [3]}, y: {shape: [3]}}"], Status.FAIL),
    ],
)
def test_the_gradient_is_held_against_the_numerical_one(run: Run, code: str, keys: list[str], status: Status) -> None:
    result = run(code, *keys)
    assert result.status is status, result.message


@pytest.mark.parametrize(
    ("code", "inputs", "line", "said"),
    [
        (PRODUCT.replace("d * y + e", "d * y - e"), ("x", "y"), "return a * b, [a + b]", "a + b"),
        (TANH.replace("d * (1 - y * y)", "3 * d"), ("x",), "return paddle.tanh(a)", "paddle.tanh(a)"),
        (DETACHED.replace("tanh(x).detach()", "tanh(x)").replace("1 - y * y", "y * y - 1"), ("x",), "return", "sign"),
    ],
)
def test_a_mistake_is_named_with_the_line_of_forward_fn(
    run: Run, code: str, inputs: tuple[str, ...], line: str, said: str
) -> None:
    """The functions run on Tensors as well, as those of a PyLayer would, where every operation is seen."""
    result = run(code, f"inputs: {{{', '.join(f'{name}: {{shape: [2, 3]}}' for name in inputs)}}}")
    assert result.gradient is not None
    assert result.gradient.verdict is Status.FAIL
    [cause] = [d for d in result.gradient.diagnosis if d.line]
    assert cause.source_line.strip().startswith(line)
    assert said in cause.text


def test_what_is_seen_is_judged_at_a_kink(run: Run) -> None:
    relu = "def forward_fn(a):\n    return paddle.nn.functional.relu(a)\ndef backward_fn(d):\n    return %s"
    at = "inputs: {x: {values: [0.0, -1.0, 2.0]}}"
    assert run(relu % "d * (x > 0).astype(d.dtype)", at).status is Status.KINK
    assert run(relu % "d * (x > -2).astype(d.dtype)", at).status is Status.FAIL


def test_functions_for_static_mode_alone_are_held_against_differences(run: Run) -> None:
    """Where they cannot run on Tensors no line is named; the verdict stands."""
    code = TANH.replace("def forward_fn(a):", "def forward_fn(a):\n    assert not paddle.in_dynamic_mode()")
    assert run(code, X).status is Status.PASS
    wrong = run(code.replace("1 - y * y", "1 - y"), X)
    assert wrong.gradient is not None
    assert wrong.gradient.verdict is Status.FAIL
    assert not any(d.line for d in wrong.gradient.diagnosis)


def test_the_wrong_entries_are_counted_by_input(run: Run) -> None:
    result = run(PRODUCT.replace("d * x + e", "d * x"), "inputs: {x: {shape: [3]}, y: {shape: [3]}}")
    assert result.message.startswith("gradient of y: ")
    assert result.message.endswith("3 of 3 entries wrong; x right")


def test_documented_gradients_are_those_of_a_run(run: Run) -> None:
    code = "def forward_fn(a):\n    return a * 3\ndef backward_fn(d):\n    return d * 4"
    keys = ["inputs: {x: {values: [1.0, 2.0]}}"]
    expect = "expect: {gradient: unchecked, grads: {x: [%s, 8.0]}, cotangent: [1.0, 2.0], values: {out: [3.0, 6.0]}}"
    assert run(code, *keys, expect % "4.0").status is Status.PASS
    assert run(code, *keys, expect % "5.0").message.startswith("gradient of x: expected 5.0 at [0], got 4.0")


def test_without_backward_fn_the_forward_alone_runs(run: Run) -> None:
    inputs = "inputs: {x: {values: [1.0], stop_gradient: true}}"
    result = run("def forward_fn(a):\n    return a * 3", inputs, "expect: {values: {out: [3.0]}}")
    assert result.status is Status.PASS, result.message


def test_an_expected_exception_of_backward_fn_is_one_of_the_backward_phase(run: Run) -> None:
    code = TANH.replace("return d * (1 - y * y)", "return d, d")
    raises = "expect: {raises: {type: ValueError, phase: %s, message: but got 2 and 1}}"
    assert run(code, X, raises % "backward").status is Status.PASS
    assert run(code, X, raises % "forward").status is Status.FAIL


def test_an_unexpected_exception_is_an_error_with_its_line(run: Run) -> None:
    result = run(TANH.replace("paddle.tanh(x)", "paddle.tangent(x)"), X)
    assert result.status is Status.ERROR
    assert "paddle.tangent is not part of the bundled engine" in result.message
    assert "(line 11 of the spec)" in result.message


@pytest.mark.parametrize("kind", ["layer", "script"])
def test_the_process_is_left_in_dynamic_mode(run: Run, kind: str) -> None:
    code = TANH if kind == "layer" else "paddle.enable_static()"
    run(code, *([X] if kind == "layer" else ["expect: {values: {'1': 1}}"]), kind=kind)
    assert paddle.in_dynamic_mode()
