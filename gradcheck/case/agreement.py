"""Whether two ways to compute the same thing gave the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradcheck.backends.base import Array, is_differentiable
from gradcheck.checking.arrays import wide


def agree(ours: Sequence[Array], theirs: Sequence[Array], epsilon: float) -> bool:
    """Whether outputs are the same up to rounding: to half of the digits, beside the largest element.

    `epsilon` is the spacing at 1 of the coarsest dtype on the way to them.
    """
    return len(ours) == len(theirs) and all(alike(a, b, epsilon) for a, b in zip(ours, theirs, strict=True))


def alike(a: Array, b: Array, epsilon: float) -> bool:
    """Whether two outputs are; those without a derivative to the last bit."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not is_differentiable(a):
        return bool((a == b).all())
    x, y = wide(a), wide(b)
    close = abs(x - y) <= epsilon**0.5 * abs(y).max(initial=0.0, where=np.isfinite(abs(y)))
    return bool((close | (x == y) | (np.isnan(x) & np.isnan(y))).all())


def identical(a: Array, b: Array) -> bool:
    """Whether two arrays are equal, NaN being equal to itself."""
    return bool(((a == b) | ((a != a) & (b != b))).all())
