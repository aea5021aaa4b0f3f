"""Verdicts at the points where gradient checkers go wrong, and the entries that a FAIL names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from claims import numpy_layer
from hypothesis import given, settings
from hypothesis import strategies as st

import gradcheck
import pylayer.paddle as paddle
from gradcheck.case.gradient_check import check_gradient
from gradcheck.checking.problem import Problem
from gradcheck.result import GradientSummary, Status
from pylayer.paddle.autograd import PyLayer

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

RANDOM = np.random.default_rng(7)
NORMAL = RANDOM.standard_normal(2000)
COMPLEX = RANDOM.standard_normal(6) + 1j * RANDOM.standard_normal(6)
A, B = RANDOM.standard_normal((2, 8, 8))


def problem(forward: Callable[..., Any], backward: Callable[..., Any], *inputs: Any) -> Problem:
    """A layer ``y = forward(*x)`` whose gradients are ``backward(*x, y, g)``."""
    arrays = [np.asarray(x) for x in inputs]

    def vjp(x: Any, cotangents: Any) -> list[Any]:
        gradients = backward(*x, forward(*x), cotangents[0])
        return list(gradients) if isinstance(gradients, tuple) else [gradients]

    return Problem(
        names=[f"x{k}" for k in range(len(arrays))],
        inputs=arrays,
        differentiable=[x.dtype.kind in "fc" for x in arrays],
        output_names=["out"],
        forward=lambda x: [np.asarray(forward(*x))],
        vjp=vjp,
    )


def check(forward: Callable[..., Any], backward: Callable[..., Any], *inputs: Any, **options: Any) -> GradientSummary:
    return check_gradient(problem(forward, backward, *inputs), **options)


def tanh_vjp(x: Any, y: Any, g: Any) -> Any:
    return g * (1 - y * y)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def mean_square(x: Any) -> Any:
    return np.mean(x * x)


@pytest.mark.parametrize(
    ("forward", "backward", "inputs"),
    [
        (np.tanh, tanh_vjp, [NORMAL]),
        (np.tanh, tanh_vjp, [NORMAL.astype("float32")]),
        (np.tanh, tanh_vjp, [NORMAL.astype("float16")]),
        (np.tanh, tanh_vjp, [np.float64(0.3)]),
        (np.tanh, tanh_vjp, [NORMAL.reshape(40, 50).T[::2]]),
        (np.tanh, tanh_vjp, [10.0 ** RANDOM.uniform(-6, 4, 500) * RANDOM.choice([-1, 1], 500)]),
        (lambda x: x * x, lambda x, y, g: g * 2 * x, [[1e8]]),
        (np.log, lambda x, y, g: g / x, [[1e-7]]),
        (lambda x: (x + 1e8) - 1e8, lambda x, y, g: g, [[1.3, 0.2]]),
        (np.exp, lambda x, y, g: g * y, [[50.0]]),
        (np.exp, lambda x, y, g: g * y, [[-50.0]]),
        (mean_square, lambda x, y, g: g * 2 * x / x.size, [2e-3 * NORMAL]),
        (sigmoid, lambda x, y, g: g * y * (1 - y), [NORMAL]),
        (np.matmul, lambda a, b, y, g: (g @ b.T, a.T @ g), [A, B]),
        (np.exp, lambda x, y, g: g * y.conj(), [COMPLEX]),
        (lambda x: (x * x.conj()).real, lambda x, y, g: 2 * g * x, [COMPLEX]),
        (lambda x, n: x**n, lambda x, n, y, g: (g * n * x ** (n - 1), None), [NORMAL, np.array(3)]),
    ],
)
def test_a_right_backward_passes(forward: Any, backward: Any, inputs: Any) -> None:
    summary = check(forward, backward, *inputs)
    assert (summary.verdict, summary.why) == (Status.PASS, "")
    assert summary.worst_error <= 1


def test_in_recorded_code_what_is_small_or_flat_is_told() -> None:
    """Where nothing sees the operations, both may be what rounding leaves of numbers of size 1."""
    flat = numpy_layer(np.floor, lambda x, y, g: g * 0)
    assert gradcheck.check(flat, np.array([2.3])).verdict is Status.PASS
    for factor, verdict in ((1, Status.PASS), (2, Status.FAIL)):
        small = numpy_layer(np.exp, lambda x, y, g, factor=factor: factor * g * y)
        assert gradcheck.check(small, np.array([-50.0])).verdict is verdict


def test_a_curve_much_finer_than_the_inputs_scale_has_no_kinks() -> None:
    summary = check(lambda x: np.sin(1e6 * x), lambda x, y, g: g * 1e6 * np.cos(1e6 * x), [0.3, 0.7])
    assert summary.verdict is Status.PASS


def without_element_777(x: Any, y: Any, g: Any) -> Any:
    gradient = g * (1 - y * y)
    gradient[777] = 0
    return gradient


@pytest.mark.parametrize(
    ("forward", "backward", "inputs"),
    [
        (np.tanh, lambda x, y, g: g * (1 - y), [NORMAL]),
        (np.tanh, lambda x, y, g: np.maximum(g, 0) * (1 - y * y), [NORMAL]),
        (np.tanh, lambda x, y, g: g * g * (1 - y * y), [[0.5]]),
        (np.tanh, lambda x, y, g: np.clip(g, -1, 1) * (1 - y * y), [[0.5]]),
        (np.tanh, lambda x, y, g: g * 0, [NORMAL]),
        (np.tanh, lambda x, y, g: None, [NORMAL]),
        (mean_square, lambda x, y, g: 0 * x, [2e-3 * NORMAL]),
        (np.matmul, lambda a, b, y, g: (g @ b, a.T @ g), [A, B]),
        (np.exp, lambda x, y, g: g * y, [COMPLEX]),
        (np.tanh, lambda x, y, g: np.roll(g * (1 - y * y), 1), [NORMAL]),
        (lambda a, b: a - b, lambda a, b, y, g: (g, g), [NORMAL, NORMAL[::-1]]),
    ],
)
def test_a_wrong_backward_fails_with_a_confirmed_entry(forward: Any, backward: Any, inputs: Any) -> None:
    summary = check(forward, backward, *inputs)
    assert summary.verdict is Status.FAIL
    assert summary.wrong
    for entry in summary.wrong:
        assert abs(entry.analytic - entry.numeric) > entry.error_bound


def test_one_dead_element_is_named_alone() -> None:
    summary = check(np.tanh, without_element_777, NORMAL)
    assert [(e.input, e.index, e.output_index) for e in summary.wrong] == [("x0", (777,), (777,))]
    assert summary.wrong_counts == {"x0": (1, 2000)}
    assert summary.exhaustive
    assert summary.wrong[0].analytic == 0
    assert summary.wrong[0].numeric == pytest.approx(1 - np.tanh(NORMAL[777]) ** 2, rel=1e-9)


def test_every_wrong_element_is_counted_and_the_worst_are_listed() -> None:
    summary = check(np.tanh, lambda x, y, g: g * (1 - y), NORMAL)
    assert summary.wrong_counts == {"x0": (2000, 2000)}
    errors = [entry.relative_error for entry in summary.wrong]
    assert len(errors) == 20
    assert errors == sorted(errors, reverse=True)


def test_an_entry_is_what_it_says() -> None:
    summary = check(np.matmul, lambda a, b, y, g: (g @ b, a.T @ g), A, B)
    assert summary.wrong_counts["x1"] == (0, 64)
    for entry in summary.wrong:
        (i, j), (m, n) = entry.index, entry.output_index
        assert entry.input == "x0"
        assert entry.analytic == pytest.approx(B[n, j] if i == m else 0.0, abs=1e-12)
        assert entry.numeric == pytest.approx(B[j, n] if i == m else 0.0, abs=1e-9)


def test_the_steps_of_the_worst_entry_show_truncation_and_rounding() -> None:
    """The central difference of x^3 at step h is 3 x^2 + h^2."""
    found = check(lambda x: x**3, lambda x, y, u: 2 * x**2 * u, np.array([1.0, 2.0]))
    scan = found.scan
    assert scan is not None
    assert (scan.input, scan.index, scan.output_index, scan.analytic) == ("x0", (1,), (1,), 8.0)
    assert abs(scan.value - 12) <= scan.error_bound < 1e-9
    assert list(scan.steps) == sorted(scan.steps)
    assert scan.chosen in scan.steps
    for step, difference, rounding in zip(scan.steps, scan.differences, scan.rounding, strict=True):
        assert abs(difference - 12 - step**2) <= rounding + 1e-14 * difference


def test_a_right_gradient_has_no_scan() -> None:
    assert check(lambda x: x**3, lambda x, y, u: 3 * x**2 * u, np.array([1.0, 2.0])).scan is None


def test_values_that_the_tape_gives_have_no_steps() -> None:
    layer = numpy_layer(lambda x: x**3, lambda x, y, u: 2 * x**2 * u)
    found = gradcheck.check(layer, np.array([1.0, 2.0]))
    assert [(entry.numeric, entry.analytic) for entry in found.wrong] == [(12.0, 8.0), (3.0, 2.0)]
    assert found.scan is None


def test_the_same_seed_gives_the_same_summary() -> None:
    first, second, other = (check(np.tanh, tanh_vjp, NORMAL, seed=seed) for seed in (3, 3, 4))
    assert first == second
    assert first != other


def test_a_kink_passes_marked_if_the_gradient_lies_between_the_sides() -> None:
    def relu(x: Any) -> Any:
        return np.maximum(x, 0)

    x = np.array([0.0, 1.0, -1.0])
    summary = gradcheck.check(numpy_layer(relu, lambda x, y, g: g * (x > 0)), x)
    assert summary.verdict is Status.KINK
    assert "x0[0] (left 0, right 1)" in summary.why
    twice = numpy_layer(relu, lambda x, y, g: g * np.where(x == 0, 2, x > 0))
    assert gradcheck.check(twice, x).verdict is Status.FAIL


def test_a_noisy_forward_is_inconclusive_and_says_so() -> None:
    summary = check(lambda x: x + 0.1 * np.sin(1e12 * x), lambda x, y, g: g, [1.0, 2.0])
    assert summary.verdict is Status.INCONCLUSIVE
    assert "noisy" in summary.why
    assert [d.code for d in summary.diagnosis] == ["GC121"]


def test_an_output_that_is_not_finite_is_inconclusive_and_named() -> None:
    summary = check(np.log, lambda x, y, g: g / x, [1.0, 0.0])
    assert summary.verdict is Status.INCONCLUSIVE
    assert "out[1] is not finite" in summary.why


def test_what_the_layer_raises_comes_through() -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        check(np.tanh, backward, NORMAL)


def test_a_layer_that_takes_only_its_own_dtype_is_checked_in_it() -> None:
    def forward(x: Any) -> Any:
        if x.dtype != np.float32:
            raise TypeError("float32 only")
        return np.tanh(x)

    x = NORMAL[:50].astype("float32")
    assert check(forward, tanh_vjp, x).verdict is Status.PASS
    assert check(forward, lambda x, y, g: g * (1 - y), x).verdict is Status.FAIL


def test_an_error_in_low_precision_alone_is_found() -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        return g * (1 - y * y) * (1.5 if x.dtype == np.float32 else 1)

    summary = check(np.tanh, backward, NORMAL.astype("float32"))
    assert summary.verdict is Status.FAIL
    assert [(d.code, d.text) for d in summary.diagnosis] == [("GC113", "right, but 7 of 7 digits are lost in float32")]


def test_rounding_errors_of_a_zero_are_no_error_in_low_precision() -> None:
    def backward(x: Any, w: Any, y: Any, g: Any) -> Any:
        inverse = 1 / x
        return g * w * inverse - g * w * (x * inverse) * inverse, g * (x * inverse)

    numbers = np.random.default_rng(0).uniform(0.1, 9, (200, 1)).astype("float32")
    rounded = numbers[(numbers * (1 / numbers) != 1).any(1)]  # of the others the gradient is 0 without an error
    assert len(rounded) > 10
    for x in rounded:
        assert check(lambda x, w: w * (x / x), backward, x, np.float32([1.5])).verdict is Status.PASS


def test_a_layer_in_low_precision_may_raise_beside_its_inputs() -> None:
    def checked(x: Any) -> Any:
        if (x > 1).any():
            raise ValueError("probabilities are at most 1")
        return x

    x = np.float32([0.5, 0.998])
    assert check(lambda x: np.log(checked(x)), lambda x, y, g: g / checked(x), x).verdict is Status.PASS


def test_rtol_widens_the_bars() -> None:
    def almost(x: Any, y: Any, g: Any) -> Any:
        return g * (1 - y * y) * 1.001

    assert check(np.tanh, almost, NORMAL).verdict is Status.FAIL
    assert check(np.tanh, almost, NORMAL, rtol=1e-2).verdict is Status.PASS


def test_the_number_of_evaluations_does_not_depend_on_the_size() -> None:
    counts = {check(np.tanh, tanh_vjp, np.resize(NORMAL, n)).evaluations for n in (1, 100, 10_000)}
    assert len(counts) == 1


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(0, 4), max_size=3),
    exponent=st.floats(-6, 4),
    seed=st.integers(0, 1000),
    factor=st.sampled_from([1.0, 2.0, -1.0, 0.0, 1.001]),
)
def test_a_factor_is_found_at_every_shape_and_scale(
    shape: list[int], exponent: float, seed: int, factor: float
) -> None:
    x = 10.0**exponent * np.random.default_rng(seed).standard_normal(shape)
    summary = check(np.arctan, lambda x, y, g: factor * g / (1 + x * x), x, seed=seed)
    if x.size:
        assert summary.verdict is (Status.PASS if factor == 1 else Status.FAIL)
    else:
        assert summary.verdict is Status.INCONCLUSIVE


@pytest.mark.parametrize(
    ("factors", "counts"),
    [
        ((2, 1, 1), {"x0": (9, 9), "x1": (0, 9), "x2": (0, 9)}),
        ((1, 1, 0), {"x0": (0, 9), "x1": (0, 9), "x2": (9, 9)}),
        ((2, 1, 3), {"x0": (9, 9), "x1": (0, 9), "x2": (9, 9)}),
    ],
)
def test_every_input_is_judged_by_itself(factors: tuple[int, int, int], counts: dict[str, tuple[int, int]]) -> None:
    def backward(a: Any, b: Any, c: Any, y: Any, g: Any) -> Any:
        return factors[0] * g * b, factors[1] * g * a, factors[2] * g

    a, b, c = RANDOM.standard_normal((3, 3, 3))
    assert check(lambda a, b, c: a * b + c, backward, a, b, c).wrong_counts == counts


def test_an_input_of_a_product_is_judged_by_itself_too() -> None:
    summary = check(np.matmul, lambda a, b, y, g: (g @ b, a.T @ g * 2), A, B)
    assert summary.exhaustive
    assert summary.wrong_counts == {"x0": (64, 64), "x1": (64, 64)}


@pytest.mark.parametrize("x", [-15.53, -15.9, 16.04])
def test_what_hardly_stands_out_of_its_rounding_is_not_told_where_no_operation_is_seen(x: float) -> None:
    def judged(factor: float) -> Status:
        def vjp(inputs: Any, cotangents: Any) -> list[Any]:
            y = np.tanh(inputs[0])
            return [cotangents[0] * -np.sin(y) / np.cosh(inputs[0]) ** 2 * factor]

        problem = Problem(["x"], [np.array([x])], [True], ["out"], lambda i: [np.cos(np.tanh(i[0]))], vjp)
        return check_gradient(problem).verdict

    assert judged(1.0) is not Status.FAIL
    assert judged(2.0) not in (Status.PASS, Status.KINK)
    assert judged(-1.0) not in (Status.PASS, Status.KINK)


def test_the_verdict_stands_when_there_is_no_time_to_name_what_is_wrong() -> None:
    found = check(np.tanh, lambda x, y, g: g * (1 + y * y), NORMAL, seconds=0.0)
    assert (found.verdict, found.wrong, found.marks) == (Status.FAIL, (), ("diagnosis stopped: no time is left",))
    assert "no time" not in str(check(np.tanh, lambda x, y, g: g * (1 + y * y), NORMAL).marks)


@pytest.mark.parametrize("part", ["likely_causes", "steps_of"])
def test_the_verdict_stands_when_the_search_for_its_cause_ends_in_an_error(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"gradcheck.case.gradient_check.{part}", lambda *_: 1 / 0)
    found = check(np.tanh, lambda x, y, g: g * (1 + y * y), NORMAL)
    (mark,) = found.marks
    assert found.verdict is Status.FAIL
    assert found.wrong
    assert mark.startswith("diagnosis stopped: ZeroDivisionError: division by zero (test_gradient.py:")


def test_full_effort_counts_every_wrong_entry() -> None:
    factor = np.where(np.arange(400) % 2, 1.0, 1.5)
    found = check(
        lambda x: A[0, 0] * np.cumsum(x),
        lambda x, y, g: A[0, 0] * factor * np.cumsum(g[::-1])[::-1],
        RANDOM.standard_normal(400),
        effort="full",
    )
    assert found.wrong_counts == {"x0": (200, 400)}


def test_whole_slices_are_said_only_where_every_wrong_entry_is_known() -> None:
    factor = np.where(np.arange(600) < 300, 1.5, 1.0)
    usual, full = (
        check(
            np.cumsum,
            lambda x, y, g: factor * np.cumsum(g[::-1])[::-1],
            RANDOM.standard_normal(600),
            effort=effort,
        )
        for effort in ("usual", "full")
    )
    assert (usual.exhaustive, usual.patterns) == (False, ())
    assert (full.exhaustive, full.patterns) == (True, ("all of x0[0:300]",))


def test_a_wrong_column_is_said_as_such_where_the_tape_knows_all_of_it() -> None:
    """Also of more entries than are listed."""

    class Layer(PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return paddle.matmul(x, w)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensor()
            doubled = paddle.to_tensor(np.where(np.arange(9) == 3, 2.0, 1.0))
            return g @ w.t(), (x.t() @ g) * doubled

    found = gradcheck.check(Layer, RANDOM.standard_normal((8, 30)), RANDOM.standard_normal((30, 9)))
    assert found.patterns == ("all of w[:, 3]",)
    assert found.wrong_counts["w"] == (30, 270)
