"""Eigenvalues and eigenvectors of the matrices in the last two axes.

The derivatives of eigenvectors exist where no two values are equal.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.op import composed, op
from pylayer.ops.factors import over_gaps, row
from pylayer.ops.fourier import _complex
from pylayer.ops.linalg import _adjoint
from pylayer.tensor import Tensor


def _eigh_vjp(g: Any, F: Any, out: Any) -> Any:
    """V (diag(gw) + Vᴴ gV over the gaps) Vᴴ, made symmetric as the input is (Giles, 2008, section 3.1)."""
    (gw, gv), (w, v) = g, out
    inner = over_gaps(F, F.matmul(_adjoint(F, v), gv), w) + F.diagonal_ones(w) * row(F, gw)
    found = F.matmul(F.matmul(v, inner), _adjoint(F, v))
    return (found + _adjoint(F, found)) / 2


@op(x=_eigh_vjp)
def eigh(xp: ModuleType, x: Array, UPLO: str = "L") -> tuple[Array, ...]:
    """Eigenvalues, from the smallest on, and eigenvectors, as columns, of symmetric (or Hermitian) matrices.

    Args:
        UPLO: the triangle that Paddle reads; the engine takes the symmetric part, the same for symmetric matrices.

    Raises:
        ValueError: another `UPLO`.
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
