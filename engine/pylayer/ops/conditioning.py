"""What the factors of matrices tell: inverses of any matrix, ranks, condition numbers, least squares, exponentials."""

from __future__ import annotations

import math
from typing import Any

from pylayer.array import XP
from pylayer.op import composed
from pylayer.ops.creation import eye
from pylayer.ops.elementwise import abs as absolute
from pylayer.ops.elementwise import maximum
from pylayer.ops.factors import eigvalsh, svd, svdvals
from pylayer.ops.indexing import getitem, where_
from pylayer.ops.linalg import _swapped, matmul
from pylayer.ops.norms import norm
from pylayer.ops.reduction import max as largest_of
from pylayer.ops.reduction import min as smallest_of
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import cast, reshape, unsqueeze
from pylayer.ops.solving import inv, triangular_solve
from pylayer.tensor import Tensor


def pinv(x: Tensor, rcond: Any = 1e-15, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse: singular values up to `rcond` times the largest count as 0."""
    u, s, vh = svd(x)
    limit = largest_of(s, -1, True) * rcond
    kept = s > limit
    inverse = where_(kept, 1.0 / where_(kept, s, 1.0), 0.0)
    return matmul(_swapped(vh).conj() * unsqueeze(inverse, -2), _swapped(u).conj())


def matrix_rank(x: Tensor, tol: Any = None, hermitian: bool = False, atol: Any = None, rtol: Any = None) -> Tensor:
    """How many singular values are above a tolerance.

    That is `tol`, or else `atol` or `rtol` times the largest, whichever is more; `rtol` is the larger size of the
    matrix times the dtype's epsilon unless given, or 0 beside an `atol`.
    """
    values = absolute(eigvalsh(x)) if hermitian else svdvals(x)
    if tol is None:
        xp = XP[type(x.array)]
        usual = max(x.shape[-2:]) * float(xp.finfo(x.array.dtype).eps) if atol is None else 0.0
        relative = largest_of(values, -1, True) * (usual if rtol is None else rtol)
        tol = relative if atol is None else maximum(relative, relative * 0 + atol)
    elif isinstance(tol, Tensor) and tol.ndim:
        tol = unsqueeze(tol, -1)
    return total(cast(values > tol, "int64"), -1)


_ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


def cond(x: Tensor, p: Any = None) -> Tensor:
    """The condition number: the norm times that of the inverse; for None, 2 and −2 the ratio of singular values."""
    if p not in (None, *_ORDERS):
        raise ValueError(f"unsupported {p} for p, only supporting ('fro', 'nuc', 1, -1, 2, -2, inf, -inf) or none")
    if p in (None, 2, -2):
        s = svdvals(x)
        ratio = largest_of(s, -1) / smallest_of(s, -1)
        return 1 / ratio if p == -2 else ratio
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"only support p is none, 2 or -2 when the input is not square, but the shape is {x.shape}.")
    if p == "nuc":
        return total(svdvals(x), -1) * total(svdvals(inv(x)), -1)
    axes = [x.ndim - 2, x.ndim - 1]
    return norm(x, p, axes) * norm(inv(x), p, axes)


def lstsq(x: Tensor, y: Tensor, rcond: Any = None, driver: str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The z of least ``|x z − y|``: with it the squared residuals, the rank of x and its singular values.

    Those up to `rcond`, the size times epsilon unless given, times the largest count as 0. They are empty with the
    drivers gelsy and gels, as in Paddle; the others are gelsd and gelss.
    """
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ValueError(f"Only support valid driver is 'gels', 'gelsy', 'gelsd', 'gelss' or None. But got {driver}")
    eps = float(XP[type(x.array)].finfo(x.array.dtype).eps)
    limit = eps * max(x.shape[-2:]) if rcond is None else rcond
    s = svdvals(x.detach())
    rank = cast(matrix_rank(x.detach(), largest_of(s, -1) * limit), "int32")
    solution = matmul(pinv(x, limit), y)
    difference = matmul(x, solution) - y
    empty = getitem(s, (..., slice(0)))
    enough = driver not in (None, "gelsy") and x.shape[-2] > x.shape[-1] and bool((rank == x.shape[-1]).all())
    residuals = total(difference * difference, -2) if enough else reshape(empty, [0])
    return solution, residuals, rank, empty if driver in ("gels", "gelsy", None) else s


def cholesky_solve(x: Tensor, y: Tensor, upper: bool = False) -> Tensor:
    """The z with ``A z = x``, given the triangular factor `y` of A."""
    if upper:
        return triangular_solve(y, triangular_solve(y, x, upper=True, transpose=True), upper=True)
    return triangular_solve(y, triangular_solve(y, x, upper=False), upper=False, transpose=True)


cholesky_inverse = composed(
    "cholesky_inverse", lambda x, upper=False: cholesky_solve(eye(x.shape[-1], dtype=x.dtype), x, upper)
)


def matrix_exp(x: Tensor) -> Tensor:
    """Σ xᵏ / k!: scaled to a norm of at most ½, summed to 18 terms (the rest is below 1e-21), and squared again."""
    size = float(XP[type(x.array)].abs(x.array).sum(-1).max().item()) if x.size else 0.0
    halvings = max(0, math.ceil(math.log2(size)) + 1) if 0.5 < size < math.inf else 0
    scaled = x * math.ldexp(1.0, -halvings)
    found = term = eye(x.shape[-1], dtype=x.dtype) + x * 0
    for k in range(1, 18):
        term = matmul(term, scaled) / k
        found = found + term
    for _ in range(halvings):
        found = matmul(found, found)
    return found
