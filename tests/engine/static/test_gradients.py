from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from building import data, fetch, in_dynamic_mode
from hypothesis import given, settings
from hypothesis import strategies as st

import pylayer.paddle as paddle

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

STEPS: dict[str, Any] = {
    "tanh": lambda h, x: paddle.tanh(h),
    "sin": lambda h, x: paddle.sin(h),
    "times x": lambda h, x: h * x,
    "plus x": lambda h, x: h + x,
    "x minus": lambda h, x: x - h,
    "softmax": lambda h, x: paddle.nn.functional.softmax(h),
    "row mean": lambda h, x: h - h.mean(0, keepdim=True),
    "first row": lambda h, x: h + h[0:1],
    "scaled": lambda h, x: h * 0.5 + 1,
    "joined": lambda h, x: paddle.concat([h, x], 0)[: h.shape[0]],
    "flat": lambda h, x: paddle.reshape(paddle.reshape(h, [-1]), [-1, 3]),
    "over its rows": lambda h, x: h / h.shape[0],
    "chosen": lambda h, x: paddle.where(h > 0, h, x),
}


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=8), st.sampled_from([1, 2, 5]))
@settings(deadline=None, max_examples=60)
def test_a_program_and_dynamic_mode_agree_bit_by_bit(steps: list[str], rows: int) -> None:
    def function(x: Any) -> Any:
        h = x * 1
        for step in steps:
            h = STEPS[step](h, x)
        return h.sum()

    values = np.random.default_rng(0).normal(size=(rows, 3))
    expected, (expected_gradient,) = in_dynamic_mode(function, values)
    with paddle.static.program_guard(paddle.static.Program()):
        x = data()
        out = function(x)
        value, gradient = fetch([out, *paddle.static.gradients(out, x)], X=values)
    np.testing.assert_array_equal(value, expected)
    np.testing.assert_array_equal(gradient, expected_gradient)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_gradients_of_gradients_to_any_order(order: int) -> None:
    x = data()
    ends = [paddle.exp(2 * x)]
    for _ in range(order):
        ends = paddle.static.gradients(ends, x)
    np.testing.assert_allclose(fetch(ends[0], X=A), 2.0**order * np.exp(2 * A), rtol=1e-14)


def test_a_gradient_is_called_after_its_variable_and_fetched_by_name() -> None:
    x = data()
    (gradient,) = paddle.static.gradients(x * x, x)
    assert gradient.name == "X@GRAD"
    np.testing.assert_array_equal(fetch("X@GRAD", X=A), 2 * A)


def test_later_gradients_of_the_same_variable_get_numbers() -> None:
    x = data()
    names = [paddle.static.gradients(x * k, x)[0].name for k in (2, 3)]
    assert names == ["X@GRAD", "X@GRAD_1"]
    assert [v[0, 0] for v in fetch(names, X=A)] == [2.0, 3.0]


def test_the_parts_of_a_gradient_are_added() -> None:
    x = data()
    gradients = paddle.static.gradients([x * 2, x * 3, x], x)
    np.testing.assert_array_equal(fetch(gradients[0], X=A), np.full(A.shape, 6.0))


def test_gradients_of_inputs_and_of_what_was_made_of_them() -> None:
    x = data()
    h = x * 3
    y = h * h
    at_y, at_h, at_x, at_input = fetch([*paddle.static.gradients(y, [y, h, x]), *paddle.static.gradients(x, x)], X=A)
    np.testing.assert_array_equal(at_y, np.ones(A.shape))
    np.testing.assert_array_equal(at_h, 6 * A)
    np.testing.assert_array_equal(at_x, 18 * A)
    np.testing.assert_array_equal(at_input, np.ones(A.shape))


def test_outputs_of_an_operation_that_are_not_used_count_as_zero() -> None:
    x = data(shape=[None, 4])
    first, _ = paddle.split(x * x, 2, axis=1)
    one = paddle.static.gradients(first, x)
    two = paddle.static.gradients(one[0][:, :1], x)
    batch = np.arange(1.0, 9.0).reshape(2, 4)
    gradient, second = fetch([*one, *two], X=batch)
    np.testing.assert_array_equal(gradient, batch * [2, 2, 0, 0])
    np.testing.assert_array_equal(second, np.full(batch.shape, 1.0) * [2, 0, 0, 0])


def test_a_program_of_many_thousand_operators() -> None:
    x = data(shape=[2])
    h = x
    for _ in range(3000):
        h = h * 1.001
    np.testing.assert_allclose(fetch(paddle.static.gradients(h, x), X=np.ones(2))[0], 1.001**3000)


