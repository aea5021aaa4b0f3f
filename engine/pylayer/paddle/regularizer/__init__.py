"""`paddle.regularizer`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {"optimizer.regularizer": "L1Decay L2Decay"}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
