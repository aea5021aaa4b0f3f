"""Inverses, determinants, factors and solutions of linear systems, of matrices in the last two axes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.invalid import invalid
from pylayer.op import composed, op
from pylayer.ops.creation import eye
from pylayer.ops.joining import stack
from pylayer.ops.linalg import _adjoint, _swapped, matmul, matmul_
from pylayer.ops.norms import norm
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import broadcast_to, flatten, reshape, tril, triu, unsqueeze
from pylayer.tensor import Tensor


def _square(x: Array) -> Array:
    """`x`, if its last two axes are those of square matrices."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError("Input must be a square matrix in its last two axes")
    return x


def _inv_vjp(g: Any, F: Any, out: Any) -> Any:
    """−x⁻ᴴ g x⁻ᴴ (Giles, 2008, section 2.2.3)."""
    adjoint = _adjoint(F, out)
    return -F.matmul(F.matmul(adjoint, g), adjoint)


@op(x=_inv_vjp)
def inv(xp: ModuleType, x: Array) -> Array:
    """The inverses of matrices that are not singular."""
    try:
        return xp.linalg.inv(_square(x))
    except xp.linalg.LinAlgError as error:
        raise ValueError(f"the input matrix is singular ({error})") from None


inverse = inv


def _times_inverse(g: Any, F: Any, x: Any) -> Any:
    """g · x⁻ᴴ for a number g per matrix."""
    return F.reshape(g, [*g.shape, 1, 1]) * F.inv(_adjoint(F, x))


@op(x=lambda g, F, x, out: _times_inverse(g * out.conjugate(), F, x))
def det(xp: ModuleType, x: Array) -> Array:
    """The determinants; their gradient needs the inverse, so it exists where that does."""
    return xp.linalg.det(_square(x))


@op(x=_times_inverse)
def logabsdet(xp: ModuleType, x: Array) -> Array:
    """The logarithms of the absolute values of the determinants."""
    return xp.linalg.slogdet(_square(x))[1]


@op()
def signdet(xp: ModuleType, x: Array) -> Array:
    """The signs of the determinants."""
    return xp.linalg.slogdet(_square(x))[0]


slogdet = composed("slogdet", lambda x: stack([signdet(x), logabsdet(x)], 0))


def solve(x: Tensor, y: Tensor, left: bool = True) -> Tensor:
    """The z with ``x @ z == y``, or with ``z @ x == y`` if not `left`; `y` may be a vector."""
    if not left:
        return _swapped(solve(_swapped(x), _swapped(y)))
    if y.ndim == 1:
        return reshape(matmul_(inv(x), unsqueeze(y, -1)), [*x.shape[:-1]])
    return matmul_(inv(x), y)


def triangular_solve(
    x: Tensor, y: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Tensor:
    """`solve` for triangular matrices, upper or lower: what lies on the other side of the diagonal is not read.

    With `transpose` the system is that of the transpose; with `unitriangular` the diagonal is taken as ones.
    """
    keep = triu if upper else tril
    triangle = keep(x, (1 if upper else -1) if unitriangular else 0)
    if unitriangular:
        triangle = triangle + eye(x.shape[-1], dtype=x.dtype)
    return solve(_swapped(triangle) if transpose else triangle, y)


def _cholesky_vjp(g: Any, F: Any, out: Any) -> Any:
    """L⁻ᵀ Φ(Lᵀ g) L⁻¹ made symmetric, Φ halving the diagonal of the lower triangle (Murray, 2016, equation 8)."""
    inverse_factor = F.inv(out)
    lower = F.tril(F.matmul(_adjoint(F, out), F.tril(g, 0)), 0)
    halved = (lower + F.tril(lower, -1)) / 2
    found = F.matmul(F.matmul(_adjoint(F, inverse_factor), halved), inverse_factor)
    return (found + _adjoint(F, found)) / 2


@op(x=_cholesky_vjp)
def cholesky_(xp: ModuleType, x: Array) -> Array:
    """The lower triangular L with L Lᵀ = x, of the symmetric part of x: its gradient is symmetric, too."""
    try:
        return xp.linalg.cholesky((_square(x) + xp.swapaxes(x, -1, -2).conj()) / 2)
    except xp.linalg.LinAlgError as error:
        raise ValueError(f"the input matrix is not positive definite ({error})") from None


def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """The triangular factor of symmetric positive definite matrices: the lower one, or the upper."""
    factor: Tensor = cholesky_(x)
    return _swapped(factor) if upper else factor


def matrix_power(x: Tensor, n: int) -> Tensor:
    """The product of `n` times the matrix; of its inverse if `n` is negative."""
    _square(x.array)
    if n < 0:
        return matrix_power(inv(x), -n)
    result = broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape) + x * 0  # a gradient flows, if it is zero
    while n:  # by squaring
        if n % 2:
            result = matmul(result, x)
        n //= 2
        x = matmul(x, x) if n else x
    return result


def multi_dot(x: Sequence[Tensor]) -> Tensor:
    """The product of at least two matrices, the first and last of which may be vectors; from left to right."""
    if len(x) < 2:
        raise invalid(f"multi_dot(): needs at least two Tensors, but got {len(x)}")
    return functools.reduce(matmul, x)


def vector_norm(x: Tensor, p: float = 2.0, axis: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of the vectors along `axis`, or of all elements as one; see `norm`."""
    if axis is None:
        flat = norm(flatten(x), p, 0)
        return reshape(flat, [1] * x.ndim) if keepdim else flat
    return norm(x, p, axis, keepdim)


matrix_norm = composed("matrix_norm", lambda x, p="fro", axis=(-2, -1), keepdim=False: norm(x, p, list(axis), keepdim))


matrix_transpose = composed("matrix_transpose", lambda x: _swapped(x))
vecdot = composed("vecdot", lambda x, y, axis=-1: total(x.conjugate() * y, axis))
