"""`paddle.nn.initializer`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "nn.gains": "KaimingNormal KaimingUniform Orthogonal calculate_gain",
    "nn.initializer": (
        "Assign Constant Initializer Normal TruncatedNormal Uniform XavierNormal XavierUniform set_global_initializer"
    ),
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
