"""The clauses of the verdict on a gradient, by docs/numerics.md; those on rounding are in test_precision.py.

Each test is a layer or two that need its clause: without it the verdict is another (``tests/bench/clauses.py``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from claims import PyLayer, numpy_layer, paddle_layer, verdict_of
from layers import problem

import gradcheck
import pylayer.paddle as paddle
from gradcheck.checking.probe import Comparison, Ruling
from gradcheck.checking.verdict import Check
from gradcheck.result import Status

X = np.random.default_rng(5).uniform(0.5, 2, 6)


def verdicts(layer: Any, *x: Any, seeds: int = 4, **options: Any) -> set[Status]:
    """The verdicts of some seeds."""
    return {verdict_of(layer, *(np.copy(a) for a in x), seed=seed, **options) for seed in range(seeds)}


def codes(layer: Any, *x: Any, **options: Any) -> set[str]:
    return {found.code for found in gradcheck.check(layer, *x, **options).diagnosis}


def opaque(function: Any) -> Any:
    """A function of an array, number by number, in code that takes the values out of NumPy."""
    return lambda x: np.array([function(float(v)) for v in x.reshape(-1)]).reshape(x.shape)


# --------------------------------------------------------------------------- the formula
@pytest.mark.clause(id="V6")
def test_rounding_that_nothing_sees_is_read_off_close_values() -> None:
    noisy = opaque(lambda v: (1e9 + v * v) - 1e9)
    assert Status.FAIL not in verdicts(numpy_layer(noisy, lambda x, y, g: 2 * x * g), X)


@pytest.mark.clause(id="V7")
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_casts_to_fewer_digits_are_left_out(dtype: str) -> None:
    def forward(x: Any) -> Any:
        return paddle.tanh(x.astype(dtype)).astype(x.dtype)

    def backward(x: Any, y: Any, g: Any) -> Any:
        return g * (1 - paddle.tanh(x) ** 2)

    assert verdicts(paddle_layer(forward, backward), X) == {Status.PASS}
    assert verdicts(paddle_layer(forward, lambda x, y, g: 1.01 * backward(x, y, g)), X) == {Status.FAIL}


@pytest.mark.clause(id="V8")
def test_a_tape_whose_outputs_are_others_is_not_heard() -> None:
    """It computes something else where it is recorded: the differences, which hold what is run, decide alone."""

    def forward(x: Any) -> Any:
        return np.sin(x) * (1.0 if type(x) is np.ndarray else 1.5)

    result = gradcheck.check(numpy_layer(forward, lambda x, y, g: g * np.cos(x)), X)
    assert (result.verdict, result.marks) == (Status.PASS, ())


@pytest.mark.clause(id="V9")
def test_one_wrong_entry_among_a_thousand_is_rejected_by_the_tape() -> None:
    x = np.random.default_rng(0).standard_normal(1000)

    def backward(x: Any, y: Any, g: Any) -> Any:
        found = g * np.exp(x)
        found[617] *= 1 + 1e-9
        return found

    assert verdicts(numpy_layer(np.exp, backward), x) == {Status.FAIL}


@pytest.mark.clause(id="V9")
def test_a_gradient_that_is_not_a_number_is_rejected() -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        return g * np.where(np.arange(6) == 3, np.nan, 2 * x)

    assert verdicts(numpy_layer(np.square, backward), X) == {Status.FAIL}


@pytest.mark.clause(id="V10")
@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-7])
def test_steps_that_lead_over_a_kink_nearby_no_longer_agree(distance: float) -> None:
    layer = numpy_layer(opaque(lambda v: max(v, 1.0) * v), lambda x, y, g: g * np.where(x > 1, 2 * x, 1.0))
    x = 1 + np.array([distance, -distance, 2 * distance])
    assert verdicts(layer, x) == {Status.PASS}


@pytest.mark.clause(id="V11")
def test_agreement_without_power_is_none() -> None:
    """Of eˣ − 1 at 1e-12 float64 keeps four digits: what is off by a hundredth is within the bar of a tenth."""
    layer = numpy_layer(opaque(lambda v: math.exp(v) - 1), lambda x, y, g: 1.01 * g * np.exp(x))
    assert verdicts(layer, 1e-12 * X) == {Status.INCONCLUSIVE}


@pytest.mark.clause(id="V12")
def test_the_differences_hold_the_tape() -> None:
    """A slope of 0 at 0 is the tape's word of sign(x)·x, and the differences exclude it."""
    layer = paddle_layer(lambda x: paddle.sqrt(x * x * x * x), lambda x, y, g: 2 * x * g)
    assert Status.FAIL not in verdicts(layer, np.array([0.0, 0.5, -0.7]))


