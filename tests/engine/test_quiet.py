"""No operation warns: what NumPy says of infinities and NaN concerns those who call NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import numpy as np
import pytest
from samples import SAMPLES

import pylayer.paddle as paddle
from pylayer.fast import run_alone
from pylayer.tape.op import Op
from pylayer.tape.vjp import OPS
from pylayer.tensor.tensor import Tensor

EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324]
ROWS = [(op, k) for op in OPS.values() for k in range(len(SAMPLES.get(op.name, [])))]


@contextmanager
def warnings_raised() -> Iterator[None]:
    """Every warning is an error; what an operation refuses, it may refuse."""
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        try:
            yield
        except (ValueError, TypeError, IndexError, OverflowError, np.linalg.LinAlgError) as error:
            if isinstance(error, Warning):
                raise


def as_inputs(value: Any, random: np.random.Generator) -> Any:
    """Floating arrays as leaves of values at the edges; other arrays as they are."""
    if isinstance(value, list) and any(isinstance(v, np.ndarray) for v in value):
        return [as_inputs(v, random) for v in value]
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind not in "fc":
        return Tensor(value)
    return Tensor(random.choice(EDGES, value.shape).astype(value.dtype), None, False)


@pytest.mark.parametrize(("op", "sample"), ROWS, ids=lambda v: v.name if isinstance(v, Op) else str(v))
def test_no_operation_warns(op: Op, sample: int) -> None:
    for seed in range(4):
        random = np.random.default_rng(seed)
        arguments = [as_inputs(v, random) for v in SAMPLES[op.name][sample]]
        leaves = [t for v in arguments for t in (v if isinstance(v, list) else [v]) if isinstance(t, Tensor)]
        leaves = [t for t in leaves if not t.stop_gradient]
        with warnings_raised():
            out = op.apply(*arguments)
            outs = [t for t in (out if isinstance(out, (list, tuple)) else [out]) if not t.stop_gradient]
            if outs:
                paddle.autograd.backward(outs, retain_graph=True)
                found = paddle.grad(outs, leaves, create_graph=True, allow_unused=True)
                again = [g for g in found if g is not None and not g.stop_gradient]
                paddle.grad(again, leaves, allow_unused=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: paddle.sqrt(x), lambda x: 1 / x, lambda x: x / 0.0, lambda x: x * 1e308 * 1e308, lambda x: x.log(),
        lambda x: x**-1.0, lambda x: x.std(), lambda x: (x / x).mean(), lambda x: paddle.nn.functional.softmax(x / x),
    ],
)  # fmt: skip
def test_no_call_warns_forward_or_backward(call: Any) -> None:
    x = paddle.to_tensor([0.0], dtype="float64", stop_gradient=False)
    with warnings_raised():
        call(x).sum().backward()


def test_no_thread_of_its_own_warns() -> None:
    found: list[BaseException] = []

    def run() -> None:
        try:
            paddle.log(paddle.zeros([1]))
        except BaseException as error:
            found.append(error)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        thread = Thread(target=run)
        thread.start()
        thread.join()
    assert found == []


@pytest.mark.parametrize("call", [lambda x: paddle.log(x), lambda x: x / x, lambda x: x / 0.0])
def test_where_the_shared_context_is_in_use_a_call_does_the_same(call: Any) -> None:
    x = paddle.to_tensor([0.0, 1.0], dtype="float64", stop_gradient=False)
    expected = call(x)
    with warnings_raised():
        found = run_alone(lambda: call(x))
        found.sum().backward()
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    assert not found.stop_gradient


def test_numpy_warns_its_own_callers_as_before() -> None:
    paddle.log(paddle.zeros([1]))
    with pytest.warns(RuntimeWarning):
        np.log(np.zeros(1))


@pytest.mark.parametrize(
    ("call", "values", "gradient"),
    [
        # log Σ exp of (345, −1200, 1500, 3000, 10): the later ones are the largest, or 0 beside the first
        (paddle.logcumsumexp, [345.0, -1200.0, 1500.0, 3000.0, 10.0], [2.0, 0.0, 1.0, 2.0, 0.0]),
        # exp(−|x|) I₁ ~ ±(1 − 3 / 8|x|) / √(2π|x|), which falls like −1/2 |x|^(−3/2) / √2π (A. and S., 9.7.1)
        (paddle.i1e, [1000.0, -3000.0], [-6.3007e-06, -1.21349e-06]),
        (paddle.i0e, [1000.0, -3000.0], [-6.3102e-06, 1.21409e-06]),
    ],
)
def test_gradients_far_out_do_not_overflow_on_the_way(call: Any, values: Any, gradient: Any) -> None:
    x = paddle.to_tensor(values, dtype="float64", stop_gradient=False)
    call(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), gradient, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_the_mean_of_nothing_is_nan(dtype: str) -> None:
    with warnings_raised():
        found = paddle.zeros([0, 3], dtype).mean(0)
    assert (found.shape, found.dtype.name) == ([3], dtype)
    assert np.isnan(found.astype("float64").numpy()).all()
