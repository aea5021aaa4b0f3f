"""NumPy's operations in the engine's: ufuncs, their methods, and functions. What is not here is told as a leak.

A rule of a ufunc takes the dtype of the result and the operands, Tensors and plain values; one of a function takes the
arguments of the call. A rule has the parameters that it implements: any other is an error, and so no rule. Functions
that NumPy itself writes in Python need none: `numpy_proxy` runs that code on recorded arrays.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pylayer.ops.arithmetic as more
import pylayer.ops.complexes as complexes
import pylayer.ops.eigenvalues as eigenvalues
import pylayer.ops.elementwise as ops
import pylayer.ops.factors as factors
import pylayer.ops.fourier as fourier
import pylayer.ops.linalg as linalg
import pylayer.ops.reduction as reduction
import pylayer.ops.shape as shapes
import pylayer.ops.solving as solving
from pylayer.ops.gathering import take_along_axis
from pylayer.ops.indexing import add_at, where_
from pylayer.ops.joining import concat
from pylayer.tensor import Tensor
from pylayer.watch.numpy_array import RecordedArray, replaced
from pylayer.watch.numpy_dispatch import (
    ASKS,
    FUNCTIONS,
    METHODS,
    MOVES,
    OURS,
    SHAPED,
    UFUNCS,
    VIEWS,
    Rule,
    Unruled,
    tell_decision,
)

MISSING: Any = np._NoValue
LONGEST = 4096
"""The most elements that are reduced one after the other, where no operation of the engine does it."""


def as_tensor(value: Any, dtype: Any) -> Tensor:
    """An operand as a Tensor of a dtype."""
    if isinstance(value, (list, tuple)) and any(isinstance(v, (Tensor, list, tuple)) for v in value):
        raise Unruled
    if isinstance(value, Tensor):
        if value.array.dtype.kind == "c" and np.dtype(dtype).kind == "f":
            raise Unruled
        return shapes.astype(value, dtype)
    return Tensor(np.asarray(value).astype(dtype))


def number(value: Any, dtype: Any) -> Any:
    """A plain operand without axes as a number that follows the dtype of the other; any other as a Tensor."""
    if isinstance(value, (int, float, complex, np.generic)) and np.dtype(dtype).kind in "fc":
        plain = np.asarray(value).item()
        if isinstance(plain, (int, float)) and not isinstance(plain, bool):
            return plain
    return as_tensor(value, dtype)


# --------------------------------------------------------------------------- ufuncs
def one(function: Callable[..., Any]) -> Rule:
    """A ufunc of one operand."""

    def rule(dtype: Any, x: Tensor) -> Any:
        return function(x if dtype.kind == "f" and x.array.dtype.kind == "c" else as_tensor(x, dtype))

    return rule


def two(function: Callable[..., Any], numbers: bool = False) -> Rule:
    """A ufunc of two operands; `numbers` may stay numbers."""
    converted = number if numbers else as_tensor

    def rule(dtype: Any, x: Any, y: Any) -> Any:
        return function(converted(x, dtype), converted(y, dtype))

    return rule


def power(dtype: Any, x: Any, y: Any) -> Any:
    base, exponent = number(x, dtype), number(y, dtype)
    if not isinstance(base, Tensor) and base <= 0:
        base = as_tensor(x, dtype)
    if isinstance(base, Tensor) and not isinstance(exponent, Tensor) and exponent == 2:
        return ops.square(base)
    return ops.power(base, exponent)


def magnitude(dtype: Any, x: Tensor) -> Any:
    if x.array.dtype.kind != "c":
        return ops.abs(x)
    return more.hypot_(complexes.real(x), complexes.imag(x))


def truncated_remainder(dtype: Any, x: Any, y: Any) -> Any:
    x, y = as_tensor(x, dtype), as_tensor(y, dtype)
    return x - ops.trunc(x / y) * y


def parts(dtype: Any, x: Tensor) -> Any:
    whole = ops.trunc(x)
    return x - whole, whole


def quotient(dtype: Any, x: Any, y: Any) -> Any:
    x, y = as_tensor(x, dtype), as_tensor(y, dtype)
    return ops.floor(x / y), ops.remainder(x, y)


def mantissa(dtype: Any, x: Tensor) -> Any:
    exponent = np.frexp(x.array)[1]
    return x * Tensor(np.ldexp(1.0, -exponent).astype(x.array.dtype)), Tensor(exponent)


UFUNCS |= {
    np.add: two(lambda x, y: x + y, True), np.subtract: two(lambda x, y: x - y, True),
    np.multiply: two(lambda x, y: x * y, True), np.divide: two(lambda x, y: x / y, True),
    np.power: power, np.float_power: power, np.maximum: two(ops.maximum), np.minimum: two(ops.minimum),
    np.fmax: two(ops.fmax), np.fmin: two(ops.fmin), np.remainder: two(ops.remainder), np.fmod: truncated_remainder,
    np.floor_divide: two(lambda x, y: ops.floor(x / y)), np.divmod: quotient, np.arctan2: two(ops.atan2),
    np.hypot: two(more.hypot_), np.copysign: two(more.copysign), np.heaviside: two(more.heaviside),
    np.logaddexp: two(more.logaddexp), np.matmul: two(linalg.matmul_),
    np.logaddexp2: two(lambda x, y: more.logaddexp(x * math.log(2), y * math.log(2)) / math.log(2)),
    np.negative: one(lambda x: -x), np.positive: one(shapes.clone), np.absolute: magnitude, np.fabs: one(ops.abs),
    np.conjugate: one(complexes.conj), np.reciprocal: one(ops.reciprocal), np.square: one(ops.square),
    np.sqrt: one(ops.sqrt), np.exp: one(ops.exp), np.expm1: one(ops.expm1), np.log: one(ops.log),
    np.log2: one(ops.log2), np.log10: one(ops.log10), np.log1p: one(ops.log1p), np.sin: one(ops.sin),
    np.cos: one(ops.cos), np.tan: one(ops.tan), np.arcsin: one(ops.asin), np.arccos: one(ops.acos),
    np.arctan: one(ops.atan), np.sinh: one(ops.sinh), np.cosh: one(ops.cosh), np.tanh: one(ops.tanh),
    np.arcsinh: one(ops.asinh), np.arccosh: one(ops.acosh), np.arctanh: one(ops.atanh),
    np.exp2: one(lambda x: ops.exp(x * math.log(2))), np.sign: one(ops.sign), np.floor: one(ops.floor),
    np.ceil: one(ops.ceil), np.trunc: one(ops.trunc), np.rint: one(ops.round),
    np.cbrt: one(lambda x: ops.sign(x) * ops.pow(ops.abs(x), 1 / 3)), np.modf: parts, np.frexp: mantissa,
    np.deg2rad: one(lambda x: x * (math.pi / 180)), np.rad2deg: one(lambda x: x * (180 / math.pi)),
    np.radians: one(lambda x: x * (math.pi / 180)), np.degrees: one(lambda x: x * (180 / math.pi)),
    np.ldexp: lambda dtype, x, y: as_tensor(x, dtype) * Tensor(np.ldexp(1.0, plain(y)).astype(dtype)),
}  # fmt: skip


def plain(value: Any) -> Any:
    """An operand without its place in the graph, for what decides and is not differentiated."""
    if type(value) is RecordedArray:
        return value._plain()
    return value.array if isinstance(value, Tensor) else value


# --------------------------------------------------------------------------- methods of ufuncs
def axes_of(axis: Any, ndim: int) -> list[int]:
    """The axes that a reduction goes over."""
    named = range(ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    return [int(plain(k)) % max(ndim, 1) for k in named]


DIRECT: dict[Any, Callable[..., Any]] = {
    np.add: lambda x, axis, keep: reduction.sum(x, axis, None, keep), np.multiply: reduction.prod,
    np.maximum: reduction.max, np.minimum: reduction.min, np.logaddexp: reduction.logsumexp,
}  # fmt: skip
"""Reductions that the engine has."""
RUNNING: dict[Any, Callable[..., Any]] = {np.add: reduction.cumsum, np.multiply: reduction.cumprod}


def reduce(
    ufunc: Any,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: None = None,
    keepdims: Any = False,
    initial: Any = MISSING,
    where: Any = True,
) -> Any:
    """``ufunc.reduce``."""
    keepdims = bool(keepdims is not MISSING and keepdims)
    where = True if where is MISSING else where
    if dtype is None and array.dtype.kind == "b" and ufunc in (np.add, np.multiply):
        dtype = np.dtype(int)
    array = array if dtype is None else array.astype(dtype)
    if where is not True:
        neutral = ufunc.identity if ufunc.identity is not None else initial
        if neutral is MISSING or neutral is None:
            raise Unruled
        array = np.where(where, array, array.dtype.type(neutral))
    axes = axes_of(axis, array.ndim)
    if not array.ndim:
        found = array
    elif ufunc in DIRECT:
        found = as_array(DIRECT[ufunc](array._tensor(), axes, keepdims), array)
    else:
        if len(axes) != 1 or not 0 < array.shape[axes[0]] <= LONGEST:
            raise Unruled
        found = functools.reduce(ufunc, list(np.moveaxis(array, axes[0], 0)))
        found = np.expand_dims(found, axes[0]) if keepdims else found
    return found if initial is MISSING or initial is None else ufunc(found, initial)


def as_array(tensor: Tensor, of: RecordedArray) -> Any:
    """A Tensor as an array of the session of another."""
    like = tensor.array if tensor.ndim else tensor.array[()]
    return RecordedArray._fresh(tensor, like, of._buffer.live, of._buffer.session)


def accumulate(ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, out: None = None) -> Any:
    """``ufunc.accumulate``."""
    array = array if dtype is None else array.astype(dtype)
    if ufunc in RUNNING:
        return RUNNING[ufunc](array._tensor(), int(plain(axis)))
    rows = np.moveaxis(array, axis, 0)
    if not 0 < len(rows) <= LONGEST:
        raise Unruled
    found = [rows[0]]
    for row in rows[1:]:
        found.append(ufunc(found[-1], row))
    return np.stack(found, axis)


def reduceat(ufunc: Any, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: None = None) -> Any:
    """``ufunc.reduceat``."""
    rows = np.moveaxis(array, axis, 0)
    at = [int(k) for k in np.atleast_1d(plain(indices))]
    ends = [*at[1:], len(rows)]
    found = [ufunc.reduce(rows[i:j], 0, dtype) if i < j else rows[i] for i, j in zip(at, ends, strict=True)]
    return np.stack(found, axis)


def outer(ufunc: Any, x: Any, y: Any, **options: Any) -> Any:
    """``ufunc.outer``."""
    return ufunc(np.reshape(x, np.shape(x) + (1,) * np.ndim(y)), y, **options)


def at(ufunc: Any, array: Any, index: Any, value: Any = None) -> None:
    """``ufunc.at``: as often as a place is named, once each time."""
    where = np.array(array._positions()[replaced(index, RecordedArray._plain)])
    rank = occurrence(where.ravel())
    given = None if value is None else np.broadcast_to(value, where.shape).astype(array.dtype).ravel()
    if ufunc is np.add and array._part is None and array._where is None:
        live = array._buffer.live or (recorded_given(given) and given._buffer.live)
        added = given._tensor() if recorded_given(given) else Tensor(given)
        flat = add_at(shapes.reshape(array._tensor(), [-1]), where.ravel(), added)
        array._write(shapes.reshape(flat, list(array.shape)), None, live)
        return
    for k in range(int(rank.max(initial=-1)) + 1):
        chosen = np.flatnonzero(rank == k)
        now = array._view(where.ravel()[chosen])
        array._assign(where.ravel()[chosen], ufunc(now) if given is None else ufunc(now, given[chosen]))


def recorded_given(value: Any) -> bool:
    return type(value) is RecordedArray


def occurrence(numbers: Any) -> Any:
    """How often each number stands before its place."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    first = np.searchsorted(ordered, ordered)
    rank = np.empty(numbers.size, np.intp)
    rank[order] = np.arange(numbers.size) - first
    return rank


