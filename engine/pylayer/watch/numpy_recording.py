"""Recording NumPy code: the interface.

    with recording_numpy(Code([layer])):
        out = layer.apply(x)

In the block, ``Tensor.numpy()`` and ``np.asarray(tensor)`` return arrays that represent the Tensor.
NumPy's operations on them are computed by operations of the engine, of which every active observer
is notified; ``paddle.to_tensor`` converts them back. Values that leave the recording are leaks,
each of which is reported to the observer (`Observer.left`). NumPy itself is not changed: until the
block ends, code that is reachable from the given functions gets stand-ins for NumPy's modules and
functions in its globals, closures, defaults and imports. Only the thread that entered the block is
recorded.

A cast to a dtype of fewer digits (``x.astype("float32")``) is the engine's operation `cast`.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
import sysconfig
import threading
import weakref
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

import pylayer
from pylayer.tensor.tensor import Tensor
from pylayer.watch import scipy_rules, watchers
from pylayer.watch.numpy_array import RecordedArray, Session, current_session
from pylayer.watch.numpy_proxy import LIBRARIES, stand_in, standing

assert scipy_rules.OF_ONE  # the rules, and those of NumPy, are in the tables

ENGINE = f"{Path(pylayer.__file__).parent}/"
STANDARD = sysconfig.get_path("stdlib")
INSTALLED = tuple({sysconfig.get_path(kind) for kind in ("purelib", "platlib")})
OWN = tuple(
    f"{folder}/"
    for spec in map(find_spec, LIBRARIES)
    if spec
    for folder in spec.submodule_search_locations or ()
)
"""The folders of NumPy and SciPy."""
WRITTEN_IN_PYTHON = 1 << 9
"""The flag of classes that a class statement made."""
PLAIN: tuple[type, ...] = (
    str,
    bytes,
    int,
    float,
    complex,
    type(None),
    np.ndarray,
    Tensor,
    RecordedArray,
    type(object.__init__),
    # these may have lost their object, and then raise on any access
    ModuleType,
    *weakref.ProxyTypes,
)
WRAPPERS = (type(functools.lru_cache(len)),)
"""Callables in C that hold a user's function."""
MOST_LISTED = 100
"""The most items of a list that are searched."""
MOST_VISITED = 20_000
"""The most objects that are searched for references to NumPy."""


@functools.cache
def is_users(path: str, libraries: tuple[str, ...]) -> bool:
    """Whether a file of code belongs neither to a library, nor to Python, nor to one of the folders
    `libraries`.
    """
    if path.startswith((*libraries, *OWN, "<frozen")):
        return False
    return not path.startswith(STANDARD) or path.startswith(INSTALLED)


class Code:
    """The user's code that can be reached from some functions, and its references to NumPy, which
    are searched for once.

    Args: functions: the called objects: functions, classes such as a PyLayer, or others. Code
            reachable from them is the user's, except for that of Python itself, of installed
            packages and of the engine.
        libraries: folders with further code that is not the user's.
    """

    def __init__(self, functions: Iterable[Any], libraries: tuple[str, ...] = ()) -> None:
        self.functions, self.libraries = functions, (ENGINE, *libraries)

    def holds(self, path: str) -> bool:
        """Whether a file of code is the user's."""
        return is_users(path, self.libraries)

    @functools.cached_property
    def references(self) -> list[Reference]:
        """The code's references to NumPy."""
        references, waiting, visited = list[Reference](), list(self.functions), set[int]()
        while waiting and len(visited) < MOST_VISITED:
            value = waiting.pop()
            if id(value) in visited or id(value) in standing or is_a(value, PLAIN):
                continue
            visited.add(id(value))
            if is_a(value, FunctionType):
                places = list(self.references_of(value))
                references += [
                    place for place in places if stand_in(look_up(*place)) is not look_up(*place)
                ]
                waiting += [look_up(*place) for place in places]
                # Functions that it calls may be in its closure.
                waiting += [cell.cell_contents for cell in cells_of(value)]
                waiting.append(value.__dict__.get("__wrapped__"))
            else:
                waiting += self.members_of(value)
        return references

    def references_of(self, function: FunctionType) -> Iterator[Reference]:
        """Objects that a function refers to, if it is the user's."""
        if not self.holds(function.__code__.co_filename):
            return
        yield from ((cell, "cell_contents") for cell in cells_of(function))
        yield function, "__defaults__"
        modules = [cell.cell_contents for cell in cells_of(function)]
        spaces = [function.__globals__, function.__kwdefaults__ or {}]
        names = names_in(function.__code__) | {*(function.__kwdefaults__ or ())}
        for space in spaces:
            for name in names & space.keys():
                yield space, name
                modules.append(space[name])
            while modules:
                module = modules.pop()
                if not is_a(module, ModuleType) or id(module) in standing:
                    continue
                known = any(vars(module) is space for space in spaces)
                if not known and self.holds(getattr(module, "__file__", None) or STANDARD):
                    spaces.append(vars(module))

    def members_of(self, value: Any) -> list[Any]:
        """Objects that a class or object, other than a function, refers to."""
        if is_a(value, (MethodType, functools.partial, staticmethod, classmethod, property)):
            names = ("__self__", "__func__", "func", "args", "keywords", "fget")
            return [getattr(value, name, None) for name in names]
        if is_a(value, type):
            return [
                member
                for cls in value.__mro__
                if self.is_users(cls)
                for member in list(vars(cls).values())
            ]
        if is_a(value, (list, tuple, set, dict)):
            return list(value.values() if is_a(value, dict) else value)[:MOST_LISTED]
        if self.reaches(type(value)) or type(value) in WRAPPERS:
            with contextlib.suppress(AttributeError):  # it may lack a ``__dict__``
                return [type(value), *list(object.__getattribute__(value, "__dict__").values())]
            return [type(value)]
        return []

    def reaches(self, cls: type) -> bool:
        """Whether a class is the user's, or a class of the harness or engine whose objects hold the
        user's objects.
        """
        path = file_of(cls)
        return bool(cls.__flags__ & WRITTEN_IN_PYTHON) and (
            path.startswith(self.libraries) or self.is_users(cls)
        )

    def is_users(self, cls: type) -> bool:
        """Whether a class is the user's."""
        return bool(cls.__flags__ & WRITTEN_IN_PYTHON) and (
            not file_of(cls) or self.holds(file_of(cls))
        )


