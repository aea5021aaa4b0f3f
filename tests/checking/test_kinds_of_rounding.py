"""More members of the kinds that rounding makes: low precision on the way, tails, cancellation, range, small shares."""

from __future__ import annotations

from math import erf
from typing import Any

import numpy as np
import pytest
from claims import (
    FAIL,
    GREEN,
    NOT_FAIL,
    NOT_GREEN,
    Claim,
    factor,
    in_both,
    in_numpy,
    in_paddle,
    judging,
    normal,
    right_ones,
    verdict_of,
)

import gradcheck
import pylayer.paddle as paddle

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
F: Any = paddle.nn.functional


# ------------------------------------------------------------------- a dtype coarser than the inputs' on the way
def attention(q: Any, k: Any, v: Any) -> Any:
    return F.softmax((q @ k.T / 3).astype("float32"), axis=-1).astype(q.dtype) @ v


def attention_vjp(rows: float) -> Any:
    def backward(q: Any, k: Any, v: Any, y: Any, g: Any) -> Any:
        p = F.softmax((q @ k.T / 3).astype("float32"), axis=-1).astype(q.dtype)
        dp = g @ v.T
        ds = p * (dp - rows * (dp * p).sum(-1, keepdim=True)) / 3
        return ds @ k, ds.T @ q, p.T @ g

    return backward


def linear_in(dtype: str) -> Any:
    return lambda x, w: (x.astype(dtype).astype("float32") @ w.astype(dtype).astype("float32")).astype(x.dtype)


def loss_vjp(share: float) -> Any:
    return lambda x, t, y, g: (g * 2 * (x - t) / 40, -share * g * 2 * (x - t) / 40)


def standardised(x: Any) -> Any:
    h = x.astype("float32")
    m, v = h.mean(0), h.var(0)
    return ((x - m) / np.sqrt(v + np.float32(1e-5))).astype(x.dtype)


def standardised_vjp(mean: float) -> Any:
    def backward(x: Any, y: Any, g: Any) -> Any:
        r = 1 / np.sqrt(x.var(0) + 1e-5)
        return r * (g - mean * g.mean(0) - y * (g * y).mean(0))

    return backward


LOW: list[Claim] = []
for dtype in ("float64", "float32"):
    LOW += [
        *in_paddle(f"{dtype} attention, softmax in float32", attention, attention_vjp(1), attention_vjp(0),
                   normal((6, 8), (6, 8), (6, 8), dtype=dtype), seeds=2),
        *in_paddle(f"{dtype} linear through bfloat16", linear_in("bfloat16"),
                   lambda x, w, y, g: (g @ w.T, x.T @ g), lambda x, w, y, g: (g @ w.T, -x.T @ g),
                   normal((6, 8), (8, 4), dtype=dtype), of_right=NOT_FAIL, of_wrong=NOT_GREEN),
        *in_numpy(f"{dtype} squared error in float32", lambda x, t: ((x - t).astype("float32") ** 2).mean(),
                  loss_vjp(1), loss_vjp(2), normal((40,), (40,), dtype=dtype), seeds=2),
        *in_numpy(f"{dtype} batch statistics in float32", standardised, standardised_vjp(1), standardised_vjp(0),
                  normal((32, 8), dtype=dtype), seeds=2),
        *in_numpy(f"{dtype} cumsum in float32", lambda x: np.cumsum(x.astype("float32"), 1),
                  lambda x, y, g: np.cumsum(g[:, ::-1], 1)[:, ::-1], lambda x, y, g: np.cumsum(g, 1),
                  normal((4, 12), dtype=dtype)),
    ]  # fmt: skip


# ------------------------------------------------------------------- float32 on the way, where no tape sees it
MIXING = np.random.default_rng(5).standard_normal((100, 8))


def in_float32(x: Any) -> Any:
    return x.astype("float32")


def softmax(s: Any) -> Any:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def numpy_attention_vjp(share: float) -> Any:
    def backward(q: Any, k: Any, v: Any, y: Any, g: Any) -> Any:
        p, dp = softmax(q @ k.T / 3), g @ v.T
        ds = share * p * (dp - (dp * p).sum(-1, keepdims=True)) / 3
        return ds @ k, ds.T @ q, p.T @ g

    return backward


