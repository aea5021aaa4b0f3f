"""The tape: the derivative of what is computed, complete or not, its lines, its kinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from taped import layer, problem_of, tape_of

import pylayer.paddle as paddle
from gradcheck.causes.words import source_place
from gradcheck.checking.kinks import kinks
from gradcheck.checking.point import Point

pytestmark = pytest.mark.clause(id="V8")

X = np.array([0.3, -1.2, 2.5])
U = np.array([1.0, -2.0, 0.5])


# --------------------------------------------------------------------------- whatever the code says
def under_no_grad(x: Any) -> Any:
    with paddle.no_grad():
        return x * x


def set_disabled(x: Any) -> Any:
    paddle.set_grad_enabled(False)
    y = x * x
    paddle.set_grad_enabled(True)
    return y


def detached(x: Any) -> Any:
    return x.detach() * x


def detached_in_place(x: Any) -> Any:
    y = x * 1.0
    y.detach_()
    return y * y


def stopped(x: Any) -> Any:
    y = x * x
    y.stop_gradient = True
    return y


def copied(x: Any) -> Any:
    return paddle.to_tensor(x) * paddle.to_tensor(x, dtype="float64")


def nested(x: Any) -> Any:
    return layer(lambda y: y * y).apply(x)


def in_place(x: Any) -> Any:
    x.multiply_(x)
    return x * 1.0


def used_before_it_changes(x: Any) -> Any:
    y = x + 0.0
    z = y * y
    y.zero_()
    return z + y


def written_into(x: Any) -> Any:
    out = paddle.zeros([3], dtype="float64")
    for k in range(3):
        out[k] = x[k] * x[k]
    return out


def set_by_value(x: Any) -> Any:
    out = paddle.zeros([3], dtype="float64")
    out.set_value(x * x)
    return out


@pytest.mark.parametrize(
    "square",
    [under_no_grad, set_disabled, detached, detached_in_place, stopped, copied, nested, in_place,
     used_before_it_changes, written_into, set_by_value],
)  # fmt: skip
def test_everything_is_recorded_whatever_the_layer_hides(square: Callable[..., Any]) -> None:
    tape = tape_of(layer(square), X)
    assert tape.incomplete == ""
    np.testing.assert_allclose(tape.outputs[0], X * X)
    np.testing.assert_allclose(tape.gradient([U])[0], 2 * X * U)


def test_recording_leaves_what_the_layer_keeps_as_an_unrecorded_call_would() -> None:
    count = paddle.to_tensor(0.0, dtype="float64")

    def counting(x: Any) -> Any:
        with paddle.no_grad():
            count.add_(x.sum())
        return x * 2.0

    before = float(count)
    tape_of(layer(counting), X)
    assert count.stop_gradient
    assert count.is_leaf
    assert float(count) == pytest.approx(before + X.sum())  # the plain call alone


def test_a_function_is_its_own_witness_and_a_layer_is_not() -> None:
    assert not tape_of(lambda x: x * x, X).independent
    assert tape_of(layer(lambda x: x * x), X).independent
    assert tape_of(lambda x: nested(x) + 1.0, X).independent


def test_inputs_that_nothing_depends_on_get_zeros() -> None:
    gradients = tape_of(layer(lambda x, y: x * 2.0), X, X).gradient([U])
    np.testing.assert_array_equal(gradients[1], np.zeros(3))


def test_several_outputs_each_take_part_or_not() -> None:
    tape = tape_of(layer(lambda x: tuple(paddle.split(x * x, 3))), X)
    np.testing.assert_allclose(tape.gradient([None, np.ones(1), None])[0], [0, 2 * X[1], 0])


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_gradients_are_computed_in_double_precision(dtype: str) -> None:
    x = (X * 100).astype(dtype)
    gradient = tape_of(layer(lambda x: x * x), x).gradient([U * 1e6])[0]
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, 2e6 * x.astype(float) * U, rtol=1e-15)


def test_a_cast_to_integers_and_back_has_the_derivative_zero() -> None:
    tape = tape_of(layer(lambda x: x.astype("int64").astype("float64") + x), X)
    np.testing.assert_array_equal(tape.gradient([U])[0], U)


# --------------------------------------------------------------------------- complete or not
LEAKS = {
    "hash()": lambda x: x * float(hash(x.sum().numpy()[()])),
    "float()": lambda x: x / float(x.sum()),
    ".item()": lambda x: x / x.sum().item(),
    ".tolist()": lambda x: paddle.to_tensor([2 * v for v in x.tolist()]),
}


@pytest.mark.parametrize("how", LEAKS)
def test_values_that_leave_the_tape_make_it_incomplete_and_the_line_is_named(how: str) -> None:
    function = LEAKS[how]
    assert tape_of(layer(function), X).incomplete == f"{how} in line {function.__code__.co_firstlineno}"


def test_a_gradient_taken_inside_is_not_differentiated() -> None:
    def derived(x: Any) -> Any:
        with paddle.enable_grad():
            y = x.detach()
            y.stop_gradient = False
            return paddle.grad(y * y * y, y)[0]

    assert tape_of(layer(derived), X).incomplete.startswith("grad()")


def test_nor_is_one_that_a_backward_inside_left() -> None:
    def derived(x: Any) -> Any:
        with paddle.enable_grad():
            y = x.detach()
            y.stop_gradient = False
            (y * y * y).sum().backward()
            return y.grad * 1.0

    assert tape_of(layer(derived), X).incomplete.startswith("backward()")


def test_values_taken_out_after_the_last_operation_cannot_matter() -> None:
    def logged(x: Any) -> Any:
        y = x * x
        y.numpy()
        return y

    assert tape_of(layer(logged), X).incomplete == ""


def test_asking_whether_a_value_is_positive_is_a_kink_and_no_leak() -> None:
    tape = tape_of(layer(lambda x: x * 2.0 if x.sum() > 0 else x), X)
    assert tape.incomplete == ""


def test_a_tape_that_gives_other_outputs_than_the_call_is_not_heard() -> None:
    """What is written through a view is not seen while the call is recorded."""

    def through_a_view(x: Any) -> Any:
        y = x * 1.0
        y[0:1].multiply_(paddle.to_tensor([3.0], dtype="float64"))
        return y

    assert Point(problem_of(layer(through_a_view), X)).tape is None


def test_what_only_raises_while_recorded_says_so() -> None:
    def unrecorded(x: Any) -> Any:
        if not x.stop_gradient and not x.is_leaf:
            raise RuntimeError("not so")
        return x * 2.0

    assert tape_of(layer(unrecorded), X).incomplete.startswith("recording it raised RuntimeError: not so")


# --------------------------------------------------------------------------- lines
def test_every_operation_knows_the_users_line() -> None:
    def normed(x: Any) -> Any:
        c = x - x.mean()
        return paddle.nn.functional.gelu(c)

    spots = [step.spot for step in tape_of(layer(normed), X, lines=True).recording.steps]
    places = [source_place(spot) for spot in spots if spot is not None]
    assert len(places) == len(spots)
    first = normed.__code__.co_firstlineno
    assert places[0].line == first + 1
    assert places[0].source[places[0].column : places[0].end_column] == "x.mean()"
    assert {place.line for place in places[2:]} == {first + 2}
    assert all(place.file == __file__ for place in places)


# --------------------------------------------------------------------------- kinks
KINKS: list[tuple[Callable[..., Any], list[float], list[bool]]] = [
    (paddle.nn.functional.relu, [0.0, 1.0, -1.0], [True, False, False]),
    (paddle.abs, [0.0, 1.0, -1.0], [True, False, False]),
    (lambda x: paddle.where(x > 0, x, 0.1 * x), [0.0, 1.0, -1.0], [True, False, False]),
    (lambda x: paddle.nn.functional.relu(0.3 - x), [0.1 + 0.2, 0.3, 1.0], [True, True, False]),
    (paddle.max, [2.0, 2.0, 1.0], [True, True, False]),
    (lambda x: paddle.min(x), [2.0, 2.0, 1.0], [False, False, False]),
    (paddle.sort, [2.0, 1.0, 2.0], [True, False, True]),
    (lambda x: paddle.maximum(x, x * 0.5 + 0.5), [1.0, 2.0, 3.0], [True, False, False]),
    (lambda x: paddle.clip(x, -1.0, 1.0), [1.0, 0.0, -1.0], [True, False, True]),
    (paddle.floor, [1.0, 0.5, -2.0], [True, False, True]),
    (paddle.round, [0.5, 1.0, 0.25], [True, False, False]),
    (lambda x: paddle.sqrt(x), [0.0, 1.0, 2.0], [True, False, False]),
    (lambda x: paddle.nn.functional.relu(paddle.nn.functional.relu(x)), [0.0, 1.0, -1.0], [True, False, False]),
]


@pytest.mark.parametrize(("function", "x", "kinked"), KINKS)
def test_kinked_elements_are_traced_to_the_inputs(
    function: Callable[..., Any], x: list[float], kinked: list[bool]
) -> None:
    # `+ 0·x` keeps an edge for what has no derivative of its own
    found = kinks(tape_of(layer(lambda x: function(x) * 1.0), np.array(x)))
    mask = np.zeros(3, bool)
    for kink in found:
        mask |= kink.inputs[0]
    assert mask.tolist() == kinked


def test_a_maximum_that_cancels_makes_no_kink() -> None:
    def stable_softmax(x: Any) -> Any:
        e = paddle.exp(x - x.max())
        return e / e.sum()

    tape = tape_of(layer(stable_softmax), np.array([2.0, 2.0, 1.0]))
    assert kinks(tape) == []


def test_smooth_functions_have_no_kink() -> None:
    assert kinks(tape_of(layer(lambda x: paddle.tanh(x) / paddle.sqrt((x * x).mean() + 1e-5)), X)) == []


def test_a_value_that_is_returned_twice_has_both_cotangents() -> None:
    def twice(x: Any) -> Any:
        y = x * x
        return y, y

    (gradient,) = tape_of(layer(twice), X).gradient([np.ones_like(X), 2 * np.ones_like(X)])
    np.testing.assert_allclose(gradient, 6 * X, rtol=1e-14)
