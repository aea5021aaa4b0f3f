"""`paddle.special`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "ops.activation": "softmax",
    "ops.elementwise": "expm1",
    "ops.reduction": "logsumexp",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
