"""What Paddle is built with for other devices and compilers, and the engine is not."""

from __future__ import annotations

from typing import Any


def no(*args: Any, **kwargs: Any) -> bool:
    """False, whatever is asked: what Paddle is compiled with for other devices and compilers, the engine is not."""
    return False


def yes(*args: Any, **kwargs: Any) -> bool:
    """True, whatever is asked."""
    return True


is_compiled_with_xpu = is_compiled_with_rocm = is_compiled_with_cinn = is_compiled_with_ipu = no
is_compiled_with_custom_device = is_compiled_with_dist = is_compiled_with_distribute = no
is_float16_supported = is_bfloat16_supported = supports_bfloat16 = op_support_gpu = no
_is_fwd_prim_enabled = _is_bwd_prim_enabled = in_pir_mode = use_pir_api = no
