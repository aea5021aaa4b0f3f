"""`paddle.framework`."""

from __future__ import annotations

from pylayer.compatibility import no as _no
from pylayer.dtype import DType as _DType
from pylayer.paddle._names import exported, missing
from pylayer.paddle.base import core as core

_EXPORTS = {
    "autograd": "grad",
    "grad_mode": "no_grad",
    "compatibility": "convert_np_dtype_to_dtype_ get_flags in_dynamic_or_pir_mode set_flags",
    "device": "CPUPlace CUDAPlace",
    "dtype": "get_default_dtype set_default_dtype",
    "nn.initializer": "ParamAttr",
    "ops.random": "seed",
    "saving": "load save",
    "static.program": "Block Program",
    "static.recorder": "disable_static enable_static in_dynamic_mode",
    "parameter": "Parameter",
}
globals().update(exported(_EXPORTS))

dtype = _DType
in_pir_mode = use_pir_api = _no

__getattr__ = missing(__name__)
