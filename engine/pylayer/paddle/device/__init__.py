"""`paddle.device`."""

from __future__ import annotations

from pylayer.compatibility import no as _no
from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "array": "get_device set_device",
    "device": "is_compiled_with_cuda",
}
globals().update(exported(_EXPORTS))

is_compiled_with_xpu = is_compiled_with_rocm = is_compiled_with_cinn = is_compiled_with_ipu = _no
is_compiled_with_distribute = is_compiled_with_custom_device = _no

__getattr__ = missing(__name__)
