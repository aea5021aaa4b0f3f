"""Array modules and devices: which module an array belongs to, and where new arrays go.

The only file that imports CuPy, and it does so on demand: without a GPU nothing here needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import numpy as np

Array = Any
"""An array of any registered module; its operators and methods follow the array API."""

XP: dict[type, ModuleType] = {np.ndarray: np}
"""Array type to array module. A lookup by exact type costs nothing; `array_namespace` would cost 45 % of an op."""


class ByArrayType(dict[type, Any]):
    """Array type to what `make` gives for it, made on first use."""

    def __init__(self, make: Callable[[type], Any]) -> None:
        super().__init__()
        self.make = make
        self.made: dict[type, Any] = {}
        """What has been made. Python looks up in an exact dict 20 ns faster than in one that makes what is missing."""

    def __missing__(self, array_type: type) -> Any:
        made = self[array_type] = self.made[array_type] = self.make(array_type)
        return made


_device: ContextVar[str] = ContextVar("device", default="cpu")


def get_device() -> str:
    """The device on which new arrays are made: ``cpu`` or ``gpu:<index>``."""
    return _device.get()


def set_device(device: str) -> str:
    """Make new arrays on `device`: ``cpu``, ``gpu`` or ``gpu:<index>``.

    Raises:
        ValueError: the name is none of these.
        RuntimeError: a GPU is asked for and CuPy or a device is missing; the message says which.
    """
    name, _, index = device.partition(":")
    if name not in ("cpu", "gpu") or (index and not index.isdigit()) or (name == "cpu" and index):
        raise ValueError(f"The device must be 'cpu', 'gpu' or 'gpu:<index>', but got {device!r}.")
    if name == "gpu":
        cupy = _import_cupy()
        cupy.cuda.Device(int(index or 0)).use()
        device = f"gpu:{int(index or 0)}"
    _device.set(device)
    return device


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
    """Where `array` lies, as Paddle prints it: ``cpu`` or ``gpu:<index>``."""
    return "cpu" if type(array) is np.ndarray else f"gpu:{array.device.id}"


def to_numpy(array: Array) -> np.ndarray[Any, Any]:
    """`array` as a NumPy array; a copy when it lies on a device."""
    return array if type(array) is np.ndarray else array.get()


def owner(array: Array) -> Array:
    """The array that owns the memory of `array`: itself, or what it is a view of."""
    while type(array.base) in XP:
        array = array.base
    return array
