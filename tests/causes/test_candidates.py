"""A cause is in its author's words: functions as a whole, operands as they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from taped import layer

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Diagnosis, Status

RANDOM = np.random.default_rng(0)
X, W, V = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(3, 5)), RANDOM.normal(size=(4, 5))


def causes(forward: Callable[..., Any], backward: Callable[..., Any], *inputs: Any) -> list[Diagnosis]:
    result = gradcheck.check(forward, *inputs, backward=backward)
    assert result.verdict is Status.FAIL
    return list(result.diagnosis)


# ------------------------------------------------------------------ functions of several operations
def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def softplus(z: Any) -> Any:
    return np.log1p(np.exp(z))


def silu(z: Any) -> Any:
    return z * (1 / (1 + np.exp(-z)))


def softsign(z: Any) -> Any:
    return z / (1 + np.abs(z))


@pytest.mark.parametrize(
    ("function", "slope", "says"),
    [
        (
            sigmoid,
            lambda z, p: 1,
            "passes the gradient through `1 / (1 + np.exp(-z))` without its derivative",
        ),
        (sigmoid, lambda z, p: p, "takes y for the derivative of y = `1 / (1 + np.exp(-z))`"),
        (
            sigmoid,
            lambda z, p: 1 - p,
            "takes 1 − y for the derivative of y = `1 / (1 + np.exp(-z))`",
        ),
        (
            sigmoid,
            lambda z, p: 1 - p * p,
            "takes 1 − y² for the derivative of y = `1 / (1 + np.exp(-z))`",
        ),
        (
            softplus,
            lambda z, p: 1,
            "passes the gradient through `np.log1p(np.exp(z))` without its derivative",
        ),
        (softplus, lambda z, p: p, "takes y for the derivative of y = `np.log1p(np.exp(z))`"),
        (
            silu,
            lambda z, p: 1,
            "passes the gradient through `z * (1 / (1 + np.exp(-z)))` without its derivative",
        ),
        (
            softsign,
            lambda z, p: 1,
            "passes the gradient through `z / (1 + np.abs(z))` without its derivative",
        ),
        (
            softsign,
            lambda z, p: 1 - p,
            "takes 1 − y for the derivative of y = `z / (1 + np.abs(z))`",
        ),
    ],
)
def test_a_wrong_derivative_of_a_function_is_told_of_the_function_as_a_whole(
    function: Any, slope: Any, says: str
) -> None:
    def backward(x: Any, w: Any, v: Any, g: Any) -> Any:
        z = x @ w
        p = function(z)
        dz = g * v * slope(z, p)
        return dz @ w.T, x.T @ dz, g * p

    (cause,) = causes(lambda x, w, v: function(x @ w) * v, backward, X, W, V)
    assert says in cause.text


def test_a_mistake_inside_of_a_function_is_told_of_what_it_is_made_in() -> None:
    def forward(x: Any, w: Any, v: Any) -> Any:
        return np.sqrt(1 + np.exp(-3 * (x @ w))) * v

    def backward(x: Any, w: Any, v: Any, g: Any) -> Any:  # the 3 is forgotten
        e = np.exp(-3 * (x @ w))
        dz = -g * v * e / (2 * np.sqrt(1 + e))
        return dz @ w.T, x.T @ dz, g * np.sqrt(1 + e)

    (cause,) = causes(forward, backward, X, W, V)
    assert cause.text == "backward multiplies by −1 in place of -3"


def softmax(z: Any) -> Any:
    return paddle.nn.functional.softmax(z, axis=-1)


@pytest.mark.parametrize(
    ("forward", "backward", "says"),
    [
        (lambda z: (1 - z) ** 2.5, lambda z, g: -2.5 * g * (1 - z) ** 2.5,
         "leaves the exponent as it is in the deriv"),
        (softmax, lambda z, g: softmax(z) * (g - (g * softmax(z)).sum()),
         "sums over all axes in place of axis 1"),
        (softmax, lambda z, g: softmax(z) * (g + (g * softmax(z)).sum(-1, keepdim=True)),
         "adds the row sum of y g in"),
        (lambda z: (z[:, 0] * z[:, 1]).mean() * 3.0,
         lambda z, g: 3 * g * paddle.concat([z[:, 1:2], z[:, :1], 0 * z[:, 2:]], 1),
         "takes 4 times the gradient that flows through `(z[:, 0] * z[:, 1]).mean()`"),
    ],
    ids=["power", "softmax over all", "softmax with another sign", "mean of four"],
)  # fmt: skip
def test_a_rule_that_is_wrong_is_told_by_what_is_wrong_in_it(forward: Any, backward: Any, says: str) -> None:
    result = gradcheck.check(layer(forward, backward), abs(X) / 4)
    assert [says in cause.text for cause in result.diagnosis] == [True], result


@pytest.mark.parametrize(("forward", "slope"), [
    (lambda k: 2 * np.log(np.diag(np.linalg.cholesky(k))).sum(), lambda k, g: g * np.linalg.inv(k)),
    (lambda k: np.linalg.eigvalsh(k, UPLO="U"),
     lambda k, g: (np.linalg.eigh(k)[1] * g) @ np.linalg.eigh(k)[1].T),
])  # fmt: skip
def test_the_gradient_of_a_symmetric_matrix_is_told_where_one_triangle_is_read(forward: Any, slope: Any) -> None:
    k = W @ W.T + 3 * np.eye(3)
    (cause,) = causes(forward, slope, k)
    assert cause.text.endswith("the gradient of a symmetric matrix, although only one triangle is read")
    assert gradcheck.check(lambda k: forward((k + k.T) / 2), k, backward=lambda k, g: slope((k + k.T) / 2, g))


def test_a_factor_that_a_loop_forgets_is_named() -> None:
    def forward(x: Any, w: Any, v: Any) -> Any:
        total = 0.0
        for k in range(4):
            s = (x[k] @ w) * 0.5
            total = total + np.exp(s) * v[k]
        return total

    def backward(x: Any, w: Any, v: Any, g: Any) -> Any:
        gx, gw, gv = np.zeros_like(x), np.zeros_like(w), np.zeros_like(v)
        for k in range(4):
            e = np.exp((x[k] @ w) * 0.5)
            gv[k] = g * e
            gx[k] = w @ (g * e * v[k])
            gw += np.outer(x[k], g * e * v[k])
        return gx, gw, gv

    (cause,) = causes(forward, backward, X, W, V)
    assert cause.text == "backward forgets to multiply by 0.5, each time"


def test_which_call_of_a_function_a_mistake_is_about_is_said() -> None:
    def forward(x: Any, w: Any) -> Any:
        a = sigmoid(x @ w)
        b = sigmoid(2 * x @ w)
        return a * b

    def backward(x: Any, w: Any, g: Any) -> Any:
        a, b = sigmoid(x @ w), sigmoid(2 * x @ w)
        d = g * (b * a * (1 - a) + 2 * a * b)
        return d @ w.T, x.T @ d

    (cause,) = causes(forward, backward, X, W)
    first = forward.__code__.co_firstlineno
    assert f"in the call at {Path(__file__).name}:{first + 2}" in cause.detail


# ------------------------------------------------------------------- operands
MASK = np.arange(5) > 1
COUNTS = np.array([1, 2, 3, 4, 5])


def masked(x: Any, m: Any) -> Any:
    return np.tanh(x) * m


def divided(x: Any, n: Any) -> Any:
    return np.tanh(x) / n[::-1]


@pytest.mark.parametrize(
    ("forward", "constant", "says"),
    [
        (masked, MASK, "forgets to multiply by m"),
        (divided, COUNTS, "forgets to divide by `n[::-1]`"),
    ],
)
def test_a_constant_goes_by_what_is_written(forward: Any, constant: Any, says: str) -> None:
    (cause,) = causes(forward, lambda x, n, g: (g * (1 - np.tanh(x) ** 2), None), V, constant)
    assert cause.text == f"backward {says}"


def test_what_is_computed_of_an_operand_does_not_go_by_its_name() -> None:
    def backward(a: Any, b: Any, g: Any) -> Any:  # a for its transpose
        found = np.linalg.solve(a, g)
        return -np.linalg.solve(a.T, g) @ np.linalg.solve(a, b).T, found

    a = RANDOM.normal(size=(3, 3)) + 3 * np.eye(3)
    (cause,) = causes(np.linalg.solve, backward, a, RANDOM.normal(size=(3, 2)))
    assert " a @ dy" not in cause.text
    assert cause.inputs == ("b",)


# ------------------------------------------------------------------- coincidences
def scaled(x: Any, t: Any) -> Any:
    return t * np.exp(x / t)


def product_of_logs(x: Any, t: Any) -> Any:
    return np.log(t) * (1 + x * x / t)


@pytest.mark.parametrize(
    ("forward", "slopes"),
    [
        (scaled, lambda x, t: (np.exp(x / t), np.exp(x / t) + x / t * np.exp(x / t))),
        (
            product_of_logs,
            lambda x, t: (np.log(t) * 2 * x / t, (1 + x * x / t) / t + np.log(t) * x * x / t**2),
        ),
    ],
)
def test_a_share_of_the_wrong_sign_is_no_rule_that_reads_another_value(forward: Any, slopes: Any) -> None:
    def backward(x: Any, t: Any, g: Any) -> Any:
        first, second = slopes(x, t)
        return g * first, (g * second).sum()

    found = causes(forward, backward, RANDOM.normal(size=6), np.array(1.5))
    assert found
    for cause in found:
        assert "wrong sign" in cause.text, cause.text


def hinge(s: Any, right: Any) -> Any:
    return np.maximum(0, 1 + s - right)


def upper(s: Any, right: Any) -> Any:
    return np.minimum(0.5, s - right)


@pytest.mark.parametrize(
    ("forward", "inside"),
    [(hinge, lambda s, r: s > r), (upper, lambda s, r: s - r < 1)],
    ids=["maximum", "minimum"],
)
def test_a_bound_is_no_factor_that_is_left_out(forward: Any, inside: Any) -> None:
    def backward(s: Any, right: Any, g: Any) -> Any:
        d = g * inside(s, right)
        return d, -d.sum(1, keepdims=True)

    for cause in causes(forward, backward, RANDOM.normal(size=(6, 5)), 0.3 * RANDOM.normal(size=(6, 1))):
        assert "out in the rule" not in cause.text


def corners(f: Any) -> Any:
    out = np.zeros(len(f))
    for n in range(len(f)):
        for bits in ((0, 0), (1, 0), (0, 1), (1, 1)):
            out[n] += np.prod(np.where(bits, f[n], 1 - f[n])) ** 2
    return out


def test_a_run_that_has_no_share_is_no_exception() -> None:
    def backward(f: Any, g: Any) -> Any:  # of 1 − f the sign is forgotten; in the last run none of it is read
        slope = 0 * f
        for bits in ((0, 0), (1, 0), (0, 1), (1, 1)):
            w = np.where(bits, f, 1 - f)
            slope += 2 * w.prod(axis=1, keepdims=True) * w[:, ::-1]
        return g[:, None] * slope

    (cause,) = causes(corners, backward, np.random.default_rng(1).uniform(0.1, 0.9, (5, 2)))
    assert "with the wrong sign, each time" in cause.text


def between(p: Any, q: Any) -> Any:
    w = np.arccos(p @ q)
    return (np.sin(0.7 * w) * p + np.sin(0.3 * w) * q) / np.sin(w)


def test_what_one_number_on_the_way_is_multiplied_by_is_not_told() -> None:
    def backward(p: Any, q: Any, g: Any) -> Any:  # of the quotient's first part the second share is forgotten
        w = np.arccos(p @ q)
        s, a, b = np.sin(w), np.sin(0.7 * w) / np.sin(w), np.sin(0.3 * w) / np.sin(w)
        dw = (g @ p) * 0.7 * np.cos(0.7 * w) / s + (g @ q) * (0.3 * np.cos(0.3 * w) - b * np.cos(w)) / s
        dc = -dw / np.sqrt(1 - (p @ q) ** 2)
        return a * g + dc * q, b * g + dc * p

    p, q = np.array([0.3, -0.5, 0.2, 0.1]), np.array([0.4, 0.1, 0.6, 0.5])
    (cause,) = causes(between, backward, p, q)
    assert "computes `np.sin(0.3 * w) * q` in place of `np.sin(0.7 * w) * p" in cause.text  # as it does


def mean_of_logs(x: Any) -> Any:
    z = x - x.max(1, keepdims=True)
    logs = z - np.log(np.exp(z).sum(1, keepdims=True))
    return (logs * MASK).sum() / 1.3


def test_all_lines_that_a_factor_fits_are_told() -> None:
    def backward(x: Any, g: Any) -> Any:
        p = np.exp(x - x.max(1, keepdims=True))
        return g * (MASK - MASK.sum() * p / p.sum(1, keepdims=True)) / 1.9

    (cause,) = causes(mean_of_logs, backward, V)
    first = mean_of_logs.__code__.co_firstlineno
    assert f"{first + 3}" in cause.detail


def test_the_call_of_the_check_is_no_line_of_a_cause() -> None:
    def negated(x: Any) -> Any:
        return np.tanh(x)

    (cause,) = causes(negated, lambda x, g: g * (np.tanh(x) ** 2 - 1), V)
    assert cause.source_line.strip() == "return np.tanh(x)"
    assert "the same as" not in cause.detail


@pytest.mark.parametrize(
    ("forward", "slope"),
    [
        (lambda x: np.exp(1j * x), lambda x: 1j * np.exp(1j * x)),
        (lambda x: (x + 2j) ** 3, lambda x: 3 * (x + 2j) ** 2),
    ],
)
def test_a_conjugate_that_is_forgotten_is_no_other_derivative(forward: Any, slope: Any) -> None:
    for cause in causes(forward, lambda x, g: np.real(slope(x) * g), X[0]):
        assert cause.code != "GC119"
