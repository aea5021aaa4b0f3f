"""Norms of vectors and matrices, and what is told by them: distances, condition numbers, ranks, least squares."""

from __future__ import annotations

import math
from typing import Any

import pylayer.ops.reduction as reduction
from pylayer.ops.arguments import as_ints, normal_axis, one_of, require
from pylayer.ops.elementwise import abs as absolute
from pylayer.ops.elementwise import equal, maximum, pow
from pylayer.ops.factors import eigvalsh, inv, svd, svdvals
from pylayer.ops.indexing import getitem, where_
from pylayer.ops.inplace import fill
from pylayer.ops.joining import stack
from pylayer.ops.linalg import matmul, swapped
from pylayer.ops.shape import cast, moveaxis, reshape, squeeze, unsqueeze
from pylayer.tape.op import composed
from pylayer.tensor.array import XP
from pylayer.tensor.invalid import invalid
from pylayer.tensor.tensor import Tensor


def norm(x: Tensor, p: Any = None, axis: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of the vectors along `axis`, or of the matrices in two axes; of all elements without `axis`.

    `p` is the order of a vector norm; for two axes 1, -1, inf, -inf (sums of columns or rows), 2, -2, 'nuc' (singular
    values) or 'fro'. None and 'fro' mean the root of the sum of squares. The subgradient is 0 where the norm is 0.
    """
    axes = [] if axis is None else as_ints(axis)
    if p is None or p == "fro" or (p == 2 and len(axes) != 2):
        return reduction.norm_(x, axis, keepdim)
    return (
        _matrix_norm(x, p, axes, keepdim) if len(axes) == 2 else _vector_norm(x, p, axis, keepdim)
    )


def _vector_norm(x: Tensor, p: Any, axis: Any, keepdim: bool) -> Tensor:
    """Of order `p`, of the elements over any number of axes."""
    require(
        isinstance(p, (int, float)),
        f"norm(): for vectors p must be a number or 'fro', but got {p!r}",
    )
    if p in (math.inf, -math.inf):
        return (reduction.max if p > 0 else reduction.min)(absolute(x), axis, keepdim)
    if p == 0:
        # through `fill` flows a gradient of zeros, as in Paddle; of complex numbers the norm is real
        ones = where_(x != 0, fill(absolute(x), 1.0), 0.0)
        return reduction.sum(ones, axis, None, keepdim)
    if p == 1:
        return reduction.sum(absolute(x), axis, None, keepdim)
    powers = reduction.sum(pow(absolute(x), float(p)), axis, None, keepdim)
    # The root has no derivative at 0: there the norm is the sum itself, whose derivative is 0.
    zero = equal(powers, 0)
    return where_(zero, powers, pow(where_(zero, 1.0, powers), 1.0 / p))


def _matrix_norm(x: Tensor, p: Any, axes: list[int], keepdim: bool) -> Tensor:
    """The largest or smallest sum of absolute values of a column (p = ±1), of a row (±∞), or singular value (±2)."""
    rows, columns = (normal_axis(k, x.ndim) for k in axes)
    if p in (2, -2, "nuc"):
        values = svdvals(moveaxis(x, [rows, columns], [-2, -1]))
        found = (
            reduction.sum(values, -1)
            if p == "nuc"
            else (reduction.max if p > 0 else reduction.min)(values, -1)
        )
        return unsqueeze(found, sorted((rows, columns))) if keepdim else found
    if p not in (1, -1, math.inf, -math.inf):
        text = "does not exist; just support p value 'fro', 'nuc', 1, -1, 2, -2, inf, -inf if axis is 2D"
        raise invalid(
            f"norm(): the norm p={p!r} of a matrix {text}. For a vector norm reshape to one axis"
        )
    summed, compared = (rows, columns) if p in (1, -1) else (columns, rows)
    extreme = (reduction.max if p > 0 else reduction.min)(
        reduction.sum(absolute(x), summed, None, True), compared, True
    )
    return extreme if keepdim else squeeze(extreme, axes)


def vector_norm(
    x: Tensor, p: float = 2.0, axis: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The norm of the elements over `axis`, all unless given, as of one vector, in a dtype; a ValueError for a word."""
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
    """The p-norms of the differences of all rows of x and y: [..., rows of x, rows of y]; else an AssertionError."""
    fits = x.ndim > 1 and y.ndim > 1 and x.shape[-1] == y.shape[-1]
    require(
        fits, "The x and y must be at least 2-D with rows of one size", x, y, error=AssertionError
    )
    require(
        p >= 0,
        f"The p must be greater than or equal to 0, But received p is {p}",
        error=AssertionError,
    )
    return norm(unsqueeze(x, -2) - unsqueeze(y, -3), float(p), -1)


def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of each two rows of a matrix."""
    rows, columns = XP[type(x.array)].triu_indices(x.shape[0], 1)
    return norm(getitem(x, Tensor(rows)) - getitem(x, Tensor(columns)), float(p), -1)


def renorm(x: Tensor, p: float, axis: int, max_norm: float) -> Tensor:
    """`x` with the slices along `axis` whose p-norm is above `max_norm` scaled down to it."""
    at = normal_axis(axis, x.ndim)
    others = [k for k in range(x.ndim) if k != at]
    size = absolute(x)
    if others:  # with none each element is a slice, while a sum over no axes would be one over all
        size = pow(reduction.sum(pow(size, float(p)), others, None, True), 1.0 / p)
    return where_(size > max_norm, x * (max_norm / size), x)


def vander(x: Tensor, n: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a 1-d Tensor as columns, the highest first unless `increasing`."""
    require(x.ndim == 1, "The input of x is expected to be a 1-D Tensor", x)
    count = x.shape[0] if n is None else n
    require(count >= 0, "N must be non-negative")
    powers = [pow(x, k) for k in range(count)]
    return stack(powers if increasing else powers[::-1], 1)


# --------------------------------------------------------------------------- condition numbers, ranks, least squares
def pinv(x: Tensor, rcond: Any = 1e-15, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse: singular values up to `rcond` times the largest count as 0."""
    u, s, vh = svd(x)
    limit = reduction.max(s, -1, True) * rcond
    kept = s > limit
    inverse = where_(kept, 1.0 / where_(kept, s, 1.0), 0.0)
    return matmul(swapped(vh).conj() * unsqueeze(inverse, -2), swapped(u).conj())


def matrix_rank(
    x: Tensor, tol: Any = None, hermitian: bool = False, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values are above a tolerance.

    That is `tol`, or else `atol` or `rtol` times the largest, whichever is more; `rtol` is the larger size of the
    matrix times the dtype's epsilon unless given, or 0 beside an `atol`.
    """
    values = absolute(eigvalsh(x)) if hermitian else svdvals(x)
    if tol is None:
        xp = XP[type(x.array)]
        usual = max(x.shape[-2:]) * float(xp.finfo(x.array.dtype).eps) if atol is None else 0.0
        relative = reduction.max(values, -1, True) * (usual if rtol is None else rtol)
        tol = relative if atol is None else maximum(relative, relative * 0 + atol)
    elif isinstance(tol, Tensor) and tol.ndim:
        tol = unsqueeze(tol, -1)
    return reduction.sum(cast(values > tol, "int64"), -1)


def cond(x: Tensor, p: Any = None) -> Tensor:
    """The condition number: the norm times that of the inverse; for None, 2 and −2 the ratio of singular values."""
    one_of("cond(): `p`", p, None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
    if p in (None, 2, -2):
        s = svdvals(x)
        ratio = reduction.max(s, -1) / reduction.min(s, -1)
        return 1 / ratio if p == -2 else ratio
    require(
        x.shape[-1] == x.shape[-2],
        "only support p is none, 2 or -2 when the input is not square",
        x,
    )
    axes = [x.ndim - 2, x.ndim - 1]
    return norm(x, p, axes) * norm(inv(x), p, axes)


def lstsq(
    x: Tensor, y: Tensor, rcond: Any = None, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The z of least ``|x z − y|``: with it the squared residuals, the rank of x and its singular values.

    Those up to `rcond`, the size times epsilon unless given, times the largest count as 0. They are empty with the
    drivers gelsy and gels, as in Paddle; the others are gelsd and gelss.
    """
    one_of("lstsq(): `driver`", driver, None, "gels", "gelsy", "gelsd", "gelss")
    eps = float(XP[type(x.array)].finfo(x.array.dtype).eps)
    limit = eps * max(x.shape[-2:]) if rcond is None else rcond
    s = svdvals(x.detach())
    rank = cast(matrix_rank(x.detach(), reduction.max(s, -1) * limit), "int32")
    solution = matmul(pinv(x, limit), y)
    difference = matmul(x, solution) - y
    empty = getitem(s, (..., slice(0)))
    enough = (
        driver not in (None, "gelsy")
        and x.shape[-2] > x.shape[-1]
        and bool((rank == x.shape[-1]).all())
    )
    residuals = reduction.sum(difference * difference, -2) if enough else reshape(empty, [0])
    return solution, residuals, rank, empty if driver in ("gels", "gelsy", None) else s