@pytest.mark.clause(id="V13")
@pytest.mark.parametrize(("factor", "wanted"), [(1.0, Status.PASS), (1.5, Status.FAIL)])
def test_entries_that_the_tape_leaves_unsure_are_judged_by_the_differences(factor: float, wanted: Status) -> None:
    """The eigenvectors of a matrix with two nearly equal eigenvalues; √A has none of their trouble."""
    a = np.diag([1.0, 1.0 + 1e-14, 3.0])

    def forward(x: Any) -> Any:
        values, vectors = np.linalg.eigh((x + x.T) / 2)
        return (vectors * np.sqrt(values)) @ vectors.T

    def backward(x: Any, y: Any, g: Any) -> Any:
        values, vectors = np.linalg.eigh((x + x.T) / 2)
        root = np.sqrt(values)
        inner = vectors.T @ ((g + g.T) / 2) @ vectors
        return factor * vectors @ (inner / (root[:, None] + root)) @ vectors.T

    assert verdicts(numpy_layer(forward, backward), a) == {wanted}


@pytest.mark.clause(id="V13")
@pytest.mark.parametrize(("factor", "wanted"), [(1.0, Status.PASS), (1.1, Status.FAIL)])
def test_what_the_tape_leaves_unsure_in_one_input_is_no_excuse(factor: float, wanted: Status) -> None:
    """The same beside an input whose gradient is known well, wrong in the two unsure entries alone."""
    a = np.diag([1.0, 1.0 + 1e-14, 3.0])
    wrong = np.where(np.add.outer(range(3), range(3)) == 1, factor, 1.0)

    def forward(x: Any, b: Any) -> Any:
        values, vectors = np.linalg.eigh((x + x.T) / 2)
        return (vectors * np.sqrt(values)) @ vectors.T + b

    def backward(x: Any, b: Any, y: Any, g: Any) -> Any:
        values, vectors = np.linalg.eigh((x + x.T) / 2)
        root = np.sqrt(values)
        inner = vectors.T @ ((g + g.T) / 2) @ vectors
        return wrong * (vectors @ (inner / (root[:, None] + root)) @ vectors.T), g

    b = np.random.default_rng(0).uniform(500, 1000, (3, 3))
    assert verdicts(numpy_layer(forward, backward), a, b, seeds=8) == {wanted}


@pytest.mark.clause(id="V14")
@pytest.mark.parametrize(("factor", "wanted"), [(1.0, Status.PASS), (1.1, Status.FAIL)])
def test_a_second_cotangent_is_compared_as_well(factor: float, wanted: Status) -> None:
    """Right for the first cotangent that it sees; of others one entry, 1e-14 of the largest, is wrong: too little for
    its not being linear to show."""
    for seed in range(4):
        first: list[Any] = []

        def backward(x: Any, y: Any, g: Any, first: Any = first) -> Any:
            first[:] = first or [g.copy()]
            found = 2 * x * g
            found[0] *= 1.0 if np.array_equal(g, first[0]) else factor
            return found

        result = gradcheck.check(numpy_layer(np.square, backward), np.array([1e-14, 1.0, 2.0, 3.0]), seed=seed)
        assert (result.verdict, "GC110" in {found.code for found in result.diagnosis}) == (wanted, False)