METHODS |= {"reduce": reduce, "accumulate": accumulate, "reduceat": reduceat, "outer": outer, "at": at}


# --------------------------------------------------------------------------- reductions
def over_axis(ufunc: Any) -> Rule:
    """NumPy's function of the same name as a reduction: over all axes unless given."""

    def rule(
        a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False,
        initial: Any = MISSING, where: Any = True,
    ) -> Any:  # fmt: skip
        return reduce(ufunc, a, axis, dtype, None, keepdims, initial, where)

    return rule


def extreme(ufunc: Any) -> Rule:
    def rule(
        a: Any, axis: Any = None, out: None = None, keepdims: Any = False, initial: Any = MISSING, where: Any = True
    ) -> Any:
        return reduce(ufunc, a, axis, None, None, keepdims, initial, where)

    return rule


def count(a: Any, axis: Any, where: Any, keepdims: bool) -> Any:
    """How many elements a mean is of."""
    if where is True or where is MISSING:
        return math.prod(a.shape[k] for k in axes_of(axis, a.ndim))
    mask = np.broadcast_to(plain(where), a.shape)
    return mask.sum(axis=None if axis is None else tuple(axes_of(axis, a.ndim)), keepdims=keepdims)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    keepdims = bool(keepdims is not MISSING and keepdims)
    if where is True or where is MISSING:
        a = a if dtype is None else a.astype(dtype)
        return reduction.mean(a._tensor(), axes_of(axis, a.ndim), keepdims)
    return np.sum(a, axis, dtype, keepdims=keepdims, where=where) / count(a, axis, where, keepdims)


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = MISSING, correction: Any = MISSING,
) -> Any:  # fmt: skip
    keepdims = bool(keepdims is not MISSING and keepdims)
    where = True if where is MISSING else where
    a = a if dtype is None else a.astype(dtype)
    centred = a - (np.mean(a, axis, keepdims=True, where=where) if mean is MISSING else mean)
    squares = np.square(centred) if a.dtype.kind != "c" else (centred * np.conj(centred)).real
    total = np.sum(squares, axis, keepdims=keepdims, where=where)
    ddof = ddof if correction is MISSING else correction
    return total / np.maximum(count(a, axis, where, keepdims) - ddof, 0)