def gate_vjp(share: float) -> Any:
    def backward(x: Any, w: Any, y: Any, g: Any) -> Any:
        gate = 1 / (1 + np.exp(-w))
        return g * gate, share * g * x * gate * (1 - gate)

    return backward


HIDDEN_CASTS = [
    *in_numpy("attention, softmax in float32", lambda q, k, v: softmax(in_float32(q @ k.T / 3)).astype(q.dtype) @ v,
              numpy_attention_vjp(1), [numpy_attention_vjp(0), numpy_attention_vjp(-1)],
              normal((5, 4), (5, 4), (5, 4)), seeds=3),
    *in_numpy("a gate in float32", lambda x, w: x * (1 / (1 + np.exp(-in_float32(w)))), gate_vjp(1),
              [gate_vjp(0), gate_vjp(2)], normal((4, 6), (4, 6)), seeds=3),
    *in_numpy("log(1 + x) in float32 at 1e-4", lambda x: np.log(1 + in_float32(x)), lambda x, y, g: g / (1 + x),
              [lambda x, y, g: 0 * g, lambda x, y, g: 2 * g], normal((6,), size=1e-4), of_right=NOT_FAIL,
              of_wrong=NOT_GREEN, seeds=3),
    *in_numpy("x − tanh x in float32 at 0.01", lambda x: in_float32(x) - np.tanh(in_float32(x)),
              lambda x, y, g: g * np.tanh(x) ** 2, [lambda x, y, g: 0 * g, lambda x, y, g: g],
              normal((6, 8), size=0.01), of_right=NOT_FAIL, of_wrong=NOT_GREEN),
]  # fmt: skip
DIGITS_LOST = in_numpy(
    "a rectifier with a backward in float32", lambda x: np.maximum(x, 0),
    lambda x, y, g: in_float32(g) * (in_float32(x) > 0), lambda x, y, g: in_float32(g) * (x > -1), normal((20,)),
    of_right=FAIL, seeds=3,
)  # fmt: skip


# ------------------------------------------------------------------- float32 throughout, where no tape sees it
def throughout(call: Any) -> Any:
    """A function that computes in float32 whatever it is given."""
    return lambda *arrays: np.asarray(call(*(in_float32(a) for a in arrays))).astype(arrays[-1].dtype)


def split_by_sign(x: Any, y: Any, g: Any) -> Any:
    """The backward of a running log-sum-exp by logarithms of the cotangent's positive and negative parts, as torch
    has it: what it rounds differs from size to size."""

    def part(u: Any) -> Any:
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(u, 0)) - y
        return np.exp(np.logaddexp.accumulate(logs[:, ::-1], 1)[:, ::-1] + x)

    return part(g) - part(-g)


def gelu_in(x: Any) -> Any:
    return x * (0.5 * (1 + np.vectorize(erf, otypes=[x.dtype])(x / np.sqrt(2).astype(x.dtype))))


def log_softmax(x: Any) -> Any:
    low = x - x.max(-1, keepdims=True)
    return low - np.log(np.exp(low).sum(-1, keepdims=True))


def float32_gelu_vjp(x: Any, y: Any, g: Any) -> Any:
    share = 0.5 * (1 + np.vectorize(erf, otypes=[x.dtype])(x / np.sqrt(2).astype(x.dtype)))
    return g * (share + x * np.exp(-x * x / 2) * np.float32(1 / np.sqrt(2 * np.pi)))


def zero_vjp(x: Any, y: Any, g: Any) -> Any:
    return 0 * g if g.shape == x.shape else 0 * x


def times(factor: float, right: Any) -> Any:
    return throughout(lambda x, y, g: np.float32(factor) * right(x, y, g))