# --------------------------------------------------------------------------- without a tape
@pytest.mark.clause(id="V15")
def test_every_input_is_looked_at_alone() -> None:
    assert verdicts(of_two_inputs(1e-6, 1.02), X, X) == {Status.FAIL}
    assert Status.PASS not in verdicts(of_two_inputs(1e-9, 1.1), X, X)
    assert verdicts(of_two_inputs(1e-9, 1.0), X, X) == {Status.PASS}


@pytest.mark.clause(id="V15")
def test_an_input_of_which_nothing_is_seen_is_marked() -> None:
    result = gradcheck.check(of_two_inputs(3e-12, 1.1), X, X)
    assert result.verdict is Status.PASS
    assert [mark for mark in result.marks if mark.startswith("x1") and "not verified" in mark]


def of_two_inputs(share: float, factor: float) -> Any:
    """sin(a) + share · sin(b), number by number; the gradient of b times a factor."""
    forward = lambda a, b: opaque(math.sin)(a) + share * opaque(math.sin)(b)  # noqa: E731
    return numpy_layer(forward, lambda a, b, y, g: (g * np.cos(a), factor * share * g * np.cos(b)))


@pytest.mark.clause(id="V16")
@pytest.mark.parametrize("second", [Ruling.FAIL, Ruling.PASS])
def test_the_differences_are_asked_twice_before_a_fail(second: Ruling, monkeypatch: pytest.MonkeyPatch) -> None:
    check = Check(problem(np.square, lambda x, y, g: 2 * x * g, X), 0, 0.0, True, "strict")
    look = replace(check.prober.probe(), comparison=None)
    waiting = iter([replace(look, decision=decision) for decision in (Ruling.FAIL, Ruling.FAIL, second)])
    monkeypatch.setattr(check.prober, "probe", lambda *_, **__: next(waiting))
    assert check.prober.probe_until_conclusive().decision is second
    assert list(waiting) == []


@pytest.mark.clause(id="V16")
def test_a_fail_by_the_tape_is_believed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    check = Check(problem(np.square, lambda x, y, g: 2 * x * g, X), 0, 0.0, True, "strict")
    look = replace(check.prober.probe(), decision=Ruling.FAIL)
    wrong = replace(look, comparison=Comparison([X], [2 * X], [0 * X], [0 * X], [0 * X], wrong=[np.ones(6, bool)]))
    waiting = iter([look, wrong, look])
    monkeypatch.setattr(check.prober, "probe", lambda *_, **__: next(waiting))
    assert check.prober.probe_until_conclusive() is wrong


@pytest.mark.clause(id="V17")
def test_where_nothing_changes_a_gradient_of_zero_passes_and_says_so() -> None:
    result = gradcheck.check(numpy_layer(opaque(math.tanh), lambda x, y, g: g * (1 - y * y)), 30 + X)
    assert (result.verdict, result.marks) == (Status.PASS, ("nothing changes here",))


# --------------------------------------------------------------------------- kinks
def relu(slope_at_0: float, below: float = 0.0) -> Any:
    return numpy_layer(
        lambda x: np.maximum(x, 0), lambda x, y, g: g * np.where(x > 0, 1.0, np.where(x < 0, below, slope_at_0))
    )


@pytest.mark.clause(id="V18")
def test_what_is_wrong_beside_a_kink_fails_however_many_outputs_there_are() -> None:
    x = np.random.default_rng(1).standard_normal(17_000)
    x[3] = 0.0
    assert verdicts(relu(0.5), x, seeds=1) == {Status.KINK}
    wrong = numpy_layer(lambda x: np.maximum(x, 0), lambda x, y, g: 1.01 * g * (x > 0))
    assert verdicts(wrong, x, seeds=1) == {Status.FAIL}


