"""`paddle.distributed.stream`: the collectives with a word on streams, of which there is one."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "distributed.communication": (
        "all_gather all_reduce alltoall broadcast gather recv reduce reduce_scatter scatter send"
    ),
}
globals().update(exported(_EXPORTS))
alltoall_single = exported({"distributed.communication": "stream_alltoall_single"})["stream_alltoall_single"]

__getattr__ = missing(__name__)
