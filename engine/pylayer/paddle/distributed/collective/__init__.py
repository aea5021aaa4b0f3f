"""`paddle.distributed.collective`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "distributed.communication": "new_group",
    "distributed.group": "Group is_initialized",
    "distributed.model_parallel": "_c_concat _c_identity _c_split _mp_allreduce",
}
globals().update(exported(_EXPORTS))
_get_default_group = exported({"distributed.group": "world_group"})["world_group"]

__getattr__ = missing(__name__)
