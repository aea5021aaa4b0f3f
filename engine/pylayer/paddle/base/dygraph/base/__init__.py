"""`paddle.base.dygraph.base`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "autograd": "grad",
    "grad_mode": "no_grad",
    "compatibility": "guard",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
