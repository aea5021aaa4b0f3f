"""`paddle.distributed.fleet.base.topology`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {"distributed.topology": "CommunicateTopology HybridCommunicateGroup"}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
