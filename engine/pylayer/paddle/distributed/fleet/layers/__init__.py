"""`paddle.distributed.fleet.layers`."""

from __future__ import annotations

from pylayer.paddle._names import missing
from pylayer.paddle.distributed.fleet.layers import mpu as mpu

__getattr__ = missing(__name__)
