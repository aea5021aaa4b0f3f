"""`paddle.distributed.fleet`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.paddle.distributed.fleet import base as base
from pylayer.paddle.distributed.fleet import layers as layers
from pylayer.paddle.distributed.fleet import meta_parallel as meta_parallel
from pylayer.paddle.distributed.fleet import recompute as recompute
from pylayer.paddle.distributed.fleet import utils as utils

_EXPORTS = {
    "distributed.topology": (
        "CommunicateTopology DistributedStrategy Fleet HybridCommunicateGroup fleet get_hybrid_communicate_group init"
    ),
}
globals().update(exported(_EXPORTS))


__getattr__ = missing(__name__)