THROUGHOUT = [
    claim
    for name, forward, backward, inputs in [
        ("a running log-sum-exp", lambda x: np.logaddexp.accumulate(x, 1), split_by_sign, normal((3, 7))),
        ("a running log-sum-exp, large", lambda x: np.logaddexp.accumulate(x, 1), split_by_sign,
         normal((3, 7), size=30)),
        ("a GELU and its tail", gelu_in, float32_gelu_vjp, normal((6, 8), size=30)),
        ("a log-softmax, large", log_softmax,
         lambda x, y, g: g - np.exp(y) * g.sum(-1, keepdims=True), normal((4, 10), size=30)),
        ("a large power of a product", lambda x: np.exp(x @ x.T), lambda x, y, g: (g * y + (g * y).T) @ x,
         normal((3, 12))),
    ]
    for claim in in_numpy(f"{name}, all in float32", throughout(forward), throughout(backward),
                          [times(2, backward), times(0, backward)], inputs, seeds=3)
]  # fmt: skip
THROUGHOUT += in_numpy(
    "a SiLU, all in float32", throughout(lambda x: x / (1 + np.exp(-x))),
    throughout(lambda x, y, g: g * (1 + x - y) / (1 + np.exp(-x))),
    [times(1.01, lambda x, y, g: g * (1 + x - y) / (1 + np.exp(-x)))], normal((4, 8)), seeds=8,
)  # fmt: skip
for size, dtype in ((0.01, "float64"), (0.01, "float32"), (0.001, "float32")):
    for name, forward, backward in (
        ("x − tanh x", lambda x: x - np.tanh(x), lambda x, y, g: g - g * (1 - np.tanh(x) ** 2)),
        ("x − sin x", lambda x: x - np.sin(x), lambda x, y, g: g - g * np.cos(x)),
    ):
        in_own = dtype == "float32"
        call, own = (forward, backward) if in_own else (throughout(forward), throughout(backward))
        THROUGHOUT += in_numpy(f"{name} at {size}, {dtype}", call, own, [times(2, backward), zero_vjp],
                               normal((6, 8), size=size, dtype=dtype), of_right=NOT_FAIL, of_wrong=NOT_GREEN,
                               seeds=3)  # fmt: skip

QUANTISED = [
    claim
    for unit in (2.0**-4, 2.0**-8, 2.0**-12)
    for claim in in_numpy(f"a product with multiples of {unit}",
                          lambda x, unit=unit: (np.round(x / unit) * unit) @ MIXING, zero_vjp,
                          lambda x, y, g: 2 * g @ MIXING.T, normal((2, 100)), seeds=2)
]  # fmt: skip


# ------------------------------------------------------------------- tails
def sigmoid(m: Any, x: Any) -> Any:
    return 1 / (1 + m.exp(-x))


def quick_gelu_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    s = sigmoid(m, 1.702 * x)
    return g * (s + 1.702 * x * s * sigmoid(m, -1.702 * x))


def normal_share(x: Any) -> Any:
    """The distribution function of the normal distribution: all that is left of it below −8.3 is rounding."""
    return 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def gelu_vjp(x: Any, y: Any, g: Any) -> Any:
    return g * (normal_share(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))


WIDE = normal((16, 32), size=3)
TAILS = [
    *in_both("quick gelu", lambda m, x: x * sigmoid(m, 1.702 * x), quick_gelu_vjp, factor(1.01, quick_gelu_vjp),
             normal((16, 32), size=5), seeds=2),
    *in_numpy("gelu of 30 randn", lambda x: x * normal_share(x), gelu_vjp, factor(1.01, gelu_vjp),
              normal((16, 32), size=30), seeds=4),
    *in_numpy("gelu of 30 randn, float32", lambda x: x * normal_share(x), gelu_vjp, factor(1.01, gelu_vjp),
              normal((16, 32), size=30, dtype="float32"), seeds=4),
    *in_both("log cosh", lambda m, x: m.log(m.cosh(x)), lambda m, x, y, g: g * m.tanh(x),
             lambda m, x, y, g: g * m.sign(x), WIDE, seeds=2),
    *in_both("the derivative of a sigmoid", lambda m, x: sigmoid(m, x) * (1 - sigmoid(m, x)),
             lambda m, x, y, g: g * y * (sigmoid(m, -x) - sigmoid(m, x)), lambda m, x, y, g: g * y * (1 - y),
             normal((16, 32), size=6), seeds=2),
    *in_both("tanh of a cube", lambda m, x: m.tanh(x * x * x), lambda m, x, y, g: g * 3 * x * x * (1 - y * y),
             lambda m, x, y, g: g * 3 * x * (1 - y * y), WIDE, seeds=2),
    *in_both("a bump", lambda m, x: m.exp(-x * x), lambda m, x, y, g: -2 * g * x * y, lambda m, x, y, g: -g * x * y,
             WIDE, seeds=2),
    *in_both("arctan of 1e4 randn", lambda m, x: m.atan(x), lambda m, x, y, g: g / (1 + x * x),
             lambda m, x, y, g: g / (1 + m.abs(x)), normal((100,), size=1e4), seeds=2),
]  # fmt: skip


