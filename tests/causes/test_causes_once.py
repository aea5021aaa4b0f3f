"""One mistake at several places is one cause: in equal computations, loops, whole gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from few import seeds
from taped import drawn, layer, problem_of, rounding_of
from test_causes import causes, random

import gradcheck
import pylayer.paddle as paddle
from gradcheck.backends.recording import Step
from gradcheck.causes.words import explained_by_tape
from gradcheck.checking.point import Point
from gradcheck.result import Status

F = paddle.nn.functional


# --------------------------------------------------------------------------- equal computations
def twice(a: Any, n: Any) -> Any:
    return ((a - n) * (a - n)).sum(-1)


def on_two_lines(a: Any, n: Any) -> Any:
    first = a - n
    again = a - n
    return (first * again).sum(-1)


def of_the_same_value(a: Any, n: Any) -> Any:
    z = a * 0.5 - n
    return (paddle.exp(z) * paddle.exp(z)).sum(-1)


def of_differences(factor: float) -> Callable[..., Any]:
    return lambda a, n, g: (2 * g[:, None] * (a - n), -2 * factor * g[:, None] * (a - n))


@pytest.mark.parametrize("forward", [twice, on_two_lines])
@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (-1.0, "takes the gradient"),
        (0.95, "takes 19/20 times"),
        (2.0, "takes 2 times"),
        (0.5, "takes 1/2 times"),
    ],
)
def test_a_mistake_in_all_equal_computations_is_one(forward: Callable[..., Any], factor: float, words: str) -> None:
    (found,) = causes(forward, of_differences(factor), random(3, 4), random(3, 4, seed=1))
    assert (found.code, found.inputs) == ("GC118", ("x1",))
    assert found.text.startswith(f"backward {words}")
    assert "through x1 in `a - n`" in found.text or "through x1 in first" in found.text
    assert "a - n" in found.source_line


def test_a_wrong_rule_in_all_equal_computations_is_one() -> None:
    def backward(a: Any, n: Any, g: Any) -> Any:
        z = a * 0.5 - n
        d = 2 * g[:, None] * paddle.exp(z)  # exp's own factor is forgotten both times
        return 0.5 * d, -d

    (found,) = causes(of_the_same_value, backward, random(3, 4), random(3, 4, seed=1))
    assert found.code == "GC119"
    assert found.text == "backward passes the gradient through `paddle.exp(z)` without its derivative"


def test_a_mistake_in_one_of_two_that_differ_is_of_that_one() -> None:
    def forward(a: Any, n: Any) -> Any:
        return paddle.tanh(a - n) * (a - n)

    def backward(a: Any, n: Any, g: Any) -> Any:
        d, t = a - n, paddle.tanh(a - n)
        return g * (t + d * (1 - t * t)), -g * t

    (found,) = causes(forward, backward, random(3, 4), random(3, 4, seed=1))
    assert (found.code, found.inputs) == ("GC117", ("x1",))


# --------------------------------------------------------------------------- one of several outputs
def cell(z: Any, c: Any) -> Any:
    new = paddle.tanh(z) * c
    return paddle.sin(new) * z, new


def cell_backward(factor: float, of: int) -> Callable[..., Any]:
    def backward(z: Any, c: Any, g: Any, h: Any) -> Any:
        g, h = (g * factor, h) if of == 0 else (g, h * factor)
        t = paddle.tanh(z)
        d = h + g * z * paddle.cos(t * c)
        return g * paddle.sin(t * c) + d * c * (1 - t * t), d * t

    return backward


def moments(x: Any) -> Any:
    m = x.mean(0)
    v = ((x - m) * (x - m)).mean(0)
    return (x - m) * paddle.rsqrt(v + 0.1), m, v


def moments_backward(factor: float, of: int) -> Callable[..., Any]:
    def backward(x: Any, *given: Any) -> Any:
        g, a, b = (u * factor if k == of else u for k, u in enumerate(given))
        d, n = x - x.mean(0), x.shape[0]
        s = paddle.rsqrt((d * d).mean(0) + 0.1)
        y = d * s
        return s * (g - g.mean(0) - y * (g * y).mean(0)) + a / n + 2 * b * d / n

    return backward


@pytest.mark.parametrize(
    ("forward", "backward", "arrays", "of"),
    [
        (cell, cell_backward, [random(3, 4), random(3, 4, seed=1)], 1),
        (moments, moments_backward, [random(5, 3)], 1),
        (moments, moments_backward, [random(5, 3)], 2),
    ],
)
@pytest.mark.parametrize(
    ("factor", "code", "words"),
    [
        (0.0, "GC117", "does not use the incoming gradient of out[{}]"),
        (-1.0, "GC118", "takes the incoming gradient of out[{}] with the wrong sign"),
        (2.0, "GC118", "takes 2 times the incoming gradient of out[{}]"),
    ],
)
def test_an_incoming_gradient_that_is_not_used_is_said_as_such(
    forward: Any,
    backward: Any,
    arrays: list[np.ndarray],
    of: int,
    factor: float,
    code: str,
    words: str,
) -> None:
    (found,) = causes(forward, backward(factor, of), *arrays)
    assert (found.code, found.text) == (code, f"backward {words.format(of)}")
    assert found.line


# --------------------------------------------------------------------------- a whole gradient
def triplet(a: Any, p: Any, n: Any) -> Any:
    near = paddle.sqrt(((a - p) * (a - p)).sum(-1) + 1e-12)
    far = paddle.sqrt(((a - n) * (a - n)).sum(-1) + 1e-12)
    return paddle.maximum(near - far + 0.5, near * 0).mean()


def triplet_backward(a: Any, p: Any, n: Any, g: Any) -> Any:
    near = paddle.sqrt(((a - p) * (a - p)).sum(-1) + 1e-12)
    far = paddle.sqrt(((a - n) * (a - n)).sum(-1) + 1e-12)
    w = g * (near - far + 0.5 > 0).astype(a.dtype) / a.shape[0]
    u, v = (w / near)[:, None] * (a - p), (w / far)[:, None] * (a - n)
    return 2 * (u - v), -u, v


@seeds(6)
def test_a_factor_of_one_gradient_needs_no_two_mistakes(seed: int) -> None:
    a, p, n = (random(5, 3, seed=10 * seed + k) for k in range(3))
    result = gradcheck.check(layer(triplet, triplet_backward), a, p, n)
    assert result.verdict is Status.FAIL
    (found,) = result.diagnosis
    assert (found.code, found.text) == ("GC101", "x0: numeric = 1/2 · analytic, for all entries")


# --------------------------------------------------------------------------- a loop
WALKS = 60
"""About as many as the check of a wrong recurrent layer leaves to the search."""


def recurrent(x: Any, w: Any) -> Any:
    h = x[0] * 0
    for t in range(x.shape[0]):
        h = paddle.tanh(paddle.matmul(h[None], w)[0] + x[t])
    return h


def recurrent_backward(rule: Callable[[Any], Any], cut: int = 0) -> Callable[..., Any]:
    def backward(x: Any, w: Any, g: Any) -> Any:
        states = [x[0] * 0]
        for t in range(x.shape[0]):
            states.append(paddle.tanh(paddle.matmul(states[-1][None], w)[0] + x[t]))
        rows, gw = [], 0 * w
        for t in range(x.shape[0] - 1, -1, -1):
            d = g * rule(states[t + 1]) * float(t >= cut)
            rows.append(d)
            gw = gw + paddle.matmul(states[t][:, None], d[None])
            g = paddle.matmul(d[None], w, transpose_y=True)[0]
        return paddle.stack(rows[::-1]), gw

    return backward


@pytest.mark.parametrize(
    ("backward", "code", "words"),
    [
        (recurrent_backward(lambda y: 1 - y), "GC119", "takes 1 − y for"),
        pytest.param(
            recurrent_backward(lambda y: y**0),
            "GC119",
            "passes the gradient",
            marks=pytest.mark.long,
        ),
        (
            recurrent_backward(lambda y: 1 - y * y, cut=95),
            "GC117",
            "ignores how the output depends",
        ),
        (recurrent_backward(lambda y: 1 - 0.95 * y * y), "", ""),
    ],
    ids=["wrong rule", "unchanged", "truncated", "not among the candidates"],
)
def test_a_long_loop_is_searched_within_the_budget(
    backward: Callable[..., Any], code: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = Point(problem_of(layer(recurrent, backward), 0.5 * random(100, 4), 0.5 * random(4, 4)))
    draws = drawn(point, 3)
    claims, rounding = [(u, point.vjp(u)) for u in draws], rounding_of(point, draws[0])
    assert point.tape is not None
    work, pull, pull_with_values = [], Step.pull, Step.pull_with_values
    monkeypatch.setattr(Step, "pull", lambda *given: work.append(1) or pull(*given))
    monkeypatch.setattr(Step, "pull_with_values", lambda *given: work.append(1) or pull_with_values(*given))
    found, _ = explained_by_tape(point, claims, rounding, WALKS)
    assert len(work) < 2 * WALKS * len(point.tape.recording.steps)
    assert [(d.code, words in d.text, "h = paddle.tanh" in d.source_line) for d in found] == (
        [(code, True, True)] if code else []
    )


# --------------------------------------------------------------------------- what it costs
def gates(x: Any, w: Any) -> Any:
    i, f, o, u = paddle.split(paddle.matmul(x, w), 4, -1)
    c = F.sigmoid(f) * x + F.sigmoid(i) * paddle.tanh(u)
    return F.sigmoid(o) * paddle.tanh(c)


def gates_backward(k: float) -> Callable[..., Any]:
    def backward(x: Any, w: Any, g: Any) -> Any:
        i, f, o, u = paddle.split(paddle.matmul(x, w), 4, -1)
        i, f, o, u = F.sigmoid(i), F.sigmoid(f), F.sigmoid(o), paddle.tanh(u)
        t = paddle.tanh(f * x + i * u)
        d = g * o * (1 - k * t * t)
        z = paddle.concat([d * u * i * (1 - i), d * x * f * (1 - f), g * t * o * (1 - o), d * i * (1 - u * u)], -1)
        return d * f + paddle.matmul(z, w, transpose_y=True), paddle.matmul(x, z, transpose_x=True)

    return backward


@pytest.mark.parametrize(
    ("forward", "backward", "arrays"),
    [
        (gates, gates_backward, [random(4, 6), random(6, 24)]),
        (gates, gates_backward, [random(2, 3), random(3, 12)]),
        (
            recurrent,
            lambda k: recurrent_backward(lambda y: 1 - k * y * y),
            [0.5 * random(30, 4), 0.5 * random(4, 4)],
        ),
    ],
    ids=["24 outputs", "6 outputs", "a loop"],
)
def test_a_failing_check_runs_forward_at_most_twenty_times_as_often(
    forward: Any, backward: Any, arrays: list[np.ndarray]
) -> None:
    def runs(k: float) -> tuple[Status, int]:
        count = []

        def counted(*given: Any) -> Any:
            count.append(1)
            return forward(*given)

        return gradcheck.check(layer(counted, backward(k)), *arrays).verdict, len(count)

    (passes, once), (fails, often) = runs(1.0), runs(0.9)
    assert (passes, fails) == (Status.PASS, Status.FAIL)
    assert often <= 20 * once


def test_all_wrong_entries_of_a_small_jacobian_are_listed_though_its_rows_differ_in_size() -> None:
    sizes, w = paddle.to_tensor(10.0 ** np.linspace(-9, 9, 6)), paddle.to_tensor(random(6, 6))
    wrong = layer(
        lambda x: paddle.matmul(x, w) * sizes,
        lambda x, g: 1.001 * paddle.matmul(g * sizes, w, transpose_y=True),
    )
    found = gradcheck.check(wrong, random(1, 6), effort="full").wrong
    assert {(e.index, e.output_index) for e in found} == {((0, i), (0, j)) for i in range(6) for j in range(6)}


def test_a_row_that_cancels_is_not_listed_for_its_rounding() -> None:
    def limited(x: Any, s: Any) -> Any:
        return paddle.clip(x / s, -4.0, 3.0) * s

    def backward(x: Any, s: Any, g: Any) -> Any:  # 3 below as above
        q = x / s
        return g * ((q > -4) & (q < 3)).astype(g.dtype), (3 * g * ((q < -4) | (q > 3)).astype(g.dtype)).sum().reshape(
            [1]
        )

    result = gradcheck.check(layer(limited, backward), 3 * random(4, 6), np.array([0.8]))
    assert result.wrong
    assert {(e.analytic, round(e.numeric)) for e in result.wrong} == {(3.0, -4)}


def test_the_entries_of_a_backward_that_is_explained_take_no_more_of_it() -> None:
    asked = []

    def forward(x: Any, w: Any) -> Any:
        c = x - x.mean(-1, keepdims=True)
        return c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * w

    def backward(x: Any, w: Any, g: Any) -> Any:  # as if the mean were a constant
        asked.append(g)
        c = x - x.mean(-1, keepdims=True)
        s = np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5)
        d = g * w
        return (d - c / s * (d * c / s).mean(-1, keepdims=True)) / s, (g * c / s).sum(0)

    x, w = random(4, 8), random(8)
    # A function without a source is not edited in the search for a fix, which would run it as well.
    result = gradcheck.check(forward, x, w, backward=functools.partial(backward), effort="full")
    assert len(asked) <= 12
    assert [d.code for d in result.diagnosis] == ["GC117"]
    assert len(result.wrong) == 4 * 8 * 8
    for entry in result.wrong:
        g = np.zeros((4, 8))
        g[entry.output_index] = 1
        np.testing.assert_allclose(entry.analytic, backward(x, w, g)[0][entry.index], 1e-9, 1e-9)


# ------------------------------------------------------ one thing of the right formula is otherwise
KERNEL = np.array([0.3, -1.2, 0.7])


def squared(x: Any, k: Any) -> Any:
    flat = x.reshape([-1])
    return (flat * flat).reshape([4, 3]) * k


def windows(x: Any, k: Any) -> Any:
    return paddle.stack([x[i : i + 3] for i in range(6)]) @ k


def windows_backward(kernel: Callable[[Any], Any]) -> Callable[..., Any]:
    def backward(x: Any, k: Any, g: Any) -> Any:
        gx = x * 0
        for i in range(6):
            gx[i : i + 3] = gx[i : i + 3] + g[i] * kernel(k)
        return gx, paddle.stack([x[i : i + 3] for i in range(6)]).t() @ g

    return backward


def largest(x: Any) -> Any:
    return paddle.stack([x[k].max() * 2.0 for k in range(x.shape[0])])


def largest_backward(x: Any, g: Any) -> Any:
    rows = [(x[k] == x[k].min()).astype(x.dtype) * g[k] * 2.0 for k in range(x.shape[0])]
    return paddle.stack(rows)


@pytest.mark.parametrize(
    ("forward", "backward", "arrays", "code", "words", "line"),
    [
        (windows, windows_backward(lambda k: k[::-1]), (random(8), KERNEL), "GC116",
         "reads x1 flipped along axis 0", "@ k"),
        (windows, windows_backward(lambda k: paddle.roll(k, 1)), (random(8), KERNEL), "GC116",
         "reads x1 rolled by 1 along axis 0", "@ k"),
        (largest, largest_backward, (random(4, 5),), "GC123",
         "gives the gradient of `x[k].max()` to the smallest element, each time", "x[k].max()"),
        (lambda x, k: paddle.hypot(x, k), lambda x, k, g: (g * x, g * k / paddle.hypot(x, k)),
         (random(6), random(6, seed=1)), "GC116", "leaves", "hypot"),
        (lambda x, k: x[::-1] * k, lambda x, k, g: (g * k, g * x[::-1]), (random(3), KERNEL),
         "GC104", "flipped along axis 0", "x[::-1]"),
        (lambda x, k: paddle.sin(x) * k, lambda x, k, g: (g * k * paddle.cos(x), paddle.sin(x)),
         (random(6), random(6, seed=1)), "GC109", "does not multiply by the gradient that flows",
         "sin(x) * k"),
        (squared, lambda x, k, g: (g * k * x, g.reshape([4, 3]) * (x * x).reshape([4, 3])),
         (random(4, 3), random(4, 3, seed=1)), "GC118", "takes 1/2 times the gradient",
         "flat * flat"),
    ],
    ids=["operand flipped", "operand rolled", "other extreme", "output left out", "wrong order",
         "no incoming gradient", "factor of a square"],
)  # fmt: skip
def test_what_is_otherwise_is_named(
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    arrays: Any,
    code: str,
    words: str,
    line: str,
) -> None:
    result = gradcheck.check(layer(forward, backward), *arrays)
    (found,) = [d for d in result.diagnosis if d.line]
    assert (found.code, words in found.text, line in found.source_line) == (code, True, True), found


def test_entries_of_which_nothing_is_known_keep_no_cause_from_being_found() -> None:
    """The last key of a causal mask scores −1e9 everywhere but once: its gradient has no digit."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        score = paddle.matmul(q, k, transpose_y=True) + paddle.triu(paddle.full([5, 5], -1e9, "float64"), 1)
        return paddle.matmul(F.softmax(score, -1), v)

    def backward(q: Any, k: Any, v: Any, g: Any) -> Any:
        score = paddle.matmul(q, k, transpose_y=True) + paddle.triu(paddle.full([5, 5], -1e9, "float64"), 1)
        p = F.softmax(score, -1)
        dp = paddle.matmul(g, v, transpose_y=True)
        ds = p * (dp - (p * dp).sum(-1, keepdim=True))
        return paddle.matmul(ds, k), paddle.matmul(ds, q), paddle.matmul(p, g, transpose_x=True)

    (found,) = causes(attention, backward, random(5, 3), random(5, 3, seed=1), random(5, 2, seed=2))
    assert (found.code, found.inputs) == ("GC116", ("x1",))
    assert "paddle.matmul(q, k" in found.source_line


