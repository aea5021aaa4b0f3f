"""`paddle.jit`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "jit": "enable_to_static ignore_module not_to_static to_static",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