# ------------------------------------------------------------------- cancellation
def sinc_vjp(m: Any, x: Any, y: Any, g: Any) -> Any:
    return g * (-x / 3 + x**3 / 30)


CANCELLATION = [
    *in_both("log(1 + x) at 1e-12", lambda m, x: m.log(1 + x), lambda m, x, y, g: g / (1 + x),
             lambda m, x, y, g: 1.5 * g, normal((4,), size=1e-12), seeds=2, of_wrong_numpy=NOT_GREEN),
    *in_both("a² − b² with a near b", lambda m, a, b: a * a - b * b, lambda m, a, b, y, g: (2 * a * g, -2 * b * g),
             lambda m, a, b, y, g: (2 * a * g, 2 * b * g), [[1e8 + 1, 3e7], [1e8, 3e7 + 2]]),
    *in_both("ad − bc, nearly singular", lambda m, a, d, b, c: a * d - b * c,
             lambda m, a, d, b, c, y, g: (g * d, g * a, -g * c, -g * b),
             lambda m, a, d, b, c, y, g: (g * d, g * a, -g * b, -g * c),
             [[1.0], [2.0 + 1e-12], [0.5], [4.0]]),
    *in_both("1/x − 1/(x + 1) at 1e6", lambda m, x: 1 / x - 1 / (x + 1),
             lambda m, x, y, g: -g * (2 * x + 1) / (x * x * (x + 1) ** 2), lambda m, x, y, g: -g / (x * x * (x + 1)),
             [[1e6, 3.3e5]]),
    *in_both("1e10 + x − 1e10", lambda m, x: 1e10 + x - 1e10, lambda m, x, y, g: 1.0 * g, lambda m, x, y, g: -g,
             normal((5,)), seeds=2),
    *in_both("sin(x)/x at 1e-3", lambda m, x: m.sin(x) / x, sinc_vjp, factor(2, sinc_vjp), [[1e-3, -2e-3]]),
    *in_both("tanh x − x at 1e-3", lambda m, x: m.tanh(x) - x, lambda m, x, y, g: -g * m.tanh(x) ** 2,
             lambda m, x, y, g: g * (1 - m.tanh(x) ** 2), [[1e-3, -2e-3, 0.4]]),
    *in_both("a difference of norms", lambda m, a, b: m.sqrt((a * a).sum()) - m.sqrt((b * b).sum()),
             lambda m, a, b, y, g: (g * a / m.sqrt((a * a).sum()), -g * b / m.sqrt((b * b).sum())),
             lambda m, a, b, y, g: (g * a / m.sqrt((a * a).sum()), g * b / m.sqrt((b * b).sum())),
             lambda seed: [x + k * 1e-9 for k in range(2) for x in normal((6,))(seed)]),
]  # fmt: skip

