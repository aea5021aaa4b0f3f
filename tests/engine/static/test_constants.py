"""What a program makes of no Variable: parameters, constants and random numbers are Variables as any other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from building import data, fetch

import pylayer.paddle as paddle
from pylayer.release import missing_name
from pylayer.tensor.invalid import UnsupportedError

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

MADE: dict[str, Any] = {
    "assign an array": lambda: paddle.assign(A),
    "assign a list": lambda: paddle.assign([1.0, 2.0]),
    "to_tensor": lambda: paddle.to_tensor(A),
    "full": lambda: paddle.full([2, 3], 2.0),
    "zeros": lambda: paddle.zeros([2, 3], "float64"),
    "ones": lambda: paddle.ones([2, 3]),
    "arange": lambda: paddle.arange(0.0, 3.0),
    "linspace": lambda: paddle.linspace(0.0, 1.0, 4),
    "logspace": lambda: paddle.logspace(0.0, 1.0, 4),
    "eye": lambda: paddle.eye(3),
    "full_like": lambda: paddle.full_like(paddle.ones([2]), 3.0),
    "randn": lambda: paddle.randn([2, 3]),
    "uniform": lambda: paddle.uniform([3], min=0.0, max=1.0),
    "of constants": lambda: paddle.exp(paddle.ones([2])) @ paddle.ones([2, 3]),
}


def parameter(value: float = 0.5, shape: Any = (2, 3), **options: Any) -> Any:
    initializer = paddle.nn.initializer.Constant(value)
    return paddle.static.create_parameter(list(shape), "float64", default_initializer=initializer, **options)


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_the_gradient_of_the_squares_of_what_is_created_is_twice_that(make: Any) -> None:
    made = make()
    assert isinstance(made, paddle.static.Variable)
    assert made.stop_gradient
    made.stop_gradient = False
    gradients = paddle.static.gradients((made * made).sum(), made)
    value, gradient = fetch([made, *gradients])
    np.testing.assert_array_equal(gradient, 2 * value)


def test_to_tensor_takes_stop_gradient_at_its_word() -> None:
    made = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    assert not made.stop_gradient
    np.testing.assert_array_equal(fetch(paddle.static.gradients(made * made, made)[0]), [2.0, 4.0])


@pytest.mark.parametrize("make", ["zeros_like", "ones_like", "empty_like"])
def test_what_is_made_like_a_variable_has_its_stop_gradient(make: str) -> None:
    x, still = data(), data("Y", stop_gradient=True)
    found = [getattr(paddle, make)(t).stop_gradient for t in (x, still)]
    assert found == [False, True]
    assert paddle.static.gradients(getattr(paddle, make)(x).sum(), x) == [None]


# --------------------------------------------------------------------------- parameters
def test_the_gradient_of_a_loss_of_parameters_alone() -> None:
    w = parameter(0.5)
    np.testing.assert_array_equal(fetch(paddle.static.gradients((w * w).sum(), w)[0]), np.full((2, 3), 1.0))


def test_every_use_of_a_parameter_counts_beside_a_variable_or_not() -> None:
    x, w = data(), parameter(0.5)
    loss = (w * x).sum() + paddle.tanh(w).sum() + w.sum(0).sum()
    expected = A + 1 - np.tanh(0.5) ** 2 + 1
    np.testing.assert_allclose(fetch(paddle.static.gradients(loss, w)[0], X=A), expected, rtol=1e-14)


def test_second_gradients_of_a_parameter() -> None:
    w = parameter(0.5)
    (first,) = paddle.static.gradients((w * w * w).sum(), w)
    np.testing.assert_allclose(fetch(paddle.static.gradients(first, w)[0]), np.full((2, 3), 3.0))


def test_append_backward_gives_those_of_parameters_and_of_constants_that_are_named() -> None:
    w, c = parameter(0.5), paddle.full([2, 3], 2.0, "float64")
    c.stop_gradient = False
    loss = (w * c).sum()
    pairs = paddle.static.append_backward(loss)
    named = paddle.static.append_backward(loss, parameter_list=[c])
    assert [p for p, _ in pairs] == [w]
    assert [p for p, _ in named] == [c]
    found = fetch([pairs[0][1], named[0][1]])
    np.testing.assert_array_equal(found, [np.full((2, 3), 2.0), np.full((2, 3), 0.5)])


def test_what_is_computed_of_a_parameter_sees_the_values_of_the_run() -> None:
    w = parameter(0.5)
    w.stop_gradient = True
    doubled = w * 2
    w.set_value(np.full((2, 3), 7.0))
    np.testing.assert_array_equal(fetch(doubled), np.full((2, 3), 14.0))


def test_no_gradient_flows_back_through_detach_whatever_its_stop_gradient() -> None:
    x, w = data(), parameter(0.5)
    for tensor in (x, w):
        bare = tensor.detach()
        assert isinstance(bare, paddle.static.Variable)
        bare.stop_gradient = False
        found = paddle.static.gradients((bare * bare + tensor).sum(), [tensor, bare])
        value, *gradients = fetch([bare, *found], X=A)
        np.testing.assert_array_equal(gradients, [np.ones((2, 3)), 2 * value])


def test_what_is_made_of_stopped_variables_is_stopped_whatever_its_size_is_read_off() -> None:
    x, still = data(), data("Y", stop_gradient=True)
    assert paddle.reshape(still, [x.shape[0], 3]).stop_gradient


# --------------------------------------------------------------------------- gradients of what has none
@pytest.mark.parametrize(
    "cut",
    [lambda x: x // 2, lambda x: paddle.argsort(x).astype("float64")],
    ids=["floor_divide", "argsort"],
)
def test_a_number_that_passes_no_gradient_on_has_one_of_its_own(cut: Any) -> None:
    x = data(shape=[2, 3])
    middle = cut(x)
    found = paddle.static.gradients((middle * x).sum(), [middle, x])
    value, *gradients = fetch([middle, *found], X=A)
    np.testing.assert_array_equal(gradients, [A, value])


# --------------------------------------------------------------------------- values of constants
def test_the_values_of_constants_decide_shapes() -> None:
    x = data(shape=[2, 3])
    shapes = [
        paddle.reshape(x, paddle.to_tensor([3, 2])).shape,
        paddle.tile(x, paddle.to_tensor([2, 1])).shape,
        paddle.sum(x, paddle.to_tensor(1)).shape,
        paddle.zeros(paddle.to_tensor([4, 2])).shape,
        x[paddle.to_tensor([True, False])].shape,
        paddle.linalg.inv(paddle.eye(2) + 1.0).shape,
        paddle.full(paddle.shape(x), 7.0).shape,
        paddle.repeat_interleave(x, paddle.to_tensor([1, 2]), 0).shape,
    ]
    assert shapes == [[3, 2], [4, 3], [2], [4, 2], [1, 3], [2, 2], [2, 3], [3, 3]]


@pytest.mark.parametrize("make", [lambda n: paddle.zeros(n), lambda n: paddle.zeros([n[0], n[1]])])
def test_sizes_that_are_fed_are_unknown(make: Any) -> None:
    sizes = paddle.static.data("N", [2], "int64")
    made = make(sizes)
    assert made.shape == [-1, -1]
    assert fetch(made, N=np.array([4, 5])).shape == (4, 5)


def test_random_numbers_are_no_constants() -> None:
    drawn = paddle.randint(0, 2**30, [4])
    one, other = (fetch(drawn) for _ in range(2))
    assert (one != other).any()
    with pytest.raises(RuntimeError, match="has a value only while its program runs"):
        drawn.numpy()


# --------------------------------------------------------------------------- what is refused, never None
def test_a_tensor_with_a_gradient_to_pass_on_is_refused() -> None:
    paddle.disable_static()
    t = paddle.to_tensor(A, stop_gradient=False)
    paddle.enable_static()
    with pytest.raises(
        ValueError, match=r"was computed in dynamic mode .* Compute it in the program, or detach\(\) it"
    ):
        data() * (t * 2)
    np.testing.assert_array_equal(fetch(data("Y") * (t * 2).detach(), Y=A), 2 * A * A)


CHANGES: dict[str, Any] = {
    "paddle.Tensor.add_": lambda x: x.add_(x),
    "paddle.Tensor.reshape_": lambda x: x.reshape_([-1]),
    "paddle.Tensor.fill_": lambda x: x.zero_(),
    "paddle.Tensor.copy_": lambda x: x.copy_(x, True),
    "paddle.Tensor.set_": lambda x: x.set_(x),
    "paddle.increment": lambda x: paddle.increment(x),
    "paddle.assign with an output": lambda x: paddle.assign(A, x),
    "paddle.nn.initializer.Constant of an existing parameter": lambda x: paddle.nn.initializer.Constant(1.0)(x),
}
OF: dict[str, Any] = {"variable": lambda: data() * 2, "data": data, "parameter": parameter, "constant": MADE["full"]}


@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize("name", CHANGES)
def test_changes_in_place_are_unsupported_by_name(name: str, of: str) -> None:
    with pytest.raises(UnsupportedError, match="in static mode is not part of the bundled engine") as caught:
        CHANGES[name](OF[of]())
    assert missing_name(caught.value) == f"{name} in static mode"


def test_items_of_a_parameter_are_not_set_in_a_program() -> None:
    with pytest.raises(UnsupportedError, match=r"__setitem__ in static mode is not part of the bundled engine"):
        parameter()[0] = 1.0


def test_setting_items_of_a_variable_makes_another_that_stands_for_it() -> None:
    x = data()
    y = x * 2
    before = y * y
    y[0] = x[1]
    after = [y, paddle.static.setitem(y, (1,), 1.0), paddle.concat([y], 0)]
    (gradient,) = paddle.static.gradients((y * y + before).sum(), x)
    set_once, set_twice = 2 * A, 2 * A
    set_once[0], set_twice[0], set_twice[1] = A[1], A[1], 1.0
    np.testing.assert_array_equal(fetch(before, X=A), 4 * A * A)
    for found in after:  # by the name y stands for what was set last
        np.testing.assert_array_equal(fetch(found, X=A), set_twice)
    expected = 8 * A  # of before
    expected[1] += 2 * A[1]  # of y[0]
    expected[2:] += 8 * A[2:]
    np.testing.assert_allclose(fetch(gradient, X=A), expected)


def test_items_of_a_variable_from_outside_are_not_set_in_a_branch() -> None:
    y = data() * 2
    with pytest.raises(UnsupportedError, match="from outside, in a branch of static mode"):
        paddle.static.nn.cond(paddle.full([], True, "bool"), lambda: y.__setitem__(0, 1.0), lambda: y)


def test_grad_is_for_dynamic_mode() -> None:
    x = data()
    with pytest.raises(AssertionError, match="only support 'grad\\(\\)' in dynamic graph mode"):
        paddle.grad(x, x)