@pytest.mark.clause(id="V19")
@pytest.mark.parametrize(
    ("slope", "wanted"), [(0.0, Status.KINK), (0.3, Status.KINK), (1.0, Status.KINK), (1.2, Status.FAIL)]
)
def test_at_a_kink_a_gradient_has_to_lie_between_the_slopes(slope: float, wanted: Status) -> None:
    assert verdicts(relu(slope), np.array([0.0, 1.0, -2.0])) == {wanted}


@pytest.mark.clause(id="V20")
@pytest.mark.parametrize(("slope", "wanted"), [(1.0, Status.PASS), (0.9, Status.FAIL)])
def test_where_all_slopes_are_one_there_is_no_kink(slope: float, wanted: Status) -> None:
    softsign = lambda x: x / (1 + np.abs(x))  # noqa: E731
    layer = numpy_layer(softsign, lambda x, y, g: g * np.where(x == 0, slope, 1 / (1 + np.abs(x)) ** 2))
    assert verdicts(layer, np.array([0.0, 1.0, -2.0])) == {wanted}


@pytest.mark.clause(id="V20")
def test_a_jump_is_a_kink_though_the_slopes_are_one() -> None:
    layer = numpy_layer(lambda x: np.floor(x) + x, lambda x, y, g: g)
    assert verdicts(layer, np.array([2.0, 0.5])) == {Status.KINK}


@pytest.mark.clause(id="V21")
def test_beside_a_kink_backward_has_to_be_right() -> None:
    zero = numpy_layer(lambda x: np.maximum(x, 0), lambda x, y, g: 0 * g)
    assert verdicts(zero, np.zeros(3)) == {Status.FAIL}


@pytest.mark.clause(id="V22")
@pytest.mark.parametrize(("function", "wanted"), [(np.sqrt, Status.KINK), (np.square, Status.FAIL)])
def test_an_infinite_gradient_is_right_where_the_slope_grows_without_bound(function: Any, wanted: Status) -> None:
    with np.errstate(all="ignore"):
        slopes = lambda x: np.where(x == 0, np.inf, 0.5 / np.sqrt(x) if function is np.sqrt else 2 * x)  # noqa: E731
        assert verdicts(numpy_layer(function, lambda x, y, g: g * slopes(x)), np.array([0.0, 1.0])) == {wanted}


# --------------------------------------------------------------------------- the layer's own precision
@pytest.mark.clause(id="V23")
def test_a_backward_that_loses_digits_of_its_forward_fails_and_passes_loosely() -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        return (g.astype("float32") * np.exp(x.astype("float32"))).astype("float64")

    layer = numpy_layer(np.exp, backward)
    assert codes(layer, X) == {"GC113"}
    assert verdicts(layer, X, precision="loose") == {Status.PASS}


# --------------------------------------------------------------------------- contracts
@pytest.mark.clause(id="V24")
def test_forward_and_backward_give_the_same_twice() -> None:
    random = np.random.default_rng(0)
    assert "GC131" in codes(numpy_layer(lambda x: x * random.uniform(1, 2), lambda x, y, g: g), X)
    assert "GC132" in codes(numpy_layer(np.exp, lambda x, y, g: g * y * random.uniform(1, 2)), X)


@pytest.mark.clause(id="V25")
def test_backward_is_linear_in_the_cotangent() -> None:
    assert "GC110" in codes(numpy_layer(np.exp, lambda x, y, g: np.clip(g * y, -1, 1)), X)


@pytest.mark.clause(id="V26")
def test_an_output_without_a_cotangent_counts_as_one_with_zeros() -> None:
    class Two(PyLayer):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            return 2 * a + 3 * b

    assert "GC136" in codes(Two, X)


@pytest.mark.clause(id="V27")
def test_forward_does_not_write_into_its_inputs() -> None:
    class Writes(PyLayer):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = paddle.exp(x)
            ctx.save_for_backward(y.clone())
            x.numpy()[...] += 0
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensor()
            d = g * y
            g.scale_(0.5)
            return d

    assert "GC134" in codes(Writes, X)
