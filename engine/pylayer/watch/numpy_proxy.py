"""NumPy as the recorded code sees it: the same names, of which functions that make arrays make recorded ones.

NumPy's own module is never changed: code of NumPy's, in C above all, goes on using it. What changes for the time of a
recording is what the user's functions refer to: their globals, closures and defaults, and what they import.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, ClassVar

import numpy as np

import pylayer
from pylayer.tensor import Tensor
from pylayer.watch.numpy_array import RecordedArray, Session, gathered, holds_recorded, plain, session_here
from pylayer.watch.numpy_dispatch import FUNCTIONS, OURS, Unruled, call, placed_anew, wrapped

LIBRARIES = ("numpy", "scipy")
Dispatched = type(np.sum)
"""The type of NumPy's functions that know the protocol for functions."""
WRITTEN_IN_PYTHON = 1 << 9
"""The flag of classes that a class statement made."""
PLAIN = (str, bytes, int, float, complex, type(None), np.ndarray, Tensor, RecordedArray, type(object.__init__))
WRAPPERS = (type(functools.lru_cache(len)),)
"""Callables in C that hold a function of the user's."""
MOST_LISTED = 100
"""The most items of a list that are looked through."""
MOST_VISITED = 20_000
"""The most objects that are looked through for references to NumPy."""


# --------------------------------------------------------------------------- what stands for NumPy's names
class StandIn(ModuleType):
    """A module of NumPy's or SciPy's."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__["__wrapped__"] = module
        for name in ("__file__", "__path__", "__spec__", "__version__", "__package__", "__loader__"):
            if hasattr(module, name):
                self.__dict__[name] = getattr(module, name)

    def __getattr__(self, name: str) -> Any:
        return stand_in(getattr(self.__dict__["__wrapped__"], name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["__wrapped__"], name, value)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["__wrapped__"])


ODD = (np.r_, np.c_, np.broadcast)
"""What makes arrays of its arguments and is no function."""
made: dict[int, tuple[Any, Any]] = {}
"""By identity: an object of NumPy's, kept alive, and what stands for it."""
standing: dict[int, Any] = {}
"""By identity: what stands for something."""


def stand_in(value: Any) -> Any:
    """What the recorded code sees in place of something of NumPy's or SciPy's; anything else itself."""
    known = isinstance(value, (ModuleType, FunctionType, BuiltinFunctionType, MethodType, Dispatched))
    if not known and not any(value is odd for odd in ODD):
        return value
    if id(value) in standing or isinstance(getattr(value, "__self__", None), np.ufunc):
        return value
    found = made.get(id(value))
    if found is None:
        if not of_libraries(value):
            return value
        if isinstance(value, ModuleType):
            other: Any = StandIn(value)
        elif value is np.r_ or value is np.c_:
            other = Joiner(value)
        elif value is np.broadcast:
            other = broadcast
        else:
            other = function_for(value)
        found = made[id(value)] = value, other
        standing[id(other)] = other
    return found[1]


def of_libraries(value: Any) -> bool:
    """Whether something is NumPy's or SciPy's."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if name is None:  # methods of NumPy's in C
        name = type(getattr(value, "__self__", None)).__module__
    return str(name).partition(".")[0] in LIBRARIES


def function_for(real: Any) -> Any:
    """The stand-in of a function."""

    def call_of_user(*args: Any, **kwargs: Any) -> Any:
        session = session_here()
        if session is None:
            return real(*args, **kwargs)
        if real in MAKERS:
            return make(real, session, *args, **kwargs)
        if holds_recorded((args, kwargs)):
            return real(*args, **kwargs) if type(real) is Dispatched else call(real, args, kwargs)
        return wrapped(real(*args, **kwargs), session, (*args, *kwargs.values()))

    functools.update_wrapper(call_of_user, real, updated=())
    return call_of_user


def broadcast(*arrays: Any) -> Any:
    """``np.broadcast``, of which only the shape is asked."""
    return np.broadcast(*plain(arrays))


class Joiner:
    """``np.r_`` and ``np.c_``."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def __getitem__(self, items: Any) -> Any:
        return replay(type(self.real).__getitem__, self.real, items) if session_here() else self.real[items]


