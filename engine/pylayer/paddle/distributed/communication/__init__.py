"""`paddle.distributed.communication`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.paddle.distributed.communication import batch_isend_irecv as batch_isend_irecv
from pylayer.paddle.distributed.communication import group as group
from pylayer.paddle.distributed.communication import stream as stream

_EXPORTS = {
    "distributed.communication": (
        "P2POp all_gather all_gather_object all_reduce alltoall alltoall_single barrier batch_isend_irecv broadcast "
        "broadcast_object_list gather irecv isend recv reduce reduce_scatter scatter scatter_object_list send wait"
    ),
    "distributed.group": "ReduceOp destroy_process_group get_group is_initialized",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
