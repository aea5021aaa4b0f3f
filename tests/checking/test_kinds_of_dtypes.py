"""More members of the kinds that dtypes make: saturated outputs in float32, inputs of a coarser dtype than backward."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from claims import NOT_FAIL, NOT_GREEN, factor, in_numpy, in_paddle, judging, normal, verdict_of

import pylayer.paddle as paddle
from gradcheck.result import Status

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


# ------------------------------------------------------------------- saturated outputs
def signed(low: float, high: float, dtype: str) -> Any:
    def draw(seed: int) -> list[Any]:
        random = np.random.default_rng(seed)
        return [(random.uniform(low, high, 8) * random.choice([-1, 1], 8)).astype(dtype)]

    return draw


def tanh_vjp(x: Any, y: Any, g: Any) -> Any:
    return g / np.cosh(x) ** 2


def one_wrong(right: Any, by: float, rank: int) -> Any:
    """Wrong in the entry that is seen best (rank 0), or next best."""
    return lambda x, y, g: np.where(abs(x) == np.sort(abs(x))[rank], by, 1).astype(x.dtype) * right(x, y, g)


def flat_sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def flat_sigmoid_vjp(x: Any, y: Any, g: Any) -> Any:
    return g * np.exp(-abs(x)) / (1 + np.exp(-abs(x))) ** 2


SATURATED = [
    *in_numpy("tanh of 5 to 12 in float32", np.tanh, lambda x, y, g: g * (1 - y * y), factor(0.5, tanh_vjp),
              signed(5, 12, "float32"), seeds=6),
    *in_paddle("tanh of 5 to 12 in float32", paddle.tanh, lambda x, y, g: g * (1 - y * y),
               lambda x, y, g: g * (1 - y), signed(5, 12, "float32"), seeds=6),
    *in_numpy("sigmoid of 15 to 36", flat_sigmoid, flat_sigmoid_vjp,
              [one_wrong(flat_sigmoid_vjp, by, rank) for by, rank in ((2, 0), (1.5, 0), (2, 1))],
              lambda seed: [np.random.default_rng(seed).uniform(15, 36, 6)], of_wrong=NOT_GREEN, seeds=12),
]  # fmt: skip


# ------------------------------------------------------------------- inputs of a coarse dtype
def in_double(x: Any) -> Any:
    return np.sin(x.astype("float64"))


def cosine(by: float, dtype: str) -> Any:
    return lambda x, y, g: (np.dtype(dtype).type(by) * g.astype(dtype) * np.cos(x.astype(dtype))).astype(x.dtype)


COARSE_INPUTS = [
    claim
    for given in ("float32", "float16", "bfloat16")
    for computed in ("float64", "float32")
    for claim in in_numpy(f"sin of {given}, backward in {computed}", in_double, cosine(1, computed),
                          [cosine(1.05, computed), cosine(1.2, computed)], normal((3, 4), dtype=given), seeds=3)
]  # fmt: skip


# ------------------------------------------------------------------- float16 and bfloat16 on the way
def to(dtype: str) -> Any:
    return lambda x: np.asarray(x).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def sums_vjp(x: Any, y: Any, g: Any) -> Any:
    return g[:, None] + 0 * x


ON_THE_WAY = [
    claim
    for low, cast in (("float16", to("float16")), ("bfloat16", to("bfloat16")))
    for claim in (
        *in_numpy(f"tanh in {low}", lambda x, low=cast: np.tanh(low(x)), tanh_vjp,
                  [factor(2, tanh_vjp), factor(-1, tanh_vjp)], normal((4, 5)),
                  of_right=NOT_FAIL, of_wrong=NOT_GREEN, seeds=3),
        *in_numpy(f"tanh, rounded to {low}", lambda x, low=cast: low(np.tanh(x)), tanh_vjp,
                  [factor(2, tanh_vjp), factor(-1, tanh_vjp)], normal((4, 5)), of_right=NOT_FAIL, of_wrong=NOT_GREEN,
                  seeds=3),
        *in_numpy(f"sums in {low}", lambda x, low=cast: low(x).sum(-1), sums_vjp, [factor(2, sums_vjp)],
                  normal((4, 5)), of_right=NOT_FAIL, of_wrong=NOT_GREEN, seeds=3),
    )
]  # fmt: skip
STEPS_OF_2 = [
    claim
    for bits in (4, 8, 11)
    for claim in in_numpy(
        f"a quantiser of {bits} bits, its steps a power of two", lambda x, n=2**bits: np.round(n * x) / n,
        lambda x, y, g: 0 * g, lambda x, y, g: g, lambda seed: [np.random.default_rng(seed).uniform(0, 1, 20)], seeds=3,
    )
]  # fmt: skip

test_a_right_backward_is_green, test_a_wrong_backward_is_not = judging(SATURATED, COARSE_INPUTS, ON_THE_WAY, STEPS_OF_2)


# ------------------------------------------------------------------- outputs of a coarser dtype than the inputs
def row_by_row(x: Any, dtype: str) -> Any:
    return np.array([math.exp(float(row.sum())) for row in x], dtype)


def filled_in(x: Any, dtype: str) -> Any:
    return np.fromiter((math.exp(float(sum(row))) for row in x.tolist()), dtype)


def added_up(x: Any, dtype: str) -> Any:
    return np.dtype(dtype).type(math.exp(sum(x.reshape(-1).tolist())))


@pytest.mark.parametrize("forward", [row_by_row, filled_in, added_up])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("given", ["float64", "float32"])
def test_outputs_of_a_dtype_that_nothing_sees_the_cast_to_are_judged_by_that_dtype(
    forward: Any, dtype: str, given: str
) -> None:
    x = np.random.default_rng(0).normal(size=(3, 2)).astype(given)

    def verdict(factor: float) -> Status:
        def backward(x: Any, g: Any) -> Any:
            return np.dtype(g.dtype).type(factor) * (g * forward(x, dtype)).reshape(-1, 1) + 0 * x

        return verdict_of(lambda x: forward(x, dtype), x, backward=backward)

    assert verdict(1) in (Status.PASS, Status.INCONCLUSIVE)[: 1 + (dtype == "float16")]
    assert verdict(-2) in (Status.FAIL, Status.INCONCLUSIVE)[: 1 + (dtype == "float16")]
