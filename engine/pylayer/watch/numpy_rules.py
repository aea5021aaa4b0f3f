"""Rules for NumPy's ufuncs, their methods, and functions, in operations of the engine. A function
without a rule is reported as a leak.

A rule of a ufunc takes the dtype of the result and the operands, Tensors and plain values; one of a
function takes the arguments of the call. A rule has the parameters that it implements: a call with
any other counts as a call without a rule. Functions that NumPy implements in Python need no rule:
`numpy_proxy` runs that code on recorded arrays.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pylayer.ops.elementwise as ops
from pylayer.ops import complexes, factors, fourier, linalg, reduction
from pylayer.ops import shape as shapes
from pylayer.ops.indexing import add_at, where_
from pylayer.ops.joining import concat
from pylayer.ops.positions import take_along_axis
from pylayer.tape.vjp import OPS
from pylayer.tensor.tensor import Tensor
from pylayer.watch.numpy_array import Dispatched, RecordedArray, plain, stack_recorded
from pylayer.watch.numpy_dispatch import (
    FLOATS,
    FUNCTIONS,
    METHODS,
    OPERATIONS,
    REDUCTIONS,
    UFUNCS,
    Rule,
    Unruled,
    rearrange_elements,
    refuse_call,
    tell_decision,
)

LONGEST = 4096
"""The most elements that are reduced one by one if no operation of the engine does it."""


# --------------------------------------------------------------------------- operands
def is_recorded(value: Any) -> bool:
    """Whether a value is a recorded array."""
    return type(value) is RecordedArray


def as_tensor(value: Any, dtype: Any) -> Any:
    """A value as a Tensor of a dtype."""
    value = value._tensor() if type(value) is RecordedArray else value
    if not isinstance(value, Tensor):
        return Tensor(np.asarray(value).astype(dtype))
    if value.array.dtype == dtype:
        return value
    if value.array.dtype.kind == "c" and np.dtype(dtype).kind == "f":
        raise Unruled
    return shapes.astype(value, dtype)


def number(value: Any, dtype: Any) -> Any:
    """A plain operand without axes as a number that follows the dtype of the other; any other as a
    Tensor.
    """
    if (
        isinstance(value, (int, float, np.generic))
        and not is_recorded(value)
        and np.dtype(dtype).kind in "fc"
    ):
        scalar = value.item() if isinstance(value, np.generic) else value  # its dtype may be wider
        if isinstance(scalar, (int, float)) and not isinstance(scalar, bool):
            return scalar
    return as_tensor(value, dtype)


def axes_of(axis: Any, ndim: int) -> list[int]:
    """The axes of a reduction."""
    named = range(ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    return [int(plain(k)) % max(ndim, 1) for k in named]


# --------------------------------------------------------------------------- ufuncs
def unary_rule(function: Callable[..., Any]) -> Rule:
    """Make the rule of a ufunc of one operand."""
    return lambda dtype, x: function(
        x if dtype.kind == "f" and x.array.dtype.kind == "c" else as_tensor(x, dtype)
    )


def binary_rule(function: Callable[..., Any], numbers: bool = False) -> Rule:
    """Make the rule of a ufunc of two operands; with `numbers`, plain numbers stay numbers."""
    convert = number if numbers else as_tensor
    return lambda dtype, x, y: function(convert(x, dtype), convert(y, dtype))


def _power(dtype: Any, x: Any, y: Any) -> Any:
    base, exponent = number(x, dtype), number(y, dtype)
    if not isinstance(base, Tensor):
        return ops.power(base if base > 0 else as_tensor(x, dtype), exponent)
    return (
        ops.square(base)
        if not isinstance(exponent, Tensor) and exponent == 2
        else ops.power(base, exponent)
    )


def _magnitude(dtype: Any, x: Any) -> Any:
    is_complex = x.array.dtype.kind == "c"
    return ops.hypot_(complexes.real(x), complexes.imag(x)) if is_complex else ops.abs(x)


def _mantissa(dtype: Any, x: Any) -> Any:
    exponent = np.frexp(x.array)[1]
    return x * Tensor(np.ldexp(1.0, -exponent).astype(x.array.dtype)), Tensor(exponent)


for _name, _function in {
    **vars(ops),
    "conj": complexes.conj,
    "matmul": linalg.matmul,
    "vecdot": linalg.vecdot,
}.items():
    _ufunc = getattr(np, _name, None)  # by the names of the array API, which are the engine's
    if isinstance(_ufunc, np.ufunc) and getattr(
        getattr(_function, "op", None), "differentiable", True
    ):
        UFUNCS[_ufunc] = unary_rule(_function) if _ufunc.nin == 1 else binary_rule(_function)
UFUNCS |= {
    np.add: binary_rule(OPS["add"].apply, True),
    np.subtract: binary_rule(OPS["subtract"].apply, True),
    np.multiply: binary_rule(OPS["multiply"].apply, True),
    np.divide: binary_rule(OPS["divide"].apply, True),
    np.power: _power,
    np.float_power: _power,
    np.absolute: _magnitude,
    np.fmod: binary_rule(lambda x, y: x - ops.trunc(x / y) * y),
    np.floor_divide: binary_rule(lambda x, y: ops.floor(x / y)),
    np.divmod: binary_rule(lambda x, y: (ops.floor(x / y), ops.remainder(x, y))),
    np.rint: unary_rule(ops.round),
    np.logaddexp2: binary_rule(
        lambda x, y: ops.logaddexp(x * math.log(2), y * math.log(2)) / math.log(2)
    ),
    np.fabs: unary_rule(ops.abs),
    np.exp2: unary_rule(lambda x: ops.exp(x * math.log(2))),
    np.frexp: _mantissa,
    np.cbrt: unary_rule(lambda x: ops.sign(x) * ops.pow(ops.abs(x), 1 / 3)),
    np.radians: unary_rule(ops.deg2rad),
    np.modf: unary_rule(lambda x: (x - ops.trunc(x), ops.trunc(x))),
    np.degrees: unary_rule(ops.rad2deg),
    np.ldexp: lambda dtype, x, y: as_tensor(x, dtype) * Tensor(np.ldexp(1.0, y).astype(dtype)),
}
for _row in OPS.values():
    _kernel = _row.kernels[np.ndarray]
    if _row.differentiable and isinstance(_kernel, np.ufunc):
        OPERATIONS |= {(_kernel, _dtype): _row for _dtype in FLOATS}
REDUCTIONS |= {np.sum: OPS["sum"], np.mean: OPS["mean"], np.max: OPS["max"], np.min: OPS["min"]}
for _dtype in FLOATS:
    OPERATIONS |= {(np.negative, _dtype): OPS["neg"], (np.matmul, _dtype): OPS["matmul"]}
OPERATIONS[np.exp, FLOATS[0]] = OPS["exp"]  # it computes float32 in float64


# --------------------------------------------------------------------------- methods of ufuncs
WHOLE: dict[Any, Callable[..., Any]] = {
    np.add: lambda x, axis, keep: reduction.sum(x, axis, None, keep),
    np.multiply: reduction.prod,
    np.maximum: reduction.max,
    np.minimum: reduction.min,
    np.logaddexp: reduction.logsumexp,
}
"""Reductions that the engine has."""
RUNNING: dict[Any, Callable[..., Any]] = {np.add: reduction.cumsum, np.multiply: reduction.cumprod}


def _reduce(
    ufunc: Any,
    array: Any,
    axis: Any = 0,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    if where is not True:
        neutral = initial if ufunc.identity is None else ufunc.identity
        array = (
            np.where(where, array, array.dtype.type(neutral))
            if neutral is not None
            else refuse_call()
        )
    axes = axes_of(axis, array.ndim)
    if not array.ndim:
        result = array
    elif ufunc in WHOLE:
        result = WHOLE[ufunc](array._tensor(), axes, bool(keepdims))
    elif len(axes) == 1 and 0 < array.shape[axes[0]] <= LONGEST:
        result = functools.reduce(ufunc, list(np.moveaxis(array, axes[0], 0)))
        result = np.expand_dims(result, axes[0]) if keepdims else result
    else:
        refuse_call()
    return result if initial is None else UFUNCS[ufunc](array.dtype, result, initial)


def _accumulate(ufunc: Any, array: Any, axis: Any = 0) -> Any:
    if ufunc in RUNNING:
        return RUNNING[ufunc](array._tensor(), int(plain(axis)))
    rows = np.moveaxis(array, axis, 0)
    return (
        np.stack(list(itertools.accumulate(rows, ufunc)), axis)
        if len(rows) <= LONGEST
        else refuse_call()
    )


def _reduceat(ufunc: Any, array: Any, indices: Any, axis: Any = 0) -> Any:
    rows = np.moveaxis(array, axis, 0)
    starts = [int(k) for k in np.atleast_1d(plain(indices))]
    ends = [*starts[1:], len(rows)]
    parts = [
        ufunc.reduce(rows[i:j], 0) if i < j else rows[i] for i, j in zip(starts, ends, strict=True)
    ]
    return np.stack(parts, axis)


def _outer(ufunc: Any, x: Any, y: Any, **options: Any) -> Any:
    return ufunc(np.reshape(x, np.shape(x) + (1,) * np.ndim(y)), y, **options)


def _at(ufunc: Any, array: Any, index: Any, value: Any = None) -> None:
    """``ufunc.at``: applied once for each occurrence of a position."""
    positions = np.array(np.arange(array.size).reshape(array.shape)[plain(index)])
    places = positions.ravel()
    operand: Any = (
        None
        if value is None
        else np.broadcast_to(value, positions.shape).astype(array.dtype).ravel()
    )
    if ufunc in (np.add, np.subtract):
        added = as_tensor(operand if ufunc is np.add else -operand, array.dtype)
        flat = add_at(shapes.reshape(array._tensor(), [-1]), places, added)
        array._write(shapes.reshape(flat, list(array.shape)), array._positions())
        return
    for k, place in enumerate(places if places.size <= LONGEST else refuse_call()):
        element = tuple(slice(n, n + 1) for n in np.unravel_index(place, array.shape))
        array[element] = (
            ufunc(array[element]) if operand is None else ufunc(array[element], operand[k])
        )


METHODS |= {
    "reduce": _reduce,
    "accumulate": _accumulate,
    "reduceat": _reduceat,
    "outer": _outer,
    "at": _at,
}


# --------------------------------------------------------------------------- reductions
def _over(ufunc: Any) -> Rule:
    return lambda a, axis=None, *args, **options: _reduce(ufunc, a, axis, *args, **options)


def _running(ufunc: Any) -> Rule:
    return lambda a, axis=None: _accumulate(ufunc, a.reshape(-1) if axis is None else a, axis or 0)


def _count(a: Any, axis: Any, where: Any, keepdims: bool) -> Any:
    """The number of elements that a mean averages."""
    return np.broadcast_to(plain(where), a.shape).sum(
        axis=tuple(axes_of(axis, a.ndim)), keepdims=keepdims
    )


def _mean(a: Any, axis: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    if where is not True:
        return np.sum(a, axis, keepdims=keepdims, where=where) / _count(a, axis, where, keepdims)
    return reduction.mean(a._tensor(), axes_of(axis, a.ndim), bool(keepdims))


def _var(
    a: Any,
    axis: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    centred = a - (np.mean(a, axis, keepdims=True, where=where) if mean is None else mean)
    squares = np.square(centred) if a.dtype.kind != "c" else (centred * np.conj(centred)).real
    degrees = _count(a, axis, where, keepdims) - (ddof if correction is None else correction)
    return np.sum(squares, axis, keepdims=keepdims, where=where) / np.maximum(degrees, 0)


def _sort(a: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Any:
    return _in_order(a, axis, functools.partial(np.argsort, kind="stable"))


def _partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect") -> Any:
    return _in_order(
        a, axis, lambda values, along: np.argpartition(values, plain(kth), along, kind)
    )


def _in_order(a: Any, axis: Any, by: Callable[[Any, int], Any]) -> Any:
    a, axis = (a.reshape(-1), 0) if axis is None else (a, int(axis))
    order = by(a._memory, axis)
    tell_decision("argsort", [a], axis, order)
    return take_along_axis(a._tensor(), Tensor(order), axis % a.ndim)


def _quantile(function: Any) -> Rule:
    def rule(
        a: Any, q: Any, *args: Any, **kwargs: Any
    ) -> Any:  # of a list: NumPy's code writes into its result
        quantiles = FUNCTIONS[None](function, a, np.atleast_1d(q), *args, **kwargs)
        return quantiles if np.ndim(q) else quantiles[0]

    return rule


def _unique(ar: Any, *, axis: Any = None, equal_nan: bool = True) -> Any:
    first = np.unique(ar._memory, return_index=True, axis=axis, equal_nan=equal_nan)[1]
    tell_decision("argsort", [ar], -1, first)
    return ar.reshape(-1)[first] if axis is None else np.take(ar, first, axis)


# --------------------------------------------------------------------------- elementwise
def _where(condition: Any, x: Any, y: Any) -> Any:
    dtype = np.result_type(*plain((x, y)))
    sizes = np.broadcast_shapes(np.shape(condition), np.shape(x), np.shape(y))
    if is_recorded(condition) and condition.dtype.kind in "fc":
        tell_decision("nonzero", [condition])
    # A copy, because the code may change its own array later.
    mask = Tensor(np.array(plain(condition), dtype=bool))
    return shapes.broadcast_to(where_(mask, as_tensor(x, dtype), as_tensor(y, dtype)), list(sizes))


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = a_min if min is None else min, a_max if max is None else max
    a = a if low is None else np.maximum(a, low)
    return a if high is None else np.minimum(a, high)


def _round(a: Any, decimals: Any = 0) -> Any:
    return ops.round(a._tensor(), int(decimals))


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    places, known = np.asarray(plain(x)), np.asarray(plain(xp))
    k = np.clip(np.searchsorted(known, places, "right") - 1, 0, max(known.size - 2, 0))
    tell_decision("searchsorted", [xp, x], None, k)
    x, xp, fp = (v if is_recorded(v) else np.asarray(v) for v in (x, xp, fp))
    values = fp[k] + (fp[k + 1] - fp[k]) * ((x - xp[k]) / (xp[k + 1] - xp[k]))
    values = np.where(places < known[0], fp[0] if left is None else left, values)
    return np.where(places > known[-1], fp[-1] if right is None else right, values)


# --------------------------------------------------------------------------- products
def _dot(a: Any, b: Any) -> Any:
    if not np.ndim(a) or not np.ndim(b):
        return np.multiply(a, b)
    return np.matmul(a, b) if np.ndim(b) <= 2 else np.tensordot(a, b, (-1, -2))


def _inner(a: Any, b: Any) -> Any:
    return np.dot(a, b) if not np.ndim(a) or not np.ndim(b) else np.tensordot(a, b, (-1, -1))


def _einsum(equation: str, *arrays: Any, optimize: Any = False) -> Any:
    common = np.result_type(*plain(arrays))
    return linalg.einsum(equation, *(as_tensor(v, common) for v in arrays))


def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = (a, v) if len(a) >= len(v) else (v, a)
    n, m = len(a), len(v)
    padded = np.concatenate([np.zeros(m - 1, a.dtype), a, np.zeros(m - 1, a.dtype)])
    full = np.matmul(padded[np.arange(n + m - 1)[:, None] + np.arange(m)], v[::-1])
    return {"full": full, "same": full[(m - 1) // 2 :][:n], "valid": full[m - 1 : n]}[mode]


def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    return _convolve(a, np.conj(v[::-1]), mode)


def _bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    places = np.asarray(plain(x))
    total = np.zeros_like(
        weights, shape=max(int(places.max(initial=-1)) + 1, minlength), dtype=float
    )
    np.add.at(total, places, weights)
    return total


def _concatenate(arrays: Any, axis: Any = 0) -> Any:
    items = [np.ravel(stack_recorded(v)) if axis is None else stack_recorded(v) for v in arrays]
    common = np.result_type(*plain(items))
    return concat([as_tensor(v, common) for v in items], int(axis or 0))


# --------------------------------------------------------------------------- linear algebra
def on_tensors(function: Callable[..., Any]) -> Rule:
    """Convert a rule on arrays to one on Tensors, all cast to the common dtype."""

    def rule(*args: Any, **kwargs: Any) -> Any:
        kinds = (RecordedArray, np.ndarray)
        dtype = np.result_type(*(v.dtype for v in args if type(v) in kinds), np.float32)
        tensors = (as_tensor(v, dtype) if type(v) in kinds else v for v in args)
        return function(*tensors, **kwargs)

    return rule


def swap_axes(x: Any) -> Any:
    """Matrices with rows and columns exchanged."""
    return shapes.swapaxes(x, -1, -2)


def from_triangle(x: Any, lower: bool) -> Any:
    """The Hermitian matrix given by one triangle; LAPACK does not read the other."""
    if x.array.dtype.kind != "c":
        return factors.symmetric_from_lower(x if lower else swap_axes(x))
    x = x if lower else complexes.conj(swap_axes(x))
    below, diagonal = shapes.tril(x, -1), shapes.tril(shapes.triu(x))
    return (
        below + shapes.astype(complexes.real(diagonal), x.dtype) + swap_axes(complexes.conj(below))
    )


def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """The Cholesky factor, from the triangle that LAPACK reads."""
    return factors.cholesky(from_triangle(a, not upper), upper)


def eigh(a: Any, lower: bool, theirs: Any) -> Any:
    """The spectrum, with the phases of the eigenvectors that NumPy or SciPy returned."""
    w, v = factors.eigh(from_triangle(as_tensor(a, a.dtype), lower))
    return w, v * Tensor(np.round(np.sum(np.conj(v.array) * theirs, axis=-2, keepdims=True)))


def _eigh(a: Any, UPLO: Any = "L") -> Any:
    return eigh(a, UPLO.upper() == "L", np.linalg.eigh(a._memory, UPLO)[1])


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """U, S and Vᴴ, or only S; not followed where U or V has more columns than S has values."""
    if hermitian:  # LAPACK reads only one triangle
        raise Unruled
    return factors.svd_(a) if compute_uv else factors.svd_(a)[1]


def qr(a: Any, mode: str = "reduced") -> Any:
    """Q and R, or only R."""
    return factors.qr(a, mode) if mode in ("reduced", "r") else refuse_call()


def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    matrix, right = np.asarray(plain(a)), np.asarray(plain(b))
    _, residuals, rank, sizes = np.linalg.lstsq(matrix, right, rcond)
    if rank < min(matrix.shape) or matrix.shape[0] < matrix.shape[1]:
        raise Unruled
    adjoint = np.conj(np.swapaxes(a, -1, -2))
    solution = np.linalg.solve(np.matmul(adjoint, a), np.matmul(adjoint, b))
    rest = np.sum(np.abs(b - np.matmul(a, solution)) ** 2, 0, keepdims=right.ndim == 1)
    lengths = np.linalg.svd(a, compute_uv=False) if is_recorded(a) else sizes
    return solution, rest if residuals.size else residuals, rank, lengths


def _pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    if mode in ("maximum", "minimum", "median"):  # which decide
        raise Unruled
    return rearrange_elements(np.pad, array, pad_width, mode, **options)


FUNCTIONS |= {
    np.sum: _over(np.add),
    np.prod: _over(np.multiply),
    np.max: _over(np.maximum),
    np.min: _over(np.minimum),
    np.mean: _mean,
    np.var: _var,
    np.std: lambda *args, **options: np.sqrt(_var(*args, **options)),
    np.cumsum: _running(np.add),
    np.cumprod: _running(np.multiply),
    np.sort: _sort,
    np.partition: _partition,
    np.quantile: _quantile(np.quantile),
    np.percentile: _quantile(np.percentile),
    np.unique: _unique,
    np.where: _where,
    np.clip: _clip,
    np.interp: _interp,
    np.dot: _dot,
    np.inner: _inner,
    np.einsum: _einsum,
    np.vdot: lambda a, b: np.dot(np.conj(np.ravel(a)), np.ravel(b)),
    np.convolve: _convolve,
    np.correlate: _correlate,
    np.bincount: _bincount,
    np.concatenate: _concatenate,
    np.round: _round,
    np.pad: _pad,
    np.trace: lambda a, *axes, **named: np.sum(np.diagonal(a, *axes, **named), -1),
    np.linalg.lstsq: _lstsq,
    np.linalg.eigh: _eigh,
    np.linalg.eigvalsh: lambda a, UPLO="L": _eigh(a, UPLO)[0],
}
MATRICES: dict[str, Any] = {
    "inv": factors.inv,
    "solve": factors.solve,
    "det": factors.det,
    "slogdet": lambda a: tuple(factors.slogdet(a)),
    "cholesky": cholesky,
    "svd": svd,
    "qr": qr,
    "eig": factors.eig,
    "eigvals": factors.eigvals,
}
for _name, _function in MATRICES.items():
    FUNCTIONS[getattr(np.linalg, _name)] = on_tensors(_function)


def _transform(function: Callable[..., Any]) -> Rule:
    """A Fourier transform; the engine's have the same parameters, except that `norm` cannot be
    None.
    """
    return lambda a, *args, **options: function(
        a._tensor(), *args, **{k: v for k, v in options.items() if v is not None}
    )


for _name, _function in vars(fourier).items():
    if isinstance(getattr(np.fft, _name, None), Dispatched):
        FUNCTIONS[getattr(np.fft, _name)] = _transform(_function)