def std(*args: Any, **kwargs: Any) -> Any:
    return np.sqrt(var(*args, **kwargs))


def running(ufunc: Any) -> Rule:
    def rule(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        return accumulate(ufunc, a.reshape(-1) if axis is None else a, axis or 0, dtype)

    return rule


def ordered(a: Any, axis: Any = -1, kind: Any = None, order: None = None, *, stable: Any = None) -> Any:
    a, axis = (a.reshape(-1), 0) if axis is None else (a, int(axis))
    return along(a, np.argsort(a._plain(), axis, kind="stable"), axis)


def partitioned(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: None = None) -> Any:
    a, axis = (a.reshape(-1), 0) if axis is None else (a, int(axis))
    return along(a, np.argpartition(a._plain(), plain(kth), axis, kind), axis)


def along(a: Any, order: Any, axis: int) -> Any:
    """The elements in an order that their values decide."""
    tell_decision("argsort", [a], axis)
    return take_along_axis(a._tensor(), Tensor(order), axis % a.ndim)


def between(function: Any) -> Rule:
    """A quantile; of one share as of a list of one, for NumPy's code writes into its result."""

    def rule(a: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
        found = FUNCTIONS[None](function, a, np.atleast_1d(q), *args, **kwargs)
        return found if np.ndim(q) else found[0]

    return rule


def unique(ar: Any, *, axis: Any = None, equal_nan: bool = True) -> Any:
    first = np.unique(ar._plain(), return_index=True, axis=axis, equal_nan=equal_nan)[1]
    tell_decision("argsort", [ar], -1)
    return ar.reshape(-1)[first] if axis is None else np.take(ar, first, axis)


# --------------------------------------------------------------------------- elementwise
def where(condition: Any, x: Any, y: Any) -> Any:
    chosen = plain(condition)
    given = [replaced(v, RecordedArray._tensor) for v in (x, y)]
    dtype = np.result_type(*(plain(v) if np.ndim(plain(v)) or not isinstance(v, (int, float)) else v for v in given))
    mask, sizes = np.asarray(chosen, dtype=bool), np.broadcast_shapes(np.shape(chosen), np.shape(x), np.shape(y))
    if recorded_given(condition) and condition.dtype.kind in "fc":
        tell_decision("nonzero", [condition])
    return shapes.broadcast_to(where_(Tensor(mask), *(as_tensor(v, dtype) for v in given)), list(sizes))


def clip(a: Any, a_min: Any = MISSING, a_max: Any = MISSING, out: None = None, *, min: Any = MISSING,
         max: Any = MISSING, dtype: Any = None) -> Any:  # fmt: skip
    low, high = (
        next((v for v in pair if v is not MISSING and v is not None), None) for pair in ((a_min, min), (a_max, max))
    )
    bounds = [plain(v) for v in (low, high) if v is not None]
    numbers = not any(recorded_given(v) and v._buffer.live for v in (low, high)) and all(
        np.ndim(b) == 0 for b in bounds
    )
    if dtype is None and numbers and recorded_given(a) and np.result_type(a._plain(), *bounds) == a.dtype:
        low, high = (None if v is None else np.asarray(plain(v)).item() for v in (low, high))
        if low is None or high is None or low <= high:
            return ops.clip_(a._tensor(), low, high)
    a = a if low is None else np.maximum(a, low)
    return a if high is None else np.minimum(a, high)


def rounded(a: Any, decimals: Any = 0, out: None = None) -> Any:
    return ops.round(a._tensor(), int(decimals))


def interpolated(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: None = None) -> Any:
    if period is not None:
        raise Unruled
    places, known = np.asarray(plain(x)), np.asarray(plain(xp))
    k = np.clip(np.searchsorted(known, places, "right") - 1, 0, max(known.size - 2, 0))
    tell_decision("searchsorted", [v for v in (xp, x) if recorded_given(v)])
    x, xp, fp = (v if recorded_given(v) else np.asarray(v) for v in (x, xp, fp))
    found = fp[k] + (fp[k + 1] - fp[k]) * ((x - xp[k]) / (xp[k + 1] - xp[k]))
    found = np.where(places < known[0], fp[0] if left is None else left, found)
    return np.where(places > known[-1], fp[-1] if right is None else right, found)


# --------------------------------------------------------------------------- products
def dot(a: Any, b: Any, out: None = None) -> Any:
    if not np.ndim(a) or not np.ndim(b):
        return np.multiply(a, b)
    return np.matmul(a, b) if np.ndim(b) <= 2 else np.tensordot(a, b, (-1, -2))


def vdot(a: Any, b: Any) -> Any:
    return np.dot(np.conj(np.ravel(a)), np.ravel(b))


def inner(a: Any, b: Any) -> Any:
    return np.dot(a, b) if not np.ndim(a) or not np.ndim(b) else np.tensordot(a, b, (-1, -1))


def einsum(*operands: Any, out: None = None, dtype: Any = None, order: Any = "K", casting: Any = "safe",
           optimize: Any = False) -> Any:  # fmt: skip
    equation, *arrays = operands
    common = np.result_type(*map(plain, arrays)) if dtype is None else np.dtype(dtype)
    return linalg.einsum(equation, *(as_tensor(replaced(v, RecordedArray._tensor), common) for v in arrays))


def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = (a, v) if len(a) >= len(v) else (v, a)
    n, m = len(a), len(v)
    padded = np.concatenate([np.zeros(m - 1, a.dtype), a, np.zeros(m - 1, a.dtype)])
    full = np.matmul(padded[np.arange(n + m - 1)[:, None] + np.arange(m)], v[::-1])
    return {"full": full, "same": full[(m - 1) // 2 :][:n], "valid": full[m - 1 : n]}[mode]


def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    if len(a) < len(v) and mode != "full":
        raise Unruled
    return np.convolve(a, np.conj(v[::-1]), mode)


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    places = np.asarray(plain(x))
    total = np.zeros_like(weights, shape=max(int(places.max(initial=-1)) + 1, minlength), dtype=float)
    np.add.at(total, places, weights)
    return total


# --------------------------------------------------------------------------- linear algebra
def of_tensors(function: Callable[..., Any]) -> Rule:
    """A rule on arrays as one on Tensors, all of the common dtype."""

    def rule(*args: Any, **kwargs: Any) -> Any:
        dtype = np.result_type(*(v.dtype for v in args if isinstance(v, (np.ndarray, RecordedArray))), np.float32)
        is_array = (np.ndarray, RecordedArray)
        given = [as_tensor(replaced(v, RecordedArray._tensor), dtype) if isinstance(v, is_array) else v for v in args]
        return function(*given, **kwargs)

    return rule


def swapped(x: Tensor) -> Tensor:
    return shapes.swapaxes(x, -1, -2)


def of_triangle(x: Tensor, lower: bool) -> Tensor:
    """The Hermitian matrix of which a triangle is given: the other one is not read."""
    x = x if lower else complexes.conj(swapped(x)) if x.array.dtype.kind == "c" else swapped(x)
    below = shapes.tril(x, -1)
    other = swapped(complexes.conj(below) if x.array.dtype.kind == "c" else below)
    diagonal = shapes.tril(shapes.triu(x))
    if x.array.dtype.kind == "c":
        diagonal = shapes.astype(complexes.real(diagonal), x.dtype)
    return below + diagonal + other


def solve(a: Tensor, b: Tensor) -> Tensor:
    vector = b.ndim == 1
    found = linalg.matmul_(solving.inv(a), shapes.unsqueeze(b, -1) if vector else b)
    return shapes.squeeze(found, -1) if vector else found


def cholesky(a: Tensor, /, *, upper: bool = False) -> Tensor:
    return solving.cholesky(of_triangle(a, not upper), upper)


def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    w, v = of_tensors(lambda x: eigenvalues.eigh_(of_triangle(x, UPLO.upper() == "L")))(a)
    turned = np.sum(np.conj(v.array) * np.linalg.eigh(a._plain(), UPLO)[1], axis=-2, keepdims=True)
    return w, v * Tensor(np.sign(turned.real)) if v.array.dtype.kind == "f" else v


def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    return eigh(a, UPLO)[0]


def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: None = None) -> Any:
    return np.sum(np.diagonal(a, offset, axis1, axis2), -1, dtype)


def svd(a: Tensor, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if hermitian or (full_matrices and compute_uv and a.shape[-1] != a.shape[-2]):
        raise Unruled
    found = factors.svd_(a)
    return found if compute_uv else found[1]


def qr(a: Tensor, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "r"):
        raise Unruled
    return factors.qr(a, mode)


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    matrix, right = np.asarray(plain(a)), np.asarray(plain(b))
    _, residuals, rank, sizes = np.linalg.lstsq(matrix, right, rcond)
    if rank < min(matrix.shape) or matrix.shape[0] < matrix.shape[1]:
        raise Unruled
    adjoint = np.conj(np.swapaxes(a, -1, -2))
    found = np.linalg.solve(np.matmul(adjoint, a), np.matmul(adjoint, b))
    rest = np.abs(b - np.matmul(a, found)) ** 2
    lengths = np.linalg.svd(a, compute_uv=False) if recorded_given(a) else sizes
    return found, np.sum(rest, 0) if residuals.size and right.ndim > 1 else (
        np.sum(rest, 0, keepdims=True) if residuals.size else residuals
    ), rank, lengths  # fmt: skip


def transform(function: Callable[..., Any]) -> Rule:
    """A Fourier transform along one axis."""

    def rule(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: None = None) -> Any:
        return function(a._tensor(), n, int(axis), norm or "backward")

    return rule


def transforms(function: Callable[..., Any], last: Any) -> Rule:
    """A Fourier transform along several axes."""

    def rule(a: Any, s: Any = None, axes: Any = last, norm: Any = None, out: None = None) -> Any:
        return function(a._tensor(), s, axes, norm or "backward")

    return rule


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    FUNCTIONS[getattr(np.fft, _name)] = transform(getattr(fourier, _name))
for _name in ("fft", "ifft", "rfft", "irfft"):
    FUNCTIONS[getattr(np.fft, f"{_name}2")] = transforms(getattr(fourier, f"{_name}2"), (-2, -1))
    FUNCTIONS[getattr(np.fft, f"{_name}n")] = transforms(getattr(fourier, f"{_name}n"), None)


def slogdet(a: Tensor) -> Any:
    return solving.slogdet(a)[0], solving.slogdet(a)[1]


def joined(arrays: Any, axis: Any = 0, out: None = None, *, dtype: Any = None, casting: Any = None) -> Any:
    items = [replaced(v, RecordedArray._tensor) for v in arrays]
    items = items if axis is not None else [np.ravel(v) for v in arrays]
    common = np.result_type(*(plain(v) if not hasattr(plain(v), "dtype") else plain(v).dtype for v in items))
    dtype = common if dtype is None else np.dtype(dtype)
    return concat([as_tensor(replaced(v, RecordedArray._tensor), dtype) for v in items], int(axis or 0))


FUNCTIONS |= {
    np.sum: over_axis(np.add), np.prod: over_axis(np.multiply), np.max: extreme(np.maximum),
    np.min: extreme(np.minimum), np.amax: extreme(np.maximum), np.amin: extreme(np.minimum), np.mean: mean,
    np.var: var, np.std: std, np.cumsum: running(np.add), np.cumprod: running(np.multiply), np.sort: ordered,
    np.partition: partitioned,    np.unique: unique,
    np.where: where, np.clip: clip, np.round: rounded, np.around: rounded, 
    np.interp: interpolated, np.dot: dot, np.vdot: vdot, np.inner: inner, np.einsum: einsum,
    np.convolve: convolve, np.correlate: correlate, np.bincount: bincount, np.concatenate: joined, 
     
    np.linalg.inv: of_tensors(solving.inv), np.linalg.solve: of_tensors(solve), np.linalg.det: of_tensors(solving.det),
    np.linalg.slogdet: of_tensors(slogdet), np.linalg.cholesky: of_tensors(cholesky), np.linalg.svd: of_tensors(svd),
    np.linalg.qr: of_tensors(qr),  np.linalg.lstsq: lstsq,
    np.linalg.eigh: eigh, np.linalg.eigvalsh: eigvalsh, np.trace: trace,
    np.copy: lambda a, order="K", subok=False: shapes.clone(a._tensor()),
    np.quantile: between(np.quantile), np.percentile: between(np.percentile),
    np.linalg.eig: of_tensors(eigenvalues.eig), np.linalg.eigvals: of_tensors(eigenvalues.eigvals),
}  # fmt: skip

for _name in (
    "transpose swapaxes moveaxis rollaxis matrix_transpose permute_dims reshape ravel squeeze expand_dims broadcast_to "
    "diagonal flip fliplr flipud rot90 split array_split hsplit vsplit dsplit unstack atleast_1d atleast_2d atleast_3d"
).split():
    if hasattr(np, _name):  # some came with NumPy 2.1
        VIEWS[getattr(np, _name)] = 0
VIEWS[np.lib.stride_tricks.sliding_window_view] = 0
for _name in ("matrix_transpose", "diagonal"):
    if hasattr(np.linalg, _name):
        VIEWS[getattr(np.linalg, _name)] = 0

MOVES |= {
    np.take: [(0, "a")], np.repeat: [(0, "a")], np.tile: [(0, "A")], np.delete: [(0, "arr")],
    np.insert: [(0, "arr"), (2, "values")], np.append: [(0, "arr"), (1, "values")], np.resize: [(0, "a")],
    np.tril: [(0, "m")], np.triu: [(0, "m")], np.diag: [(0, "v")], np.diagflat: [(0, "v")],
    np.pad: [(0, "array"), (9, "constant_values")], np.compress: [(1, "a")], np.extract: [(1, "arr")],
    np.choose: [(1, "choices")], np.select: [(1, "choicelist"), (2, "default")], np.take_along_axis: [(0, "arr")],
    np.vstack: [(0, "tup")], np.hstack: [(0, "tup")], np.dstack: [(0, "tup")], np.column_stack: [(0, "tup")],
    np.block: [(0, "arrays")], np.copyto: [(0, "dst"), (1, "src")], np.put: [(0, "a"), (2, "v")],
    np.place: [(0, "arr"), (2, "vals")], np.putmask: [(0, "a"), (2, "values")],
    np.fill_diagonal: [(0, "a"), (1, "val")], np.put_along_axis: [(0, "arr"), (2, "values")],
}  # fmt: skip

ASKS |= {
    np.shape, np.ndim, np.size, np.iscomplexobj, np.isrealobj, np.result_type, np.can_cast, np.min_scalar_type,
    np.common_type, np.isscalar, np.isfortran,
}  # fmt: skip


def broadcast_arrays(*arrays: Any, subok: bool = False) -> Any:
    sizes = np.broadcast_shapes(*map(np.shape, arrays))
    return tuple(np.broadcast_to(v, sizes) for v in arrays)


def memory_of(array: Any) -> Any:
    """Numbers that lie in memory as the elements do, and whose memory they are in."""
    return (array._positions(), array._buffer) if recorded_given(array) else (np.asarray(array), None)


def sharing(real: Any) -> Rule:
    def rule(a: Any, b: Any, max_work: Any = None) -> bool:
        (mine, buffer), (other, another) = memory_of(a), memory_of(b)
        return buffer is another and bool(real(mine, other))

    return rule


OURS |= {
    np.broadcast_arrays: broadcast_arrays, np.shares_memory: sharing(np.shares_memory),
    np.may_share_memory: sharing(np.may_share_memory), np.real: lambda val: val.real, np.imag: lambda val: val.imag,
}  # fmt: skip
SHAPED |= {np.zeros_like, np.ones_like, np.empty_like}
