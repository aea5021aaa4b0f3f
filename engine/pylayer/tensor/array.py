"""Array modules (NumPy, CuPy) and devices, with Paddle's names for them: the module of an array,
and the device for new arrays.

This is the only file that imports CuPy, on demand: without a GPU it is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from types import ModuleType
from typing import Any

import numpy as np

Array = Any
"""An array of any registered module; its operators and methods follow the array API."""

XP: dict[type, ModuleType] = {np.ndarray: np}
"""Array type to array module. A lookup by exact type costs nothing; `array_namespace` would cost 45
% of an op.
"""


class ByArrayType(dict[type, Any]):
    """A mapping from array types to the results of `make` for them, filled on first use."""

    def __init__(self, make: Callable[[type], Any]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, array_type: type) -> Any:
        value = self[array_type] = self.make(array_type)
        return value


_quiet = copy_context()
_quiet.run(np.seterr, all="ignore")
run_alone = _quiet.run
"""Runs a kernel without NumPy's warnings, whose state is a context variable; a RuntimeError if
another thread is using it. ``np.errstate`` would take 24 % of a chain of small operations.
"""


def quietly(kernel: Callable[..., Any], raw: Sequence[Any]) -> Any:
    """Silence NumPy's warnings about infinities and NaN in a kernel: they are meant for callers of
    NumPy.
    """
    try:
        return run_alone(kernel, *raw)
    except RuntimeError:
        with np.errstate(all="ignore"):
            return kernel(*raw)


_device: ContextVar[str] = ContextVar("device", default="cpu")


def get_device() -> str:
    """The device on which new arrays are made: ``cpu`` or ``gpu:<index>``."""
    return _device.get()


def set_device(device: str) -> str:
    """Make new arrays on `device`: ``cpu``, ``gpu`` or ``gpu:<index>``.

    Raises:
        ValueError: the name is not one of these.
        RuntimeError: a GPU is requested and CuPy or a device is missing; the message says which.
    """
    device = device_name(device)
    if device != "cpu":
        cupy = _import_cupy()
        cupy.cuda.Device(int(device.removeprefix("gpu:"))).use()
    _device.set(device)
    return device


def device_name(device: str) -> str:
    """The device ``cpu`` or ``gpu:<index>`` for a name given by the user; ``gpu`` is the first GPU.

    Raises:
        ValueError: the name is not a device.
    """
    if not re.fullmatch(r"cpu|gpu(:[0-9]+)?", device):
        raise ValueError(f"The device must be 'cpu', 'gpu' or 'gpu:<index>', but got {device!r}.")
    name, _, index = device.partition(":")
    return "cpu" if name == "cpu" else f"gpu:{int(index or 0)}"


def _import_cupy() -> ModuleType:
    try:
        import cupy
    except ImportError as error:
        raise RuntimeError(
            "The device 'gpu' needs CuPy: pip install cupy-cuda12x (or the build for your CUDA)."
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(f"The device 'gpu' is not usable: {error}") from error
    if not count:
        raise RuntimeError("The device 'gpu' is not usable: CuPy finds no GPU.")
    XP[cupy.ndarray] = cupy
    return cupy  # type: ignore[no-any-return]


def default_module() -> ModuleType:
    """The array module of the current device."""
    return np if _device.get() == "cpu" else _import_cupy()


def place_of(array: Array) -> str:
    """The device of `array`, as Paddle prints it: ``cpu`` or ``gpu:<index>``."""
    return "cpu" if type(array) is np.ndarray else f"gpu:{array.device.id}"


def to_numpy(array: Array) -> np.ndarray[Any, Any]:
    """`array` as a NumPy array; a copy if it is on a device."""
    return array if type(array) is np.ndarray else array.get()


def as_array(value: Any, array_type: type) -> Array:
    """`value` as an array of that type: NumPy turns 0-d results into scalars."""
    return value if type(value) is array_type else XP[array_type].asarray(value)


def owner(array: Array) -> Array:
    """The array that owns the memory of `array`: itself, or the one that it is a view of."""
    base = array.base
    while base is not None:
        if type(base) in XP:
            array = base
        # NumPy's as_strided puts a helper object between two arrays.
        base = getattr(base, "base", None)
    return array


# -------------------------------------------------------------------- the memory order of elements
def in_order(array: Array) -> Array:
    """`array`, copied unless its elements lie in memory in the order of its axes (C order).

    Every computed result has that order in Paddle, whereas NumPy keeps the order of the operands.
    """
    return array if array.flags.c_contiguous else XP[type(array)].ascontiguousarray(array)


def is_broadcast(array: Array) -> bool:
    """Whether several elements share memory, by a stride of 0."""
    if 0 not in array.strides:
        return False
    axes = zip(array.shape, array.strides, strict=True)
    return any(size > 1 and not stride for size, stride in axes)


def gradient_in_order(gradient: Array) -> Array:
    """`in_order`, except for broadcast arrays: they are never written to, and a copy would take
    time and memory.
    """
    return gradient if gradient.flags.c_contiguous or is_broadcast(gradient) else in_order(gradient)


def duplicate(array: Array) -> Array:
    """A copy with the same memory order of axes; in C order if `array` was broadcast."""
    return array.copy() if is_broadcast(array) else array.copy("K")


def constructed(data: Any, *rest: Any) -> Array:
    """The array for ``paddle.Tensor(data)``: always float32 for lists, and for sizes (zeros); for a
    Tensor, its own array.

    Raises:
        TypeError: a size is a bool, or elements of lists are not numbers.
        ValueError: `data` is of another type, a size is negative, or lists differ in length.
    """
    if isinstance(data, (list, tuple)):
        values = np.asarray(data)
        if values.dtype.kind not in "biufc":
            raise TypeError(
                f"paddle.Tensor(): the elements of lists must be numbers, but are {values.dtype}."
            )
        return default_module().asarray(values.real.astype(np.float32))
    data = np.asarray(data) if isinstance(data, np.ndarray) else getattr(data, "array", data)
    if type(data) in XP:
        return data
    sizes = [data, *rest]
    if any(isinstance(size, bool) for size in sizes):
        raise TypeError(
            "(InvalidType) empty(): argument (position 1) must be list of int, but got bool."
        )
    if not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise ValueError(
            f"(InvalidArgument) paddle.Tensor() takes sizes, lists, an array or a Tensor, but got "
            f"{', '.join(map(repr, sizes))[:80]}. Make a Tensor of a number with paddle.to_tensor."
        )
    return default_module().zeros(sizes, np.float32)


# --------------------------------------------------------------------------- Paddle's names
class Place:
    """The device that holds a Tensor; prints as Paddle's does."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Place({self.name})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def is_cpu_place(self) -> bool:
        """Whether the place is host memory."""
        return self.name == "cpu"

    def is_gpu_place(self) -> bool:
        """Whether the place is a GPU."""
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
    """The place in which new Tensors are made."""
    return Place(get_device())


