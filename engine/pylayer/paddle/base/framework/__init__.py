"""`paddle.base.framework`."""

from __future__ import annotations

from pylayer.compatibility import no as _no
from pylayer.paddle._names import exported, missing
from pylayer.parameter import Parameter as _Parameter
from pylayer.static.recorder import in_dynamic_mode as _in_dynamic_mode

_EXPORTS = {
    "compatibility": "convert_np_dtype_to_dtype_ in_dynamic_or_pir_mode",
    "static.in_use": "default_main_program default_startup_program program_guard",
    "static.program": "Block Program",
    "static.variable": "Variable",
    "parameter": "Parameter",
}
globals().update(exported(_EXPORTS))

EagerParamBase = _Parameter
in_dygraph_mode = _in_dynamic_mode
in_pir_mode = use_pir_api = _no

__getattr__ = missing(__name__)
