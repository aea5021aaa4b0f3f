"""One case, run in this process: what becomes of a scenario that holds and of one that does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent

import pytest
from cases import cases_of
from pydantic import ValidationError

from gradcheck.case.execute import execute
from gradcheck.result import Result, Status
from gradcheck.spec.model import LayerOp

pytestmark = pytest.mark.usefixtures("process_as_before")

Run = Callable[..., Result]

TANH = """
class Tanh(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        y, = ctx.saved_tensor()
        return dy * (1 - y * y)
"""
WRONG = TANH.replace("1 - y * y", "1 - y")
X = "inputs: {x: {shape: [2, 3]}}"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the scenario of a kind of code (layer or script) and further keys; the first of its cases unless told."""

    def run_scenario(kind: str, code: str, *keys: str, case: int = 0) -> Result:
        lines = [
            "schema: gradcheck/v1",
            "scenarios:",
            "  - id: mine",
            "    title: Mine",
            "    source: {document: none}",
            f"    {kind}: |",
            indent(dedent(code).strip("\n"), " " * 6),
            *(indent(dedent(key).strip("\n"), " " * 4) for key in keys),
        ]
        file = tmp_path / "mine.grad.yaml"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return execute(cases_of(file)[case])

    return run_scenario


def test_a_right_layer_passes_with_its_gradient_summary(run: Run) -> None:
    result = run("layer", TANH, X)
    assert (result.status, result.message) == (Status.PASS, "")
    assert (result.name, result.line, result.column) == ("mine@numpy", 3, 5)
    assert result.gradient is not None
    assert result.gradient.wrong_counts == {"x": (0, 6)}


def test_a_wrong_layer_fails_and_names_input_and_entries(run: Run) -> None:
    result = run("layer", WRONG, X)
    assert (result.status, result.message) == (Status.FAIL, "gradient of x: 6 of 6 entries wrong")
    assert result.gradient is not None
    assert {entry.input for entry in result.gradient.wrong} == {"x"}


def test_the_right_inputs_are_named_too(run: Run) -> None:
    code = """
    class Product(PyLayer):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, dy):
            a, b = ctx.saved_tensor()
            return dy * b, dy
    """
    result = run("layer", code, "inputs: {a: {shape: [3]}, b: {shape: [3]}}")
    assert result.message == "gradient of b: 3 of 3 entries wrong; a right"


def test_differs_wants_a_wrong_layer(run: Run) -> None:
    assert run("layer", WRONG, X, "expect: {gradient: differs}").status is Status.PASS
    result = run("layer", TANH, X, "expect: {gradient: differs}")
    assert (result.status, result.message[:40]) == (Status.FAIL, "expected a backward that is not the deri")


def test_declared_backwards(run: Run) -> None:
    passes_on = TANH.replace("paddle.tanh(x)", "paddle.round(x)").replace("dy * (1 - y * y)", "dy * 1")
    straight, zero = "expect: {gradient: straight-through}", "expect: {gradient: zero}"
    result = run("layer", passes_on, X, straight)
    assert (result.status, result.message) == (Status.PASS, "")
    assert result.gradient is not None
    assert result.gradient.marks == ("expected to be straight-through",)
    assert "expected a step function" in run("layer", TANH.replace("(1 - y * y)", "1"), X, straight).message
    assert run("layer", TANH.replace("(1 - y * y)", "0"), X, zero).status is Status.PASS
    assert "expected a gradient of zeros" in run("layer", TANH, X, zero).message


@pytest.mark.parametrize(
    ("gradient", "said"),
    [
        ("paddle.ones(dy.shape, dtype='int64')", "backward returns a gradient of dtype int64"),
        ("dy.sum()", "the gradient has shape [], but the input has shape [2, 3]"),
        ("(dy, dy)", "The number of outputs of `PyLayer.backward` should be 1, but received 2"),
    ],
)
def test_what_is_no_gradient_fails_as_a_broken_contract(run: Run, gradient: str, said: str) -> None:
    code = TANH.replace("dy * (1 - y * y)", gradient)
    result = run("layer", code, X)
    assert result.status is Status.FAIL
    assert said in result.message
    assert result.gradient is not None
    assert [found.code for found in result.gradient.diagnosis] == ["GC137"]
    assert run("layer", code, X, "expect: {differs: {code: GC137}}").status is Status.PASS


def test_the_return_of_rejected_gradients_is_shown(run: Run) -> None:
    code = TANH.replace("dy * (1 - y * y)", "dy.sum()")
    (cause,) = run("layer", code, X).checked.diagnosis
    assert cause.source_line[cause.column : cause.end_column] == "return dy.sum()"
    several = "if y is None: return dy\n        return dy.sum()"
    (cause,) = run("layer", TANH.replace("return dy * (1 - y * y)", several), X).checked.diagnosis
    assert (cause.code, cause.line) == ("GC137", "")


def test_a_backward_without_a_return_has_none_to_show(run: Run) -> None:
    code = TANH.replace("(ctx, x)", "(ctx, x, z)").replace("return dy * (1 - y * y)", "y.gradient = dy")
    (cause,) = run("layer", code, "inputs: {x: {shape: [3]}, z: {shape: [3]}}").checked.diagnosis
    assert (cause.code, cause.line) == ("GC137", "")


@pytest.mark.parametrize("backward", ["dy.sum()", "dy.sums()"])
def test_the_place_of_a_call_that_gradcheck_writes_is_left_out(run: Run, backward: str) -> None:
    code = TANH.replace("dy * (1 - y * y)", backward)
    assert "applied at" not in run("layer", code, X).message
    assert "applied at" in run("layer", code, X, "call: Tanh.apply(x)").message


def test_the_layer_that_runs_the_ranks_is_left_out(run: Run) -> None:
    result = run("layer", TANH.replace("dy * (1 - y * y)", "dy.sums()"), X, "world: 2")
    assert "in backward of GradNodePyLayer_Tanh · on all 2 ranks (line " in result.message


def test_what_is_no_gradient_may_be_the_exception_that_is_expected(run: Run) -> None:
    code = TANH.replace("dy * (1 - y * y)", "dy.sum()")
    assert run("layer", code, X, "expect: {raises: {type: ValueError, phase: backward}}").status is Status.PASS


def test_an_output_without_elements_is_not_green(run: Run) -> None:
    result = run("layer", TANH, "inputs: {x: {shape: [n, 3]}}", "matrix: {n: [0, 1]}")
    assert (result.status, result.message[:21]) == (Status.INCONCLUSIVE, "nothing was checked: ")


def test_a_backward_that_loses_digits_passes_where_that_is_expected(run: Run) -> None:
    narrow = TANH.replace("dy * (1 - y * y)", "(dy * (1 - y * y)).astype('float32').astype(dy.dtype)")
    result = run("layer", narrow, X)
    assert result.gradient is not None
    assert (result.status, [d.code for d in result.gradient.diagnosis]) == (Status.FAIL, ["GC113"])
    result = run("layer", narrow, X, "expect: {precision: loose}")
    assert result.status is Status.PASS
    assert result.gradient is not None
    assert "digits are lost in float64, with casts to float32" in result.gradient.marks[0]


def test_the_second_order_is_checked_on_request(run: Run) -> None:
    detached = TANH.replace("dy * (1 - y * y)", "dy * (1 - y * y).detach()")
    assert run("layer", TANH, X, "expect: {order: 2}").status is Status.PASS
    assert run("layer", detached, X).status is Status.PASS
    result = run("layer", detached, X, "expect: {order: 2}")
    assert result.status is Status.FAIL


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ("grads: {x: [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]}", "gradient of x: expected 1.0 at [0, 0]"),
        ("calls: {forward: 2}", "forward ran 1 times, expected 2"),
        ("calls: {backward: 0}", "backward ran 1 times, expected 0"),
        ('values: {"out.stop_gradient": true}', "out.stop_gradient: expected True, got False"),
        ('values: {"x.grad is None": true}', "x.grad is None: expected True, got False"),
        ("warns: {type: UserWarning}", "expected a UserWarning, but the warnings were: none"),
        ("raises: {type: ValueError}", "expected ValueError in any, but nothing was raised"),
    ],
)
def test_an_expectation_that_does_not_hold_fails(run: Run, expect: str, said: str) -> None:
    result = run("layer", TANH, X, f"expect: {{{expect}}}")
    assert result.status is Status.FAIL
    assert said in result.message


