"""`paddle.distributed.fleet.layers.mpu`."""

from __future__ import annotations

from pylayer.paddle._names import missing
from pylayer.paddle.distributed.fleet.layers.mpu import mp_ops as mp_ops

__getattr__ = missing(__name__)
