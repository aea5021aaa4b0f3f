"""Rules for SciPy's functions in operations of the engine, used if SciPy is installed; see
`numpy_rules`.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

import pylayer.ops.elementwise as ops
import pylayer.ops.special as special
from pylayer.ops.factors import det, inv, solve, triangular_solve
from pylayer.ops.indexing import where_
from pylayer.ops.reduction import logsumexp as log_sum_exp
from pylayer.tensor.tensor import Tensor
from pylayer.watch.numpy_dispatch import NAMED
from pylayer.watch.numpy_rules import (
    axes_of,
    binary_rule,
    cholesky,
    eigh,
    on_tensors,
    qr,
    svd,
    swap_axes,
    unary_rule,
)


def _times_log(x: Tensor, y: Tensor) -> Any:
    """x · log y, and 0 where x is 0."""
    safe = (x.array == 0) & (y.array == 0)
    return x * ops.log(where_(Tensor(safe), 1.0, y) if safe.any() else y)


def _log_beta(x: Tensor, y: Tensor) -> Any:
    return special.lgamma(x) + special.lgamma(y) - special.lgamma(x + y)


def _normal(x: Tensor) -> Any:
    return ops.erfc(x * -math.sqrt(0.5)) * 0.5


def _log_sigmoid(x: Tensor) -> Any:
    return ops.minimum(x, Tensor(np.zeros_like(x.array))) - ops.log1p(ops.exp(-ops.abs(x)))


OF_ONE: dict[str, Any] = {
    "erf": ops.erf,
    "erfc": ops.erfc,
    "erfinv": special.erfinv,
    "gammaln": special.lgamma,
    "loggamma": special.lgamma,
    "digamma": special.digamma,
    "psi": special.digamma,
    "expit": ops.sigmoid,
    "log_expit": _log_sigmoid,
    "logit": special.logit,
    "gamma": lambda x: ops.exp(special.lgamma(x)),
    "entr": lambda x: -_times_log(x, x),
    "ndtr": _normal,
    "log_ndtr": lambda x: ops.log(_normal(x)),
    "expm1": ops.expm1,
    "log1p": ops.log1p,
    "exprel": lambda x: ops.expm1(x) / x,
    "i0": special.i0,
    "i1": special.i1,
    "i0e": special.i0e,
    "i1e": special.i1e,
}
OF_TWO: dict[str, Any] = {
    "beta": lambda x, y: ops.exp(_log_beta(x, y)),
    "betaln": _log_beta,
    "xlogy": _times_log,
    "xlog1py": lambda x, y: x * ops.log1p(y),
    "rel_entr": lambda x, y: _times_log(x, x) - _times_log(x, y),
    "kl_div": lambda x, y: _times_log(x, x) - _times_log(x, y) - x + y,
}


def _logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    if b is None:
        return log_sum_exp(a._tensor(), axes_of(axis, a.ndim), keepdims)
    largest = np.max(a, axis=axis, keepdims=True)
    result = np.log(np.sum(b * np.exp(a - largest), axis=axis, keepdims=True)) + largest
    return result if keepdims else np.squeeze(result, axis=axis)


def _softmax(x: Any, axis: Any = None) -> Any:
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def _log_softmax(x: Any, axis: Any = None) -> Any:
    return x._tensor() - log_sum_exp(x._tensor(), axes_of(axis, x.ndim), True)


def _polygamma(n: Any, x: Any) -> Any:
    return special.polygamma(x._tensor(), int(n)) if int(n) else special.digamma(x._tensor())


def _cho_solve(c_and_lower: Any, b: Any) -> Any:
    c, lower = c_and_lower
    root = np.tril(c) if lower else np.conj(np.swapaxes(np.triu(c), -1, -2))
    return np.linalg.solve(np.matmul(root, np.conj(np.swapaxes(root, -1, -2))), b)


def _cho_factor(a: Any, lower: bool = False) -> Any:
    root = np.linalg.cholesky(a, upper=not lower)
    return (root + np.triu(a, 1) if lower else root + np.tril(a, -1)), lower


def _solve_triangular(
    a: Tensor, b: Tensor, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False
) -> Any:
    return triangular_solve(a, b, not lower, trans in (1, "T"), unit_diagonal)


def _spectrum(a: Any, b: None = None, *, lower: bool = True, eigvals_only: bool = False) -> Any:
    spectrum = eigh(a, lower, sys.modules["scipy.linalg"].eigh(a._memory, lower=lower)[1])
    return spectrum[0] if eigvals_only else spectrum


NAMED["scipy.special"] = {
    **{name: unary_rule(function) for name, function in OF_ONE.items()},
    **{name: binary_rule(function) for name, function in OF_TWO.items()},
    "logsumexp": _logsumexp,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "polygamma": _polygamma,
}
NAMED["scipy.linalg"] = {
    "solve": on_tensors(lambda a, b, transposed=False: solve(swap_axes(a) if transposed else a, b)),
    "cholesky": on_tensors(lambda a, lower=False: cholesky(a, upper=not lower)),
    "cho_factor": _cho_factor,
    "cho_solve": _cho_solve,
    "solve_triangular": on_tensors(_solve_triangular),
    "eigh": _spectrum,
    "eigvalsh": lambda a, **options: _spectrum(a, eigvals_only=True, **options),
    "lstsq": np.linalg.lstsq,
    "pinv": np.linalg.pinv,
    "norm": np.linalg.norm,
    "svd": on_tensors(svd),
    "svdvals": on_tensors(lambda a: svd(a, compute_uv=False)),
    "qr": on_tensors(lambda a, mode="full": qr(a)),
    "inv": on_tensors(inv),
    "det": on_tensors(det),
}
