"""`paddle.base.wrapped_decorator`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "compatibility": "signature_safe_contextmanager wrap_decorator",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
