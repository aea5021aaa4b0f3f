"""Norms of vectors and matrices, distances between rows, and the pseudo-inverse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pylayer.ops.reduction as reduction
from pylayer.ops.arguments import as_ints, normal_axis, one_of, require
from pylayer.ops.elementwise import abs as absolute
from pylayer.ops.elementwise import equal, pow
from pylayer.ops.factors import svd, svdvals
from pylayer.ops.indexing import where_
from pylayer.ops.inplace import fill
from pylayer.ops.linalg import matmul, matrix_transpose
from pylayer.ops.shape import cast, moveaxis, reshape, squeeze, unsqueeze
from pylayer.tape.op import composed
from pylayer.tensor.tensor import Tensor


def norm(x: Tensor, p: Any = None, axis: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of the vectors along `axis`, or of the matrices in two axes; without `axis`, of all
    elements.

    `p` is the order of a vector norm; for two axes 1, -1, inf, -inf (sums of columns or rows), 2,
    -2, 'nuc' (singular values) or 'fro'. None and 'fro' mean the root of the sum of squares. The
    subgradient is 0 where the norm is 0.
    """
    axes = [] if axis is None else as_ints(axis)
    if p is None or p == "fro" or (p == 2 and len(axes) != 2):
        return reduction.norm_(x, axis, keepdim)
    if len(axes) == 2:
        return _matrix_norm(x, p, axes, keepdim)
    return _vector_norm(x, p, axis, keepdim)


def _extreme(p: float) -> Callable[..., Tensor]:
    """The reduction for an order: the largest value for a positive order, otherwise the
    smallest.
    """
    return reduction.max if p > 0 else reduction.min


def _vector_norm(x: Tensor, p: Any, axis: Any, keepdim: bool) -> Tensor:
    """The norm of order `p` of the elements over any number of axes."""
    is_number = isinstance(p, (int, float))
    require(is_number, f"norm(): for vectors p must be a number or 'fro', but got {p!r}")
    if p in (math.inf, -math.inf):
        return _extreme(p)(absolute(x), axis, keepdim)
    if p == 0:
        # a gradient of zeros flows through `fill`, as in Paddle; the norm of complex numbers is
        # real
        ones = where_(x != 0, fill(absolute(x), 1.0), 0.0)
        return reduction.sum(ones, axis, None, keepdim)
    if p == 1:
        return reduction.sum(absolute(x), axis, None, keepdim)
    powers = reduction.sum(pow(absolute(x), float(p)), axis, None, keepdim)
    # The root has no derivative at 0: there the norm is the sum itself, whose derivative is 0.
    zero = equal(powers, 0)
    return where_(zero, powers, pow(where_(zero, 1.0, powers), 1.0 / p))


def _matrix_norm(x: Tensor, p: Any, axes: list[int], keepdim: bool) -> Tensor:
    """The largest or smallest sum of absolute values of a column (p = ±1), of a row (±∞), or
    singular value (±2).
    """
    rows, columns = (normal_axis(k, x.ndim) for k in axes)
    one_of("norm(): the norm p of a matrix", p, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
    if p in (2, -2, "nuc"):
        values = svdvals(moveaxis(x, [rows, columns], [-2, -1]))
        result = reduction.sum(values, -1) if p == "nuc" else _extreme(p)(values, -1)
        return unsqueeze(result, sorted((rows, columns))) if keepdim else result
    summed, compared = (rows, columns) if p in (1, -1) else (columns, rows)
    sums = reduction.sum(absolute(x), summed, None, True)
    result = _extreme(p)(sums, compared, True)
    return result if keepdim else squeeze(result, axes)


def vector_norm(
    x: Tensor, p: float = 2.0, axis: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The norm of the elements over `axis` (by default all) as one vector, in a dtype; a ValueError
    if the order is text.
    """
    require(isinstance(p, (int, float)), f"only valid p type is int and float, found {type(p)}")
    x = x if dtype is None else cast(x, dtype)
    return reduction.norm_(x, axis, keepdim) if p == 2 else _vector_norm(x, p, axis, keepdim)


matrix_norm = composed(
    "matrix_norm", lambda x, p="fro", axis=(-2, -1), keepdim=False: norm(x, p, list(axis), keepdim)
)


# --------------------------------------------------------------------------- distances
dist = composed("dist", lambda x, y, p=2: norm(reshape(x - y, [-1]), float(p), 0))


def cdist(
    x: Tensor, y: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """The p-norms of the differences of all rows of x and y: [..., rows of x, rows of y]; an
    AssertionError for invalid arguments.
    """
    fits = x.ndim > 1 and y.ndim > 1 and x.shape[-1] == y.shape[-1]
    text = "The x and y must be at least 2-D with rows of one size"
    require(fits, text, x, y, error=AssertionError)
    text = f"The p must be greater than or equal to 0, But received p is {p}"
    require(p >= 0, text, error=AssertionError)
    return norm(unsqueeze(x, -2) - unsqueeze(y, -3), float(p), -1)


# ---------------------------------------------------------- condition numbers, ranks, least squares
def pinv(x: Tensor, rcond: Any = 1e-15, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse: singular values up to `rcond` times the largest count as 0."""
    u, s, vh = svd(x)
    limit = reduction.max(s, -1, True) * rcond
    is_large = s > limit
    inverse = where_(is_large, 1.0 / where_(is_large, s, 1.0), 0.0)
    return matmul(matrix_transpose(vh).conj() * unsqueeze(inverse, -2), matrix_transpose(u).conj())
