"""Every entry at a kink: one wrong among many, elements that one row ties, two numbers nearly tied, what is printed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims import numpy_layer, verdict_of
from few import few

import gradcheck
from gradcheck.checking.reasons import VerdictReason
from gradcheck.result import Status

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SIZES = [4, 20, 200]


def verdict(layer: Any, *x: Any) -> Status:
    return verdict_of(layer, *(np.copy(a) for a in x))


def but_one(right: Any, value: float, place: int = 1) -> Any:
    """The right gradient, with another slope at one element where it is 0."""

    def backward(x: Any, y: Any, g: Any) -> Any:
        slopes = right(x)
        slopes[place] = np.where(x[place] == 0, value, slopes[place])
        return g * slopes

    return backward


ELEMENTWISE: dict[str, tuple[Any, Any, float]] = {
    "abs": (np.abs, np.sign, 2.0),
    "relu": (lambda x: np.maximum(x, 0), lambda x: (x > 0).astype(x.dtype), -0.5),
    "min": (lambda x: np.minimum(x, 0), lambda x: (x < 0).astype(x.dtype), 1.5),
    "leaky": (lambda x: np.where(x > 0, x, 0.1 * x), lambda x: np.where(x > 0, 1, 0.1).astype(x.dtype), 0.0),
    "clip": (lambda x: np.clip(x, 0, 6), lambda x: ((x > 0) & (x < 6)).astype(x.dtype), 3.0),
}
"""A function, its slopes, and a slope at 0 that is outside."""
ENDS: dict[str, Any] = {"sum": np.sum, "mean": np.mean, "outputs": lambda y: y}


@pytest.mark.clause(id="V19")
@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("end", ENDS)
def test_one_wrong_entry_among_many_at_a_kink_fails(name: str, end: str, count: int) -> None:
    forward, slopes, wrong = ELEMENTWISE[name]
    share = 1 / count if end == "mean" else 1.0
    layer = numpy_layer(lambda x: ENDS[end](forward(x)), but_one(lambda x: share * slopes(x), share * wrong))
    assert verdict(layer, np.zeros(count)) is Status.FAIL
    right = numpy_layer(lambda x: ENDS[end](forward(x)), lambda x, y, g: g * share * slopes(x))
    assert verdict(right, np.zeros(count)) is Status.KINK


@pytest.mark.clause(id="V18")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_wrong_last_block_over_padding_fails(dtype: str) -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        slopes = (x > 0).astype(x.dtype)
        slopes[-8:] = np.where(x[-8:] == 0, 7, slopes[-8:])
        return g * slopes

    assert verdict(numpy_layer(lambda x: np.maximum(x, 0), backward), np.zeros(200, dtype)) is Status.FAIL


@pytest.mark.clause(id="V19")
@pytest.mark.parametrize("shape", [(3, 4), (40, 10), (10, 40)])
def test_one_wrong_entry_before_a_matrix_of_mixed_signs_fails(shape: tuple[int, int]) -> None:
    w = np.random.default_rng(0).standard_normal(shape)

    def backward(x: Any, y: Any, g: Any) -> Any:
        slopes = np.sign(x)
        slopes[1] = np.where(x[1] == 0, 1.5, slopes[1])
        return (w.T @ g) * slopes

    assert verdict(numpy_layer(lambda x: w @ np.abs(x), backward), np.zeros(shape[1])) is Status.FAIL


def window_vjp(wrong: int | None, share: str) -> Any:
    """Of the maxima of windows: to the first maximum, but in one window to nobody or to all where they tie."""

    def backward(x: Any, y: Any, g: Any) -> Any:
        windows = x.reshape(-1, 3)
        largest = windows == windows.max(-1, keepdims=True)
        first = (np.arange(3) == windows.argmax(-1)[:, None]).astype(float)
        if wrong is not None and largest[wrong].sum() > 1:
            first[wrong] = largest[wrong] * (share == "all")
        return (g * first).reshape(x.shape)

    return backward


@pytest.mark.clause(id="V19")
@pytest.mark.parametrize("count", [3, 20, 200])
@pytest.mark.parametrize("last", [0.0, -1.0])
def test_in_one_of_many_windows_nobody_or_all_of_the_tied_take(count: int, last: float) -> None:
    x = np.zeros((count, 3))
    x[:, 2] = last
    for share in ("nobody", "all"):
        layer = numpy_layer(lambda x: x.reshape(-1, 3).max(-1).sum(), window_vjp(count // 2, share))
        assert verdict(layer, x.reshape(-1)) is Status.FAIL, share
    right = numpy_layer(lambda x: x.reshape(-1, 3).max(-1).sum(), window_vjp(None, ""))
    assert verdict(right, x.reshape(-1)) is Status.KINK


def median_vjp(x: Any, y: Any, g: Any) -> Any:
    if np.ptp(x) == 0:
        return g * np.ones_like(x) / x.size
    order = np.argsort(x, kind="stable")
    middle = order[(x.size - 1) // 2 : x.size // 2 + 1]
    return g * np.isin(np.arange(x.size), middle) / middle.size


@pytest.mark.clause(id="V19")
@pytest.mark.parametrize("count", few([3, 30, 200, 5, 31], kept=3))
def test_the_median_of_equal_numbers_may_give_to_each(count: int) -> None:
    assert verdict(numpy_layer(np.median, median_vjp), np.ones(count)) is Status.KINK


@pytest.mark.clause(id="V19")
@pytest.mark.parametrize("shape", [(3, 4), (40, 10), (10, 40)])
@pytest.mark.parametrize("at", [0.0, 1.0])
def test_a_hidden_layer_at_zero_may_take_either_slope(shape: tuple[int, int], at: float) -> None:
    random = np.random.default_rng(1)
    w, v = random.standard_normal(shape), random.standard_normal((3, shape[0]))

    def backward(x: Any, y: Any, g: Any) -> Any:
        z = w @ x
        return w.T @ ((v.T @ g) * np.where(z == 0, at, z > 0))

    layer = numpy_layer(lambda x: v @ np.maximum(w @ x, 0), backward)
    assert verdict(layer, np.zeros(shape[1])) is Status.KINK


@pytest.mark.clause(id="V19")
@pytest.mark.parametrize(("at", "wanted"), [(0.0, Status.KINK), (1.0, Status.KINK), (2.0, Status.FAIL)])
@pytest.mark.parametrize("count", [1, 4, 20])
def test_of_absolute_values_of_complex_numbers_at_zero(count: int, at: float, wanted: Status) -> None:
    def backward(x: Any, y: Any, g: Any) -> Any:
        size = np.abs(x)
        return g.real * np.where(size == 0, at, x / np.where(size == 0, 1, size))

    layer = numpy_layer(lambda x: np.abs(x).sum(), backward)
    assert verdict(layer, np.zeros(count, complex)) is wanted


@pytest.mark.clause(id="V12")
@pytest.mark.parametrize("distance", [1e-14, 3e-14, 1e-13])
@pytest.mark.parametrize("operation", [np.maximum, np.minimum])
def test_half_to_each_of_two_numbers_that_are_nearly_equal_fails(operation: Any, distance: float) -> None:
    larger = operation is np.maximum

    def backward(a: Any, b: Any, y: Any, g: Any) -> Any:
        first = np.where(abs(a - b) < 1e-9, 0.5, (a > b) == larger)
        return g * first, g * (1 - first)

    layer = numpy_layer(operation, backward)
    assert verdict(layer, np.array([1.0, 3.0]), np.array([1.0 - distance, 2.0])) is Status.FAIL


@pytest.mark.clause(id="V9")
@pytest.mark.parametrize("size", [1e-7, 1e-9, 1e-12])
def test_a_small_entry_twice_what_it_is_fails_in_float32(size: float) -> None:
    w, twice = np.array([1, size, 0.5], "float32"), np.array([1, 2, 1], "float32")
    x = np.array([1.0, 1.0, 0.3], "float32")
    forward = lambda x: (w * x * x).sum()  # noqa: E731
    assert verdict(numpy_layer(forward, lambda x, y, g: g * 2 * x * w * twice), x) is Status.FAIL
    assert verdict(numpy_layer(forward, lambda x, y, g: g * 2 * x * w), x) is Status.PASS


# --------------------------------------------------------------------------- what is printed
def printed(layer: Any, x: Any) -> str:
    return " ".join(found.text for found in gradcheck.check(layer, x).diagnosis)


def test_a_jump_is_reported_as_a_jump() -> None:
    text = printed(numpy_layer(lambda x: np.floor(x) + x, lambda x, y, g: g), np.array([0.5, 2.0, 3.0]))
    assert text == VerdictReason.JUMP.sentence(places="x0[1], x0[2]")


def test_a_kink_of_several_elements_has_a_range_of_slopes() -> None:
    layer = numpy_layer(np.max, lambda x, y, g: g * (np.arange(x.size) == x.argmax()))
    text = printed(layer, np.ones(5))
    assert "slopes from 0 to 1" in text
    assert "left 0, right 0" not in text


@pytest.mark.parametrize("count", [1, 4, 20])
def test_a_kink_of_one_element_has_a_slope_on_each_side(count: int) -> None:
    text = printed(numpy_layer(lambda x: np.abs(x).sum(), lambda x, y, g: g * np.sign(x)), np.zeros(count))
    assert text.startswith("not differentiable at x0[0] (left -1, right 1)")
    assert count == 1 or f"and {count - 3} more" in text


def test_code_that_cannot_be_recorded_is_what_is_said_of_it() -> None:
    layer = numpy_layer(lambda x: np.array([abs(float(v)) for v in x]), lambda x, y, g: g * np.sign(x))
    result = gradcheck.check(layer, np.array([0.0, 0.7]))
    why = "not all of the code that computes them could be recorded"
    assert result.verdict is Status.INCONCLUSIVE
    assert result.diagnosis[0].text == VerdictReason.PIECES_UNRECORDED.sentence(unrecorded=why)


def test_every_reason_has_a_sentence_of_its_own() -> None:
    assert len({reason.value for reason in VerdictReason}) == len(VerdictReason)


def test_a_wrong_entry_at_a_kink_is_outside_of_its_bar_and_the_panel_says_why() -> None:
    """The slopes of max(0, 1 - x) at 1 are -1 and 0: -1.4 is off by 0.4, which a bar of half their range would hide."""

    def backward(x: Any, g: Any) -> Any:
        return -g * np.where(x < 1, 1.0, np.where(x == 1, 1.4, 0.0))

    result = gradcheck.check(lambda x: np.maximum(0, 1 - x), np.array([1.0, -1.0, 3.0]), backward=backward)
    assert result.verdict is Status.FAIL
    assert all(entry.error > entry.error_bound for entry in result.wrong)
    assert "kink: the gradient is not between the one-sided derivatives at x[0]" in str(result)


def test_the_panel_says_that_a_backward_is_wrong_beside_a_kink() -> None:
    result = gradcheck.check(lambda x: np.maximum(0, x), np.zeros(3), backward=lambda x, g: 0 * g)
    assert result.verdict is Status.FAIL
    assert "kink: the gradient is wrong near x[0]" in str(result)
