"""`paddle.distributed.communication.batch_isend_irecv`: the module, which has the name of its function."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {"distributed.communication": "P2POp _coalescing_manager batch_isend_irecv"}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
