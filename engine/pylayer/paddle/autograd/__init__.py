"""`paddle.autograd`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.paddle.autograd import py_layer as py_layer
from pylayer.py_layer import PyLayer as PyLayer
from pylayer.py_layer_context import PyLayerContext as PyLayerContext

_EXPORTS = {
    "autograd": "backward grad",
    "derivatives": "hessian jacobian",
    "grad_mode": "enable_grad is_grad_enabled no_grad set_grad_enabled",
    "saved": "saved_tensors_hooks",
}
globals().update(exported(_EXPORTS))

Function = PyLayer

__getattr__ = missing(__name__)
