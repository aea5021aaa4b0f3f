"""The mistake in a wrong backward is named with its line, and only if it reproduces backward."""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from few import seeds
from taped import drawn, layer, problem_of, rounding_of

import pylayer.paddle as paddle
from gradcheck.causes.words import explained_by_tape
from gradcheck.checking.point import Point
from gradcheck.report.result_text import gradient_lines
from gradcheck.result import Diagnosis, GradientSummary, Status

F = paddle.nn.functional


def causes(forward: Callable[..., Any], backward: Callable[..., Any], *arrays: np.ndarray) -> list[Diagnosis]:
    """What explains a backward at arrays."""
    point = Point(problem_of(layer(forward, backward), *arrays))
    draws = drawn(point, 3)
    claims = [(u, point.vjp(u)) for u in draws]
    return explained_by_tape(point, claims, rounding_of(point, draws[0]), np.inf)[0]


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def normed(x: Any) -> Any:
    m = x.mean(-1, keepdim=True)
    c = x - m
    v = (c * c).mean(-1, keepdim=True)
    s = paddle.rsqrt(v + 1e-3)
    return c * s


def normed_backward(mean: float = 1, share: float = 1, epsilon: float = 1e-3) -> Callable[..., Any]:
    """The backward of `normed`, times factors for the mean's and the variance's share."""

    def backward(x: Any, g: Any) -> Any:
        c = x - x.mean(-1, keepdim=True)
        v = (c * c).mean(-1, keepdim=True)
        s = paddle.rsqrt(v + 1e-3)
        n = c * paddle.rsqrt(v + epsilon)
        return s * (g - mean * g.mean(-1, keepdim=True) - share * n * (g * n).mean(-1, keepdim=True) * s**0)

    return backward


