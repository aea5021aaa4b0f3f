"""`paddle.base.core`."""

from __future__ import annotations

from pylayer.compatibility import no as _no
from pylayer.paddle._names import exported, missing
from pylayer.paddle.base.core import eager as eager

_EXPORTS = {
    "device": "CPUPlace CUDAPlace is_compiled_with_cuda",
    "ops.random": "Generator",
    "static.scope": "Scope",
    "tensor": "Place",
}
globals().update(exported(_EXPORTS))

is_compiled_with_xpu = is_compiled_with_rocm = is_compiled_with_cinn = is_compiled_with_ipu = _no
is_compiled_with_custom_device = is_compiled_with_dist = is_float16_supported = is_bfloat16_supported = _no

__getattr__ = missing(__name__)
