"""Arguments on which the operations of shape, joining, indexing, padding, diagonal, complexes, sorting and
activation are checked.

By operation name: arguments in order. Floating-point arrays among them become Tensors, also inside lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def shape_samples(normal: Callable[..., np.ndarray[Any, Any]]) -> dict[str, list[tuple[Any, ...]]]:
    """The table; `normal` makes an array of a shape."""

    def complex_normal(*shape: int) -> np.ndarray[Any, Any]:
        return normal(*shape) + 1j * normal(*shape)

    FIRST_ROW = (0, slice(None))
    PICKED = ([0, 1, 1], [2, 0, 0])
    """An index that names an element twice."""

    return {
        "argmax": [(normal(2, 3), 1, True, "int64")],
        "argmin": [(normal(2, 3), None, False, "int32")],
        "argsort": [(normal(2, 3), -1, True)],
        "matrix_transpose": [(normal(2, 3, 4),), (normal(1, 2),)],
        "as_strided": [
            (normal(3, 4), [2, 3], [1, 2], 8),
            (normal(3, 4), [3, 2], [4, 0], 0),
            (normal(2, 3), [4], [1], 8),
        ],
        "as_complex": [(normal(2, 3, 2),)],
        "as_real": [(complex_normal(2, 3),)],
        "broadcast_to": [(normal(3, 1), [2, -1, 4]), (normal(), [2, 2])],
        "broadcast_view": [(normal(3, 1), [2, 3, 4])],
        "cast": [(normal(2, 3), "float64")],
        "clone": [(normal(2, 3),)],
        "complex": [(normal(2, 3), normal(3))],
        "concat": [([normal(2, 1), normal(2, 3)], 1, [0, 1, 4])],
        "conj": [(normal(2),)],
        "elu": [(normal(2, 3), 1.5)],
        "flip": [(normal(2, 3), [0, -1]), (normal(2, 3), 1)],
        "getitem": [
            (normal(2, 3), FIRST_ROW),
            (normal(2, 3), PICKED),
            (normal(2, 3, 4), (0, slice(None), [0, 1])),
            (normal(2, 3), (None, ..., slice(None, None, 2))),
            (normal(2, 3), normal(2, 3) > 0),
            (normal(2, 3), (1, 2)),
        ],
        "scatter_sum": [(normal(3), (2, 3), PICKED), (normal(3), (2, 3), FIRST_ROW)],
        "hardtanh": [(normal(2, 3), -0.5, 0.5)],
        "imag": [(complex_normal(2, 3),)],
        "leaky_relu": [(normal(2, 3), 0.2)],
        "log_softmax": [(normal(2, 3), -1), (normal(2, 3), 0)],
        "nonzero": [(np.array([0.0, 2.0]),)],
        "one_hot": [(np.array([0, 2]), 3)],
        "pad": [(normal(2, 3), [(1, 0), (0, 2)], 0.5)],
        "real": [(complex_normal(2, 3),)],
        "relu": [(normal(2, 3),)],
        "reshape": [(normal(2, 3), [3, -1]), (normal(2, 3), [0, 3, 1])],
        "roll": [(normal(2, 3), 1, None), (normal(2, 3), [1, 2], [0, 1])],
        "searchsorted": [(np.arange(4.0), np.array([0.5, 2.0]), False, right) for right in (False, True)],
        "setitem": [
            (normal(2, 3), PICKED, normal(3)),
            (normal(2, 3), FIRST_ROW, normal(3)),
            (normal(2, 3), [0, 0], normal(2, 1)),
        ],
        "softmax": [(normal(2, 3), -1), (normal(2, 3), 0)],
        "softplus": [(normal(2, 3), 2.0, 1.0)],
        "split": [(normal(5, 2), [2, 3], 0)],
        "stack": [([normal(2, 3), normal(2, 3)], -1)],
        "tile": [(normal(2, 3), [2]), (normal(3), [2, 2])],
        "transpose": [(normal(2, 3, 4), [2, 0, 1]), (normal(2, 3), [-1, 0])],
        "tril": [(normal(3, 3), -1)],
        "triu": [(normal(2, 3, 3), 1)],
        "diagonal": [(normal(2, 3, 4), 1, 2, 0), (normal(3, 3), -1, 0, 1)],
        "tensor_unfold": [(normal(2, 5), 1, 3, 1), (normal(4, 2), 0, 2, 2)],
        "unbind": [(normal(2, 3), 1)],
        "where": [(np.array([True, False, True]), normal(2, 3), normal(3))],
        "scattered_at": [(normal(2, 3), PICKED), (normal(2, 3), FIRST_ROW), (normal(3), [0, 0, 2])],
    }
