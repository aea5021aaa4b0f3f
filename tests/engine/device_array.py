"""An array type that stands in for one on a device: whatever would copy it to the host, or mix with the host, raises.

With it registered in `XP`, operations that pass on it keep to their arrays' own module, so that they run on a GPU too.
As in CuPy, reductions give 0-d arrays, and lists must be made arrays before they are used as such.
"""

from __future__ import annotations

import math
import operator
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pylayer.tensor.array
from pylayer.tensor.array import XP


class HostMixingError(TypeError):
    """Something on the device met something on the host."""


class DeviceArray:
    """A NumPy array that cannot be reached but through `get` and `item`."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: np.ndarray[Any, Any], base: DeviceArray | None = None) -> None:
        self._host = host
        self._base = DeviceArray(host.base) if base is None and isinstance(host.base, np.ndarray) else base

    @property
    def base(self) -> DeviceArray | None:
        return None if self._host.base is None else self._base

    @property
    def device(self) -> Any:
        return SimpleNamespace(id=0)

    def get(self) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        return self._host.copy()

    def item(self) -> Any:
        return self._host.item()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the array interface is a way to the host, too
            raise AttributeError(name)
        value = getattr(self._host, name)
        if isinstance(value, np.ndarray):
            return DeviceArray(value, self)
        return on_device(value, self) if callable(value) else value

    def __getitem__(self, index: Any) -> DeviceArray:
        return wrapped(self._host[unwrapped(index)], self)  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, value: Any) -> None:
        """Writes in an order of its own where an index names a place several times, as a GPU may."""
        host_index, host_value = unwrapped(index), unwrapped(value)
        places = np.arange(self._host.size).reshape(self._host.shape)[host_index]
        values = np.broadcast_to(host_value, np.shape(places))
        self._host[host_index] = host_value
        self._host.flat[np.ravel(places)[::-1]] = np.ravel(values)[::-1]

    def __len__(self) -> int:
        return len(self._host)


def _refuses(name: str) -> Any:
    def method(self: DeviceArray, *args: Any, **kwargs: Any) -> Any:
        raise HostMixingError(f"{name} would copy a device array to the host")

    return method


for name in ("__array__", "__float__", "__bool__", "__int__", "__index__", "__complex__", "__iter__", "__contains__"):
    setattr(DeviceArray, name, _refuses(name))


def _operator(name: str) -> Any:
    function = getattr(operator, name)

    def method(self: DeviceArray, *others: Any) -> Any:
        return wrapped(function(self._host, *(unwrapped(o) for o in others)), self)

    def reflected(self: DeviceArray, other: Any) -> Any:
        return wrapped(function(unwrapped(other), self._host), self)

    return method, reflected


OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lt", "le", "gt", "ge",
    "eq", "ne", "neg", "pos", "abs", "invert",
)  # fmt: skip
for name in OPERATORS:
    plain = name.rstrip("_")
    method, reflected = _operator(name)
    setattr(DeviceArray, f"__{plain}__", method)
    setattr(DeviceArray, f"__r{plain}__", reflected)


def _in_place(name: str) -> Any:
    def method(self: DeviceArray, other: Any) -> DeviceArray:
        self._host = getattr(operator, name)(self._host, unwrapped(other))
        return self

    return method


for name in ("iadd", "isub", "imul", "itruediv"):
    setattr(DeviceArray, f"__{name}__", _in_place(name))


def unwrapped(value: Any) -> Any:
    """What is inside, for the call of a NumPy function; host arrays are refused."""
    if isinstance(value, DeviceArray):
        return value._host
    if isinstance(value, np.ndarray):
        raise HostMixingError(f"a host array of shape {value.shape} met the device")
    if isinstance(value, (list, tuple)):
        return type(value)(unwrapped(v) for v in value)
    if isinstance(value, dict):
        return {key: unwrapped(v) for key, v in value.items()}
    return value


def wrapped(value: Any, base: DeviceArray | None = None) -> Any:
    """A result as one on the device; NumPy's scalars as 0-d arrays."""
    if isinstance(value, (np.ndarray, np.generic)):
        return DeviceArray(np.asarray(value), base)
    if isinstance(value, (list, tuple)):
        return (
            type(value)(*(wrapped(v) for v in value))
            if hasattr(value, "_fields")
            else type(value)(wrapped(v) for v in value)
        )
    return value


def on_device(function: Any, base: DeviceArray | None = None) -> Any:
    """A NumPy function, or an array's method, that takes and gives device arrays."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return wrapped(function(*unwrapped(args), **unwrapped(kwargs)), base)

    return call


class DeviceModule:
    """NumPy's functions on device arrays."""

    __name__ = "device"

    def __init__(self, module: Any = np) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name == "random":
            raise HostMixingError("the state of a device's random numbers cannot be copied")
        found = getattr(self._module, name)
        if isinstance(found, type) or not callable(found):
            return DeviceModule(found) if type(found) is type(np) else found
        if isinstance(found, np.ufunc):
            return DeviceUfunc(found)
        return on_device(found)

    def asarray(self, value: Any, dtype: Any = None, order: Any = None) -> DeviceArray:
        """An array of the device; here a host array may come in, as this is what copies it."""
        host = value._host if isinstance(value, DeviceArray) else value
        if isinstance(value, DeviceArray) and dtype in (None, value.dtype) and (not order or host.flags.c_contiguous):
            return value
        return DeviceArray(np.array(host, dtype, order=order or "K"))

    array = asarray

    def clip(self, x: DeviceArray, low: Any, high: Any) -> DeviceArray:
        """As CuPy's, which takes no missing bound of bfloat16."""
        if x.dtype.kind == "V" and (low is None or high is None):
            raise TypeError("clip of bfloat16 takes two bounds")
        return on_device(np.clip)(x, low, high)  # type: ignore[no-any-return]


class DeviceUfunc:
    """A ufunc on device arrays: its call, and the `at` of `add`.

    CuPy's `minimum.at` and `maximum.at` of float64 compare as float32, and the others have none.
    """

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return on_device(self._ufunc)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "at" and self._ufunc is not np.add:
            raise NotImplementedError(f"{self._ufunc.__name__}.at")
        return on_device(getattr(self._ufunc, name))


def plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the stand-in be the device that the engine finds, as if it were CuPy's, until the test ends."""
    module: Any = DeviceModule()
    module.cuda = SimpleNamespace(Device=lambda index: SimpleNamespace(use=lambda: None))
    functions = {"erf": math.erf, "erfc": math.erfc, "gammaln": math.lgamma}  # CuPy has them in cupyx.scipy.special
    special: Any = SimpleNamespace(**{n: on_device(np.vectorize(f, otypes="d")) for n, f in functions.items()})
    monkeypatch.setitem(sys.modules, "devicex.scipy.special", special)
    monkeypatch.setitem(XP, DeviceArray, module)
    monkeypatch.setattr(pylayer.tensor.array, "_import_cupy", lambda: module)
