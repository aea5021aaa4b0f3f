"""Whether two ways to compute the same thing gave the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.checker.outputs import is_differentiable, widened


def agree(ours: Sequence[Array], theirs: Sequence[Array]) -> bool:
    """Whether outputs are the same up to rounding: to half of the digits of their dtype, beside the largest element."""
    return len(ours) == len(theirs) and all(alike(a, b) for a, b in zip(ours, theirs, strict=True))


def alike(a: Array, b: Array) -> bool:
    """Whether two outputs are."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not is_differentiable(a):
        return bool((a == b).all())
    digits = float(np.finfo(widened(a).dtype if a.dtype.kind == "V" else a.dtype).eps) ** 0.5
    x, y = widened(a), widened(b)
    close = abs(x - y) <= digits * abs(y).max(initial=0.0, where=np.isfinite(abs(y)))
    return bool((close | (x == y) | (np.isnan(x) & np.isnan(y))).all())


def same(a: Array, b: Array) -> bool:
    """Whether two arrays are equal, NaN being equal to itself."""
    return bool(((a == b) | ((a != a) & (b != b))).all())
