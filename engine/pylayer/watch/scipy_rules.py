"""SciPy's functions in the engine's operations, by name, where SciPy is installed; see `numpy_rules`."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

import pylayer.ops.elementwise as ops
import pylayer.ops.special as special
from pylayer.ops.indexing import where_
from pylayer.ops.reduction import logsumexp as log_sum_exp
from pylayer.ops.solving import det, inv, triangular_solve
from pylayer.tensor import Tensor
from pylayer.watch.numpy_array import fresh
from pylayer.watch.numpy_dispatch import NAMED, Rule, Unruled
from pylayer.watch.numpy_rules import axes_of, cholesky, of_tensors, one, qr, svd, swapped, two


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


SPECIAL_UFUNCS: dict[str, Rule] = {
    "erf": one(ops.erf), "erfc": one(ops.erfc), "erfinv": one(special.erfinv), "gammaln": one(special.lgamma),
    "loggamma": one(special.lgamma), "digamma": one(special.digamma), "psi": one(special.digamma),
    "expit": one(ops.sigmoid), "log_expit": one(_log_sigmoid), "logit": one(special.logit),
    "gamma": one(lambda x: ops.exp(special.lgamma(x))), "betaln": two(_log_beta),
    "beta": two(lambda x, y: ops.exp(_log_beta(x, y))), "xlogy": two(_times_log),
    "xlog1py": two(lambda x, y: x * ops.log1p(y)), "entr": one(lambda x: -_times_log(x, x)),
    "rel_entr": two(lambda x, y: _times_log(x, x) - _times_log(x, y)),
    "kl_div": two(lambda x, y: _times_log(x, x) - _times_log(x, y) - x + y),
    "ndtr": one(_normal), "log_ndtr": one(lambda x: ops.log(_normal(x))), "expm1": one(ops.expm1),
    "log1p": one(ops.log1p), "exprel": one(lambda x: ops.expm1(x) / x), "i0": one(special.i0), "i1": one(special.i1),
    "i0e": one(special.i0e), "i1e": one(special.i1e),
}  # fmt: skip


def _logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    if return_sign:
        raise Unruled
    if b is None:
        return log_sum_exp(a._tensor(), axes_of(axis, a.ndim), keepdims)
    largest = np.max(a, axis=axis, keepdims=True)
    found = np.log(np.sum(b * np.exp(a - largest), axis=axis, keepdims=True)) + largest
    return found if keepdims else np.squeeze(found, axis=axis)


def _softmax(x: Any, axis: Any = None) -> Any:
    found = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return found / np.sum(found, axis=axis, keepdims=True)


def _log_softmax(x: Any, axis: Any = None) -> Any:
    axes = axes_of(axis, x.ndim)
    return x - fresh(log_sum_exp(x._tensor(), axes, True), x._plain(), True, x._buffer.session)


CHANGE_NOTHING = {"overwrite_a", "overwrite_b", "overwrite_x", "check_finite", "lapack_driver", "lwork"}


def checked(function: Rule) -> Rule:
    """A rule that need not know of what changes nothing of the result."""
    return lambda *args, **options: function(*args, **{k: options[k] for k in options if k not in CHANGE_NOTHING})


def _solve(a: Tensor, b: Tensor, *, assume_a: Any = None, transposed: bool = False, lower: bool = False) -> Any:
    if assume_a not in (None, "gen", "general") or lower:
        raise Unruled
    return inv(swapped(a) if transposed else a) @ b


def _cho_solve(c_and_lower: Any, b: Any) -> Any:
    c, lower = c_and_lower
    root = np.tril(c) if lower else np.conj(np.swapaxes(np.triu(c), -1, -2))
    return np.linalg.solve(np.matmul(root, np.conj(np.swapaxes(root, -1, -2))), b)


def _cho_factor(a: Any, lower: bool = False) -> Any:
    root = np.linalg.cholesky(a, upper=not lower)
    return (root + np.triu(a, 1) if lower else root + np.tril(a, -1)), lower


def _solve_triangular(a: Tensor, b: Tensor, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    if trans not in (0, "N", 1, "T"):
        raise Unruled
    vector = b.ndim == 1
    right = b.reshape([-1, 1]) if vector else b
    found = triangular_solve(a, right, not lower, trans in (1, "T"), unit_diagonal)
    return found.reshape([-1]) if vector else found


def _spectrum(a: Any, b: None = None, *, lower: bool = True, eigvals_only: bool = False) -> Any:
    found: Any = np.linalg.eigh(a, "L" if lower else "U")
    if eigvals_only:
        return found[0]
    theirs: Any = sys.modules["scipy.linalg"].eigh(a._plain(), lower=lower)[1]  # which turns eigenvectors another way
    turned = np.sum(np.conj(found[1]._plain()) * theirs, axis=-2, keepdims=True)
    return found[0], found[1] * np.round(turned)


def _block_diag(*arrays: Any) -> Any:
    arrays = tuple(np.atleast_2d(v) for v in arrays)
    blocks = [[v if i == j else np.zeros((u.shape[0], v.shape[1])) for j, v in enumerate(arrays)]
              for i, u in enumerate(arrays)]  # fmt: skip
    return np.block(blocks)


def _orthogonal(a: Tensor, *, mode: str = "full", pivoting: bool = False) -> Any:
    if pivoting or (mode != "economic" and a.shape[-2] > a.shape[-1]):
        raise Unruled
    return qr(a)


def _polygamma(n: Any, x: Any) -> Any:
    return special.polygamma(x._tensor(), int(n)) if int(n) else special.digamma(x._tensor())


SPECIAL: dict[str, Rule] = {
    "logsumexp": _logsumexp, "softmax": _softmax, "log_softmax": _log_softmax, "polygamma": _polygamma,
}  # fmt: skip
MATRICES: dict[str, Rule] = {
    "solve": of_tensors(_solve), "cholesky": of_tensors(lambda a, lower=False: cholesky(a, upper=not lower)),
    "cho_factor": _cho_factor, "cho_solve": _cho_solve, "solve_triangular": of_tensors(_solve_triangular),
    "eigh": _spectrum, "eigvalsh": lambda a, **kinds: _spectrum(a, eigvals_only=True, **kinds),
    "block_diag": _block_diag, "lstsq": lambda a, b: np.linalg.lstsq(a, b, None), "pinv": lambda a: np.linalg.pinv(a),
    "svd": of_tensors(svd), "svdvals": of_tensors(lambda a: svd(a, False, False)), "qr": of_tensors(_orthogonal),
    "inv": of_tensors(lambda a, **kinds: inv(a)), "det": of_tensors(det),
    "norm": lambda a, ord=None, axis=None, keepdims=False: np.linalg.norm(a, ord, axis, keepdims),
}  # fmt: skip
LINALG = {name: checked(rule) for name, rule in MATRICES.items()}
NAMED |= {"scipy.special": {**SPECIAL_UFUNCS, **SPECIAL}, "scipy.linalg": LINALG}
