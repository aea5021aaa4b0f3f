"""`paddle.distributed.fleet.recompute`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "recompute": "recompute",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
