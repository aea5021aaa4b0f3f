"""`paddle.incubate`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.paddle.incubate import autograd as autograd

_EXPORTS = {
    "ops.segments": "segment_max segment_mean segment_min segment_sum",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
