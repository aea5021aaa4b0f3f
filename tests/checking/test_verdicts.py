"""Verdicts on kinks, jumps, saturation and structure: where there is no derivative, none to be seen, or much of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims import numpy_layer, paddle_layer
from few import seeds
from layers import problem

import gradcheck
import pylayer.paddle as paddle
from gradcheck.case.gradient_check import check_gradient
from gradcheck.result import GradientSummary, Status

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
F: Any = paddle.nn.functional
RANDOM = np.random.default_rng(11)
X = RANDOM.standard_normal((6, 4))


def check(forward: Any, backward: Any, *inputs: Any, **options: Any) -> GradientSummary:
    return check_gradient(problem(forward, backward, *inputs), **options)


def recorded(forward: Any, backward: Any, *inputs: Any, **options: Any) -> GradientSummary:
    """The verdict on a layer in NumPy as users write it: its operations are recorded."""
    return gradcheck.check(numpy_layer(forward, backward), *(np.asarray(x) for x in inputs), **options)


def zero(x: Any, y: Any, g: Any) -> Any:
    return g * 0


def tanh_vjp(x: Any, y: Any, g: Any) -> Any:
    return g * (1 - y * y)


@pytest.mark.parametrize("mode", ["auto", "full"])
@pytest.mark.parametrize(
    ("forward", "backward", "x"),
    [
        (lambda x: np.maximum(x, 0), lambda x, y, g: g * (x > 0), [0.0, 1.0, -1.0]),
        (lambda x: np.maximum(x, 0), lambda x, y, g: g * (x >= 0), [0.0, 1.0, -1.0]),
        (np.abs, lambda x, y, g: g * np.where(x < 0, -1, 1), [0.0, 3.0, -1e-5]),
        (lambda x: np.where(x < 0, 0.1 * x, x), lambda x, y, g: g * np.where(x < 0, 0.1, 1), [0.0, -2.0]),
        (lambda x: np.clip(x, -1, 1), lambda x, y, g: g * (np.abs(x) <= 1), [1.0, 0.3, -1.0]),
        (np.floor, zero, [2.0]),
        (np.floor, zero, [2.0, 0.3, -7.0]),
        (np.round, zero, [0.5, 2.5, 1.2]),
        (lambda x: np.floor(x) + x, lambda x, y, g: g * 1.0, [3.0, 0.5]),
    ],
)
def test_kinks_and_jumps_pass_marked_if_the_gradient_lies_between_the_sides(
    forward: Any, backward: Any, x: Any, mode: Any
) -> None:
    summary = recorded(forward, backward, x, mode=mode)
    assert summary.verdict is Status.KINK
    assert [d.code for d in summary.diagnosis] == ["GC120"]


@pytest.mark.parametrize(
    ("forward", "backward", "x"),
    [
        (lambda x: np.maximum(x, 0), lambda x, y, g: g * np.where(x == 0, 2, x > 0), [0.0, 1.0, -1.0]),
        (lambda x: np.maximum(x, 0), lambda x, y, g: g * 1.0, [0.0, 1.0, -1.0]),
        (np.floor, lambda x, y, g: g * 1.0, [2.3]),
        (np.round, lambda x, y, g: g * 1.0, [0.2, 1.3]),
        (np.abs, lambda x, y, g: g * 1.0, [0.0, 3.0, -1.0]),
    ],
)
def test_a_gradient_beyond_the_sides_or_off_the_kink_fails(forward: Any, backward: Any, x: Any) -> None:
    assert recorded(forward, backward, x).verdict is Status.FAIL


@pytest.mark.parametrize("at_0", [0.0, 1.0, 2.0])
def test_at_a_kink_of_code_that_nothing_sees_nothing_is_told_but_what_is_wrong_elsewhere(at_0: float) -> None:
    found = check(lambda x: np.maximum(x, 0), lambda x, y, g: g * np.where(x == 0, at_0, x > 0), [0.0, 1.0, -1.0])
    assert found.verdict is Status.INCONCLUSIVE
    assert "a kink, a tie or a jump" in found.why
    assert check(lambda x: np.maximum(x, 0), lambda x, y, g: g * 1.0, [0.0, 1.0, -1.0]).verdict is Status.FAIL


def test_a_saturated_element_among_others_is_no_obstacle() -> None:
    assert check(np.tanh, tanh_vjp, [0.3, 40.0, -1.0]).verdict is Status.PASS


@pytest.mark.parametrize("function", [np.floor, np.sign, np.zeros_like])
def test_a_gradient_of_zero_of_a_flat_function_passes(function: Any) -> None:
    assert recorded(function, zero, [2.3, -0.7]).verdict is Status.PASS


def test_the_step_from_one_rounded_number_to_the_next_is_no_jump() -> None:
    def forward(x: Any) -> Any:
        return np.log(np.sqrt(np.sqrt(1 + x * x)))

    x = -1.2710166533584833e-06  # 1 + x² is about to be rounded to the next number
    assert recorded(forward, lambda x, y, g: g * x / (1 + x * x) / 2, x).verdict is Status.PASS
    assert recorded(forward, zero, x).verdict is Status.FAIL


@seeds(5)
def test_dead_outputs_do_not_hide_an_error_elsewhere(seed: int) -> None:
    random = np.random.default_rng(seed)
    w, x = random.standard_normal((16, 8)), random.standard_normal((8, 16))

    def relu(x: Any) -> Any:
        return np.maximum(x @ w, 0)

    def backward(factor: float) -> Any:
        def scaled(x: Any, y: Any, g: Any) -> Any:
            gradient = (g * (y > 0)) @ w.T
            gradient[4, 13] *= factor
            return gradient

        return scaled

    assert recorded(relu, backward(1), x, seed=seed).verdict is Status.PASS
    for factor in (0, 1.1, 1.001):
        found = recorded(relu, backward(factor), x, seed=seed)
        assert (found.verdict, {entry.index for entry in found.wrong}) == (Status.FAIL, {(4, 13)})


@seeds(3)
def test_a_dense_layer_with_relu_is_certain_in_both_inputs(seed: int) -> None:
    random = np.random.default_rng(seed)
    x, w = random.standard_normal((64, 32)), random.standard_normal((32, 128))

    def dense(x: Any, w: Any) -> Any:
        return np.maximum(x @ w, 0)

    def backward(x: Any, w: Any, y: Any, g: Any) -> Any:
        return (g * (y > 0)) @ w.T, x.T @ (g * (y > 0))

    def wrong(x: Any, w: Any, y: Any, g: Any) -> Any:
        return (g * (y > 0)) @ w.T, 1.001 * (x.T @ (g * (y > 0)))

    assert check(dense, backward, x, w, seed=seed).verdict is Status.PASS
    assert check(dense, wrong, x, w, seed=seed).verdict is Status.FAIL


@seeds(5)
@pytest.mark.parametrize(
    ("forward", "slope"),
    [
        (lambda x: x / (1 + np.abs(x)), lambda x: 1 / (1 + np.abs(x)) ** 2),
        (lambda x: np.where(x > 0, x, np.expm1(x)), lambda x: np.where(x > 0, 1, np.exp(x))),
    ],
)
def test_a_second_derivative_that_jumps_at_the_point_is_no_kink(forward: Any, slope: Any, seed: int) -> None:
    x = [0.0, 0.5, -1.25]
    assert check(forward, lambda x, y, g: g * slope(x), x, seed=seed).verdict is Status.PASS
    assert check(forward, lambda x, y, g: g * slope(x) * 1.001, x, seed=seed).verdict is Status.FAIL


@pytest.mark.parametrize("scale", [1e-12, 1e-14, 1e-20, 1e-30])
def test_a_relu_of_tiny_numbers_is_like_any_other(scale: float) -> None:
    x = np.random.default_rng(5).standard_normal(30) * scale
    assert recorded(lambda x: np.maximum(x, 0), lambda x, y, g: g * (x > 0), x).verdict is Status.PASS
    assert recorded(lambda x: np.maximum(x, 0), lambda x, y, g: g * (x > 0) * 1.01, x).verdict is Status.FAIL


@pytest.mark.parametrize("x", [[-6.05, 0.3], [-6.5, 1.0], [-7.0, -0.5]])
def test_a_tail_of_rounding_errors_is_not_taken_for_a_line(x: Any) -> None:
    c = 0.7978845608028654

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + np.tanh(c * (x + 0.044715 * x**3)))

    def backward(x: Any, y: Any, g: Any) -> Any:
        t = np.tanh(c * (x + 0.044715 * x**3))
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 0.134145 * x * x))

    assert check(gelu, backward, x).verdict is Status.PASS
    assert check(gelu, lambda x, y, g: 1.01 * backward(x, y, g), x).verdict is Status.FAIL


def test_overlapping_memory_is_no_matter() -> None:
    x = np.lib.stride_tricks.as_strided(np.linspace(-1, 1, 8), (5, 4), (8, 8))
    assert check(np.tanh, tanh_vjp, x).verdict is Status.PASS
    assert check(np.tanh, lambda x, y, g: g * (1 - y), x).verdict is Status.FAIL


def attention(q: Any, k: Any) -> Any:
    e = np.exp(q @ k.T)
    return e / e.sum(-1, keepdims=True)


def attention_vjp(q: Any, k: Any, y: Any, g: Any) -> Any:
    d = y * (g - (g * y).sum(-1, keepdims=True))
    return d @ k, d.T @ q


@pytest.mark.parametrize(
    ("forward", "backward", "inputs"),
    [
        (np.tanh, tanh_vjp, [X]),
        (lambda x: x.sum(0), lambda x, y, g: np.broadcast_to(g, x.shape) * 1.0, [X]),
        (lambda x: np.cumsum(x, 0), lambda x, y, g: np.cumsum(g[::-1], 0)[::-1], [X]),
        (np.transpose, lambda x, y, g: g.T, [X]),
        (attention, attention_vjp, [X, X[::-1].copy()]),
        (lambda x, b: x + b, lambda x, b, y, g: (g * 1.0, g.sum(0)), [X, X[0].copy()]),
        (lambda x: (x * 2, x.sum()), lambda x, y, g: sum(p for p in (
            None if g[0] is None else 2 * g[0], None if g[1] is None else g[1] + 0 * x) if p is not None), [X]),
    ],
)  # fmt: skip
def test_mode_full_certifies_every_entry(forward: Any, backward: Any, inputs: Any) -> None:
    summary = check(forward, backward, *inputs, mode="full")
    assert (summary.verdict, summary.certified) == (Status.PASS, True)


@pytest.mark.parametrize("mode", ["auto", "full"])
def test_one_surplus_entry_off_the_pattern_is_found(mode: Any) -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        gradient = tanh_vjp(x, y, g)
        gradient[0, 0] += 1e-6 * g[5, 3]
        return gradient

    summary = check(np.tanh, backward, X, mode=mode)
    assert summary.verdict is Status.FAIL
    assert [(e.index, e.output_index) for e in summary.wrong] == [((0, 0), (5, 3))]


@pytest.mark.parametrize("surplus", [0.0, 1e-3])
def test_entries_are_listed_at_the_outputs_that_they_belong_to(surplus: float) -> None:
    """Rows of other batches share no column, but where backward gives one too many."""

    def backward(x: Any, y: Any, g: Any) -> Any:
        gradient = g * x.sum(1, keepdims=True) + (g * x).sum(1, keepdims=True)
        gradient[1, 2] += 0.1 * g[1, 3]
        gradient[0, 0] += surplus * g[5, 3]
        return gradient

    summary = recorded(lambda x: x * x.sum(1, keepdims=True), backward, X)
    assert summary.verdict is Status.FAIL
    wanted = {((1, 2), (1, 3)), *([((0, 0), (5, 3))] if surplus else ())}
    assert {(e.index, e.output_index) for e in summary.wrong} == wanted
    assert all(abs(e.analytic - e.numeric - (0.1 if e.index == (1, 2) else surplus)) < 1e-12 for e in summary.wrong)


def test_an_elementwise_jacobian_costs_no_more_in_full() -> None:
    x = RANDOM.standard_normal(3000)
    auto, full = (recorded(np.tanh, tanh_vjp, x, mode=mode) for mode in ("auto", "full"))
    assert full.evaluations <= auto.evaluations + 20
    assert auto.certified
    assert full.certified


def test_in_full_an_entry_is_seen_that_is_small_beside_others_of_its_column() -> None:
    matrix = np.diag([1e-13, 2.0, 3.0]) + np.ones((3, 3)) * [0, 0, 1]
    matrix[1, 0] = 1.0

    def backward(x: Any, y: Any, g: Any) -> Any:
        wrong = matrix.copy()
        wrong[0, 0] *= 1.001
        return g @ wrong

    summary = recorded(lambda x: matrix @ x, backward, X[0, :3], mode="full")
    assert summary.verdict is Status.FAIL
    assert [(e.index, e.output_index) for e in summary.wrong] == [((0,), (0,))]


@pytest.mark.parametrize("mode", ["auto", "full"])
def test_in_full_a_gradient_is_granted_the_rounding_that_it_is_granted_otherwise(mode: Any) -> None:
    def shifted_tanh(x: Any, w: Any) -> Any:
        return paddle.tanh(x) + w

    saturated = paddle_layer(shifted_tanh, lambda x, w, y, g: (g / paddle.cosh(x) ** 2, g))
    assert gradcheck.check(saturated, np.array([8.0, 10, -9, 1]), np.ones(4), mode=mode).verdict is Status.PASS
    constant = numpy_layer(lambda x, w: 0.1 * x * x + w, lambda x, w, y, g: (g * float(np.float32(0.2)) * x, g))
    x = np.array([1, 2, 3, 0.5], "float32")
    assert gradcheck.check(constant, x, np.ones(4, "float32"), mode=mode).verdict is Status.PASS


@seeds(4)
def test_beside_a_kink_what_is_wrong_elsewhere_is_all_that_is_listed(seed: int) -> None:
    leaky = numpy_layer(lambda x: np.maximum(x, 0), lambda x, y, g: g * np.where(x < 0, 0.1, x > 0))
    summary = gradcheck.check(leaky, np.array([0.0, 1, 2, -3]), seed=seed)
    assert [(e.index, round(e.analytic, 9), e.numeric) for e in summary.wrong] == [((3,), 0.1, 0.0)]
    assert summary.wrong_counts == {"x0": (1, 4)}


@pytest.mark.parametrize("layer", [numpy_layer(lambda x: np.maximum(x, 0), zero), paddle_layer(F.relu, zero)])
def test_a_gradient_that_is_wrong_beside_a_kink_has_its_wrong_entries_listed(layer: Any) -> None:
    summary = gradcheck.check(layer, np.zeros(3))
    assert summary.verdict is Status.FAIL
    assert [d.code for d in summary.diagnosis] == ["GC120", "GC108"]
    assert len(summary.wrong) == summary.wrong_counts["x0"][0] > 0
    assert {(e.analytic, round(e.numeric, 6)) for e in summary.wrong} == {(0, 1)}


def test_one_entry_that_is_off_by_a_billionth_is_found_among_a_thousand() -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        gradient = tanh_vjp(x, y, g)
        gradient[77] *= 1 + 1e-9
        return gradient

    x = np.random.default_rng(1).standard_normal(1000)
    summary = recorded(np.tanh, backward, x)
    assert summary.verdict is Status.FAIL
    assert [(e.index, e.output_index) for e in summary.wrong] == [((77,), (77,))]
    assert recorded(np.tanh, tanh_vjp, x).certified


@pytest.mark.parametrize(("factor", "verdict"), [(1, Status.KINK), (2, Status.FAIL)])
def test_a_kink_among_very_many_outputs_hides_none_of_them(factor: int, verdict: Status) -> None:
    x = np.random.default_rng(1).standard_normal(2**14 + 1)
    x[3] = 0
    assert recorded(lambda x: np.maximum(x, 0), lambda x, y, g: factor * g * (x > 0), x).verdict is verdict


def test_an_output_without_elements_is_no_obstacle_to_full() -> None:
    summary = check(lambda x: (x * 2, x[:0]), lambda x, y, g: 0 * x + (0 if g[0] is None else 2 * g[0]), X, mode="full")
    assert (summary.verdict, summary.certified) == (Status.PASS, True)
