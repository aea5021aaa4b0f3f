"""Factors of matrices in the last two axes: orthogonal, singular values, eigenvalues; and what is made of them.

The derivatives of eigenvectors and singular vectors exist where no two values are equal.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

from pylayer.array import XP, Array
from pylayer.op import op
from pylayer.ops.creation import eye
from pylayer.ops.elementwise import abs as absolute
from pylayer.ops.elementwise import maximum
from pylayer.ops.fourier import _complex
from pylayer.ops.indexing import getitem, where_
from pylayer.ops.joining import concat
from pylayer.ops.linalg import _adjoint, _swapped, matmul
from pylayer.ops.reduction import max as largest_of
from pylayer.ops.reduction import min as smallest_of
from pylayer.ops.reduction import norm
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import cast, reshape, unsqueeze
from pylayer.ops.solving import inv, triangular_solve
from pylayer.tensor import Tensor

METHODS = (
    "cholesky_solve", "cond", "eig", "eigvals", "eigvalsh", "lstsq", "pinv", "qr",
)  # fmt: skip
"""The functions that are methods of Tensor as well."""


@op()
def diagonal_ones(xp: ModuleType, x: Array) -> Array:
    """The unit matrix of the size of the last axis, in the dtype of x."""
    return xp.eye(x.shape[-1], dtype=x.dtype)


def _column(F: Any, x: Any) -> Any:
    """A vector as a column."""
    return F.reshape(x, [*x.shape, 1])


def _row(F: Any, x: Any) -> Any:
    """A vector as a row."""
    return F.reshape(x, [*x.shape[:-1], 1, x.shape[-1]])


def _over_gaps(F: Any, matrix: Any, values: Any) -> Any:
    """Elements (i, j) over values[j] − values[i], and 0 on the diagonal."""
    same = F.diagonal_ones(values) != 0
    gaps = _row(F, values) - _column(F, values)
    return F.where(same, 0, matrix / F.where(same, 1, gaps).conjugate())


# --------------------------------------------------------------------------- orthogonal
def _qr_vjp(g: Any, F: Any, out: Any) -> Any:
    """(gQ + Q · copyltu(R gRᴴ − gQᴴ Q)) R⁻ᴴ, the lower triangle copied to the upper (Walter et al., 2012)."""
    q, r = out
    m = F.matmul(r, _adjoint(F, g[1])) - F.matmul(_adjoint(F, g[0]), q)
    mirrored = F.tril(m, 0) + _adjoint(F, F.tril(m, -1))
    return F.matmul(g[0] + F.matmul(q, mirrored), _adjoint(F, F.inv(r)))


@op(x=_qr_vjp)
def qr_(xp: ModuleType, x: Array) -> list[Array]:
    """Q with orthonormal columns and R upper triangular, of matrices with at least as many rows as columns."""
    return list(xp.linalg.qr(x))


@op()
def qr_complete(xp: ModuleType, x: Array) -> list[Array]:
    """Q a square orthogonal matrix, and R."""
    return list(xp.linalg.qr(x, mode="complete"))


def qr(x: Tensor, mode: str = "reduced", name: str | None = None) -> Any:
    """Q and R with Q R = x; R alone with mode ``r``. With mode ``complete`` Q is square, and there is no gradient.

    Raises:
        ValueError: another mode.
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"QR doesn't support mode {mode!r}: it is reduced, complete or r.")
    rows, columns = x.shape[-2:]
    if mode == "complete" and rows > columns:
        q, r = qr_complete(x)
    elif rows >= columns:
        q, r = qr_(x)
    else:  # the columns beyond follow from the square part
        q, left = qr_(getitem(x, (..., slice(rows))))
        r = concat([left, matmul(_swapped(q).conj(), getitem(x, (..., slice(rows, None))))], -1)
    return r if mode == "r" else (q, r)


# --------------------------------------------------------------------------- singular values
def _svd_vjp(g: Any, F: Any, out: Any) -> Any:
    """The derivative of a singular value decomposition of real matrices (Townsend, 2016, equation 34)."""
    (gu, gs, gvh), (u, s, vh) = g, out
    v, gv = _adjoint(F, vh), _adjoint(F, gvh)
    squares = s * s

    def skew(left: Any, right: Any) -> Any:
        product = F.matmul(_adjoint(F, left), right)
        return _over_gaps(F, product - _adjoint(F, product), squares)

    middle = skew(u, gu) * _row(F, s) + _column(F, s) * skew(v, gv) + F.diagonal_ones(s) * _row(F, gs)
    found = F.matmul(F.matmul(u, middle), vh)
    if u.shape[-2] > s.shape[-1]:
        beside = gu - F.matmul(u, F.matmul(_adjoint(F, u), gu))
        found = found + F.matmul(beside / _row(F, s), vh)
    if vh.shape[-1] > s.shape[-1]:
        beside = gvh - F.matmul(F.matmul(gvh, v), vh)
        found = found + F.matmul(u, beside / _column(F, s))
    return found