# ------------------------------------------------------------------- cancellation, amplified afterwards
AMPLIFIED = [
    *in_numpy("log|log(1 + x)|", lambda x: np.log(abs(np.log(1 + x))), lambda x, y, g: g / (1 + x) / np.log1p(x),
              [lambda x, y, g: 1.5 * g / x, lambda x, y, g: 0 * g], [[1.7e-12]], seeds=4),
    *in_numpy("log(1 − cos x)", lambda x: np.log(1 - np.cos(x)), lambda x, y, g: g / np.tan(x / 2),
              [lambda x, y, g: g / x, lambda x, y, g: 0 * g], [[1.3e-6]], seeds=4),
    *in_numpy("1/(√(1 + x) − 1)", lambda x: 1 / (np.sqrt(1 + x) - 1),
              lambda x, y, g: -g * (np.sqrt(1 + x) + 1) ** 2 / (2 * np.sqrt(1 + x) * x * x),
              [lambda x, y, g: -g / x / x], [[3.1e-12]], seeds=4),
    *in_numpy("log(eˣ − 1)", lambda x: np.log(np.exp(x) - 1), lambda x, y, g: g * np.exp(x) / np.expm1(x),
              [lambda x, y, g: -g / x], [[6.2e-13]], seeds=4),
    *in_numpy("the mean of log(1 − sigmoid(x))", lambda x: np.log(1 - sigmoid(np, x)).mean(),
              lambda x, y, g: -g * sigmoid(np, x) / x.size, lambda x, y, g: -1.05 * g * sigmoid(np, x) / x.size,
              lambda seed: [np.array([30.0 + seed, 0.5, -1.0])], seeds=7, of_right=NOT_FAIL),
    *in_numpy("log(1 − sigmoid(x))", lambda x: np.log(1 - sigmoid(np, x)), lambda x, y, g: -g * sigmoid(np, x),
              lambda x, y, g: -1.05 * g * sigmoid(np, x), lambda seed: [np.array([30.0 + seed, 0.5, -1.0])], seeds=7,
              of_right=NOT_FAIL),
]  # fmt: skip


# ------------------------------------------------------------------- range
RANGE = [
    *in_both("sigmoid at −700", sigmoid, lambda m, x, y, g: g * y, lambda m, x, y, g: 1.5 * g * y, [[-700.0, -650.0]]),
    *in_both("1/(1 + x²) at 1e100", lambda m, x: 1 / (1 + x * x), lambda m, x, y, g: -2 * g * (x * y) * y,
             lambda m, x, y, g: -g * y * y, [[1e100, -0.3]]),
    *in_both("cosh at 700", lambda m, x: m.cosh(x), lambda m, x, y, g: g * m.sinh(x), lambda m, x, y, g: -g * m.sinh(x),
             [[700.0, -705.0]]),
    *in_both("x³ at 1e-100", lambda m, x: x * x * x, lambda m, x, y, g: 3 * g * x * x, lambda m, x, y, g: 2 * g * x * x,
             [[1e-100, -3e-90]]),
    *in_both("√x at 1e300", lambda m, x: m.sqrt(x), lambda m, x, y, g: g / (2 * y), lambda m, x, y, g: g / y,
             [[1e300]]),
    *in_both("exp at 88, float32", lambda m, x: m.exp(x), lambda m, x, y, g: g * y, lambda m, x, y, g: -g * y,
             [np.array([88.0, 80.0, -87.0], "float32")]),
    *in_both("1e-310 · x", lambda m, x: 1e-310 * x, lambda m, x, y, g: 1e-310 * g, lambda m, x, y, g: -1e-310 * g,
             normal((4,)), of_wrong=NOT_GREEN),
]  # fmt: skip


# ------------------------------------------------------------------- small shares
def with_share(factor: float) -> Any:
    return lambda m, x, y, g: g * (1 + factor * 1e-8 * (1 - m.tanh(x) ** 2))


