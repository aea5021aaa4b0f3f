"""`paddle.static.nn`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "static.cond": "cond",
    "static.nn": "fc",
    "static.scope": "case switch_case while_loop",
    "static.pylayer_op": "static_pylayer",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
