"""`paddle.pir`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.static.variable import Variable as _Variable

_EXPORTS = {
    "static.program": "Block Program",
}
globals().update(exported(_EXPORTS))

Value = _Variable

__getattr__ = missing(__name__)
