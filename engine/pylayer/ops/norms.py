"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from pylayer.invalid import invalid
from pylayer.ops.arguments import as_ints, normal_axis
from pylayer.ops.elementwise import abs as abs_
from pylayer.ops.elementwise import pow
from pylayer.ops.factors import svdvals
from pylayer.ops.indexing import where_
from pylayer.ops.logic import equal
from pylayer.ops.reduction import max, min, norm_, sum
from pylayer.ops.shape import cast, moveaxis, squeeze, unsqueeze
from pylayer.tensor import Tensor


def norm(x: Tensor, p: Any = None, axis: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of the vectors along `axis`, or of the matrices in two axes; of all elements without `axis`.

    `p` is the order of a vector norm; for two axes 1, -1, inf, -inf (sums of columns or rows), 2, -2, 'nuc' (singular
    values) or 'fro'. None and 'fro' mean the root of the sum of squares. The subgradient is 0 where the norm is 0.
    """
    axes = [] if axis is None else as_ints(axis)
    if p is None or p == "fro" or (p == 2 and len(axes) != 2):
        return norm_(x, axis, keepdim)
    if len(axes) == 2:
        return _matrix_norm(x, p, axes, keepdim)
    if not isinstance(p, (int, float)):
        raise invalid(f"norm(): for vectors p must be a number or 'fro', but got {p!r}")
    if p in (math.inf, -math.inf):
        return (max if p > 0 else min)(abs_(x), axis, keepdim)
    if p == 0:
        return sum(cast(x != 0, x.dtype), axis, None, keepdim)
    if p == 1:
        return sum(abs_(x), axis, None, keepdim)
    total = sum(pow(abs_(x), float(p)), axis, None, keepdim)
    # The root has no derivative at 0: there the norm is the sum itself, whose derivative is 0.
    zero = equal(total, 0)
    return where_(zero, total, pow(where_(zero, 1.0, total), 1.0 / p))


def _matrix_norm(x: Tensor, p: Any, axes: list[int], keepdim: bool) -> Tensor:
    """The largest or smallest sum of absolute values of a column (p = ±1), of a row (±∞), or singular value (±2)."""
    rows, columns = (normal_axis(k, x.ndim) for k in axes)
    if p in (2, -2, "nuc"):
        values = svdvals(moveaxis(x, [rows, columns], [-2, -1]))
        found = sum(values, -1) if p == "nuc" else (max if p > 0 else min)(values, -1)
        return unsqueeze(found, sorted((rows, columns))) if keepdim else found
    if p not in (1, -1, math.inf, -math.inf):
        raise invalid(
            f"norm(): the norm p={p!r} of a matrix does not exist; just support p value 'fro', "
            f"'nuc', 1, -1, 2, -2, inf, -inf if axis is 2D. For a vector norm of all elements reshape to one axis"
        )
    summed, compared = (rows, columns) if p in (1, -1) else (columns, rows)
    extreme = (max if p > 0 else min)(sum(abs_(x), summed, None, True), compared, True)
    return extreme if keepdim else squeeze(extreme, axes)