def soft(x: Any) -> Any:
    e = paddle.exp(x - x.max(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def gated(x: Any, w: Any) -> Any:
    a = paddle.matmul(x, w)
    t = paddle.tanh(a)
    return t * x


def gated_backward(rule: Callable[[Any], Any], swapped: bool = False) -> Callable[..., Any]:
    def backward(x: Any, w: Any, g: Any) -> Any:
        t = paddle.tanh(paddle.matmul(x, w))
        da = g * x * rule(t)
        return paddle.matmul(da, w, transpose_y=not swapped) + g * t, paddle.matmul(x, da, transpose_x=True)

    return backward


X, W = random(4, 6), random(6, 6)


def inverse_deviation(x: Any) -> Any:
    c = x - x.mean(-1, keepdim=True)
    return paddle.rsqrt((c * c).mean(-1, keepdim=True) + 1e-3)


def softmax_backward(axis: int) -> Callable[..., Any]:
    def backward(x: Any, g: Any) -> Any:
        y = F.softmax(x, axis=-1)
        return y * (g - (y * g).sum(axis, keepdim=True))

    return backward


LABELS = np.eye(6)[[0, 3, 5, 3]]

NAMED: list[tuple[str, Callable[..., Any], Callable[..., Any], list[np.ndarray], str, str]] = [
    ("a share missing", normed, normed_backward(mean=0), [X], "GC117",
     "m = x.mean(-1, keepdim=True)"),
    ("a wrong sign", normed, normed_backward(mean=-1), [X], "GC118", "c = x - m"),
    ("a share twice", normed, normed_backward(share=2), [X], "GC118",
     "v = (c * c).mean(-1, keepdim=True)"),
    ("a sum for a mean", normed, normed_backward(share=6), [X], "GC112",
     "v = (c * c).mean(-1, keepdim=True)"),
    ("a rule of its own output", gated, gated_backward(lambda t: 1 - t), [X, W], "GC119",
     "t = paddle.tanh(a)"),
    ("the gradient unchanged", gated, gated_backward(lambda t: t**0), [X, W], "GC119",
     "t = paddle.tanh(a)"),
    ("a transpose", gated, gated_backward(lambda t: 1 - t * t, True), [X, W], "GC116",
     "a = paddle.matmul(x, w)"),
    ("a stable softmax without its row sum", soft, lambda x, g: g * soft(x), [X], "GC117",
     "return e / e.sum(-1, keepdim=True)"),
    ("an operand forgotten", lambda x, w: x * w, lambda x, w, g: (g * w, g.sum(0)), [X, random(6)],
     "GC116", "lambda"),
    ("the wrong axis", lambda x, b: x + b, lambda x, b, g: (g, g.sum(1)), [W, random(6)], "GC106",
     "lambda"),
    ("one slice", lambda x, b: x + b, lambda x, b, g: (g, g[0]), [X, random(6)], "GC106", "lambda"),
    ("straight through", lambda x: paddle.round(x) * 2.0, lambda x, g: g * 2.0, [X], "GC122",
     "lambda"),
    ("a mask ignored", lambda x: paddle.clip(x, -0.5, 0.5) * 2.0, lambda x, g: g * 2.0, [X],
     "GC123", "lambda"),
    ("one bound", lambda x: paddle.clip(x, -0.5, 0.5), lambda x, g: g * (x < 0.5).astype(g.dtype),
     [X], "GC123", "lambda"),
    ("an inverse forgotten", lambda x: paddle.roll(x, 1, 0) * 2.0,
     lambda x, g: paddle.roll(g, 1, 0) * 2.0, [X], "GC104", "lambda"),
    ("a norm not divided by", normed, lambda x, g: normed_backward()(x, g) / inverse_deviation(x),
     [X], "GC116", "return c * s"),
    ("the first of a batch", lambda x, w: paddle.matmul(x, w), lambda x, w, g: (
        paddle.matmul(g, w, transpose_y=True), paddle.matmul(x[0], g[0], transpose_x=True)),
     [random(3, 4, 6), random(6, 2)], "GC106", "lambda"),
    ("a softmax along another axis", lambda x: F.softmax(x, axis=-1), softmax_backward(0),
     [random(3, 4, 5)], "GC119", "lambda"),
    ("labels forgotten",
     lambda x: -(F.log_softmax(x, axis=-1) * paddle.to_tensor(LABELS).astype(x.dtype)).sum(-1),
     lambda x, g: g.unsqueeze(-1) * F.softmax(x, axis=-1), [X], "GC119", "lambda"),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("forward", "backward", "arrays", "code", "line"),
    [row[1:] for row in NAMED],
    ids=[row[0] for row in NAMED],
)
def test_the_mistake_and_its_line_are_named(
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    arrays: list[np.ndarray],
    code: str,
    line: str,
    dtype: str,
) -> None:
    (found,) = causes(forward, backward, *(a.astype(dtype) for a in arrays))
    assert found.code == code
    assert line in found.source_line
    first = forward.__code__.co_firstlineno
    assert found.line.startswith(f"{__file__}:")
    assert first <= int(found.line.rpartition(":")[2]) < first + len(inspect.getsourcelines(forward)[0])


def test_equivalent_lines_are_mentioned() -> None:
    (found,) = causes(normed, normed_backward(mean=0), X)
    assert "m, as if it were a constant" in found.text
    assert f"the same as line {normed.__code__.co_firstlineno + 2}" in found.detail


def test_an_epsilon_left_out_is_found() -> None:
    def forward(x: Any) -> Any:
        return paddle.sqrt(x * x + 0.1)

    (found,) = causes(forward, lambda x, g: g * x / paddle.abs(x), X)
    assert found.operation == "sqrt"
    assert "x * x" in found.text


def test_several_wrong_gradients_have_one_cause_if_one_explains_them() -> None:
    found = causes(gated, gated_backward(lambda t: 1 - t), X, W)
    assert [set(d.inputs) for d in found] == [{"x0", "x1"}]


def test_two_mistakes_at_once_are_both_named() -> None:
    found = causes(normed, normed_backward(mean=0, share=2), X)
    assert len(found) == 2
    assert {d.source_line.strip().split()[0] for d in found} <= {"m", "c", "v", "s"}


def test_a_mistake_in_a_loop_is_found_though_it_is_made_each_time() -> None:
    def recurrent(x: Any, w: Any) -> Any:
        h = paddle.zeros([4, 6], dtype=x.dtype)
        for k in range(4):
            z = paddle.matmul(h, w) + x[k : k + 1]
            h = paddle.tanh(z)
        return h

    def backward(x: Any, w: Any, g: Any) -> Any:
        states = [paddle.zeros([4, 6], dtype=x.dtype)]
        for k in range(4):
            states.append(paddle.tanh(paddle.matmul(states[-1], w) + x[k : k + 1]))
        rows, gw = [], paddle.zeros_like(w)
        for k in range(3, -1, -1):
            g = g * (1 - states[k + 1])
            rows.append(g.sum(0))
            gw = gw + paddle.matmul(states[k], g, transpose_x=True)
            g = paddle.matmul(g, w, transpose_y=True)
        return paddle.stack(rows[::-1]), gw

    (found,) = causes(recurrent, backward, X, 0.3 * W)
    assert found.source_line.strip() == "h = paddle.tanh(z)"
    assert found.text.endswith("each time")


def test_a_sum_over_the_runs_of_a_loop_that_is_overwritten_is_found() -> None:
    def powers(x: Any, w: Any) -> Any:
        for _ in range(4):
            x = paddle.tanh(paddle.matmul(x, w))
        return x

    def backward(x: Any, w: Any, g: Any) -> Any:
        states = [x]
        for _ in range(4):
            states.append(paddle.tanh(paddle.matmul(states[-1], w)))
        for k in range(3, -1, -1):
            g = g * (1 - states[k + 1] ** 2)
            gw = paddle.matmul(states[k], g, transpose_x=True)
            g = paddle.matmul(g, w, transpose_y=True)
        return g, gw

    (found,) = causes(powers, backward, X, 0.3 * W)
    assert "depends on x1" in found.text
    assert found.text.endswith("in all runs but the first")


def test_a_mistake_in_a_loop_of_many_operations_is_found() -> None:
    def gated_recurrence(x: Any, w: Any) -> Any:
        h = paddle.zeros([4, 6], dtype=x.dtype)
        for k in range(3):
            z = F.sigmoid(paddle.matmul(h, w) + x[k])
            c = paddle.tanh(paddle.matmul(h, w) * 0.5 - x[k])
            h = z * h + (1 - z) * c
        return h

    def backward(x: Any, w: Any, g: Any) -> Any:
        states = [paddle.zeros([4, 6], dtype=x.dtype)]
        gates, rows, gw = [], [], paddle.zeros_like(w)
        for k in range(3):
            h = states[-1]
            z = F.sigmoid(paddle.matmul(h, w) + x[k])
            c = paddle.tanh(paddle.matmul(h, w) * 0.5 - x[k])
            gates.append((z, c))
            states.append(z * h + (1 - z) * c)
        for k in (2, 1, 0):
            (z, c), h = gates[k], states[k]
            dz = g * (h - c) * (1 - z)
            dc = g * (1 - z) * (1 - c * c)
            rows.append((dz - dc).sum(0))
            da = dz + 0.5 * dc
            gw = gw + paddle.matmul(h, da, transpose_x=True)
            g = g * z + paddle.matmul(da, w, transpose_y=True)
        return paddle.stack(rows[::-1]), gw

    (found,) = causes(gated_recurrence, backward, X[:3], 0.3 * W)
    assert found.source_line.strip() == "z = F.sigmoid(paddle.matmul(h, w) + x[k])"
    assert found.text.endswith("each time")


def test_an_operation_inside_a_call_is_said_to_be_inside() -> None:
    (found,) = causes(lambda x: F.silu(x), lambda x, g: g * F.sigmoid(x), X)
    assert found.text == (
        "backward ignores how the output depends on the sigmoid inside `F.silu(x)`, as if it were a constant"
    )


def test_of_an_expression_written_twice_the_one_that_explains_is_named() -> None:
    def twice(x: Any) -> Any:
        m = x.mean(-1, keepdim=True)
        v = ((x - m) ** 2).mean(-1, keepdim=True)  # what flows through m here cancels
        return (x - m) * paddle.rsqrt(v + 1e-3)

    (found,) = causes(twice, normed_backward(mean=0), X)
    assert "v = " not in found.source_line


def test_one_wrong_element_is_not_explained_by_an_arbitrary_factor() -> None:
    x = np.where(X > 1.0, 0.5, X)
    x[1, 1] = 2.3

    def forward(x: Any) -> Any:
        return paddle.where(x > 1.5, paddle.exp(0.1 * x), x)

    def backward(x: Any, g: Any) -> Any:
        return g * paddle.where(x > 1.5, 0.1 * paddle.exp(0.1 * x) * (1 + x), paddle.ones_like(x))

    assert causes(forward, backward, x) == []


def test_a_forgotten_power_is_no_mean() -> None:
    """5 is also the length of an axis; nothing is added up."""
    (found,) = causes(lambda x: x**5, lambda x, g: g * x**4, random(4, 5))
    assert found.code == "GC118"


@pytest.mark.parametrize(("rows", "code"), [(2, "GC118"), (3, "GC112")])
def test_a_gradient_that_is_added_twice_is_no_sum_for_a_mean_of_two(rows: int, code: str) -> None:
    def backward(x: Any, b: Any, g: Any) -> Any:
        return g * b, rows * (g * x).sum(0)

    (found,) = causes(lambda x, b: x * b, backward, random(rows, 4), random(4))
    assert found.code == code


def test_the_same_code_in_two_files_is_named_where_it_ran(tmp_path: Path) -> None:
    for name in ("old", "new"):
        path = tmp_path / f"{name}.py"
        path.write_text("import pylayer.paddle as paddle\n\n\ndef forward(x):\n    return paddle.tanh(x)\n")
        found = causes(runpy.run_path(str(path))["forward"], lambda x, g: g * (1 - paddle.tanh(x)), X)
        assert [d.line for d in found] == [f"{path}:5"]


def test_a_right_backward_has_no_cause() -> None:
    assert causes(normed, normed_backward(), X) == []


@seeds(5)
def test_nonsense_is_not_explained(seed: int) -> None:
    noise = paddle.to_tensor(random(4, 6, seed=seed + 1))
    assert causes(normed, lambda x, g: (g * noise).cumsum(0) * paddle.sin(x), X) == []


@pytest.mark.parametrize("x", [np.array(0.7), np.array([0.7])])
def test_one_number_is_never_explained(x: np.ndarray) -> None:
    assert causes(lambda x: paddle.tanh(x) * x, lambda x, g: g * 0.3, x) == []


def test_the_panel_shows_the_line_as_a_compiler_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # of a file that is not below it, the name is shown
    found = causes(normed, normed_backward(mean=0), X)
    lines = gradient_lines(GradientSummary(verdict=Status.FAIL, diagnosis=tuple(found)))
    number = normed.__code__.co_firstlineno + 1
    where = f"test_causes.py:{number}"
    assert lines[0] == "likely: backward ignores how the output depends on m, as if it were a constant"
    assert lines[1] == f"  {where} │ m = x.mean(-1, keepdim=True)"
    carets = "^" * len("x.mean(-1, keepdim=True)")
    shown = f"  {' ' * len(where)} │     {carets} its share of the gradient is missing"
    assert lines[2].startswith(shown)