# --------------------------------------------------------------------------- arrays of what is given
def make(real: Any, session: Session, given: Any = None, dtype: Any = None, *args: Any, **options: Any) -> Any:
    """What a function makes that makes an array of anything: of a recorded array a recorded one."""
    given = with_tensors(given, session)
    if isinstance(given, (list, tuple)) and holds_recorded(given):
        given = gathered(given)
    if type(given) is not RecordedArray:
        return wrapped(real(given, dtype, *args, **options), session, [given])
    found = given if dtype is None or np.dtype(dtype) == given.dtype else given.astype(dtype)
    if type(found) is not RecordedArray:
        return found
    return placed_anew(real, found, None, *args, **options)


def with_tensors(value: Any, session: Session) -> Any:
    """A value, or lists of them, with recorded arrays in place of Tensors."""
    if isinstance(value, (list, tuple)) and any(isinstance(v, (list, tuple, Tensor)) for v in value):
        return [with_tensors(v, session) for v in value]
    return session.handed(value) if isinstance(value, Tensor) else value


MAKERS = (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.asarray_chkfinite)


# --------------------------------------------------------------------------- NumPy's functions that are Python
namespaces: dict[str, dict[str, Any]] = {}
"""By module of NumPy's or SciPy's: its globals as its functions see them when they run on recorded arrays."""


class Converter:
    """What NumPy's functions in Python use to make arrays of their arguments."""

    def __init__(self, *values: Any) -> None:
        self.arrays = [np_.asanyarray(v) for v in values]
        self.scalar_input = tuple(np.ndim(v) == 0 for v in values)

    def __getitem__(self, k: int) -> Any:
        return self.arrays[k]

    def __len__(self) -> int:
        return len(self.arrays)

    def as_arrays(self, *, subok: bool = True, pyscalars: Any = None) -> Any:
        return tuple(self.arrays)

    def result_type(self, *args: Any, **kwargs: Any) -> Any:
        return np.result_type(*(a.dtype for a in self.arrays))

    def wrap(self, value: Any, /, to_scalar: Any = None) -> Any:
        return value[()] if np.ndim(value) == 0 and to_scalar is not False else value


