"""`paddle.static`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing
from pylayer.paddle.static import nn as nn
from pylayer.tensor import Tensor as _Tensor

_EXPORTS = {
    "compatibility": "Variable",
    "device": "CPUPlace CUDAPlace",
    "jit": "InputSpec",
    "static.backward": "append_backward gradients",
    "static.data": "create_parameter data",
    "static.executor": "Executor",
    "static.in_use": "default_main_program default_startup_program program_guard",
    "static.program": "Program",
    "static.scope": "Scope cpu_places device_guard global_scope name_scope scope_guard",
}
globals().update(exported(_EXPORTS))

setitem = _Tensor.__setitem__

__getattr__ = missing(__name__)
