"""How good the outputs of a program are."""

from __future__ import annotations

from typing import Any

from pylayer.ops.elementwise import equal
from pylayer.ops.reduction import any as any_of
from pylayer.ops.reduction import mean
from pylayer.ops.shape import astype
from pylayer.ops.sorting import topk
from pylayer.tensor.tensor import Tensor


def accuracy(
    input: Tensor, label: Tensor, k: int = 1, correct: Any = None, total: Any = None
) -> Tensor:
    """The share of rows whose label, of size 1 in the last axis, is among the `k` largest."""
    _, places = topk(input, k)
    found: Tensor = mean(astype(any_of(equal(places, label), -1), "float32"))
    return found
