"""`paddle.utils`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.paddle.base import unique_name as unique_name

_EXPORTS = {
    "compatibility": "try_import",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
