"""Functions of ``nn.functional`` beside the usual ones, by their definitions in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle

F = paddle.nn.functional

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])
Y = np.array([[1.0, 0.5, -2.0], [-0.25, 1.75, 0.5]])
P = np.array([[0.2, 0.7, 0.1], [0.6, 0.3, 0.1]])
ZEROS_AND_ONES = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
SIGNS = 2 * ZEROS_AND_ONES - 1
x, y, p, bits, signs = (paddle.to_tensor(a) for a in (X, Y, P, ZEROS_AND_ONES, SIGNS))
sign_of_row = paddle.to_tensor([1, -1])
column = paddle.to_tensor([[1.0], [0.0]], "float64")


def distance(a: Any, b: Any) -> Any:
    return np.sqrt(((a - b + 1e-6) ** 2).sum(-1))


def truth_of(z: Any) -> Any:
    """The probability that the logits `z` give to the bits."""
    sigmoid = 1 / (1 + np.exp(-z))
    return np.where(ZEROS_AND_ONES == 1, sigmoid, 1 - sigmoid)


COSINE = (X * Y).sum(-1) / np.sqrt((X**2).sum(-1) * (Y**2).sum(-1))
FOCAL = -np.where(ZEROS_AND_ONES == 1, 0.25, 0.75) * (1 - truth_of(X)) ** 2 * np.log(truth_of(X))
OVERLAPS = np.array([2 * 0.7 / 2, 2 * 0.6 / 2])
STIRLING = [n * math.log(n) - n + 0.5 * math.log(2 * math.pi * n) for n in (2.0, 3.0)]

VALUES: dict[str, tuple[Any, Any]] = {
    "triplet_margin_loss": (
        lambda: F.triplet_margin_loss(x, y, p, 2.0),
        np.maximum(distance(X, Y) - distance(X, P) + 2, 0).mean(),
    ),
    "triplet_margin_loss, swap": (
        lambda: F.triplet_margin_loss(x, y, x * 2, swap=True, reduction="none"),
        np.maximum(distance(X, Y) - np.minimum(distance(X, 2 * X), distance(Y, 2 * X)) + 1, 0),
    ),
    "triplet_margin_with_distance_loss": (
        lambda: F.triplet_margin_with_distance_loss(x, y, p, lambda a, b: (a - b).abs().sum(-1)),
        np.maximum(abs(X - Y).sum(-1) - abs(X - P).sum(-1) + 1, 0).mean(),
    ),
    "cosine_embedding_loss": (
        lambda: F.cosine_embedding_loss(x, y, sign_of_row, -0.5, "none"),
        [1 - COSINE[0], max(COSINE[1] + 0.5, 0)],
    ),
    "margin_ranking_loss": (
        lambda: F.margin_ranking_loss(x, y, signs, 0.25),
        np.maximum(-SIGNS * (X - Y) + 0.25, 0).mean(),
    ),
    "hinge_embedding_loss": (
        lambda: F.hinge_embedding_loss(x, signs, reduction="sum"),
        np.where(SIGNS == 1, X, np.maximum(1 - X, 0)).sum(),
    ),
    "sigmoid_focal_loss": (lambda: F.sigmoid_focal_loss(x, bits), FOCAL.sum()),
    "sigmoid_focal_loss, normalizer": (
        lambda: F.sigmoid_focal_loss(x, bits, paddle.to_tensor([2.0], "float64"), reduction="none"),
        FOCAL / 2,
    ),
    "dice_loss": (lambda: F.dice_loss(p, paddle.to_tensor([[1], [0]]), 0.0), 1 - OVERLAPS.mean()),
    "log_loss": (
        lambda: F.log_loss(column / 2 + 0.25, column, 0.0),
        [[-math.log(0.75)], [-math.log(0.75)]],
    ),
    "soft_margin_loss": (
        lambda: F.soft_margin_loss(x, signs),
        np.log(1 + np.exp(-SIGNS * X)).mean(),
    ),
    "poisson_nll_loss": (lambda: F.poisson_nll_loss(x, p), (np.exp(X) - P * X).mean()),
    "poisson_nll_loss, full": (
        lambda: F.poisson_nll_loss(
            *(paddle.to_tensor([1.0, 2.0, 3.0], "float64") for _ in range(2)),
            False,
            True,
            1e-300,
            "none",
        ),
        [1, 2 - 2 * math.log(2) + STIRLING[0], 3 - 3 * math.log(3) + STIRLING[1]],
    ),
    "gaussian_nll_loss": (
        lambda: F.gaussian_nll_loss(x, y, p, full=True),
        (0.5 * (np.log(2 * math.pi * P) + (X - Y) ** 2 / P)).mean(),
    ),
    "gaussian_nll_loss, variance of rows": (
        lambda: F.gaussian_nll_loss(x, y, paddle.to_tensor([0.0, 2.0], "float64"), epsilon=0.5),
        (0.5 * (np.log([[0.5], [2]]) + (X - Y) ** 2 / [[0.5], [2]])).mean(),
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_its_value(name: str) -> None:
    make, expected = VALUES[name]
    np.testing.assert_allclose(make().numpy(), expected, rtol=1e-10)


def test_the_variance_of_a_gauss_is_not_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        F.gaussian_nll_loss(x, y, x)
