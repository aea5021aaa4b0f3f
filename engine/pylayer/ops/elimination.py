"""Factors by elimination with row exchanges: P L U, of matrices in the last two axes, and solutions by them."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.op import op
from pylayer.ops.creation import eye
from pylayer.ops.gathering import take_along_axis
from pylayer.ops.indexing import getitem
from pylayer.ops.joining import _bounds
from pylayer.ops.linalg import _adjoint, matmul
from pylayer.ops.shape import broadcast_shape, broadcast_to, tril, triu, unsqueeze
from pylayer.ops.solving import triangular_solve
from pylayer.ops.sorting import of_graph
from pylayer.tensor import Tensor


def _eliminated(xp: ModuleType, x: Array, pivots: Array | None) -> Array:
    """L below the diagonal and U from it on, in one array; rows are exchanged, and noted from 1, if `pivots` is given.

    In each column the row of the largest absolute value is exchanged with the first that is left, as LAPACK (getrf)
    does. A column of zeros is left as it is.
    """
    a = x.copy().reshape(math.prod(x.shape[:-2]), *x.shape[-2:])
    batch = xp.arange(len(a))
    for k in range(min(x.shape[-2:])):
        if pivots is not None:
            chosen = k + xp.argmax(xp.abs(a[:, k:, k]), -1)
            pivots[:, k] = chosen + 1
            first = a[:, k].copy()
            a[:, k] = a[batch, chosen]
            a[batch, chosen] = first
        pivot = a[:, k, k, None]
        a[:, k + 1 :, k] /= xp.where(pivot == 0, 1, pivot)
        a[:, k + 1 :, k + 1 :] -= a[:, k + 1 :, k, None] * a[:, k, None, k + 1 :]
    return a.reshape(x.shape)


@op()
def lu_pivots(xp: ModuleType, x: Array) -> list[Array]:
    """The row that each was exchanged with, from 1, and the number of the first pivot that is 0, or 0: int32."""
    if x.ndim < 2:
        raise ValueError("The rank of input must be at least 2")
    least = min(x.shape[-2:])
    pivots = xp.zeros((math.prod(x.shape[:-2]), least), "int32")
    packed = _eliminated(xp, x, pivots)
    zero = xp.diagonal(packed, axis1=-2, axis2=-1) == 0
    first = xp.where(zero.any(-1), xp.argmax(zero, -1) + 1, 0) if least else xp.zeros(x.shape[:-2])
    return [pivots.reshape(*x.shape[:-2], least), first.astype("int32")]


@op()
def row_order(xp: ModuleType, pivots: Array, rows: int) -> Array:
    """Where each row of P⁻¹ x stands in x, of `rows` of them."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order = xp.broadcast_to(xp.arange(rows), (len(flat), rows)).copy()
    batch = xp.arange(len(flat))
    for k in range(flat.shape[1]):
        chosen = flat[:, k] - 1
        first = order[:, k].copy()
        order[:, k] = order[batch, chosen]
        order[batch, chosen] = first
    return order.reshape(*pivots.shape[:-1], rows)


def _lu_vjp(g: Any, F: Any, out: Any) -> Any:
    """Of A = L U, square: L⁻ᴴ (tril(Lᴴ gL, −1) + triu(gU Uᴴ)) U⁻ᴴ (Giles, 2008, by the product rule).

    Rows below are L₂ = A₂ U⁻¹ and columns beside U₂ = L⁻¹ A₂: their cotangents go to A₂ and on to U, or to L.
    """
    rows, columns = out.shape[-2:]
    k = min(rows, columns)

    def part(x: Any, below: bool, beside: bool) -> Any:
        return F.getitem(x, (..., slice(k, None) if below else slice(k), slice(k, None) if beside else slice(k)))

    square, g_lower = part(out, False, False), F.tril(part(g, False, False), -1)
    g_upper = F.triu(part(g, False, False), 0)
    lower = F.tril(square, -1) + F.diagonal_ones(F.getitem(square, (..., 0)))
    upper = F.triu(square, 0)
    over_lower, over_upper = F.inv(_adjoint(F, lower)), F.inv(_adjoint(F, upper))
    rest = None
    if rows > k:
        rest = F.matmul(part(g, True, False), over_upper)
        g_upper = g_upper - F.triu(F.matmul(_adjoint(F, part(out, True, False)), rest), 0)
    elif columns > k:
        rest = F.matmul(over_lower, part(g, False, True))
        g_lower = g_lower - F.tril(F.matmul(rest, _adjoint(F, part(out, False, True))), -1)
    middle = F.tril(F.matmul(_adjoint(F, lower), g_lower), -1) + F.triu(F.matmul(g_upper, _adjoint(F, upper)), 0)
    found = F.matmul(F.matmul(over_lower, middle), over_upper)
    axis = out.ndim - (2 if rows > k else 1)
    return found if rest is None else F.concat([found, rest], axis, _bounds([found, rest], axis))


