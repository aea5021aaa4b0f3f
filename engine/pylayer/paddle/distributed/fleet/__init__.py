"""`paddle.distributed.fleet`."""

from __future__ import annotations

from pylayer.paddle._names import missing
from pylayer.paddle.distributed.fleet import recompute as recompute
from pylayer.paddle.distributed.fleet import utils as utils

__getattr__ = missing(__name__)
