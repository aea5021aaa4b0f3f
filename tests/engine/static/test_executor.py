from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from building import chain_both_ways, data, fetch

import pylayer.paddle as paddle

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def test_batches_of_any_size() -> None:
    x = data(shape=[None, 5])
    out = paddle.tanh(x)
    fetches = [out, *paddle.static.gradients(out, x)]
    executor = paddle.static.Executor(paddle.CPUPlace())
    for batch in (1, 7, 0, 7):
        for value in executor.run(feed={"X": np.ones((batch, 5))}, fetch_list=fetches):
            assert value.shape == (batch, 5)


def test_a_program_may_grow_between_runs() -> None:
    x = data()
    executor = paddle.static.Executor()
    y = x * 2
    executor.run(feed={"X": A}, fetch_list=[y])
    z = y + 1
    np.testing.assert_array_equal(executor.run(feed={"X": A}, fetch_list=[z])[0], A * 2 + 1)


def test_what_can_be_fetched() -> None:
    x = data()
    y = x * 2
    weight = paddle.static.create_parameter([3], "float64", "w")
    z = y * weight
    constant = paddle.ones([2])
    fetched = fetch([y, y.name, "X", weight, "w", z, constant], X=A)
    for value, expected in zip(
        fetched, [A * 2, A * 2, A, weight, weight, A * 2 * weight.numpy(), constant], strict=True
    ):
        np.testing.assert_array_equal(value, expected.numpy() if isinstance(expected, paddle.Tensor) else expected)


@pytest.mark.parametrize("value", [A, A.tolist(), paddle.to_tensor(A)], ids=["array", "lists", "Tensor"])
def test_what_can_be_fed(value: Any) -> None:
    np.testing.assert_array_equal(fetch(data() * 2, X=value), A * 2)


def test_fetched_arrays_are_copies() -> None:
    x = data()
    given = A.copy()
    fetch(x, X=given)[:] = 0
    np.testing.assert_array_equal(given, A)


def test_tensors_are_fetched_on_request() -> None:
    out = paddle.static.Executor().run(feed={"X": A}, fetch_list=[data() * 2], return_numpy=False)
    assert isinstance(out[0], paddle.Tensor)
    np.testing.assert_array_equal(out[0].numpy(), A * 2)


def test_a_run_without_fetches_gives_an_empty_list() -> None:
    assert paddle.static.Executor().run(paddle.static.default_startup_program()) == []


@pytest.mark.parametrize(
    ("feed", "error", "message"),
    [
        ({"x": A}, KeyError, r"X: the feed lacks Variable 'X' .*created at .*building\.py:\d+; it holds 'x'"),
        (
            {"X": A.astype("float32")},
            ValueError,
            r"feed 'X': The type of data .* \(float64\) does not match .* \(float32\)",
        ),
        ({"X": A.T}, ValueError, r"feed 'X': the shape \[3, 2\] does not fit: Variable 'X' of shape \[-1, 3\]"),
        ({"X": A[0]}, ValueError, r"the shape \[3\] does not fit"),
        ([A], TypeError, "feed requires dict as its Parameter"),
    ],
)
def test_a_feed_that_does_not_fit_is_refused_by_name_and_place(feed: Any, error: type[Exception], message: str) -> None:
    out = data() * 2
    with pytest.raises(error, match=message):
        paddle.static.Executor().run(feed=feed, fetch_list=[out])


@pytest.mark.parametrize(
    ("fetches", "error", "message"),
    [
        (lambda: ["multiply"], ValueError, "no Variable named 'multiply'. Did you mean 'multiply_1.tmp_0'"),
        (
            lambda: [None],
            TypeError,
            r"Require fetch_list\[0\] 's type shall be one of \(Variable, str\), but received None",
        ),
        (lambda: [foreign()], ValueError, r"fetch_list\[0\] is not of the program that is run: Variable 'F'"),
    ],
)
def test_what_cannot_be_fetched_is_refused(fetches: Any, error: type[Exception], message: str) -> None:
    data() * 2
    with pytest.raises(error, match=message):
        paddle.static.Executor().run(feed={"X": A}, fetch_list=fetches())


def foreign() -> Any:
    with paddle.static.program_guard(paddle.static.Program()):
        return data("F")


def test_an_error_in_the_run_notes_the_operator_and_its_line_in_the_program() -> None:
    out = data() + data("Y")
    with pytest.raises(ValueError, match="broadcast") as raised:
        fetch(out, X=A, Y=np.ones((3, 3)))
    (note,) = raised.value.__notes__
    assert note.startswith("in add(X, y=Y) of the program, recorded at ")
    assert "test_executor.py:" in note


def test_arrays_are_freed_after_their_last_use() -> None:
    x = data(shape=[None])
    h = x
    for _ in range(50):
        h = paddle.sin(h)
    array = np.ones(100_000)
    fetch(h, X=array)
    tracemalloc.start()
    fetch(h, X=array)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * array.nbytes


def peak(run: Callable[[], Any]) -> int:
    """The most bytes held at once during a call."""
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_a_program_computes_what_dynamic_mode_does() -> None:
    dynamic, static = chain_both_ways(10, 300)
    for one, other in zip(dynamic(), static(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_program_holds_no_more_memory_than_dynamic_mode() -> None:
    dynamic, static = chain_both_ways(20_000, 300)
    static()
    assert peak(static) <= 1.005 * peak(dynamic)


def test_a_program_runs_in_dynamic_mode_too_and_takes_parameters_as_they_are() -> None:
    layer = paddle.nn.Linear(3, 2)
    x = data(dtype="float32")
    out = layer(x)
    paddle.disable_static()
    batch = A.astype("float32")
    for scale in (1.0, 2.0):
        layer.weight.set_value(layer.weight * scale)
        np.testing.assert_array_equal(fetch(out, X=batch), layer(paddle.to_tensor(batch)).numpy())


def test_random_numbers_are_drawn_anew_in_each_run_and_alike_in_forward_and_backward() -> None:
    x = data(shape=[None, 50])
    out = paddle.nn.functional.dropout(x, 0.5)
    fetches = [out, *paddle.static.gradients(out, x)]
    first, second = (fetch(fetches, X=np.ones((2, 50))) for _ in range(2))
    for value, gradient in (first, second):
        np.testing.assert_array_equal(value, gradient)
    assert np.any(first[0] != second[0])


def test_a_random_number_has_no_value_before_a_run_and_another_one_in_each() -> None:
    drawn = paddle.rand([20])
    with pytest.raises(RuntimeError, match="only while its program runs"):
        bool(drawn[0] < 0.5)
    assert np.any(fetch(drawn) != fetch(drawn))


def test_only_places_and_programs_are_taken() -> None:
    with pytest.raises(ValueError, match="must be CPUPlace"):
        paddle.static.Executor(3)
    with pytest.raises(ValueError, match="but got 'nowhere'"):
        paddle.static.Executor("nowhere")
    assert paddle.static.Executor("cpu").place == paddle.CPUPlace()
    with pytest.raises(TypeError, match="requires Program"):
        paddle.static.Executor().run("program")


def test_nested_lists_are_fetched_as_one_list() -> None:
    x = data()
    found = fetch([[x * 2, (x * 3,)], x], X=A)
    np.testing.assert_array_equal(found, [2 * A, 3 * A, A])