def test_target_gradients_weight_the_targets() -> None:
    x, w = data(), data("W", stop_gradient=True)
    (gradient,) = paddle.static.gradients([x * x, x], x, [w, None])
    np.testing.assert_array_equal(fetch(gradient, X=A, W=A + 1), 2 * A * (A + 1) + 1)


@pytest.mark.parametrize(
    ("gradients", "message"),
    [
        (lambda x: paddle.static.gradients([x, x], x, [x]), "2 targets need as many target_gradients, but got 1"),
        (lambda x: paddle.static.gradients(x.sum(), x, [x]), "must have the shape of its target: Variable 'X'"),
    ],
)
def test_wrong_cotangents_are_refused(gradients: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gradients(data())


def test_no_gradient_where_there_is_no_way() -> None:
    x, y, z = data(), data("Y"), data("Z", stop_gradient=True)
    cut = x * 2
    cut.stop_gradient = True
    assert paddle.static.gradients(x * z, [y, z]) == [None, None]
    assert paddle.static.gradients(cut * y, [x]) == [None]
    with paddle.no_grad():
        silent = x * 3
    assert silent.stop_gradient
    assert paddle.static.gradients(silent, x) == [None]


def test_no_gradient_flows_through_the_no_grad_set() -> None:
    x = data()
    inner = x * 2
    (gradient,) = paddle.static.gradients(inner * x, x, no_grad_set={inner.name})
    np.testing.assert_array_equal(fetch(gradient, X=A), 2 * A)


def test_given_cotangents_keep_their_names() -> None:
    x = data()
    y = x * 2
    (given,) = paddle.static.gradients(y * y, y)
    name = given.name
    paddle.static.gradients([y, y], x, [given, given])
    np.testing.assert_array_equal(fetch(name, X=A), 4 * A)


def test_append_backward_pairs_parameters_with_gradients() -> None:
    x = data(stop_gradient=True)
    w = paddle.static.create_parameter([3, 1], "float64", "w")
    loss = paddle.matmul(x, w).sum()
    ((parameter, gradient),) = paddle.static.append_backward(loss)
    assert parameter is w
    assert gradient.name == "w@GRAD"
    np.testing.assert_array_equal(fetch(gradient, X=A), A.sum(0)[:, None])
    assert paddle.static.append_backward(loss, parameter_list=["X"]) == [(x, None)]


def test_append_backward_has_every_parameter_the_last_one_first() -> None:
    used, stopped, unused = (paddle.static.create_parameter([3, 1], "float64") for _ in range(3))
    stopped.stop_gradient = True
    loss = (paddle.matmul(data(stop_gradient=True), used) * stopped.sum()).sum()
    pairs = paddle.static.append_backward(loss)
    assert [id(parameter) for parameter, _ in pairs] == [id(unused), id(stopped), id(used)]
    assert [gradient is None for _, gradient in pairs] == [True, True, False]


def test_a_loss_without_parameters_gives_no_pairs() -> None:
    assert paddle.static.append_backward(data().sum()) == []


def test_gradients_are_of_the_program_that_is_built() -> None:
    x = data()
    y = x * 2
    with (
        paddle.static.program_guard(paddle.static.Program()),
        pytest.raises(ValueError, match=r"belongs to another Program .*program_guard of its own"),
    ):
        paddle.static.gradients(y, x)


def test_gradients_are_for_static_mode() -> None:
    x = data()
    paddle.disable_static()
    with pytest.raises(AssertionError, match=r"Call paddle.enable_static\(\) first"):
        paddle.static.gradients(x, x)


def test_what_takes_gradients_at_once_names_the_way_in_a_program() -> None:
    with pytest.raises(RuntimeError, match=r"Variable 'X'.*paddle\.static\.gradients"):
        data().backward()


def test_append_backward_gives_the_gradients_of_all_that_is_persistable() -> None:
    x, other = data(), data("other")
    x.persistable = True
    found = paddle.static.append_backward((x * other).sum())
    assert [parameter.is_same(x) for parameter, _ in found] == [True]
    values = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(fetch(found[0][1], X=values, other=values + 1), values + 1)


def test_a_list_of_parameters_is_one() -> None:
    x = paddle.static.data("X", [2])
    with pytest.raises(TypeError, match="must be a list, tuple or set, but received Variable"):
        paddle.static.append_backward(x.sum(), parameter_list=x)
