"""Arguments on which windows, convolutions, factors of matrices, transforms and special functions are checked.

By operation name: arguments in order. Floating-point arrays among them become Tensors, also inside lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Make = Callable[..., np.ndarray[Any, Any]]


def more_samples(normal: Make, positive: Make, within: Make, distinct: Make) -> dict[str, list[tuple[Any, ...]]]:
    """The table; the functions make an array of a shape, see `samples`."""
    INTS = np.array([[1, 2, 3], [4, 0, 6]])
    SQUARE = normal(3, 3) / 2
    SQUARE = SQUARE + np.diag(np.arange(1.0, len(SQUARE) + 1))
    # strides, pads, dilations, groups
    PLAIN = ([1], [(0, 0)], [1], 1)
    MIXED = ([2, 1], [(1, 0), (0, 2)], [1, 2], 2)
    ONES = ([1, 1], [(1, 1), (0, 1)], [1, 1], 1)
    # kernel, strides, pads
    POOL = ([2, 3], [2, 1], [(0, 1), (1, 1)])
    return {
        "conv": [
            (normal(2, 2, 5), normal(3, 2, 2), *PLAIN),
            (normal(1, 4, 4, 5), normal(2, 2, 3, 2), *MIXED),
            (normal(1, 2, 3, 3), normal(2, 2, 2, 2), *ONES),
        ],
        "conv_input": [
            (normal(2, 3, 4), normal(3, 2, 2), [5], *PLAIN),
            (normal(1, 2, 2, 5), normal(2, 2, 3, 2), [4, 5], *MIXED),
            (normal(1, 2, 4, 3), normal(2, 2, 2, 2), [3, 3], *ONES),
        ],
        "conv_weight": [
            (normal(2, 3, 4), normal(2, 2, 5), [2], *PLAIN),
            (normal(1, 2, 2, 5), normal(1, 4, 4, 5), [3, 2], *MIXED),
        ],
        "unfold": [(normal(1, 2, 4, 3), *POOL, [1, 1])],
        "fold": [(normal(1, 12, 6), [4, 3], *POOL, [1, 1])],
        "window_sum": [(normal(1, 2, 4, 3), *POOL)],
        "window_spread": [(normal(1, 2, 2, 3), [4, 3], *POOL)],
        "window_argmax": [(normal(1, 2, 4, 3), *POOL)],
        "qr": [(SQUARE,), (np.concatenate([SQUARE, SQUARE[:1]]),)],
        "qr_complete": [(normal(4, 2),)],
        "svd": [(SQUARE,), (normal(2, 4),), (normal(4, 2),)],
        "svd_full": [(normal(4, 2),)],
        "eigh": [(SQUARE + SQUARE.T, "L")],
        "eig": [(SQUARE + 0.25j * SQUARE.T,)],
        "diagonal_ones": [(normal(3),)],
        "largest_components": [(normal(3, 3) + 1j * normal(3, 3),)],
        "fourier": [(normal(2, 3) + 1j * normal(2, 3), 1, inverse) for inverse in (False, True)],
        "mode_positions": [
            (np.array([[1.0, 2.0, 1.0], [3.0, 3.0, 0.0]]),),
            *((normal(2, 3),) for _ in range(3)),
        ],
        "lgamma": [(positive(2, 3),)],
        "gammaincc": [(positive(2, 3), positive(2, 3)), (positive(2, 1) * 9, positive(3) * 9)],
        "polygamma": [*((positive(2, 3), n) for n in range(3)), (np.array([-0.3, -1.6]), 0)],
        **{name: [(normal(2, 3) * 2,)] for name in ("i0", "i0e", "i1", "i1e", "i1e_over")},
        "erfinv": [(within(2, 3),)],
        "logit": [(0.5 + within(2, 3) / 4,)],
        "copysign": [(distinct(2, 3), normal(3)), (distinct(3), -2.0)],
        "hypot": [(normal(2, 3), normal(3))],
        "logaddexp": [(normal(2, 3), normal(3))],
        "heaviside": [(distinct(2, 3), normal(3))],
        "signbit": [(normal(2, 3),)],
        **{name: [(INTS, INTS)] for name in ("left_shift", "right_shift", "logical_right_shift")},
        "bincount": [(np.array([1, 2, 2]), None, 4), (np.array([1, 2, 2]), normal(3), 4)],
        "histogram": [(normal(2, 3), 4, -1.0, 1.0, None, False)],
        "isin": [(INTS, np.array([1, 6]), False, invert) for invert in (False, True)],
    }
