"""Devices by Paddle's names. `array.set_device` chooses where new Tensors are made."""

from __future__ import annotations

from typing import Any

from pylayer.array import get_device


class Place:
    """Where a Tensor lies; prints as Paddle does."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Place({self.name})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def is_cpu_place(self) -> bool:
        """Whether it is host memory."""
        return self.name == "cpu"

    def is_gpu_place(self) -> bool:
        """Whether it is a GPU."""
        return not self.is_cpu_place()


class CPUPlace(Place):
    """Host memory."""

    def __init__(self) -> None:
        super().__init__("cpu")


class CUDAPlace(Place):
    """The memory of one GPU."""

    def __init__(self, id: int = 0) -> None:
        super().__init__(f"gpu:{id}")


def current_place() -> Place:
    """Where new Tensors are made."""
    return Place(get_device())


def is_compiled_with_cuda() -> bool:
    """Whether the current device is a GPU: the engine is not compiled, and uses one when told to."""
    return get_device() != "cpu"


def check_place(place: Any) -> None:
    """Raise ValueError unless `place`, a Place or a name or None, is the current device."""
    if place is None:
        return
    name = place.name if isinstance(place, Place) else str(place)
    current = get_device()
    if name != current and not (name == "gpu" and current.startswith("gpu:")):
        raise ValueError(
            f"Tensors are made on the current device, {current}, but the place is {name}. Call set_device({name!r})."
        )


# --------------------------------------------------------------------------- what Paddle is built with
def no(*args: Any, **kwargs: Any) -> bool:
    """False, whatever is asked: what Paddle is compiled with for other devices and compilers, the engine is not."""
    return False


def yes(*args: Any, **kwargs: Any) -> bool:
    """True, whatever is asked."""
    return True


is_compiled_with_xpu = is_compiled_with_rocm = is_compiled_with_cinn = is_compiled_with_ipu = no
is_compiled_with_custom_device = is_compiled_with_dist = is_compiled_with_distribute = no
is_float16_supported = is_bfloat16_supported = is_autocast_enabled = supports_bfloat16 = op_support_gpu = no
_is_fwd_prim_enabled = _is_bwd_prim_enabled = in_pir_mode = use_pir_api = no
