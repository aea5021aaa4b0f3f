"""`paddle.distributed.fleet.utils.sequence_parallel_utils`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "distributed.model_parallel": "AllGatherOp GatherOp ReduceScatterOp ScatterOp all_gather reduce_scatter scatter",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
