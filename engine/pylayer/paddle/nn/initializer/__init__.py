"""`paddle.nn.initializer`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "nn.initializer": "Assign Constant Initializer Normal Uniform XavierNormal XavierUniform",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
