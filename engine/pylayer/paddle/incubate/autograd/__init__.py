"""`paddle.incubate.autograd`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "derivatives": "Hessian Jacobian jvp vjp",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
