"""`paddle.amp`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "amp": "GradScaler auto_cast autocast decorate is_autocast_enabled is_bfloat16_supported is_float16_supported",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
