"""`paddle.geometric`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "ops.segments": "segment_max segment_mean segment_min segment_sum send_u_recv send_ue_recv send_uv",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