def file_of(cls: type) -> str:
    """The file of the module in the ``__module__`` of a class; empty if there is none, as in an
    interactive session.
    """
    return getattr(sys.modules.get(str(getattr(cls, "__module__", None))), "__file__", None) or ""


def is_a(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """Whether a value is of a type, judged only by its type: `isinstance` reads its ``__class__``,
    which may be anything.
    """
    return issubclass(type(value), kinds)


Reference = tuple[Any, Any]
"""A slot: a namespace, cell or function, and the key of an object in it."""


def look_up(holder: Any, key: Any) -> Any:
    """The object in a slot."""
    return holder.get(key) if isinstance(holder, dict) else getattr(holder, key)


def put(holder: Any, key: Any, value: Any) -> None:
    """Put a value into a slot."""
    if isinstance(holder, dict):
        holder[key] = value
    else:
        setattr(holder, key, value)


def cells_of(function: FunctionType) -> list[CellType]:
    """The variables of a function's closure that have been given a value."""
    cells = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # raised for a variable without a value
            _ = cell.cell_contents
            cells.append(cell)
    return cells


@functools.lru_cache(4096)
def names_in(code: CodeType) -> frozenset[str]:
    """The names of globals and attributes in code and the functions within it."""
    inner = (names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(code.co_names).union(*inner)


lock = threading.Lock()
recordings: list[Session] = []
"""Active recordings of all threads: names are replaced for all of them at once, until the last
ends.
"""
standing_in: dict[tuple[int, Any], tuple[Any, Any, Any, Any]] = {}
"""Holder, key, the value outside of recordings and the current value, by the id of the holder and
the key.
"""


@contextlib.contextmanager
def recording_numpy(code: Code, exact: bool = True) -> Iterator[Session]:
    """A block in which the NumPy code of a call in this thread is recorded; yields the session.

    Args:
        code: the called objects.
        exact: no perturbation changes the results of operations, so that a rule whose result
            differs from NumPy's is not used.
    """
    session = Session(code.holds, exact)
    # Looked up first, so that an error leaves nothing changed.
    places = [(place, stand_in(look_up(*place))) for place in code.references]
    with lock:
        if not recordings:
            replace(
                vars(builtins),
                "__import__",
                functools.partial(import_for_users, builtins.__import__),
            )
        recordings.append(session)
        for place, other in places:
            replace(*place, other)
    token = watchers.set(watchers.get()._replace(numpy=session))
    try:
        yield session
    finally:
        session.open = False
        watchers.reset(token)
        with lock:
            recordings.remove(session)
            if not recordings:
                give_back()


def replace(holder: Any, key: Any, other: Any) -> None:
    """Replace the value in a slot while any recording is active."""
    before = look_up(holder, key)
    if other is not before:
        standing_in.setdefault((id(holder), key), (holder, key, before, other))
        put(holder, key, other)


def give_back() -> None:
    """Restore all slots, except those that the code itself has changed."""
    for holder, key, before, other in standing_in.values():
        if look_up(holder, key) == other:
            put(holder, key, before)
    standing_in.clear()


def import_for_users(real: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """The result of an import: a stand-in for user code, the module itself for any other code."""
    module, session = real(name, *args, **kwargs), current_session()
    if name.partition(".")[0] not in LIBRARIES or session is None:
        return module
    code = sys._getframe(1).f_code
    return (
        stand_in(module)
        if code.co_name != "<module>" and session.is_users(code.co_filename)
        else module
    )
