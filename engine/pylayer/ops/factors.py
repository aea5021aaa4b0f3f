"""Orthogonal factors, singular values and eigenvalues of the matrices in the last two axes.

The derivatives of singular vectors and eigenvectors exist where no two values are equal.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.op import composed, op
from pylayer.ops.creation import eye
from pylayer.ops.fourier import _complex
from pylayer.ops.indexing import getitem
from pylayer.ops.joining import concat
from pylayer.ops.linalg import _adjoint, _swapped, column, matmul, row
from pylayer.ops.shape import broadcast_to, tril
from pylayer.tensor import Tensor


@op()
def diagonal_ones(xp: ModuleType, x: Array) -> Array:
    """The unit matrix of the size of the last axis, in the dtype of x."""
    return xp.eye(x.shape[-1], dtype=x.dtype)


def over_gaps(F: Any, matrix: Any, values: Any) -> Any:
    """Elements (i, j) over values[j] − values[i], and 0 on the diagonal."""
    same = F.diagonal_ones(values) != 0
    gaps = row(F, values) - column(F, values)
    return F.where(same, 0, matrix / F.where(same, 1, gaps).conjugate())


# --------------------------------------------------------------------------- orthogonal
def _qr_vjp(g: Any, F: Any, out: Any) -> Any:
    """(gQ + Q · copyltu(R gRᴴ − gQᴴ Q)) R⁻ᴴ, the lower triangle copied to the upper (Walter et al., 2012)."""
    q, r = out
    m = F.matmul(r, _adjoint(F, g[1])) - F.matmul(_adjoint(F, g[0]), q)
    mirrored = F.tril(m, 0) + _adjoint(F, F.tril(m, -1))
    return F.matmul(g[0] + F.matmul(q, mirrored), _adjoint(F, F.inv(r)))


@op(x=_qr_vjp)
def qr_(xp: ModuleType, x: Array) -> tuple[Array, ...]:
    """Q with orthonormal columns and R upper triangular, of matrices with at least as many rows as columns."""
    return tuple(xp.linalg.qr(x))


@op()
def qr_complete(xp: ModuleType, x: Array) -> tuple[Array, ...]:
    """Q a square orthogonal matrix, and R."""
    return tuple(xp.linalg.qr(x, mode="complete"))


def qr(x: Tensor, mode: str = "reduced") -> Any:
    """Q and R with Q R = x; R alone with mode ``r``. With mode ``complete`` Q is square, and there is no gradient."""
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


def householder_product(x: Tensor, tau: Tensor) -> Tensor:
    """The first n columns of H₁ H₂ … Hₖ with Hᵢ = I - τᵢ wᵢ wᵢᴴ, of x [..., m, n] and tau [..., k]; else an
    AssertionError.

    The vector wᵢ has zeros above place i, 1 there, and column i of x below.
    """
    if x.dtype is not tau.dtype:
        raise AssertionError("The input x must have the same dtype with input tau.")
    if x.ndim < 2 or tau.shape[:-1] != x.shape[:-2] or x.ndim != tau.ndim + 1:
        raise AssertionError(
            f"The input x must be [..., m, n] and tau [..., k], but the shapes are {x.shape} and {tau.shape}."
        )
    if not x.shape[-2] >= x.shape[-1] >= tau.shape[-1]:
        raise AssertionError(
            f"The rows of x must be as many as its columns or more, and these as many as tau has elements or more, but "
            f"the shapes are {x.shape} and {tau.shape}."
        )
    product = eye(x.shape[-2], None, x.dtype)
    below = tril(x, -1) + product[:, : x.shape[-1]]
    for k in range(tau.shape[-1]):
        w = below[..., :, k : k + 1]
        product = product - matmul(matmul(product, w), _swapped(w).conj()) * tau[..., k : k + 1].unsqueeze(-1)
    whole: Tensor = broadcast_to(product, [*x.shape[:-2], x.shape[-2], x.shape[-2]])
    return whole[..., :, : x.shape[-1]]


# --------------------------------------------------------------------------- singular values
def _svd_vjp(g: Any, F: Any, out: Any) -> Any:
    """The derivative of a singular value decomposition of real matrices (Townsend, 2016, equation 34)."""
    (gu, gs, gvh), (u, s, vh) = g, out
    v, gv = _adjoint(F, vh), _adjoint(F, gvh)
    squares = s * s

    def skew(left: Any, right: Any) -> Any:
        product = F.matmul(_adjoint(F, left), right)
        return over_gaps(F, product - _adjoint(F, product), squares)

    middle = skew(u, gu) * row(F, s) + column(F, s) * skew(v, gv) + F.diagonal_ones(s) * row(F, gs)
    found = F.matmul(F.matmul(u, middle), vh)
    if u.shape[-2] > s.shape[-1]:
        beside = gu - F.matmul(u, F.matmul(_adjoint(F, u), gu))
        found = found + F.matmul(beside / row(F, s), vh)
    if vh.shape[-1] > s.shape[-1]:
        beside = gvh - F.matmul(F.matmul(gvh, v), vh)
        found = found + F.matmul(u, beside / column(F, s))
    return found


def _finite(xp: ModuleType, x: Array) -> Array:
    """The matrices, of finite entries: LAPACK's decomposition (gesdd) need not end on an infinite one, and the release
    raises."""
    if not xp.isfinite(x).all().item():
        raise ValueError("singular values need a matrix of finite entries, and this one has an infinity or a NaN")
    return x


@op(x=_svd_vjp)
def svd_(xp: ModuleType, x: Array) -> tuple[Array, ...]:
    """U, the singular values from the largest on, and the adjoint of V, without what belongs to none."""
    return tuple(xp.linalg.svd(_finite(xp, x), full_matrices=False))


@op()
def svd_full(xp: ModuleType, x: Array) -> tuple[Array, ...]:
    """As `svd_`, U and V square."""
    return tuple(xp.linalg.svd(_finite(xp, x), full_matrices=True))


def svd(x: Tensor, full_matrices: bool = False, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and Vᴴ with U · diag(S) · Vᴴ = x. With `full_matrices` U and V are square, and there is no gradient."""
    u, s, vh = svd_full(x) if full_matrices and x.shape[-1] != x.shape[-2] else svd_(x)
    return u, s, vh


