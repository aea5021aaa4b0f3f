"""`paddle.distributed`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.paddle.distributed import fleet as fleet

_EXPORTS = {
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
