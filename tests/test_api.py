"""Gradients checked from Python."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import html5lib
import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status

PyLayer: Any = paddle.autograd.PyLayer
X = np.random.default_rng(0).standard_normal((3, 4))


class Tanh(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (y,) = ctx.saved_tensor()
        return dy * (1 - y * y)


class WrongTanh(Tanh):
    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (y,) = ctx.saved_tensor()
        return dy * (1 - y)


class Detached(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return dy * 3 * x.detach() * x.detach()


class InPlace(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x.abs_()
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return dy * 2 * x


class WritesItsCotangent(Detached):
    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return dy.scale_(3.0) * x * x


class ReturnsItsInput(PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return (x * x).sum() / 2

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return x


@pytest.mark.parametrize("mode", ["auto", "probe", "full"])
def test_the_verdict_on_a_layer(mode: Any) -> None:
    assert gradcheck.check(Tanh, X, mode=mode).verdict is Status.PASS
    assert gradcheck.check(WrongTanh, X, mode=mode).verdict is Status.FAIL


def test_a_right_elementwise_layer_is_certified_entry_by_entry() -> None:
    assert gradcheck.check(Tanh, X).certified
    assert gradcheck.check(lambda x: x @ x, X[:, :3], mode="full").certified


def test_a_mismatch_carries_the_panel_and_the_result() -> None:
    with pytest.raises(gradcheck.GradientMismatch) as caught:
        gradcheck.assert_gradients(WrongTanh, X)
    text = str(caught.value)
    assert text.startswith("FAIL: gradient of x: 12 of 12 entries wrong\n")
    assert "likely: backward takes 1 − y for the derivative of y = `paddle.tanh(x)`" in text
    assert "test_api.py:28 │ y = paddle.tanh(x)" in text
    assert "gradcheck explain GC119" in text
    assert len(caught.value.result.wrong) == 12


def test_full_effort_lists_every_wrong_entry_and_both_count_all() -> None:
    usual = gradcheck.check(WrongTanh, np.arange(30) / 30 + 0.1)
    full = gradcheck.check(WrongTanh, np.arange(30) / 30 + 0.1, effort="full")
    assert (len(usual.wrong), len(full.wrong)) == (20, 30)
    assert usual.wrong_counts == full.wrong_counts == {"x": (30, 30)}
    assert usual.exhaustive
    assert full.exhaustive


# --------------------------------------------------------------------------- a result by itself
def kinked() -> Any:
    return gradcheck.check(paddle.nn.functional.relu, np.array([-1.0, 0.0, 2.0]))


def test_a_result_is_true_where_its_verdict_is_green() -> None:
    assert gradcheck.check(Tanh, X)
    assert kinked()
    assert kinked().verdict is Status.KINK
    assert not gradcheck.check(WrongTanh, X)
    assert not gradcheck.check(lambda x: None, X)  # INCONCLUSIVE
    with pytest.raises(AssertionError):
        assert gradcheck.check(WrongTanh, X)


def test_the_repr_of_a_result_is_its_verdict_and_headline_in_one_line() -> None:
    assert repr(gradcheck.check(WrongTanh, X)) == "FAIL: gradient of x: 12 of 12 entries wrong"
    assert repr(gradcheck.check(paddle.matmul, X, X.T)) == "PASS: gradient of x, y right"
    assert repr(gradcheck.check(lambda x: None, X)).startswith("INCONCLUSIVE: nothing was checked: ")
    declared = gradcheck.check(lambda x: x.floor(), X, expect="zero")
    assert repr(declared) == "PASS [expected to be zero]: gradient of x right"
    assert "\n" not in repr(kinked())


def test_a_result_is_printed_as_the_panel() -> None:
    result = gradcheck.check(WrongTanh, X)
    with pytest.raises(gradcheck.GradientMismatch) as caught:
        gradcheck.assert_gradients(WrongTanh, X)
    assert str(result) == f"{result}" == str(caught.value)
    assert len(str(result)) < 2_000
    assert str(gradcheck.check(Tanh, X)) == "PASS: gradient of x right"


def test_what_a_layer_says_cannot_steer_the_screen() -> None:
    result = replace(gradcheck.check(lambda x: {"\x1b[2J": 1}, X), why="\x1b[2J<b>")
    assert "\x1b" not in f"{result!r} {result}"
    page = result._repr_html_()
    assert "&lt;b&gt;" in page
    assert "\x1b" not in page


def test_notebooks_and_rich_show_the_panel_of_a_result() -> None:
    from rich.console import Console
    from rich.pretty import pretty_repr

    result, console = gradcheck.check(WrongTanh, X), Console(width=120, record=True, force_jupyter=False)
    (frame,) = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parseFragment(result._repr_html_())
    verdict, said = frame
    assert (verdict.text, said.text) == ("FAIL", str(result).removeprefix("FAIL: "))
    for one in frame.iter():  # a notebook is light or dark: letters have its colour, or a pair that is ours
        style = dict(part.split(": ") for part in one.get("style").split("; "))
        assert style.get("color", "inherit") == "inherit" or style["background"].startswith("#")
    assert len({gradcheck.check(f, X)._repr_html_().partition(";")[0] for f in (WrongTanh, Tanh)}) == 2
    with console.capture() as shown:
        console.print(result)
    assert "─ FAIL ─" in shown.get()
    assert all(line.strip() in shown.get() for line in str(result).splitlines()[1:])
    assert pretty_repr([result]) == f"[{result!r}]"


def test_a_right_gradient_raises_nothing() -> None:
    assert gradcheck.assert_gradients(Tanh, X, order=2).verdict is Status.PASS


def test_a_first_derivative_alone_may_be_right() -> None:
    assert gradcheck.check(Detached, X).verdict is Status.PASS
    second = gradcheck.check(Detached, X, order=2)
    assert second.verdict is Status.FAIL
    assert second.diagnosis[0].code == "GC140"


@pytest.mark.parametrize(
    ("layer", "code"), [(InPlace, "GC133"), (WritesItsCotangent, "GC134"), (ReturnsItsInput, "GC135")]
)
def test_what_a_layer_changes_is_named(layer: Any, code: str) -> None:
    summary = gradcheck.check(layer, X)
    assert summary.verdict is Status.FAIL
    assert summary.diagnosis[0].code == code


def test_functions_tensors_and_other_arguments() -> None:
    x = paddle.to_tensor(X, stop_gradient=False)
    n = paddle.to_tensor(3)
    assert gradcheck.check(paddle.matmul, x, x.detach().t()).verdict is Status.PASS
    assert gradcheck.check(lambda x, n, scale: x * n * scale, x, n, 2).verdict is Status.PASS
    assert gradcheck.check(lambda *xs: xs[0] * xs[1], X, X).wrong_counts == {"x0": (0, 12), "x1": (0, 12)}


@pytest.mark.parametrize("inputs", [[], [3], [0.5, 2j, True], [np.arange(3)], [paddle.ones([2])]])
def test_without_an_input_that_needs_a_gradient_there_is_nothing_to_check(inputs: Any) -> None:
    with pytest.raises(TypeError, match="no input needs a gradient"):
        gradcheck.check(lambda *x: paddle.ones([2]), *inputs)


# --------------------------------------------------------------------------- arguments
def test_a_function_of_arrays_without_its_gradients_is_told_to_need_them() -> None:
    with pytest.raises(TypeError, match="ufuncs") as raised:
        gradcheck.check(lambda x: np.tanh(x), np.ones(3))
    assert raised.value.__notes__ == [
        "for Tensors use the framework's functions; a function of NumPy arrays is checked with "
        "the gradients written for it: backward=… (--backward module:function; in a spec file, "
        "layer: {ref: …, backward: …})"
    ]


def test_plain_numbers_are_passed_as_they_are() -> None:
    seen = []

    def function(x: Any, *rest: Any) -> Any:
        seen.append([type(value) for value in rest])
        return x * rest[0]

    assert gradcheck.check(function, X, 1e-6, 3, True, 2j).wrong_counts == {"x": (0, 12)}
    assert all(types == [float, int, bool, complex] for types in seen)


def test_a_layer_takes_plain_numbers() -> None:
    class Scaled(PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy * ctx.factor

    assert gradcheck.check(Scaled, X, 1e-6).verdict is Status.PASS


@pytest.mark.parametrize("x", [np.float64(2.0), np.float32(2.0), np.array(2.0), np.complex128(1 + 2j)])
def test_numbers_of_numpy_are_arrays(x: Any) -> None:
    assert gradcheck.check(lambda x: x * x, x).wrong_counts == {"x": (0, 1)}


def test_a_function_that_wants_tensors_with_a_gradient() -> None:
    def wanting(x: Any, stopped: Any) -> Any:
        assert not x.stop_gradient
        assert stopped.stop_gradient
        return x * stopped

    assert gradcheck.check(wanting, X, paddle.to_tensor(X)).verdict is Status.PASS


def test_bfloat16() -> None:
    x = paddle.to_tensor(X, dtype="bfloat16", stop_gradient=False)
    assert gradcheck.check(Tanh, x).verdict is Status.PASS
    assert gradcheck.check(WrongTanh, x).verdict is Status.FAIL


# --------------------------------------------------------------------------- options
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 3}, "order must be 1 or 2, not 3"),
        ({"order": True}, "order must be 1 or 2, not True"),
        ({"mode": "x"}, "mode must be 'auto', 'probe' or 'full', not 'x'"),
        ({"mode": None}, "mode must be 'auto', 'probe' or 'full', not None"),
        ({"rtol": -1}, "rtol must be a number of at least 0 and below 1"),
        ({"rtol": 1}, "rtol must be a number of at least 0 and below 1"),
        ({"rtol": float("inf")}, "rtol must be .* not inf"),
        ({"rtol": float("nan")}, "rtol must be .* not nan"),
        ({"rtol": True}, "rtol must be .* not True"),
        ({"rtol": "0.1"}, "rtol must be .* not '0.1'"),
        ({"nondet": 1}, "nondet must be a number of at least 0 and below 1, not 1"),
        ({"nondet": None}, "nondet must be a number of at least 0 and below 1, not None"),
        ({"nondet_tol": 1e-6}, "there is no option 'nondet_tol': nondet=1e-6 lets identical runs differ"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"seed": 0.5}, "seed must be a whole number from 0"),
        ({"points": 0}, "points must be a whole number of at least 1, not 0"),
        ({"dtypes": "float64"}, "dtypes must be a list"),
        ({"dtypes": ["int8"]}, "each of dtypes must be 'float64', .* not 'int8'"),
        ({"precision": "lose"}, "precision must be 'strict' or 'loose', not 'lose'"),
        ({"expect": "wrong"}, "expect must be 'matches', 'differs', 'straight-through' or 'zero', not 'wrong'"),
    ],
)
def test_an_option_that_cannot_be_says_what_is_allowed(options: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        gradcheck.check(Tanh, X, **options)


class Residual(PyLayer):
    """x * scale + residual, whose keywords are a Tensor and a number."""

    @staticmethod
    def forward(ctx: Any, x: Any, *, residual: Any = None, scale: float = 1.0) -> Any:
        ctx.scale, ctx.count = scale, 1 + (residual is not None)
        return x * scale if residual is None else x * scale + residual

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return (dy * ctx.scale, 2 * dy)[: ctx.count]


def test_keywords_are_passed_by_name_and_arrays_among_them_are_inputs() -> None:
    x, r = np.ones(3), np.ones(3)
    assert gradcheck.check(Residual, x, kwargs={"scale": 3.0})
    result = gradcheck.check(Residual, x, kwargs={"residual": r, "scale": 3.0})
    assert result.verdict is Status.FAIL
    assert {entry.input for entry in result.wrong} == {"residual"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"eps": 1e-3}, "there is no option 'eps': steps are chosen for every entry"),
        ({"atol": 1e-3}, "there is no option 'atol': no absolute tolerance decides; rtol="),
        ({"grad": abs}, "there is no option 'grad': backward= takes"),
        ({"ordr": 2}, "there is no option 'ordr'; did you mean order?"),
        ({"scale": 2.0}, "kwargs={'scale': …}"),
        ({"kwargs": {"x": np.ones(3)}}, "kwargs: 'x' is an argument as well"),
        ({"kwargs": 3}, "kwargs must be a dict"),
        ({"kwargs": {"axis": 1}, "backward": abs}, "kwargs are for layers"),
    ],
)
def test_an_option_that_there_is_not_is_answered_with_what_to_use(options: Any, said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)):
        gradcheck.check(Residual, np.ones(3), **options)


def test_options_at_the_edge_of_what_is_allowed() -> None:
    assert gradcheck.check(Tanh, X, rtol=0, seed=np.int64(2**32 - 1), order=np.int64(1)).verdict is Status.PASS


# --------------------------------------------------------------------------- nothing checked
@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: None, "the call returned None, and no Tensor"),
        (lambda x: [x.numpy(), x.numpy()], "the call returned a list of ndarray, and no Tensor"),
        (lambda x: paddle.argmax(x), "no output has a derivative: they are of dtype int64"),
        (lambda x: x[:0], r"no output has an element: they are of shape \[0, 4\]"),
    ],
)
def test_what_leaves_nothing_to_check_is_not_green(function: Any, why: str) -> None:
    summary = gradcheck.check(function, X)
    assert summary.verdict is Status.INCONCLUSIVE
    assert re.fullmatch(f"nothing was checked: {why}", summary.why)
    with pytest.raises(gradcheck.GradientMismatch, match="INCONCLUSIVE: nothing was checked"):
        gradcheck.assert_gradients(function, X)


def test_inputs_without_an_element_leave_nothing_to_check() -> None:
    assert gradcheck.check(lambda x: x.sum(), np.zeros((0, 3))).verdict is Status.INCONCLUSIVE


def test_outputs_without_a_gradient_leave_nothing_to_check() -> None:
    class Marked(Detached):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * x
            ctx.mark_non_differentiable(y)
            return y

    assert "no output has a gradient" in gradcheck.check(Marked, X).why


# --------------------------------------------------------------------------- what is no gradient
@pytest.mark.parametrize(
    ("backward", "said"),
    [
        (lambda dy: paddle.ones([3, 4], dtype="int64"), "dtype int64"),
        (lambda dy: dy > 0, "dtype bool"),
        (lambda dy: dy.sum(), r"shape \[\]"),
        (lambda dy: dy[0], r"shape \[4\]"),
        (lambda dy: (dy, dy), "should be 1, but received 2"),
        (lambda dy: dy.numpy(), "Tensor or None"),
    ],
)
def test_what_is_no_gradient_is_a_broken_contract(backward: Any, said: str) -> None:
    class Layer(Detached):
        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return backward(dy)

    summary = gradcheck.check(Layer, X)
    assert summary.verdict is Status.FAIL
    assert [found.code for found in summary.diagnosis] == ["GC137"]
    assert re.search(said, summary.summary())


def test_a_mismatch_survives_pickling_and_copying() -> None:
    with pytest.raises(gradcheck.GradientMismatch) as caught:
        gradcheck.assert_gradients(WrongTanh, X)
    caught.value.add_note("in the second layer")
    for again in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert type(again) is gradcheck.GradientMismatch
        assert (str(again), again.result) == (str(caught.value), caught.value.result)
        assert again.__notes__ == ["in the second layer"]


def test_other_errors_of_a_backward_come_through() -> None:
    class Raising(Detached):
        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        gradcheck.check(Raising, X)


def test_the_package_itself_imports_no_numpy_and_takes_no_name_of_paddle() -> None:
    code = "import sys, gradcheck; print('numpy' in sys.modules); gradcheck.check; print('paddle' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout.split() == ["False", "False"]


def environment() -> dict[str, str]:
    import os

    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            (lambda x: x, [1.0, 2.0]),
            r"argument 0 is a list of numbers, and gets no gradient: pass np.asarray\(x, float\)",
        ),
        (
            (paddle.nn.Linear, np.ones((2, 3))),
            r"Linear is the class of an nn.Layer: pass an instance, such as check\(Linear",
        ),
    ],
)
def test_an_argument_of_the_wrong_type_is_named_with_what_to_pass(arguments, said):
    with pytest.raises(TypeError, match=said):
        gradcheck.check(*arguments)


class TestArgumentsThatHoldTensors:
    """Lists, tuples and dicts of Tensors: each Tensor is an input of its own."""

    @staticmethod
    def combined(x: Any, parts: Any, named: Any) -> Any:
        return x * parts[0] + parts[1] * named["k"]

    @pytest.mark.parametrize("kind", [list, tuple])
    def test_all_of_them_are_checked(self, kind: type) -> None:
        result = gradcheck.check(self.combined, X, kind([X + 1, X + 2]), {"k": X + 3})
        assert result.summary() == "gradient of x, parts[0], parts[1], named['k'] right"

    def test_a_wrong_gradient_is_told_by_its_place(self) -> None:
        class Wrong(PyLayer):
            @staticmethod
            def forward(ctx: Any, parts: Any) -> Any:
                ctx.save_for_backward(*parts)
                return parts[0] * parts[1]

            @staticmethod
            def backward(ctx: Any, dy: Any) -> Any:
                _, b = ctx.saved_tensor()
                return [dy * b, dy * b]

        result = gradcheck.check(Wrong, [X, X + 1])
        assert "gradient of parts[1]: 12 of 12 entries wrong; parts[0] right" in result.summary()

    def test_what_is_no_tensor_is_passed_on(self) -> None:
        assert gradcheck.check(self.combined, X, [X, 2.0], {"k": 3})