SHARES = [
    *in_both("x + 1e-8·tanh x", lambda m, x: x + 1e-8 * m.tanh(x), with_share(1), [with_share(0), with_share(-1)],
             normal((8,)), seeds=2),
    *in_both("an adapter of 1e-6", lambda m, x, w, a, b: x @ w + 1e-6 * (x @ a @ b),
             lambda m, x, w, a, b, y, g: (g @ (w + 1e-6 * (a @ b)).T, x.T @ g, 1e-6 * (x.T @ (g @ b.T)),
                                          1e-6 * ((x @ a).T @ g)),
             [lambda m, x, w, a, b, y, g: (g @ (w + 1e-6 * (a @ b)).T, x.T @ g, 2e-6 * (x.T @ (g @ b.T)),
                                           1e-6 * ((x @ a).T @ g)),
              lambda m, x, w, a, b, y, g: (g @ w.T, x.T @ g, 1e-6 * (x.T @ (g @ b.T)), 1e-6 * ((x @ a).T @ g))],
             normal((5, 6), (6, 4), (6, 2), (2, 4)), seeds=2),
    *in_both("a sum of exp at −20 and at 3", lambda m, x: m.exp(x).sum(), lambda m, x, y, g: g * m.exp(x),
             lambda m, x, y, g: g * m.exp(x) * (2 - m.tanh(x + 10)), [[-15.0, 3.0]], of_wrong_numpy=NOT_GREEN),
    *in_both("a product with 1e-10", lambda m, x, s: x * s, lambda m, x, s, y, g: (g * s, g * x),
             lambda m, x, s, y, g: (2 * g * s, g * x), lambda seed: [normal((4,))(seed)[0], np.full(4, 1e-10)]),
    *in_both("inputs of 1e-8 and of 1e8", lambda m, a, b: a * 1e8 + m.sin(b * 1e-8),
             lambda m, a, b, y, g: (1e8 * g, 1e-8 * g * m.cos(b * 1e-8)),
             lambda m, a, b, y, g: (1e8 * g, 1e-8 * g * m.sin(b * 1e-8)), [[1e-8, -3e-8], [1e8, 2e8]]),
]  # fmt: skip

KINDS = (LOW, HIDDEN_CASTS, DIGITS_LOST, THROUGHOUT, QUANTISED, TAILS, CANCELLATION, AMPLIFIED, RANGE, SHARES)


test_a_right_backward_is_green, test_a_wrong_backward_is_not = judging(*KINDS)


@right_ones(DIGITS_LOST)
def test_a_backward_that_loses_digits_is_green_where_that_is_let_pass(claim: Claim, backward: Any, seed: int) -> None:
    found = gradcheck.check(claim.make(claim.forward, backward), *claim.drawn(seed), seed=seed, precision="loose")
    assert found.verdict in GREEN
    assert "right, but 9 of 16 digits are lost in float64, with casts to float32" in found.marks


def test_an_output_coarser_than_its_input_is_judged_by_its_own_rounding() -> None:
    class Narrow(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return paddle.to_tensor(np.tanh(x.numpy()).astype("float32"))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensor()
            return g.astype(x.dtype) * (1 - paddle.tanh(x) ** 2)

    class Wrong(Narrow):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.astype("float64") * 0.5

    x = normal((20,))(0)[0]
    assert verdict_of(Narrow, x) in NOT_FAIL
    assert verdict_of(Wrong, x) in FAIL


def expanded(x: Any) -> Any:
    return x.expand([4, *x.shape]).clone()


SUMS_OF_COTANGENTS: dict[str, tuple[Any, Any]] = {
    "copies": (expanded, lambda g: g.sum(0)),
    "tiles": (lambda x: x.tile([4, 1]), lambda g: g.reshape([4, 2, 3]).sum(0)),
    "repeated rows": (lambda x: x[[0, 0, 0, 0, 1]], lambda g: paddle.stack([g[:4].sum(0), g[4]])),
}


@pytest.mark.parametrize("name", SUMS_OF_COTANGENTS)
def test_a_sum_of_cotangents_rounds_even_if_forward_only_moves_values(name: str) -> None:
    forward, backward = SUMS_OF_COTANGENTS[name]

    class Moves(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return forward(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return backward(g)

    class Off(Moves):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return backward(g) * (1 + 1e-4)

    for seed in range(40):
        x = np.ones((2, 3), "float32")
        assert verdict_of(Moves, x, seed=seed) in GREEN
        assert verdict_of(Off, x, seed=seed) in FAIL
