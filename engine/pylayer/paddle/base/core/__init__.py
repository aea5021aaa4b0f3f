"""`paddle.base.core`."""

from __future__ import annotations

from pylayer.compatibility import no as _no
from pylayer.dtype import DType as _DType
from pylayer.paddle._names import exported, missing
from pylayer.paddle.base.core import eager as eager

_EXPORTS = {
    "compatibility": "grad_var_suffix",
    "device": "CPUPlace CUDAPlace is_compiled_with_cuda",
    "ops.random": "Generator",
    "static.scope": "Scope",
    "tensor": "Place",
}
globals().update(exported(_EXPORTS))

is_compiled_with_xpu = is_compiled_with_rocm = is_compiled_with_cinn = is_compiled_with_ipu = _no
is_compiled_with_custom_device = is_compiled_with_dist = is_float16_supported = is_bfloat16_supported = _no
supports_bfloat16 = op_support_gpu = _is_fwd_prim_enabled = _is_bwd_prim_enabled = _no
DataType = _DType

__getattr__ = missing(__name__)
