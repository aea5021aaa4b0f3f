"""`paddle.distributed`."""

from __future__ import annotations

from pylayer.compatibility import yes as _yes
from pylayer.distributed import process_group as _process_group  # noqa: F401 - groups have it
from pylayer.paddle._names import exported, missing
from pylayer.paddle.distributed import collective as collective
from pylayer.paddle.distributed import communication as communication
from pylayer.paddle.distributed import fleet as fleet
from pylayer.paddle.distributed import parallel as parallel
from pylayer.paddle.distributed.communication import stream as stream

_EXPORTS = {
    "distributed.communication": (
        "P2POp all_gather all_gather_object all_reduce alltoall alltoall_single barrier batch_isend_irecv broadcast "
        "broadcast_object_list gather irecv isend new_group recv reduce reduce_scatter scatter scatter_object_list "
        "send wait"
    ),
    "distributed.group": (
        "ParallelEnv ReduceOp destroy_process_group get_group get_rank get_world_size init_parallel_env is_initialized"
    ),
}
globals().update(exported(_EXPORTS))

is_available = _yes

__getattr__ = missing(__name__)
