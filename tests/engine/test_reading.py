"""How strictly "one gradient per Tensor input" is read: by the documents, and by every release."""

from __future__ import annotations

from contextlib import nullcontext
from threading import Thread
from typing import Any

import pytest

import pylayer.paddle as paddle
from pylayer.layer.py_layer import as_releases

PyLayer: Any = paddle.autograd.PyLayer
NEEDED, STOPPED = ([1.0, 2.0], False, "float64"), ([1.0, 2.0], True, "float64")
WHOLE, TRUTH = ([1, 2], False, "int64"), ([True, False], False, "bool")


class Sum(PyLayer):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Any:
        *inputs, ctx.answer = arguments
        return sum((x for x in inputs[1:] if x.dtype == inputs[0].dtype), inputs[0] * 2)

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return ctx.answer(dy)


def gradients(inputs: Any, answer: Any) -> list[Any]:
    """Of Tensors of given values, stop_gradient and dtype, for a backward that returns `answer` of the cotangent."""
    tensors = [paddle.to_tensor(v, dtype=dtype, stop_gradient=stopped) for v, stopped, dtype in inputs]
    Sum.apply(*tensors, answer).sum().backward()
    return [None if x.grad is None else x.grad.tolist() for x in tensors]


# Observed rules 29 and 32; 2.6.2 and 3.3.1 give the same.
TAKEN_BY_RELEASES = [
    ([NEEDED, STOPPED], lambda dy: dy * 2, [[2.0, 2.0], None]),
    ([NEEDED, STOPPED, STOPPED], lambda dy: (dy * 2, None), [[2.0, 2.0], None, None]),
    ([NEEDED, NEEDED], lambda dy: (dy * 2, None), [[2.0, 2.0], None]),
    ([NEEDED, NEEDED], lambda dy: (None, dy), [None, [1.0, 1.0]]),
    ([NEEDED], lambda dy: None, [None]),
]
REFUSED_BY_ALL = [
    ([NEEDED, NEEDED], lambda dy: dy * 2, "should be 2, but received 1"),
    ([NEEDED, STOPPED, NEEDED], lambda dy: (dy * 2, dy), "should be 3, but received 2"),
    ([NEEDED, STOPPED], lambda dy: (), "should be 2, but received 0"),
    ([NEEDED, NEEDED], lambda dy: (dy, dy, None), "should be 2, but received 3"),
    ([NEEDED, STOPPED], lambda dy: (dy, dy), "should return None at 1 position"),
]


@pytest.mark.parametrize(("inputs", "answer", "found"), TAKEN_BY_RELEASES)
def test_what_releases_take_is_an_error_by_the_documents(inputs: Any, answer: Any, found: Any) -> None:
    with pytest.raises(ValueError, match=r"should be \d, but received|should not return empty"):
        gradients(inputs, answer)
    with as_releases():
        assert gradients(inputs, answer) == found


@pytest.mark.parametrize("reading", [nullcontext, as_releases])
@pytest.mark.parametrize(("inputs", "answer", "message"), REFUSED_BY_ALL)
def test_what_no_release_takes_is_refused_in_both_readings(
    inputs: Any, answer: Any, message: str, reading: Any
) -> None:
    with reading(), pytest.raises(ValueError, match=message):
        gradients(inputs, answer)


@pytest.mark.parametrize("reading", [nullcontext, as_releases])
@pytest.mark.parametrize("other", [WHOLE, TRUTH])
def test_integers_and_booleans_are_never_asked_for_a_gradient(other: Any, reading: Any) -> None:
    with reading():
        assert gradients([NEEDED, other], lambda dy: (dy * 2, None)) == [[2.0, 2.0], None]


def test_a_reading_holds_for_its_block_and_thread_alone() -> None:
    inputs, answer, _ = TAKEN_BY_RELEASES[0]
    raised: list[BaseException] = []

    def elsewhere() -> None:
        try:
            gradients(inputs, answer)
        except ValueError as error:
            raised.append(error)

    with as_releases():
        thread = Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert raised
    with pytest.raises(ValueError, match="should be 2"):
        gradients(inputs, answer)