svdvals = composed("svdvals", lambda x: svd(x)[1])


# --------------------------------------------------------------------------- eigenvalues
def _eigh_vjp(g: Any, F: Any, out: Any) -> Any:
    """V (diag(gw) + Vᴴ gV over the gaps) Vᴴ, made symmetric as the input is (Giles, 2008, section 3.1)."""
    (gw, gv), (w, v) = g, out
    inner = over_gaps(F, F.matmul(_adjoint(F, v), gv), w) + F.diagonal_ones(w) * row(F, gw)
    found = F.matmul(F.matmul(v, inner), _adjoint(F, v))
    return (found + _adjoint(F, found)) / 2


@op(x=_eigh_vjp)
def eigh(xp: ModuleType, x: Array, UPLO: str = "L") -> tuple[Array, ...]:
    """Eigenvalues, from the smallest on, and eigenvectors, as columns, of symmetric (or Hermitian) matrices.

    `UPLO` is the triangle that Paddle reads; the engine takes the symmetric part, the same for symmetric matrices.
    """
    if UPLO not in ("L", "U"):
        raise ValueError(f"UPLO must be L or U. But received UPLO is: {UPLO}")
    return tuple(xp.linalg.eigh((x + xp.swapaxes(x, -1, -2).conj()) / 2))


eigvalsh = composed("eigvalsh", lambda x, UPLO="L": eigh(x, UPLO)[0])


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
    inner = over_gaps(F, inner, w) + F.diagonal_ones(w) * row(F, gw)
    return F.matmul(F.matmul(F.inv(_adjoint(F, v)), inner), _adjoint(F, v))


@op()
def largest_components(xp: ModuleType, v: Array) -> Array:
    """1 where a column has its largest component, else 0."""
    at = xp.argmax(xp.abs(v), -2)
    rows = xp.arange(v.shape[-2]).reshape(-1, 1)
    return (rows == at[..., None, :]).astype(v.dtype)


@op(x=_eig_vjp)
def eig_(xp: ModuleType, x: Array) -> tuple[Array, ...]:
    """Eigenvalues and eigenvectors, of length 1 and with a real largest component, of complex matrices."""
    return tuple(xp.linalg.eig(x))


def eig(x: Tensor) -> tuple[Tensor, Tensor]:
    """The eigenvalues, complex and in no order, and the eigenvectors, as columns, of square matrices."""
    w, v = eig_(_complex(x))
    return w, v


eigvals = composed("eigvals", lambda x: eig(x)[0])
