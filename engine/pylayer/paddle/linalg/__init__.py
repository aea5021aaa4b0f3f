"""`paddle.linalg`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "ops.diagonal": "diagonal",
    "ops.linalg": "matmul",
    "ops.reduction": "norm",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
