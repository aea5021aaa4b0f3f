from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from building import data, fetch

import pylayer.paddle as paddle

static_pylayer = paddle.static.nn.static_pylayer
gradients = paddle.static.gradients
A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
HERE = r"test_pylayer\.py:\d+"


def test_the_derivative_is_what_backward_fn_says() -> None:
    x = data()
    out = static_pylayer(paddle.exp, [x], lambda d: 2 * paddle.exp(d))
    value, gradient = fetch([out, *gradients(out, x)], X=A)
    np.testing.assert_array_equal(value, np.exp(A))
    np.testing.assert_array_equal(gradient, np.full(A.shape, 2 * np.exp(1.0)))


def test_forward_fn_is_traced_once_and_backward_fn_once_per_request() -> None:
    calls: list[str] = []
    x = data()

    def forward_fn(a: Any) -> Any:
        calls.append("forward")
        return a * 2

    def backward_fn(d: Any) -> Any:
        calls.append("backward")
        return d * 2

    out = static_pylayer(forward_fn, [x], backward_fn)
    assert calls == ["forward"]
    found = [gradients(out, x)[0], gradients(out, x)[0]]
    assert calls == ["forward", "backward", "backward"]
    fetch([out, *found], X=A)
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("forward_fn", "kind"),
    [
        (lambda a: a, "*"),
        (lambda a: [a, a * 2], "[**]"),
        (lambda a: (a,), "(*)"),
        (lambda a: (a, [a * 2, (a,)]), "(*[*(*)])"),
        (lambda a: (a, 3.0), "(*3.0)"),
    ],
)
def test_the_structure_of_what_forward_fn_returns_is_kept(forward_fn: Any, kind: str) -> None:
    def shown(value: Any) -> str:
        if isinstance(value, (list, tuple)):
            inner = "".join(map(shown, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner})"
        return "*" if isinstance(value, paddle.static.Variable) else str(value)

    assert shown(static_pylayer(forward_fn, [data()], lambda *d: d[0])) == kind


def test_an_input_that_is_returned_comes_out_as_a_new_variable() -> None:
    x = data()
    out = static_pylayer(lambda a: a, [x], lambda d: d * 5)
    assert out is not x
    np.testing.assert_array_equal(fetch(gradients(out, x)[0], X=A), np.full(A.shape, 5.0))


def test_a_chain_multiplies_what_the_backward_fns_say() -> None:
    x = data()
    h = x
    for k in (2, 3, 5):
        h = static_pylayer(lambda a, k=k: a * k, [h], lambda d, k=k: d * (10 * k))
    np.testing.assert_array_equal(fetch(gradients(h, x)[0], X=A), np.full(A.shape, 30_000.0))


def test_a_layer_inside_forward_fn_and_inside_backward_fn() -> None:
    x = data()

    def doubled(a: Any) -> Any:
        return static_pylayer(lambda v: v * 2, [a], lambda d: d * 20)

    out = static_pylayer(doubled, [x], doubled)
    first = gradients(out, x)
    (second,) = gradients(first[0] * x, x)
    value, one, two = fetch([out, first[0], second], X=A)
    np.testing.assert_array_equal(value, A * 2)
    np.testing.assert_array_equal(one, np.full(A.shape, 2.0))
    np.testing.assert_array_equal(two, np.full(A.shape, 2.0))


def test_backward_fn_sees_outer_variables_and_those_of_forward_fn_and_gradients_flow_to_the_outer_ones() -> None:
    x, w = data(), data("W")
    kept: dict[str, Any] = {}

    def forward_fn(a: Any) -> Any:
        kept["exp"] = paddle.exp(a)
        return kept["exp"] * w

    out = static_pylayer(forward_fn, [x], lambda d: d * kept["exp"] * w)
    first = gradients(out, [x, w])
    assert first[1] is None
    (second,) = gradients(first[0], w)
    one, two = fetch([first[0], second], X=A, W=A + 1)
    np.testing.assert_array_equal(one, np.exp(A) * (A + 1))
    np.testing.assert_array_equal(two, np.exp(A))


def test_backward_fn_may_ask_for_gradients_of_what_it_computes_again() -> None:
    x = data()

    def function(a: Any) -> Any:
        return paddle.tanh(a) * a

    out = static_pylayer(function, [x * 1], lambda d: gradients(function(x), x, d))
    (found,) = gradients(out * out, x)
    (expected,) = gradients(function(x) ** 2, x)
    one, two = fetch([found, expected], X=A)
    np.testing.assert_allclose(one, two, rtol=1e-14)


