"""`paddle.linalg`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "ops.diagonal": "diagonal",
    "ops.distances": "cross",
    "ops.conditioning": "cholesky_inverse cholesky_solve cond lstsq matrix_exp matrix_rank pinv",
    "ops.eigenvalues": "eig eigh eigvals eigvalsh",
    "ops.elimination": "lu lu_solve lu_unpack",
    "ops.factors": "householder_product qr svd svdvals",
    "ops.linalg": "matmul",
    "ops.norms": "norm",
    "ops.solving": (
        "cholesky det inv matrix_norm matrix_power matrix_transpose multi_dot slogdet solve triangular_solve vecdot "
        "vector_norm"
    ),
    "ops.statistics": "corrcoef cov",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
