"""`paddle.distributed.fleet.base`."""

from __future__ import annotations

from pylayer.paddle._names import missing
from pylayer.paddle.distributed.fleet.base import topology as topology

__getattr__ = missing(__name__)