def is_compiled_with_cuda() -> bool:
    """Whether the current device is a GPU: the engine is not compiled, and uses a GPU only if one
    is set.
    """
    return get_device() != "cpu"


def check_place(place: Any) -> None:
    """Raise ValueError unless `place`, a Place or a name or None, is the current device."""
    if place is None:
        return
    name = place.name if isinstance(place, Place) else str(place)
    current = get_device()
    if name not in (current, current.partition(":")[0]):
        raise ValueError(
            f"Tensors are made on the current device, {current}, but the place is {name}. Call "
            f"set_device({name!r})."
        )


# -------------------------------------------------------------------- properties of Paddle's build
def always_false(*args: Any, **kwargs: Any) -> bool:
    """False, whatever the arguments are: the engine is not compiled for the devices and compilers
    that Paddle may be compiled for.
    """
    return False


def always_true(*args: Any, **kwargs: Any) -> bool:
    """True, whatever the arguments are."""
    return True


def no_devices() -> list[str]:
    """The devices of plugins: none."""
    return []


is_compiled_with_xpu = is_compiled_with_rocm = is_compiled_with_cinn = always_false
is_compiled_with_ipu = is_compiled_with_custom_device = is_compiled_with_dist = always_false
is_compiled_with_distribute = is_float16_supported = is_bfloat16_supported = always_false
is_autocast_enabled = supports_bfloat16 = op_support_gpu = always_false
get_all_custom_device_type = get_available_custom_device = no_devices
_is_fwd_prim_enabled = _is_bwd_prim_enabled = in_pir_mode = use_pir_api = always_false