RAISES = """
class Broken(PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        raise KeyError("mine")
"""


@pytest.mark.parametrize(
    ("raises", "said"),
    [
        ("{type: KeyError}", ""),
        ("{type: LookupError, phase: backward, message: mine}", ""),
        ("{type: KeyError, message: {re: 'm.ne'}}", ""),
        ("{type: ValueError}", "expected ValueError, but the code raised KeyError: 'mine'"),
        ("{type: KeyError, phase: forward}", "expected KeyError in forward, but backward raised"),
        ("{type: KeyError, message: yours}", "expected a message with 'yours'"),
    ],
)
def test_the_expected_exception(run: Run, raises: str, said: str) -> None:
    result = run("layer", RAISES, X, f"expect: {{raises: {raises}}}")
    assert result.status is (Status.FAIL if said else Status.PASS)
    assert said in result.message


def test_an_unexpected_exception_is_an_error_with_its_line(run: Run) -> None:
    result = run("layer", RAISES, X)
    assert result.status is Status.ERROR
    assert "KeyError: 'mine' · in backward of GradNodePyLayer_Broken" in result.message
    assert "line 14 of the spec" in result.message


@pytest.mark.parametrize("code", ["import no_such_module_here", "raise SystemExit(3)", "paddle.no_such_name", "1 / 0"])
def test_a_script_that_breaks_is_an_error(run: Run, code: str) -> None:
    result = run("script", code, 'expect: {values: {"1": 1}}')
    assert (result.status, "line 7 of the spec" in result.message) == (Status.ERROR, True)