def _finite(xp: ModuleType, x: Array) -> Array:
    """The matrices as they are: LAPACK's decomposition (gesdd) need not end on one with an infinite entry.

    Raises:
        ValueError: an entry is not finite, as the release raises there.
    """
    if not xp.isfinite(x).all().item():
        raise ValueError("singular values need a matrix of finite entries, and this one has an infinity or a NaN")
    return x


@op(x=_svd_vjp)
def svd_(xp: ModuleType, x: Array) -> list[Array]:
    """U, the singular values from the largest on, and the adjoint of V, without what belongs to none."""
    return list(xp.linalg.svd(_finite(xp, x), full_matrices=False))


@op()
def svd_full(xp: ModuleType, x: Array) -> list[Array]:
    """As `svd_`, U and V square."""
    return list(xp.linalg.svd(_finite(xp, x), full_matrices=True))


def svd(
    x: Tensor, full_matrices: bool = False, name: str | None = None, *, out: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and Vᴴ with U · diag(S) · Vᴴ = x. With `full_matrices` U and V are square, and there is no gradient."""
    u, s, vh = svd_full(x) if full_matrices and x.shape[-1] != x.shape[-2] else svd_(x)
    return u, s, vh


def svdvals(x: Tensor, name: str | None = None) -> Tensor:
    """The singular values, from the largest on."""
    return svd(x)[1]


# --------------------------------------------------------------------------- eigenvalues
def _eigh_vjp(g: Any, F: Any, out: Any) -> Any:
    """V (diag(gw) + Vᴴ gV over the gaps) Vᴴ, made symmetric as the input is (Giles, 2008, section 3.1)."""
    (gw, gv), (w, v) = g, out
    inner = _over_gaps(F, F.matmul(_adjoint(F, v), gv), w) + F.diagonal_ones(w) * _row(F, gw)
    found = F.matmul(F.matmul(v, inner), _adjoint(F, v))
    return (found + _adjoint(F, found)) / 2


@op(x=_eigh_vjp)
def eigh_(xp: ModuleType, x: Array) -> list[Array]:
    """Eigenvalues, from the smallest on, and eigenvectors of the symmetric part of x."""
    return list(xp.linalg.eigh((x + xp.swapaxes(x, -1, -2).conj()) / 2))


def _check_triangle(UPLO: str) -> None:
    if UPLO not in ("L", "U"):
        raise ValueError(f"UPLO must be L or U. But received UPLO is: {UPLO}")


def eigh(x: Tensor, UPLO: str = "L", name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues, from the smallest on, and eigenvectors, as columns, of symmetric (or Hermitian) matrices.

    Args:
        UPLO: the triangle that Paddle reads; the engine takes the symmetric part, the same for symmetric matrices.

    Raises:
        ValueError: another `UPLO`.
    """
    _check_triangle(UPLO)
    w, v = eigh_(x)
    return w, v


def eigvalsh(x: Tensor, UPLO: str = "L", name: str | None = None) -> Tensor:
    """The eigenvalues of symmetric matrices; see `eigh`."""
    return eigh(x, UPLO)[0]


def _eig_vjp(g: Any, F: Any, out: Any) -> Any:
    """V⁻ᴴ (diag(gw) + (Vᴴ gV − Vᴴ V Re diag(Vᴴ gV)) over the gaps) Vᴴ, of vectors of length 1.

    LAPACK turns each so that its largest component is real. That turning's part of the derivative is put into gV first:
    i · c over that component, with c the imaginary part of gᴴ v.
    """
    (gw, gv), (w, v) = g, out
    at = F.largest_components(v)
    turned = F.imag(F.sum(gv.conjugate() * v, [-2], None, True)) / F.real(F.sum(v * at, [-2], None, True))
    gv = gv + at * F.complex(turned * 0, turned)
    inner = F.matmul(_adjoint(F, v), gv)
    lengths = F.sum(F.real(inner) * F.real(F.diagonal_ones(w)), [-2], None, True)
    inner = inner - F.matmul(_adjoint(F, v), v) * lengths
    inner = _over_gaps(F, inner, w) + F.diagonal_ones(w) * _row(F, gw)
    return F.matmul(F.matmul(F.inv(_adjoint(F, v)), inner), _adjoint(F, v))


@op()
def largest_components(xp: ModuleType, v: Array) -> Array:
    """1 where a column has its largest component, else 0."""
    at = xp.argmax(xp.abs(v), -2)
    rows = xp.arange(v.shape[-2]).reshape(-1, 1)
    return (rows == at[..., None, :]).astype(v.dtype)


@op(x=_eig_vjp)
def eig_(xp: ModuleType, x: Array) -> list[Array]:
    """Eigenvalues and eigenvectors, of length 1 and with a real largest component, of complex matrices."""
    return list(xp.linalg.eig(x))


def eig(x: Tensor, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The eigenvalues, complex and in no order, and the eigenvectors, as columns, of square matrices."""
    w, v = eig_(_complex(x))
    return w, v


def eigvals(x: Tensor, name: str | None = None) -> Tensor:
    """The eigenvalues; see `eig`."""
    return eig(x)[0]


# --------------------------------------------------------------------------- made of them
def pinv(x: Tensor, rcond: Any = 1e-15, hermitian: bool = False, name: str | None = None) -> Tensor:
    """The pseudo-inverse: singular values up to `rcond` times the largest count as 0."""
    u, s, vh = svd(x)
    limit = largest_of(s, -1, True) * rcond
    kept = s > limit
    inverse = where_(kept, 1.0 / where_(kept, s, 1.0), 0.0)
    return matmul(_swapped(vh).conj() * unsqueeze(inverse, -2), _swapped(u).conj())


def matrix_rank(
    x: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    atol: Any = None,
    rtol: Any = None,
    name: str | None = None,
) -> Tensor:
    """How many singular values are above a tolerance.

    Args:
        tol: absolute; unless given, `atol` or `rtol` times the largest, whichever is more.
        rtol: the larger size of the matrix times the dtype's epsilon, unless given, or 0 beside an `atol`.
    """
    values = absolute(eigvalsh(x)) if hermitian else svdvals(x)
    if tol is None:
        xp = XP[type(x.array)]
        usual = max(x.shape[-2:]) * float(xp.finfo(x.array.dtype).eps) if atol is None else 0.0
        relative = largest_of(values, -1, True) * (usual if rtol is None else rtol)
        tol = relative if atol is None else maximum(relative, relative * 0 + atol)
    elif isinstance(tol, Tensor) and tol.ndim:
        tol = unsqueeze(tol, -1)
    return total(cast(values > tol, "int64"), -1)  # type: ignore[no-any-return]


_ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


def cond(x: Tensor, p: Any = None, name: str | None = None) -> Tensor:
    """The condition number: the norm times that of the inverse; for None, 2 and −2 the ratio of singular values.

    Raises:
        ValueError: another `p`, or matrices that are not square where the inverse is needed.
    """
    if p not in (None, *_ORDERS):
        raise ValueError(f"unsupported {p} for p, only supporting ('fro', 'nuc', 1, -1, 2, -2, inf, -inf) or none")
    if p in (None, 2, -2):
        s = svdvals(x)
        ratio = largest_of(s, -1) / smallest_of(s, -1)
        return 1 / ratio if p == -2 else ratio  # type: ignore[no-any-return]
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"only support p is none, 2 or -2 when the input is not square, but the shape is {x.shape}.")
    if p == "nuc":
        return total(svdvals(x), -1) * total(svdvals(inv(x)), -1)  # type: ignore[no-any-return]
    axes = [x.ndim - 2, x.ndim - 1]
    return norm(x, p, axes) * norm(inv(x), p, axes)


def lstsq(
    x: Tensor, y: Tensor, rcond: Any = None, driver: str | None = None, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The z of least ``|x z − y|``: with it the squared residuals, the rank of x and its singular values.

    Args:
        rcond: singular values up to this times the largest count as 0; the size times epsilon unless given.
        driver: gelsy, gels, gelsd or gelss: the singular values are empty with the first two, as in Paddle.

    Raises:
        ValueError: another driver.
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


def cholesky_solve(x: Tensor, y: Tensor, upper: bool = False, name: str | None = None) -> Tensor:
    """The z with ``A z = x``, given the triangular factor `y` of A."""
    if upper:
        return triangular_solve(y, triangular_solve(y, x, upper=True, transpose=True), upper=True)
    return triangular_solve(y, triangular_solve(y, x, upper=False), upper=False, transpose=True)


def cholesky_inverse(x: Tensor, upper: bool = False, name: str | None = None) -> Tensor:
    """The inverse of A, given its triangular factor."""
    return cholesky_solve(eye(x.shape[-1], dtype=x.dtype), x, upper)


def matrix_exp(x: Tensor, name: str | None = None) -> Tensor:
    """Σ xᵏ / k!: scaled to a norm of at most ½, summed to 18 terms (the rest is below 1e-21), and squared again."""
    size = float(XP[type(x.array)].abs(x.array).sum(-1).max().item()) if x.size else 0.0
    halvings = max(0, math.ceil(math.log2(size)) + 1) if size > 0.5 else 0
    scaled = x / 2.0**halvings
    found = term = eye(x.shape[-1], dtype=x.dtype) + x * 0
    for k in range(1, 18):
        term = matmul(term, scaled) / k
        found = found + term
    for _ in range(halvings):
        found = matmul(found, found)
    return found
