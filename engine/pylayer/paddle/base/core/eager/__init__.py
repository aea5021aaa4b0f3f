"""`paddle.base.core.eager`."""

from __future__ import annotations

from pylayer.hooks import at_end_of_backward as _at_end_of_backward
from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "py_layer": "PyLayer",
    "tensor": "Tensor",
}
globals().update(exported(_EXPORTS))

_add_backward_final_hook = _at_end_of_backward

__getattr__ = missing(__name__)