def test_the_largest_of_a_segment_cancels() -> None:
    def softmax_of_segments(s: Any) -> Any:
        at = paddle.to_tensor([0, 1, 0, 1, 0])
        top = paddle.stack([paddle.max(s[::2]), paddle.max(s[1::2])])
        e = paddle.exp(s - top[at])
        z = paddle.stack([e[::2].sum(), e[1::2].sum()])
        return e / z[at]

    def backward(s: Any, g: Any) -> Any:
        return g * softmax_of_segments(s)  # as if the sums were constants

    (found,) = causes(softmax_of_segments, backward, random(5))
    assert (found.code, "/ z[at]" in found.source_line or "z = " in found.source_line) == (
        "GC117",
        True,
    )


def test_numbers_that_are_written_one_by_one_are_no_obstacle() -> None:
    def forward(x: Any, w: Any) -> Any:
        values = x.numpy()
        return paddle.to_tensor(np.array([v * np.exp(v) for v in values])) * w

    def backward(x: Any, w: Any, g: Any) -> Any:
        return g * w * paddle.exp(x) * x, g * x * paddle.exp(x)  # the product rule's other term is lost

    result = gradcheck.check(layer(forward, backward), random(4), random(4, seed=1))
    assert result.verdict is Status.FAIL
    assert [d.code for d in result.diagnosis if d.line] == ["GC117"]


@seeds(4)
def test_entries_that_cancel_to_zero_contradict_a_cause(seed: int) -> None:
    """The gradient at most highs of a wealth cancels to 0, of which no digit is known.

    Backward is wrong there all the same, and what leaves it out is not a cause.
    """

    def forward(x: Any) -> Any:
        wealth = np.cumprod(1 + x)
        return (wealth / np.maximum.accumulate(wealth)) ** 2

    def backward(x: Any, g: Any) -> Any:
        wealth = np.cumprod(1 + x)
        peak = np.maximum.accumulate(wealth)
        share = 2 * g * wealth / peak**2
        share[0] -= (share * wealth / peak).sum()  # all of it, as if the first were the highest
        return np.cumsum((share * wealth)[::-1])[::-1] / (1 + x)

    result = gradcheck.check(forward, 0.05 * random(40, seed=seed), backward=backward)
    assert result.verdict is Status.FAIL
    assert not [d for d in result.diagnosis if d.code == "GC117"], "it is used, at the wrong element"
