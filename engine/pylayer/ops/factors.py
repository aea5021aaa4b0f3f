"""Inverses, determinants and factors of the matrices in the last two axes, and solutions of linear
systems by them.

The derivatives of singular vectors and eigenvectors exist only if no two values are equal.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

from pylayer.ops.arguments import one_of, require
from pylayer.ops.complexes import as_complex_numbers
from pylayer.ops.creation import eye, full
from pylayer.ops.indexing import getitem, where_
from pylayer.ops.joining import concat
from pylayer.ops.linalg import _adjoint, column, matmul, matmul_, matrix_transpose, row
from pylayer.ops.shape import broadcast_to, reshape, tril, triu, unsqueeze
from pylayer.tape.op import Operation, composed, op
from pylayer.tensor.array import XP, Array
from pylayer.tensor.tensor import Tensor


@op(
    x=lambda g, F, out: -F.matmul(F.matmul(_adjoint(F, out), g), _adjoint(F, out))
)  # Giles, 2008, section 2.2.3
def inv(xp: ModuleType, x: Array) -> Array:
    """The inverses of matrices that are not singular."""
    return xp.linalg.inv(x)


inverse = inv


def _times_inverse(g: Any, F: Any, x: Any) -> Any:
    """g · x⁻ᴴ for a number g per matrix."""
    return F.reshape(g, [*g.shape, 1, 1]) * F.inv(_adjoint(F, x))


@op(x=lambda g, F, x, out: _times_inverse(g * out.conjugate(), F, x))
def det(xp: ModuleType, x: Array) -> Array:
    """The determinants; their gradient needs the inverse, so it exists only if the inverse does."""
    return xp.linalg.det(x)


@op(x=lambda g, F, x: _times_inverse(F.getitem(g, 1), F, x))
def slogdet(xp: ModuleType, x: Array) -> Array:
    """The signs of the determinants, and the logarithms of their absolute values."""
    sign, size = xp.linalg.slogdet(x)
    return xp.stack([sign, size])


def solve(x: Tensor, y: Tensor, left: bool = True) -> Tensor:
    """The z with ``x @ z == y``, or with ``z @ x == y`` if not `left`; `y` may be a vector, or one
    per matrix.
    """
    if not left:
        return matrix_transpose(solve(matrix_transpose(x), matrix_transpose(y)))
    if y.ndim == 1 or list(y.shape) == list(x.shape[:-1]):
        return reshape(matmul_(inv(x), unsqueeze(y, -1)), [*x.shape[:-1]])
    return matmul_(inv(x), y)


def triangular_solve(
    x: Tensor, y: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Tensor:
    """`solve` by one triangle of x, or by its transpose; with `unitriangular` the diagonal is taken
    as ones.
    """
    keep = triu if upper else tril
    triangle = keep(x, (1 if upper else -1) if unitriangular else 0)
    if unitriangular:
        triangle = triangle + eye(x.shape[-1], dtype=x.dtype)
    return solve(matrix_transpose(triangle) if transpose else triangle, y)


def _symmetric(xp: ModuleType, x: Array) -> Array:
    """The symmetric (or Hermitian) part of square matrices."""
    require(
        x.ndim > 1 and x.shape[-1] == x.shape[-2],
        "the matrices must be square, in the last two axes",
    )
    return (x + xp.swapaxes(x, -1, -2).conj()) / 2


@op(x=lambda g, F: F.tril(g, 0) + F.tril(_adjoint(F, g), -1))
def symmetric_from_lower(xp: ModuleType, x: Array) -> Array:
    """The symmetric matrices whose lower triangle is that of x: LAPACK does not read the other."""
    return xp.tril(x) + xp.swapaxes(xp.tril(x, -1), -1, -2)


def _cholesky_vjp(g: Any, F: Any, out: Any) -> Any:
    """L⁻ᵀ Φ(Lᵀ g) L⁻¹ made symmetric, where Φ halves the diagonal of the lower triangle (Murray,
    2016, equation 8).
    """
    inverse_factor = F.inv(out)
    lower = F.tril(F.matmul(_adjoint(F, out), F.tril(g, 0)), 0)
    halved = (lower + F.tril(lower, -1)) / 2
    gradient = F.matmul(F.matmul(_adjoint(F, inverse_factor), halved), inverse_factor)
    return (gradient + _adjoint(F, gradient)) / 2


@op(x=_cholesky_vjp)
def cholesky_(xp: ModuleType, x: Array) -> Array:
    """The lower triangular L with L Lᵀ = x, for the symmetric part of x; the gradient is symmetric
    too.
    """
    return xp.linalg.cholesky(_symmetric(xp, x))


cholesky = composed(
    "cholesky", lambda x, upper=False: matrix_transpose(cholesky_(x)) if upper else cholesky_(x)
)


def matrix_power(x: Tensor, n: int) -> Tensor:
    """The `n`-th power of the matrix, or of its inverse if `n` is negative."""
    require(
        x.ndim > 1 and x.shape[-1] == x.shape[-2], "matrix_power(): the matrices must be square", x
    )
    if n < 0:
        return matrix_power(inv(x), -n)
    if n == 0:  # a gradient flows, even if it is zero
        unit = broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
        return where_(full(x.shape, True), unit, x)
    odd, n = n % 2, n // 2
    result = x * 1 if odd else None
    while n:  # by squaring
        x = matmul(x, x)
        if n % 2:
            result = x if result is None else matmul(result, x)
        n //= 2
    assert result is not None
    return result


def cholesky_solve(x: Tensor, y: Tensor, upper: bool = False) -> Tensor:
    """The z with A z = x, given the triangular factor y of A."""
    fits = x.ndim > 1 and y.ndim > 1 and x.shape[-2] == y.shape[-2]
    require(fits, "cholesky_solve(): x must be matrices with as many rows as the factor", x, y)
    # Otherwise `solve` would take it for one vector per matrix.
    x = reshape(x, [1] * (y.ndim - x.ndim) + list(x.shape))
    return triangular_solve(y, triangular_solve(y, x, upper, upper), upper, not upper)


def matrix_exp(x: Tensor) -> Tensor:
    """Σ xᵏ / k!: scaled to a norm of at most ½, summed to 18 terms (the rest is below 1e-21), and
    squared again.
    """
    size = float(XP[type(x.array)].abs(x.array).sum(-1).max().item()) if x.size else 0.0
    halvings = max(0, math.ceil(math.log2(size)) + 1) if 0.5 < size < math.inf else 0
    scaled = x * math.ldexp(1.0, -halvings)
    result = term = eye(x.shape[-1], dtype=x.dtype) + x * 0
    for k in range(1, 18):
        term = matmul(term, scaled) / k
        result = result + term
    for _ in range(halvings):
        result = matmul(result, result)
    return result


@op()
def diagonal_ones(xp: ModuleType, x: Array) -> Array:
    """The identity matrix of the size of the last axis, in the dtype of x."""
    return xp.eye(x.shape[-1], dtype=x.dtype)


def over_gaps(F: Any, matrix: Any, values: Any) -> Any:
    """Elements (i, j) divided by values[j] − values[i]; 0 on the diagonal."""
    same = F.diagonal_ones(values) != 0
    gaps = row(F, values) - column(F, values)
    return F.where(same, 0, matrix / F.where(same, 1, gaps).conjugate())


# --------------------------------------------------------------------------- orthogonal
def _qr_vjp(g: Any, F: Any, out: Any) -> Any:
    """(gQ + Q · copyltu(R gRᴴ − gQᴴ Q)) R⁻ᴴ, where copyltu copies the lower triangle to the upper
    (Walter et al., 2012).
    """
    q, r = out
    m = F.matmul(r, _adjoint(F, g[1])) - F.matmul(_adjoint(F, g[0]), q)
    mirrored = F.tril(m, 0) + _adjoint(F, F.tril(m, -1))
    return F.matmul(g[0] + F.matmul(q, mirrored), _adjoint(F, F.inv(r)))


@op(x=_qr_vjp)
def qr_(xp: ModuleType, x: Array) -> tuple[Array, ...]:
    """Q with orthonormal columns and R upper triangular, of matrices with at least as many rows as
    columns.
    """
    return tuple(xp.linalg.qr(x))


@op()
def qr_complete(xp: ModuleType, x: Array) -> tuple[Array, ...]:
    """A square orthogonal Q, and R."""
    return tuple(xp.linalg.qr(x, mode="complete"))


def qr(x: Tensor, mode: str = "reduced") -> Any:
    """Q and R with Q R = x; only R with mode ``r``. With mode ``complete``, Q is square and there
    is no gradient.
    """
    one_of("qr(): `mode`", mode, "reduced", "complete", "r")
    rows, columns = x.shape[-2:]
    if mode == "complete" and rows > columns:
        q, r = qr_complete(x)
    elif rows >= columns:
        q, r = qr_(x)
    else:  # the columns beyond follow from the square part
        q, leading = qr_(getitem(x, (..., slice(rows))))
        r = concat(
            [leading, matmul(matrix_transpose(q).conj(), getitem(x, (..., slice(rows, None))))], -1
        )
    return r if mode == "r" else (q, r)


# --------------------------------------------------------------------------- singular values
def _svd_vjp(g: Any, F: Any, out: Any) -> Any:
    """The derivative of a singular value decomposition of real matrices (Townsend, 2016, equation
    34).
    """
    (gu, gs, gvh), (u, s, vh) = g, out
    v, gv = _adjoint(F, vh), _adjoint(F, gvh)
    squares = s * s

    def skew(vectors: Any, cotangent: Any) -> Any:
        product = F.matmul(_adjoint(F, vectors), cotangent)
        return over_gaps(F, product - _adjoint(F, product), squares)

    middle = skew(u, gu) * row(F, s) + column(F, s) * skew(v, gv) + F.diagonal_ones(s) * row(F, gs)
    gradient = F.matmul(F.matmul(u, middle), vh)
    if u.shape[-2] > s.shape[-1]:
        beside = gu - F.matmul(u, F.matmul(_adjoint(F, u), gu))
        gradient = gradient + F.matmul(beside / row(F, s), vh)
    if vh.shape[-1] > s.shape[-1]:
        beside = gvh - F.matmul(F.matmul(gvh, v), vh)
        gradient = gradient + F.matmul(u, beside / column(F, s))
    return gradient


def _singular(name: str, full: bool, **vjps: Any) -> Operation:
    """U, the singular values in descending order, and the adjoint of V; U and V are square, or
    without the vectors that have no singular value.
    """

    def forward(xp: ModuleType, x: Array) -> tuple[Array, ...]:
        # LAPACK (gesdd) may not terminate for an infinite entry, and the release raises
        text = "singular values need a matrix of finite entries, without an infinity or a NaN"
        require(xp.isfinite(x).all().item(), text)
        return tuple(xp.linalg.svd(x, full_matrices=full))

    return op(**vjps)(composed(name, forward))


svd_, svd_full = _singular("svd", False, x=_svd_vjp), _singular("svd_full", True)


def svd(x: Tensor, full_matrices: bool = False, *, out: Any = None) -> Any:
    """U, S and Vᴴ with U · diag(S) · Vᴴ = x. With `full_matrices` U and V are square, and there is
    no gradient.
    """
    return (svd_full if full_matrices and x.shape[-1] != x.shape[-2] else svd_)(x)


svdvals = composed("svdvals", lambda x: svd(x)[1])


# --------------------------------------------------------------------------- eigenvalues
def _eigh_vjp(g: Any, F: Any, out: Any) -> Any:
    """V (diag(gw) + Vᴴ gV over the gaps) Vᴴ, made symmetric like the input (Giles, 2008, section
    3.1).
    """
    (gw, gv), (w, v) = g, out
    inner = over_gaps(F, F.matmul(_adjoint(F, v), gv), w) + F.diagonal_ones(w) * row(F, gw)
    gradient = F.matmul(F.matmul(v, inner), _adjoint(F, v))
    return (gradient + _adjoint(F, gradient)) / 2


@op(x=_eigh_vjp)
def eigh(xp: ModuleType, x: Array, UPLO: str = "L") -> tuple[Array, ...]:
    """Eigenvalues in ascending order, and eigenvectors as columns, of the symmetric part, whatever
    `UPLO` is.
    """
    one_of("`UPLO`", UPLO, "L", "U")
    return tuple(xp.linalg.eigh(_symmetric(xp, x)))


eigvalsh = composed("eigvalsh", lambda x, UPLO="L": eigh(x, UPLO)[0])


def _eig_vjp(g: Any, F: Any, out: Any) -> Any:
    """V⁻ᴴ (diag(gw) + (Vᴴ gV − Vᴴ V Re diag(Vᴴ gV)) over the gaps) Vᴴ, of vectors of length 1.

    LAPACK rotates each vector so that its largest component is real. The derivative of this
    rotation is added to gV first: i · c divided by that component, with c the imaginary part of gᴴ
    v.
    """
    (gw, gv), (w, v) = g, out
    largest = F.largest_components(v)
    turned = F.imag(F.sum(gv.conjugate() * v, [-2], None, True)) / F.real(
        F.sum(v * largest, [-2], None, True)
    )
    gv = gv + largest * F.complex(turned * 0, turned)
    inner = F.matmul(_adjoint(F, v), gv)
    lengths = F.sum(F.real(inner) * F.real(F.diagonal_ones(w)), [-2], None, True)
    inner = inner - F.matmul(_adjoint(F, v), v) * lengths
    inner = over_gaps(F, inner, w) + F.diagonal_ones(w) * row(F, gw)
    return F.matmul(F.matmul(F.inv(_adjoint(F, v)), inner), _adjoint(F, v))


@op()
def largest_components(xp: ModuleType, v: Array) -> Array:
    """1 where a column has its largest component, otherwise 0."""
    largest_rows = xp.argmax(xp.abs(v), -2)
    rows = xp.arange(v.shape[-2]).reshape(-1, 1)
    return (rows == largest_rows[..., None, :]).astype(v.dtype)


@op(x=_eig_vjp)
def eig_(xp: ModuleType, x: Array) -> tuple[Array, ...]:
    """Eigenvalues and eigenvectors, of length 1 and with a real largest component, of complex
    matrices.
    """
    return tuple(xp.linalg.eig(x))


# The eigenvalues, complex and in no order, and the eigenvectors, as columns.
eig = composed("eig", lambda x: eig_(as_complex_numbers(x)), "tuple")
eigvals = composed("eigvals", lambda x: eig(x)[0])


# ------------------------------------------------------------ elimination with row exchanges: P L U