def test_a_script_imports_the_engine_as_paddle(run: Run) -> None:
    code = """
    import paddle
    from paddle.autograd import PyLayer as Imported
    import paddle.nn.functional as F
    same = Imported is PyLayer
    """
    assert (
        run("script", code, 'expect: {values: {"same": true, "F.relu(paddle.ones([1]))": [1.0]}}').status is Status.PASS
    )


def test_a_point_of_the_matrix_sets_dtypes_and_names(run: Run) -> None:
    keys = [X, "matrix: {dtype: [float32], power: [2, 3]}", "call: 'paddle.pow(x, power) + 0 * Tanh.apply(x)'"]
    result = run("layer", TANH, *keys, 'expect: {values: {"x.dtype == paddle.float32": true, "power": 3}}', case=1)
    assert (result.name, result.status) == ("mine/dtype=float32,power=3@numpy", Status.PASS)


def test_what_is_known_to_fail_must_fail(run: Run) -> None:
    xfail = "backends: {numpy: {xfail: {reason: known}}}"
    result = run("layer", WRONG, X, xfail)
    assert (result.status, result.message) == (Status.XFAIL, "known")
    assert run("layer", TANH, X, xfail).status is Status.XPASS
    assert run("layer", RAISES, X, xfail).status is Status.ERROR


def test_a_result_that_is_cut_off_from_its_input_is_not_vacuously_right(run: Run) -> None:
    result = run("layer", "def cut(x): return x.detach() * 2", X, "call: cut(x)", "expect: {gradient: matches}")
    assert result.status is Status.FAIL


def test_an_output_marked_as_non_differentiable_makes_no_claim(run: Run) -> None:
    code = """
    class Two(PyLayer):
        @staticmethod
        def forward(ctx, x):
            a = x * 3
            ctx.mark_non_differentiable(a)
            return a, x * 2

        @staticmethod
        def backward(ctx, da, db):
            return db * 2
    """
    assert run("layer", code, X).status is Status.PASS


SEES = """
class Sees(PyLayer):
    @staticmethod
    def forward(ctx, x):
        seen.append((x.is_contiguous(), list(x.shape), x.stop_gradient))
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        return dy * 2

seen = []
"""


@pytest.mark.parametrize(
    ("layout", "shape", "contiguous"),
    [
        (layout, shape, layout == "contiguous" or shape == "[]")
        for layout in ("contiguous", "transposed", "strided", "expanded")
        for shape in ("[]", "[2, 3]", "[2, 3, 4]")
    ],
)
def test_a_layer_sees_its_input_in_the_layout_asked_for(run: Run, layout: str, shape: str, contiguous: bool) -> None:
    inputs = f"inputs: {{x: {{shape: {shape}, layout: {layout}}}}}"
    expect = f'expect: {{values: {{"str(seen[0])": "({contiguous}, {shape}, False)"}}}}'
    result = run("layer", SEES, inputs, expect)
    assert (result.status, result.message) == (Status.PASS, "")


