"""`paddle.distributed.parallel`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {"distributed.group": "ParallelEnv get_rank get_world_size init_parallel_env"}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
