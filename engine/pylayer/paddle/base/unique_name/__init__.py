"""`paddle.base.unique_name`."""

from __future__ import annotations

from pylayer.compatibility import name_guard as _name_guard
from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "compatibility": "generate",
}
globals().update(exported(_EXPORTS))

guard = _name_guard

__getattr__ = missing(__name__)