@pytest.mark.parametrize("layout", ["transposed", "strided"])
def test_a_layout_changes_no_value(run: Run, layout: str) -> None:
    inputs = f"inputs: {{x: {{values: [[1, 2, 3], [4, 5, 6]], layout: {layout}, dtype: float64}}}}"
    expect = "expect: {values: {out: [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]}}"
    assert run("layer", SEES, inputs, expect).status is Status.PASS


def test_the_seed_decides_the_inputs(run: Run) -> None:
    first, second, other = (run("layer", TANH, X, f"seed: {seed}").gradient for seed in (5, 5, 6))
    assert first == second != other


def test_the_seed_decides_what_the_engine_draws(run: Run) -> None:
    code = "a = paddle.randn([3])\npaddle.seed(0)\nb = paddle.randn([3])"
    assert run("script", code, 'expect: {values: {"bool((a == b).all())": true}}').status is Status.PASS


@pytest.mark.parametrize("name", ["os.kill", "_names.sys.modules.clear", "set_device", "nn.Linear"])
def test_an_operation_that_is_not_on_the_list_is_not_even_looked_up(tmp_path, name):
    """No spec file can hold one; a scenario that was put together past the model's checks is refused too."""
    with pytest.raises(ValidationError):
        LayerOp(op=name)
    file = tmp_path / "a.grad.yaml"
    head = "schema: gradcheck/v1\nscenarios:\n  - {id: a, title: t, source: {document: d}, "
    file.write_text(f"{head}layer: {{op: tanh}}, inputs: {{{X.removeprefix('inputs: {')}}}\n")
    case, *_ = cases_of(file)
    layer = LayerOp.model_construct(op=name)
    case = case.model_copy(update={"scenario": case.scenario.model_copy(update={"layer": layer})})
    with pytest.raises(KeyError, match=name):
        execute(case)


@pytest.mark.parametrize(
    "code", [TANH, "def forward_fn(x): return x * 2\ndef backward_fn(dy): return dy * 2"], ids=["layer", "static"]
)
def test_a_cotangent_of_another_shape_than_the_output_is_an_error_at_its_line(run: Run, code: str) -> None:
    result = run("layer", code, X, "expect:\n  grads: {x: null}\n  cotangent: [1.0, 2.0]")
    assert result.status is Status.ERROR
    line = len(dedent(code).strip("\n").split("\n")) + 10
    assert result.message == f"the cotangent has shape [2], the output [2, 3] (line {line} of the spec)"


ALIASED = "inputs: {x: {values: [1.0, 2.0]}, y: {layout: {aliased: x}}}"
APART = "inputs: {x: {values: [1.0, 2.0]}, y: {values: [1.0, 2.0]}}"


@pytest.mark.parametrize(("inputs", "product"), [(ALIASED, 29), (APART, 9)])
def test_an_alias_has_the_memory_of_the_other_input(run: Run, inputs: str, product: int) -> None:
    code = """
    def product(x, y):
        x[0] = 5.0
        return (x * y).sum()
    """
    call, expect = (
        "call: product(x.detach(), y.detach())",
        f"expect: {{gradient: unchecked, values: {{out: {product}.0}}}}",
    )
    result = run("layer", code, inputs, call, expect)
    assert (result.status, result.message) == (Status.PASS, "")


def test_rows_that_are_not_equal_cannot_be_expanded(run: Run) -> None:
    result = run("layer", TANH, "inputs: {x: {values: [1.0, 2.0], layout: expanded}}")
    assert result.status is Status.ERROR
    assert "equal rows along its first axis" in result.message


def test_gradients_of_tensors_in_a_list_are_checked_one_by_one(run: Run) -> None:
    code = """
    class Product(PyLayer):
        @staticmethod
        def forward(ctx, parts):
            ctx.save_for_backward(*parts)
            return parts[0] * parts[1]

        @staticmethod
        def backward(ctx, dy):
            a, b = ctx.saved_tensor()
            return [dy * b, dy * b]
    """
    inputs = "inputs: {parts: [{shape: [2]}, {shape: [2]}]}"
    result = run("layer", code, inputs, "expect: {differs: {inputs: ['parts[1]']}}")
    assert (result.status, result.message) == (Status.PASS, "")
