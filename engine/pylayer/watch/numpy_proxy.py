"""The NumPy module for recorded code: the same names, but functions that create arrays create
recorded ones.

NumPy's own module is never changed, as NumPy's code, in particular in C, uses it.
"""

from __future__ import annotations

import functools
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from pylayer.tensor.nested import mapped
from pylayer.tensor.tensor import Tensor
from pylayer.watch.numpy_array import (
    Dispatched,
    Session,
    current_session,
    holds_recorded,
    plain,
    recorded_in,
)
from pylayer.watch.numpy_dispatch import FUNCTIONS, MAKES, Unruled, call, wrap_constants

LIBRARIES = ("numpy", "scipy")


# --------------------------------------------------------------------- stand-ins for NumPy's names
class StandIn(ModuleType):
    """A stand-in for a module of NumPy or SciPy."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__["__wrapped__"] = module
        for name in (
            "__file__",
            "__path__",
            "__spec__",
            "__version__",
            "__package__",
            "__loader__",
        ):
            if hasattr(module, name):
                self.__dict__[name] = getattr(module, name)

    def __getattr__(self, name: str) -> Any:
        return stand_in(getattr(self.__dict__["__wrapped__"], name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["__wrapped__"], name, value)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["__wrapped__"])


stand_ins: dict[int, tuple[Any, Any]] = {}
"""Stand-ins by the id of the NumPy object, which is kept alive."""
standing: set[int] = set()
"""The ids of all stand-ins."""


def stand_in(value: Any) -> Any:
    """The stand-in that recorded code gets for an object of NumPy or SciPy, or for a tuple of
    these; anything else is returned unchanged.
    """
    if type(value) is tuple:
        items = tuple(map(stand_in, value))
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if id(value) in stand_ins:
        return stand_ins[id(value)][1]
    if not issubclass(
        type(value), (ModuleType, FunctionType, BuiltinFunctionType, MethodType, Dispatched)
    ):
        return value  # known by its type: a user's object may return anything from an attribute
    is_ufunc_method = isinstance(getattr(value, "__self__", None), np.ufunc)
    if is_ufunc_method or id(value) in standing or not is_of_libraries(value):
        return value
    return register_stand_in(
        StandIn(value) if isinstance(value, ModuleType) else function_for(value), value
    )


def register_stand_in(other: Any, value: Any) -> Any:
    """Register a stand-in for a NumPy object."""
    stand_ins[id(value)] = value, other
    standing.add(id(other))
    return other


def is_of_libraries(value: Any) -> bool:
    """Whether an object belongs to NumPy or SciPy."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if name is None:  # NumPy's C methods
        name = type(getattr(value, "__self__", None)).__module__
    return str(name).partition(".")[0] in LIBRARIES


def function_for(real: Any) -> Any:
    """The stand-in of a function."""

    def call_of_user(*args: Any, **kwargs: Any) -> Any:
        session = current_session()
        if session is None:
            return real(*args, **kwargs)
        if real.__name__ in MAKES:
            args = with_tensors(args, session)
        if holds_recorded((args, kwargs)):
            return real(*args, **kwargs) if type(real) is Dispatched else call(real, args, kwargs)
        return wrap_constants(real(*args, **kwargs), session, arguments=(*args, *kwargs.values()))

    functools.update_wrapper(call_of_user, real, updated=())
    return call_of_user


class Joiner:
    """``np.r_`` and ``np.c_``."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def __getitem__(self, items: Any) -> Any:
        return (
            replay(type(self.real).__getitem__, self.real, items)
            if current_session()
            else self.real[items]
        )


def iterator(*args: Any, **kwargs: Any) -> np.nditer:
    """``np.nditer``, which reads and writes memory directly: afterwards the memory holds
    constants.
    """
    for array in recorded_in((args, kwargs)):
        array._left("np.nditer")
        array._buffer.tensor = None
    return np.nditer(*plain(list(args)), **plain(kwargs))


register_stand_in(iterator, np.nditer)
register_stand_in(function_for(np.broadcast), np.broadcast)
for _joiner in (np.r_, np.c_):
    register_stand_in(Joiner(_joiner), _joiner)


def with_tensors(value: Any, session: Session) -> Any:
    """A value, or containers of them, with recorded arrays in place of Tensors."""
    return mapped(value, lambda v: session.to_numpy_hook(v) if isinstance(v, Tensor) else v)


# --------------------------------------------------------------------- NumPy's functions in Python
namespaces: dict[str, dict[str, Any]] = {}
"""Globals for functions of NumPy or SciPy modules that run on recorded arrays, by module."""


class Converter:
    """Stand-in for the functions by which NumPy's Python code converts arguments to arrays."""

    def __init__(self, *values: Any) -> None:
        self.arrays = [np_.asanyarray(v) for v in values]

    def __getitem__(self, k: int) -> Any:
        return self.arrays[k]

    def as_arrays(self, *, subok: bool = True, pyscalars: Any = None) -> Any:
        return tuple(self.arrays)

    def result_type(self, *args: Any, **kwargs: Any) -> Any:
        return np.result_type(*(a.dtype for a in self.arrays))

    def wrap(self, value: Any, /, to_scalar: Any = None) -> Any:
        return value[()] if np.ndim(value) == 0 and to_scalar is not False else value


def replay(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Run NumPy's own Python code of a function on recorded arrays. Raises Unruled if it is not
    Python.
    """
    code = getattr(function, "_implementation", function)
    if not isinstance(code, FunctionType) or not is_of_libraries(code):
        raise Unruled
    cells = tuple(CellType(library_stand_in(cell.cell_contents)) for cell in code.__closure__ or ())
    copy = FunctionType(
        code.__code__, namespace(code), code.__name__, code.__defaults__, cells or None
    )
    copy.__kwdefaults__ = code.__kwdefaults__
    return copy(*args, **kwargs)


def namespace(function: FunctionType) -> dict[str, Any]:
    """The globals of a function with stand-ins."""
    # The module where it is written; its `__module__` may have been set to another.
    name = function.__globals__["__name__"]
    if name not in namespaces:
        copy = namespaces[name] = dict(function.__globals__)
        for key, value in function.__globals__.items():
            if key == "_array_converter":
                copy[key] = Converter
            else:
                copy[key] = library_stand_in(value)
    return namespaces[name]


def library_stand_in(value: Any) -> Any:
    """The stand-in for a function or module that NumPy's Python code uses."""
    if type(value) is FunctionType and is_of_libraries(value):
        return functools.partial(replay, value)
    return value if type(value) is Dispatched else stand_in(value)


FUNCTIONS[None] = replay
np_: Any = stand_in(np)
