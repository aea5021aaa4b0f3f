"""Ties in the windows of max pooling, and elements at 0 whose small moves a constant absorbs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims import GREEN, PyLayer, verdict_of
from few import few

import gradcheck
import pylayer.paddle as paddle
from gradcheck.result import Status

F: Any = paddle.nn.functional


def verdict(layer: Any, *x: Any) -> Status:
    return verdict_of(layer, *(np.copy(a) for a in x))


def pool_layer(kernel: int, stride: int, padding: int, share: str) -> Any:
    """Max pooling over one axis whose backward shares a gradient among the tied elements of a window."""

    def slopes(window: Any) -> Any:
        largest = window == window.max()
        one = np.arange(window.size) == (np.flatnonzero(largest)[-1] if share == "last" else window.argmax())
        return {"equally": largest / largest.sum(), "all": largest}.get(share, one)

    class Pool(PyLayer):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return F.max_pool1d(x, kernel, stride, padding)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensor()
            edge = [(0, 0), (0, 0), (padding, padding)]
            wide, g = np.pad(x.numpy(), edge, constant_values=-np.inf), dy.numpy()
            dx = np.zeros_like(wide)
            for b, c, k in np.ndindex(*g.shape):
                part = slice(k * stride, k * stride + kernel)
                dx[b, c, part] += g[b, c, k] * slopes(wide[b, c, part])
            return paddle.to_tensor(dx[..., padding : dx.shape[-1] - padding])

    return Pool


def rectified(shape: tuple[int, ...], dtype: str) -> Any:
    """Numbers of which about half are 0, as after relu."""
    x = np.maximum(np.random.default_rng(2).standard_normal(shape), 0).astype(dtype)
    x[0, 0, 4:8] = 0
    return x


WINDOWS = [(2, 2, 0), (3, 2, 1), (3, 1, 0), (4, 4, 0)]


@pytest.mark.clause(id="V18")
@pytest.mark.parametrize("dtype", few(["float64", "float32"], kept=1))
@pytest.mark.parametrize("share", ["first", "last", "equally"])
@pytest.mark.parametrize("window", WINDOWS)
def test_any_share_among_tied_elements_of_a_pooling_window_is_right(
    window: tuple[int, int, int], share: str, dtype: str
) -> None:
    assert verdict(pool_layer(*window, share), rectified((2, 2, 16), dtype)) is Status.KINK


@pytest.mark.clause(id="V19")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("window", WINDOWS)
def test_the_whole_gradient_for_each_tied_element_of_a_pooling_window_fails(
    window: tuple[int, int, int], dtype: str
) -> None:
    assert verdict(pool_layer(*window, "all"), rectified((2, 2, 16), dtype)) is Status.FAIL


@pytest.mark.parametrize("window", WINDOWS)
def test_pooling_without_ties_is_no_kink(window: tuple[int, int, int]) -> None:
    x = np.random.default_rng(2).standard_normal((2, 2, 16))
    assert verdict(pool_layer(*window, "all"), x) is Status.PASS


def test_ties_in_windows_of_two_axes_are_at_a_kink() -> None:
    result = gradcheck.check(lambda x: F.max_pool2d(x, 2, 1), np.zeros((1, 1, 3, 3)))
    assert result.verdict is Status.KINK, result


def margin(scores: Any, labels: Any) -> Any:
    """Scores, raised by 1 but for the label's: the largest less the label's is Crammer and Singer's hinge."""
    raised = scores + 1.0
    raised[np.arange(len(labels)), labels] -= 1
    return raised


@pytest.mark.clause(id="V19")
@pytest.mark.parametrize("share", ["first", "equally", "all"])
def test_elements_at_zero_that_a_constant_is_added_to_part(share: str) -> None:
    """1 + 2⁻³⁰⁰ is 1: elements that are 0 have to move further where a constant is added to them."""
    labels = np.array([0, 1, 2])
    scores = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0.5, 0.2, 0.1, -0.5]])
    rows = np.arange(len(labels))

    def forward(x: Any) -> Any:
        return margin(x, labels).max(1) - x[rows, labels]

    def backward(x: Any, g: Any) -> Any:
        raised = margin(x, labels)
        largest = raised == raised.max(1, keepdims=True)
        slopes = {"all": 1.0 * largest, "equally": largest / largest.sum(1, keepdims=True)}.get(
            share, np.eye(x.shape[1])[raised.argmax(1)]
        )
        slopes[rows, labels] -= 1
        return slopes * g[:, None]

    found = verdict_of(forward, scores, backward=backward)
    assert found is Status.FAIL if share == "all" else found in GREEN
