"""`paddle.distributed.communication.group`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {"distributed.communication": "barrier wait", "distributed.group": "Group get_group is_initialized"}
globals().update(exported(_EXPORTS))
_get_global_group = exported({"distributed.group": "world_group"})["world_group"]

__getattr__ = missing(__name__)
