"""`paddle.base`."""

from __future__ import annotations

from pylayer.compatibility import no as _no
from pylayer.paddle._names import exported, missing
from pylayer.paddle.base import core as core
from pylayer.paddle.base import dygraph as dygraph
from pylayer.paddle.base import framework as framework
from pylayer.paddle.base import unique_name as unique_name
from pylayer.paddle.base import wrapped_decorator as wrapped_decorator
from pylayer.static.recorder import disable_static as _disable_static
from pylayer.static.recorder import enable_static as _enable_static
from pylayer.static.recorder import in_dynamic_mode as _in_dynamic_mode

_EXPORTS = {
    "compatibility": "Variable get_flags in_dynamic_or_pir_mode set_flags",
    "device": "CPUPlace CUDAPlace is_compiled_with_cuda",
    "nn.initializer": "ParamAttr",
    "static.backward": "append_backward gradients",
    "static.executor": "Executor",
    "static.in_use": "default_main_program default_startup_program program_guard",
    "static.program": "Program",
    "static.scope": "Scope cpu_places device_guard global_scope name_scope scope_guard",
    "tensor": "Tensor",
}
globals().update(exported(_EXPORTS))

in_dygraph_mode = _in_dynamic_mode
enable_dygraph, disable_dygraph = _disable_static, _enable_static
in_pir_mode = is_compiled_with_xpu = is_compiled_with_rocm = is_compiled_with_cinn = _no

__getattr__ = missing(__name__)