def replay(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Run NumPy's own Python code of a function on recorded arrays. Raises Unruled if it is not Python."""
    code = getattr(function, "_implementation", function)
    if not isinstance(code, FunctionType) or not of_libraries(code):
        raise Unruled
    return rebuilt(code)(*args, **kwargs)


def rebuilt(function: FunctionType) -> FunctionType:
    """The same code with stand-ins for NumPy's names."""
    copy = FunctionType(
        function.__code__, namespace(function), function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def namespace(function: FunctionType) -> dict[str, Any]:
    """The globals of a function with stand-ins."""
    name = function.__globals__["__name__"]  # where it is written: its own module may be set to another
    if name not in namespaces:
        found = namespaces[name] = dict(function.__globals__)
        for key, value in function.__globals__.items():
            if key == "_array_converter":
                found[key] = Converter
            elif type(value) is FunctionType and of_libraries(value):
                found[key] = rebuilt_later(value)
            elif type(value) is not Dispatched:
                found[key] = stand_in(value)
    return namespaces[name]


def rebuilt_later(function: FunctionType) -> Any:
    """A helper function, rebuilt when it is called."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return rebuilt(function)(*args, **kwargs)

    return run


FUNCTIONS[None] = replay
PLAYED = (np.apply_along_axis, np.apply_over_axes, np.piecewise, np.atleast_1d, np.atleast_2d, np.atleast_3d)
for _function in PLAYED:
    OURS[_function] = functools.partial(replay, _function)
np_: Any = stand_in(np)


# --------------------------------------------------------------------------- the names in the user's code
ENGINE = f"{Path(pylayer.__file__).parent}/"
STANDARD = sysconfig.get_path("stdlib")
INSTALLED = tuple({sysconfig.get_path(kind) for kind in ("purelib", "platlib")})
OWN = tuple(
    f"{folder}/" for spec in map(find_spec, LIBRARIES) if spec for folder in spec.submodule_search_locations or ()
)
"""The folders of NumPy and SciPy."""


@functools.cache
def is_users(path: str, others: tuple[str, ...]) -> bool:
    """Whether a file of code is neither a library's nor Python's own, nor one of `others`, which are folders."""
    if path.startswith((*others, *OWN, "<frozen")):
        return False
    return not path.startswith(STANDARD) or path.startswith(INSTALLED)


class Code:
    """The user's code that can be reached from some functions, and where it refers to NumPy, which is looked for once.

    Args:
        functions: what is called: functions, classes such as a PyLayer, objects. Code that can be reached from them is
            the user's, but for Python's own, that of installed packages, and that of the engine.
        others: folders with further code that is not the user's.
    """

    def __init__(self, functions: Iterable[Any], others: tuple[str, ...] = ()) -> None:
        self.functions, self.others = functions, (ENGINE, *others)

    @functools.cached_property
    def places(self) -> list[tuple[Any, Any]]:
        """Namespaces, cells and functions, each with the key by which it refers to NumPy."""
        return [(holder, key) for holder, key, _ in references(self.functions, self.others)]

    def holds(self, path: str) -> bool:
        """Whether a file of code is the user's."""
        return is_users(path, self.others)


class Names:
    """The places in the user's code that refer to NumPy, given stand-ins while anybody records."""

    lock = threading.Lock()
    users = 0
    """How many recordings there are, in all threads: names are replaced for all of them at once."""
    importer: Any = None
    places: ClassVar[dict[tuple[int, Any], tuple[Any, Any, Any]]] = {}
    """Holder, key and what is there outside of recordings, by the identity of the holder and the key."""

    @classmethod
    def take(cls, code: Code) -> None:
        """Have user's code see stand-ins."""
        for holder, key in code.places:
            value = there(holder, key)
            if stood_in(value) is not value and (type(value) is not tuple or stood_in(value) != value):
                cls.places.setdefault((id(holder), key), (holder, key, value))
                put(holder, key, stood_in(value))

    @classmethod
    def give_back(cls) -> None:
        """Have all of it as it was, but for what the code itself has changed."""
        for holder, key, value in cls.places.values():
            if there(holder, key) == stood_in(value):
                put(holder, key, value)
        cls.places.clear()


def stood_in(value: Any) -> Any:
    """A value, or the defaults of a function, with stand-ins."""
    return tuple(map(stand_in, value)) if type(value) is tuple else stand_in(value)


def there(holder: Any, key: Any) -> Any:
    """What a namespace, a cell or a function holds."""
    if isinstance(holder, dict):
        return holder.get(key)
    return getattr(holder, key)


def put(holder: Any, key: Any, value: Any) -> None:
    """Have a namespace, a cell or a function hold a value."""
    if isinstance(holder, dict):
        holder[key] = value
    else:
        setattr(holder, key, value)


def references(functions: Iterable[Any], others: tuple[str, ...]) -> Iterator[tuple[Any, Any, Any]]:
    """Where the code that can be reached from `functions` refers to NumPy: a namespace, cell or function, and a key."""
    waiting, seen = list(functions), set[int]()
    while waiting and len(seen) < MOST_VISITED:
        value = waiting.pop()
        if id(value) in seen or id(value) in standing or isinstance(value, PLAIN):
            continue
        seen.add(id(value))
        for holder, key, held in held_by(value, others):
            if stood_in(held) is not held and (type(held) is not tuple or stood_in(held) != held):
                yield holder, key, held
            waiting.append(held)


def held_by(value: Any, others: tuple[str, ...]) -> Iterator[tuple[Any, Any, Any]]:
    """What a function, class or object refers to, and by what: a namespace, cell or function, and a key."""
    if isinstance(value, FunctionType):
        yield from held_by_function(value, others)
    elif isinstance(value, (MethodType, functools.partial, staticmethod, classmethod, property)):
        for name in ("__self__", "__func__", "func", "args", "keywords", "fget"):
            yield {}, name, getattr(value, name, None)
    elif isinstance(value, type):
        for cls in value.__mro__:
            if is_reached(cls, others):
                yield from (({}, name, held) for name, held in list(vars(cls).items()))
    elif isinstance(value, (list, tuple, set, dict)):
        items = list(value.values() if isinstance(value, dict) else value)
        yield from (({}, k, held) for k, held in enumerate(items[:MOST_LISTED]))
    elif is_reached(type(value), others) or type(value) in WRAPPERS:
        yield {}, "__class__", type(value)
        with contextlib.suppress(AttributeError):  # it may have no attributes of its own
            yield from (({}, name, held) for name, held in list(object.__getattribute__(value, "__dict__").items()))


def held_by_function(function: FunctionType, others: tuple[str, ...]) -> Iterator[tuple[Any, Any, Any]]:
    """What a function refers to. Only its closure if it is not the user's: what it calls may be there."""
    users = is_users(function.__code__.co_filename, others)
    modules = []
    for cell in function.__closure__ or ():
        if holds(cell):
            yield cell if users else {}, "cell_contents", cell.cell_contents
            modules.append(cell.cell_contents)
    yield {}, "__wrapped__", function.__dict__.get("__wrapped__")
    if not users:
        return
    yield function, "__defaults__", function.__defaults__
    spaces = [function.__globals__, function.__kwdefaults__ or {}]
    names = names_in(function.__code__) | {*(function.__kwdefaults__ or ())}
    for space in spaces:
        for name in names & space.keys():
            yield space, name, space[name]
            modules.append(space[name])
        while modules:
            module = modules.pop()
            if not isinstance(module, ModuleType) or id(module) in standing:
                continue
            known = any(vars(module) is space for space in spaces)
            if not known and is_users(getattr(module, "__file__", None) or STANDARD, others):
                spaces.append(vars(module))


@functools.lru_cache(4096)
def names_in(code: CodeType) -> frozenset[str]:
    """The names of globals and attributes in code and the functions within it."""
    within = (names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(code.co_names).union(*within)


def is_reached(cls: type, others: tuple[str, ...]) -> bool:
    """Whether a class is the user's, or one of the harness or the engine, whose objects hold what the user has made."""
    path = getattr(sys.modules.get(str(getattr(cls, "__module__", None))), "__file__", None)
    if not cls.__flags__ & WRITTEN_IN_PYTHON:
        return False
    return path is None or path.startswith(others) or is_users(path, others)


def holds(cell: CellType) -> bool:
    """Whether a closure's variable has been given a value."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


@contextlib.contextmanager
def stand_ins(code: Code) -> Iterator[None]:
    """Have the user's code see stand-ins, also where it imports NumPy."""
    with Names.lock:
        Names.users += 1
        if Names.users == 1:
            Names.importer = builtins.__import__
            builtins.__import__ = functools.partial(imported, builtins.__import__, code)
        Names.take(code)
    try:
        yield
    finally:
        with Names.lock:
            Names.users -= 1
            if not Names.users:
                builtins.__import__ = Names.importer
                Names.give_back()


def imported(real: Any, users: Code, name: str, *args: Any, **kwargs: Any) -> Any:
    """What an import gives: a stand-in to functions of the user's, and the module itself to any other code."""
    module = real(name, *args, **kwargs)
    if name.partition(".")[0] not in LIBRARIES or session_here() is None:
        return module
    code = sys._getframe(1).f_code
    return stand_in(module) if code.co_name != "<module>" and users.holds(code.co_filename) else module
