"""`paddle.distributed.fleet.meta_parallel`."""

from __future__ import annotations

from pylayer.paddle._names import missing

__getattr__ = missing(__name__)
