"""`paddle.base.dygraph`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.paddle.base.dygraph import base as base
from pylayer.static.recorder import disable_static as _disable_static
from pylayer.static.recorder import enable_static as _enable_static
from pylayer.static.recorder import in_dynamic_mode as _in_dynamic_mode

_EXPORTS = {
    "autograd": "grad",
    "grad_mode": "no_grad",
    "compatibility": "guard",
}
globals().update(exported(_EXPORTS))

enabled = _in_dynamic_mode
enable_dygraph, disable_dygraph = _disable_static, _enable_static

__getattr__ = missing(__name__)