@op(x=_lu_vjp)
def lu_ordered(xp: ModuleType, x: Array) -> Array:
    """L and U in one, of matrices whose rows need no exchange."""
    return _eliminated(xp, x, None)


def _reordered(x: Tensor, order: Tensor) -> Tensor:
    """The rows of `x` in another order."""
    return take_along_axis(x, broadcast_to(unsqueeze(order, -1), x.shape), -2)


def lu(x: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """L (its ones left out) and U in one Tensor, and the row, from 1, that each was exchanged with; a RuntimeError of
    integers.

    With `get_infos` a third Tensor says which pivot is the first that is 0, counted from 1; 0 if none is.
    """
    if not pivot:
        raise ValueError("(InvalidArgument) lu without pivoting is not implemented on the CPU, but got pivots=False")
    if x.dtype.rank < 2:
        raise RuntimeError(f"(NotFound) lu(): the dtype {x.dtype.name} is not supported. Cast it to float64.")
    pivots, info = lu_pivots(x)
    packed = lu_ordered(_reordered(x, row_order(pivots, x.shape[-2])))
    exchanged = of_graph(x, pivots)
    return (packed, exchanged, of_graph(x, info)) if get_infos else (packed, exchanged)


@op()
def permutation_matrix(xp: ModuleType, order: Array, dtype: Any) -> Array:
    """The P whose column i is 1 in row order[i]."""
    return (xp.arange(order.shape[-1])[:, None] == order[..., None, :]).astype(dtype)


def lu_unpack(
    x: Tensor, y: Tensor, unpack_ludata: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U with P L U the matrix that gave `lu`'s results x and y; empty Tensors for what is not unpacked."""
    if x.ndim < 2:
        raise ValueError(f"The shape of x should be (*, M, N), but received ndim is [{x.ndim} < 2]")
    if y.ndim < 1:
        raise ValueError(f"The shape of Pivots should be (*, K), but received ndim is [{y.ndim} < 1]")
    rows, k = x.shape[-2], min(x.shape[-2:])
    nothing = Tensor(x.array[:0])
    order = row_order(y, rows)
    permutation = of_graph(x, permutation_matrix(order, x.dtype.numpy)) if unpack_pivots else nothing
    if not unpack_ludata:
        return permutation, nothing, nothing
    lower = getitem(x, (..., slice(k)))
    return permutation, tril(lower, -1) + eye(rows, k, x.dtype), triu(getitem(x, (..., slice(k), slice(None))))


def lu_solve(b: Tensor, lu: Tensor, pivots: Tensor, trans: str = "N") -> Tensor:
    """The X with A X = b, or with Aᵀ X = b unless `trans` is N, by the factors of A."""
    if b.ndim < 2 or lu.ndim < 2 or pivots.ndim < 1:
        raise ValueError(f"`b`, `lu` and `pivots` need 2, 2 and 1 axes, but have {b.ndim}, {lu.ndim} and {pivots.ndim}")
    if b.shape[-2] != lu.shape[-2] or lu.shape[-1] != lu.shape[-2] or pivots.shape[-1] != lu.shape[-1]:
        raise ValueError(
            f"the rows of `b`, those and the columns of `lu`, and the `pivots` must be as many, but the shapes are "
            f"{b.shape}, {lu.shape} and {pivots.shape}"
        )
    batch = broadcast_shape(broadcast_shape(b.shape[:-2], lu.shape[:-2]), pivots.shape[:-1])
    b, lu = broadcast_to(b, [*batch, *b.shape[-2:]]), broadcast_to(lu, [*batch, *lu.shape[-2:]])
    order = row_order(broadcast_to(pivots, [*batch, pivots.shape[-1]]), lu.shape[-1])
    if trans == "N":
        inner = triangular_solve(lu, _reordered(b, order), upper=False, unitriangular=True)
        return triangular_solve(lu, inner, upper=True)
    inner = triangular_solve(lu, b, upper=True, transpose=True)
    inner = triangular_solve(lu, inner, upper=False, transpose=True, unitriangular=True)
    return matmul(permutation_matrix(order, lu.dtype.numpy), inner)
