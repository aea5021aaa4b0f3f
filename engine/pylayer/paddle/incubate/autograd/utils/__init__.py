"""`paddle.incubate.autograd.utils`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "derivatives": "as_tensors",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
