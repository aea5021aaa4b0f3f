"""`paddle.distributed`."""

from __future__ import annotations

from pylayer.compatibility import no as _no
from pylayer.paddle._names import exported, missing
from pylayer.paddle.distributed import fleet as fleet

_EXPORTS = {
    "compatibility": "get_rank get_world_size",
}
globals().update(exported(_EXPORTS))

is_initialized = _no

__getattr__ = missing(__name__)
