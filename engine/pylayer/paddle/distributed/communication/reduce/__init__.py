"""`paddle.distributed.communication.reduce`."""

from __future__ import annotations

from typing import Any

from pylayer.paddle._names import exported, missing

_EXPORTS = {"distributed.communication": "reduce", "distributed.group": "ReduceOp"}
globals().update(exported(_EXPORTS))


def _get_reduce_op(reduce_op: Any, *rest: Any) -> Any:
    """The reduction itself: there is no other word for it."""
    return reduce_op


__getattr__ = missing(__name__)
