"""`paddle.distributed.fleet.layers.mpu.mp_ops`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "distributed.model_parallel": (
        "_c_concat _c_identity _c_split _mp_allreduce c_identity_eager c_split_eager mp_allreduce_eager"
    ),
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