def test_outputs_need_a_gradient_as_soon_as_an_input_does() -> None:
    x, y = data(), data("Y", stop_gradient=True)
    assert static_pylayer(lambda a, b: a * b, [y, y]).stop_gradient
    assert not static_pylayer(lambda a, b: a * b, [x, y], lambda d: (d, None)).stop_gradient


def test_none_is_taken_for_an_input_that_needs_no_gradient() -> None:
    x, y = data(), data("Y", stop_gradient=True)
    out = static_pylayer(lambda a, b: a * b, [x, y], lambda d: (d * y, None))
    np.testing.assert_array_equal(fetch(gradients(out, x)[0], X=A, Y=A + 1), A + 1)


def backward_mistake(backward_fn: Any, dtype: str = "float32") -> Any:
    x, y = data(dtype=dtype), data("Y", dtype=dtype)
    out = static_pylayer(lambda a, b: a * b, [x, y], backward_fn)
    return gradients(out, [x, y])


@pytest.mark.parametrize(
    ("backward_fn", "error", "message"),
    [
        (lambda d: d, ValueError, rf"number of input grads .* but got 1 and 2.*{HERE} must return .* each of: X, Y"),
        (lambda d: (d, d, d), ValueError, "number of input grads should be equal to the number of inputs, but got 3"),
        (lambda d: (d, None), ValueError, r"returned None as gradient 1.*Variable 'Y'.*created at .*building\.py:\d+"),
        (lambda d: (d, 1.0), ValueError, "returned float as gradient 1"),
        (
            lambda d: (d, d.astype("float64")),
            AssertionError,
            r"dtype of inp_grad\(paddle.float64\) and fwd_input\(paddle.*Variable 'Y'.*created at .*building\.py:\d+",
        ),
        (
            lambda d: (d.sum(0), d),
            AssertionError,
            r"shape of inp_grad\(paddle.Size.* and fwd_input\(.*\[-1, 3\]\)\) should be",
        ),
        (lambda d, e: (d, e), TypeError, "missing 1 required positional argument"),
        (lambda d: {"x": d}, TypeError, "made of lists and tuples, but got a dict"),
    ],
)
def test_mistakes_of_backward_fn_are_refused_when_gradients_are_asked_for(
    backward_fn: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        backward_mistake(backward_fn)


def test_what_the_functions_raise_is_noted_with_the_place_of_the_layer() -> None:
    def wrong(*_: Any) -> Any:
        raise KeyError("own")

    with pytest.raises(KeyError, match="own") as forward:
        static_pylayer(wrong, [data()], wrong)
    with pytest.raises(KeyError, match="own") as backward:
        gradients(static_pylayer(lambda a: a * 1, [y := data("Y")], wrong), y)
    for role, raised in (("forward_fn", forward), ("backward_fn", backward)):
        (note,) = raised.value.__notes__
        assert note.startswith(f"in {role} of the static_pylayer at ")
        assert "test_pylayer.py:" in note


def test_a_gradient_whose_size_turns_out_wrong_is_refused_in_the_run() -> None:
    x, y = data(shape=[None]), data("Y", [None], stop_gradient=True)
    out = static_pylayer(lambda a: a * 1, [x], lambda d: y * 1)
    gradient = gradients(out, x)
    assert fetch(gradient, X=np.ones(2), Y=np.ones(2))[0].shape == (2,)
    with pytest.raises(AssertionError, match=r"shape of inp_grad\(.*\[3\].* and fwd_input\(.*\[2\].*for X"):
        fetch(gradient, X=np.ones(2), Y=np.ones(3))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (lambda x: ("exp", [x]), ValueError, "`forward_fn` should be callable"),
        (lambda x: (paddle.exp, [x], 3), ValueError, "`backward_fn` should be callable"),
        (lambda x: (paddle.exp, x, paddle.exp), AssertionError, r"inputs must be a list .* Write \[x\]"),
        (
            lambda x: (paddle.exp, [x]),
            ValueError,
            r"``stop_gradient`` attr .* but X.stop_gradient got False \(Variable",
        ),
    ],
)
def test_mistakes_in_the_call_are_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        static_pylayer(*arguments(data()))


def test_it_is_for_static_mode_and_pylayer_for_dynamic_mode() -> None:
    class Double(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    with pytest.raises(ValueError, match=r"use paddle\.static\.nn\.static_pylayer"):
        Double.apply(data())
    paddle.disable_static()
    with pytest.raises(AssertionError, match="please use PyLayer instead of static_pylayer in dygraph mode"):
        static_pylayer(paddle.exp, [paddle.ones([2])], paddle.exp)
