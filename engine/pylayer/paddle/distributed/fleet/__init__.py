"""`paddle.distributed.fleet`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.paddle.distributed.fleet import recompute as recompute
from pylayer.paddle.distributed.fleet import utils as utils

_EXPORTS = {
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
