"""`paddle.incubate.autograd`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.paddle.incubate.autograd import utils as utils

_EXPORTS = {
    "derivatives": "jvp vjp",
    "function_derivatives": "Hessian Jacobian",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
