"""`paddle.base.framework`."""

from __future__ import annotations

from pylayer.compatibility import dygraph_guard as _guard
from pylayer.compatibility import dygraph_tracer as _tracer
from pylayer.compatibility import no as _no
from pylayer.device import current_place as _current_place
from pylayer.paddle._names import exported, missing
from pylayer.parameter import Parameter as _Parameter
from pylayer.static.recorder import in_dynamic_mode as _in_dynamic_mode

_EXPORTS = {
    "compatibility": "Variable convert_np_dtype_to_dtype_ get_flags in_dynamic_or_pir_mode set_flags",
    "static.in_use": "default_main_program default_startup_program program_guard",
    "static.program": "Block Program",
    "parameter": "Parameter",
}
globals().update(exported(_EXPORTS))

EagerParamBase = _Parameter
_current_expected_place, _dygraph_guard, _dygraph_tracer = _current_place, _guard, _tracer
in_dygraph_mode = _in_dynamic_mode
in_pir_mode = use_pir_api = _no

__getattr__ = missing(__name__)
