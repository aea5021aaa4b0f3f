"""`paddle.incubate.autograd`."""

from __future__ import annotations

from pylayer.derivatives import hessian_of as _hessian_of
from pylayer.derivatives import jacobian_of as _jacobian_of
from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "derivatives": "jvp vjp",
}
globals().update(exported(_EXPORTS))

Jacobian, Hessian = _jacobian_of, _hessian_of

__getattr__ = missing(__name__)
