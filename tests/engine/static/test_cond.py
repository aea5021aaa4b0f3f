from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from building import data, fetch
from hypothesis import given, settings
from hypothesis import strategies as st

import pylayer.paddle as paddle

cond = paddle.static.nn.cond
gradients = paddle.static.gradients


@given(st.floats(-2, 2), st.floats(-2, 2))
@settings(deadline=None, max_examples=30)
def test_the_branch_is_chosen_in_the_run_and_so_are_three_orders_of_gradients(a: float, b: float) -> None:
    with paddle.static.program_guard(paddle.static.Program()):
        x = data(shape=[1])

        def inner() -> Any:
            kept = paddle.exp(x)
            return cond(x.sum() > 1, lambda: kept * x, lambda: x * x * x)

        out = cond(x.sum() > 0, inner, lambda: paddle.sin(x))
        ends = [out]
        for _ in range(3):
            ends.append(gradients(ends[-1], x)[0])
        for value in (a, b):
            found = np.concatenate(fetch(ends, X=np.array([value])))
            e = np.exp(value)
            expected = (
                [e * value, e * value + e, e * value + 2 * e, e * value + 3 * e]
                if value > 1
                else [value**3, 3 * value**2, 6 * value, 6]
                if value > 0
                else [np.sin(value), np.cos(value), -np.sin(value), -np.cos(value)]
            )
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


def test_only_the_chosen_branch_runs() -> None:
    x, rows = data(shape=[None, 2]), data("R", [None, 3])
    out = cond(x.sum() > 0, lambda: x @ rows, lambda: x @ x)
    square = np.array([[-1.0, 0.0], [0.0, -1.0]])
    np.testing.assert_array_equal(fetch(out, X=square, R=np.ones((9, 3))), np.eye(2))


def test_a_size_that_differs_between_the_branches_is_unknown() -> None:
    x = data(shape=[4, 2])
    out = cond(x.sum() > 0, lambda: x, lambda: x[:3])
    assert out.shape == [-1, 2]
    again = paddle.reshape(out, [out.shape[0] * 2])
    assert fetch(again, X=np.ones((4, 2))).shape == (8,)
    assert fetch(again, X=-np.ones((4, 2))).shape == (6,)


def test_structures_and_numbers_are_returned_from_both() -> None:
    x = data()
    pair, none = cond(x.sum() > 0, lambda: ([x, 1.0], None), lambda: ([x * 2, 2.0], None))
    assert none is None
    assert [float(v.sum()) for v in fetch(pair, X=-np.ones((1, 3)))] == [-6.0, 2.0]


@pytest.mark.parametrize(
    ("branches", "error", "message"),
    [
        (
            lambda x: (lambda: x, lambda: [x]),
            ValueError,
            r"cond at .*test_cond\.py:\d+ must return the same nest structure",
        ),
        (lambda x: (lambda: x, lambda: x.astype("float32")), ValueError, "same dtype and number of dimensions"),
        (lambda x: (lambda: x, None), ValueError, "same nest structure"),
        (lambda x: (3, None), TypeError, "true_fn in cond must be callable, but received int"),
        (lambda x: (lambda: "a", lambda: "b"), ValueError, "must return Variables or numbers, but got str"),
    ],
)
def test_branches_that_do_not_go_together_are_refused(branches: Any, error: type[Exception], message: str) -> None:
    x = data()
    with pytest.raises(error, match=message):
        cond(x.sum() > 0, *branches(x))


def test_the_condition_is_bool() -> None:
    x = data()
    with pytest.raises(TypeError, match=r"must be a bool, but it is Variable 'X'.*created at"):
        cond(x, lambda: x, lambda: x)


@pytest.mark.parametrize("values", [[True, False], [False, True], [[False], [True], [True]]])
def test_of_a_condition_of_several_elements_the_first_counts(values: Any) -> None:  # as in Paddle 3.3.1
    x = data()
    holds = paddle.static.data("holds", list(np.shape(values)), "bool")
    out = cond(holds, lambda: x + 1, lambda: x - 1)
    found = fetch(out, X=np.zeros((1, 3)), holds=np.array(values))
    np.testing.assert_array_equal(found, np.full((1, 3), 1.0 if np.ravel(values)[0] else -1.0))


def test_what_a_branch_made_cannot_be_used_or_fetched_outside() -> None:
    x = data()
    kept: list[Any] = []
    cond(x.sum() > 0, lambda: kept.append(x * 2), lambda: None)
    for use in (lambda: kept[0] + 1, lambda: fetch(kept[0], X=np.ones((1, 3)))):
        with pytest.raises(ValueError, match="made in a branch of cond"):
            use()


def test_a_condition_with_a_value_is_decided_at_once() -> None:
    paddle.disable_static()
    x = paddle.ones([2])
    assert cond(x.sum() > 0, lambda: "true", lambda: "false") == "true"
    assert cond(x.sum() < 0, lambda: "true") is None
