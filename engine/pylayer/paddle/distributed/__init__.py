"""`paddle.distributed`."""

from __future__ import annotations

from pylayer.paddle._names import missing
from pylayer.paddle.distributed import fleet as fleet

__getattr__ = missing(__name__)
