"""`paddle.autograd.py_layer`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "py_layer": "PyLayer",
    "py_layer_context": "PyLayerContext",
    "py_layer_node": "once_differentiable",
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
