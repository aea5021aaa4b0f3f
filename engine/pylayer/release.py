"""The names of Paddle 3.3.1, stand-ins for those that the engine lacks, and ``import paddle`` in
this process.

Stand-ins can be imported; using one raises an error with its name, and `missing_name` reads the
name from any error.
"""

from __future__ import annotations

import functools
import pkgutil
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from pylayer.tensor.invalid import Unsupported, UnsupportedError
from pylayer.tensor.tensor import Tensor

FACADE = "pylayer.paddle"


@functools.cache
def _release() -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    names: dict[str, frozenset[str]] = {}
    modules: list[str] = []
    for line in (Path(__file__).parent / "paddle/release-3.3.1.txt").read_text().splitlines():
        owner, listed = line.split(": ", 1)
        words = listed.split()
        names[owner] = frozenset(word.removesuffix("/") for word in words)
        modules += [f"{owner}.{word[:-1]}" for word in words if word.endswith("/")]
    return names, frozenset(modules)


def release_names() -> dict[str, frozenset[str]]:
    """The names in each module or class of Paddle 3.3.1; not all modules are listed."""
    return _release()[0]


def release_modules() -> frozenset[str]:
    """The submodules of these modules, by their dotted names."""
    return _release()[1]


OTHERS = frozenset({"paddle.softmax", "paddle.tensor.softmax", "paddle.Tensor.softmax"})
"""Functions that differ from the engine's functions of the same name: the release's take no
``axis``.
"""


def shared_names(owner: str) -> list[str]:
    """The names of a module or class of Paddle 3.3.1 that refer to the engine's objects; modules
    are left out.
    """
    return [
        name
        for name in sorted(release_names().get(owner, ()))
        if (path := f"{owner}.{name}") not in OTHERS and path not in release_modules()
    ]


def paddles(module: str) -> str:
    """The name under which users import a module of the facade."""
    return "paddle" + module.removeprefix(FACADE) if module.startswith(FACADE) else module


def engine_objects(source: str) -> dict[str, Any]:
    """The engine's names in one of its modules, imports included; for a package, the names defined
    inside.

    Modules are not included.
    """
    module = import_module(f"pylayer.{source}")
    objects = {
        name: value
        for name, value in vars(module).items()
        if not isinstance(value, ModuleType)
        and (getattr(value, "__module__", "") or "").partition(".")[0] == "pylayer"
    }
    for inner in pkgutil.iter_modules(getattr(module, "__path__", ())):
        names = engine_objects(f"{source}.{inner.name}").items()
        objects |= {
            n: v
            for n, v in names
            if hasattr(v, "op") or v.__module__.startswith(f"pylayer.{source}.")
        }
    return objects


# --------------------------------------------------------------------------- stand-ins
REEXPORTING = (
    "amp",
    "autograd",
    "base",
    "distributed",
    "framework",
    "jit",
    "nn",
    "nn.functional",
    "nn.initializer",
    "nn.utils",
    "optimizer",
    "static",
    "tensor",
)
"""The packages that re-export the names of their submodules: ``paddle.tensor.math.add`` is
``paddle.tensor.add``.
"""
OTHERS_INSIDE = tuple(
    f"paddle.{name}."
    for name in (
        "autograd.ir_backward",
        "base.core",
        "base.libpaddle",
        "distributed.communication.stream",
        "nn.quant",
        "static.amp",
    )
)
"""Names inside the modules that share their name with a function."""


OF_GPU_BUILDS = ("paddle.incubate.fp8",)
"""Packages that the release's build for CPUs lacks, and that public files import from."""

_DATA = "T array dtype grad item ndim numpy place shape size stop_gradient strides tolist"
DATA_OF_TENSORS = frozenset(_DATA.split())
"""Attributes of the result of a class or function that are values rather than names to resolve
further.
"""
ADVICE = "Install Paddle and run with -b paddle."


def contains_tensor(value: Any) -> bool:
    """Whether a value is a Tensor, or a list, tuple or dict with a Tensor in it."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(map(contains_tensor, value))
    return isinstance(value, Tensor)


class UnsupportedLengthError(UnsupportedError, TypeError):
    """The error of a stand-in's length: also a TypeError, which ``list`` ignores, as it does not
    need the length.
    """


STANDS_FOR = "_paddle_name"
"""The attribute in which a class derived from a stand-in keeps the stand-in's name."""


class StandIn(ModuleType, Unsupported):
    """A stand-in for a module, class or function of Paddle that the engine lacks; its attributes
    are stand-ins too.

    It is harmless at import: calling, subclassing, decorating, comparing, iterating or computing
    with it returns the stand-in itself. No object of the user is an instance of a stand-in.

    Raises:
        UnsupportedError: it is called while `refusal` is active, or a value is needed: it is used
            with a Tensor, entered by ``with``, or used as a bool, a number, an array, or a
            container; or an object of the engine is tested with isinstance, as it may be an
            instance in the release.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []  # the import system may search it for modules

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        # A star import: the names that it lacks would be missing without a reason.
        if name == "__all__":
            self.refuse()
        if name.startswith("__"):  # names that Python itself looks up
            raise AttributeError(f"{self!r} has no attribute {name!r}", name=name, obj=self)
        value = resolve_name(f"{self.__name__}.{name}")
        owner, _, last = self.__name__.rpartition(".")
        if (
            isinstance(value, StandIn)
            and in_release(owner, last)
            and self.__name__ not in release_modules()
        ):
            return self.refuse() if name in DATA_OF_TENSORS else self  # of a class or function
        return value

    def __repr__(self) -> str:
        return f"<{self.__name__}, which is not part of the bundled engine>"

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError(self.__name__, ADVICE)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.refuse() if refusal.is_active or contains_tensor([args, kwargs]) else self

    def __eq__(self, other: object) -> Any:
        """Return the stand-in, like the other methods; but False in comparison with Python's own
        types, which annotations make.
        """
        is_pythons = getattr(other, "__module__", "") in ("builtins", "typing")
        return False if is_pythons else self(other)

    def __iter__(self) -> Iterator[Any]:
        yield self

    def __len__(self) -> NoReturn:
        raise UnsupportedLengthError(self.__name__, ADVICE)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Do nothing: a stand-in stores no values."""

    def __instancecheck__(self, instance: object) -> bool:
        return self.__subclasscheck__(type(instance))

    def __subclasscheck__(self, subclass: type) -> bool:
        return subclass.__module__.partition(".")[0] == "pylayer" and self.refuse()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type]:
        def new(cls: type, *args: Any, **kwargs: Any) -> Any:
            return self(*args, **kwargs)

        def init_subclass(cls: type, /, **kwargs: Any) -> None:
            """Accept the keywords of any class."""

        body: dict[str, Any] = {"__new__": new, "__init_subclass__": classmethod(init_subclass)}
        body[STANDS_FOR] = self.__name__
        return (type(self.__name__.rpartition(".")[2], (), body),)


_GIVE_THEMSELVES = (
    "ne lt le gt ge getitem add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod "
    "rmod pow rpow "
    "matmul rmatmul neg pos abs invert and rand or ror xor rxor lshift rlshift rshift rrshift"
)
_NEED_A_VALUE = "bool int float complex index contains enter exit array"
for _name in _GIVE_THEMSELVES.split():
    setattr(StandIn, f"__{_name}__", StandIn.__call__)
for _name in _NEED_A_VALUE.split():
    setattr(StandIn, f"__{_name}__", StandIn.refuse)


class Refusal:
    """How calls of stand-ins are handled, in all threads."""

    is_active = False
    """Whether calls are refused: a result would silently lack the effect of the call."""


refusal = Refusal()


stand_in = functools.cache(StandIn)
"""The stand-in for a dotted name, always the same."""


def resolve_name(path: str) -> Any:
    """Resolve a dotted name below a module which the facade lacks.

    The result is the object of that name in the nearest enclosing package that re-exports it;
    otherwise a stand-in.
    """
    package, _, name = path.rpartition(".")
    while "." in package and package.removeprefix("paddle.") not in REEXPORTING:
        package = package.rpartition(".")[0]
    facade = sys.modules.get(FACADE + package.removeprefix("paddle"))
    value = vars(facade).get(name) if facade is not None and "." in package else None
    if value is None or isinstance(value, ModuleType) or path.startswith(OTHERS_INSIDE):
        return stand_in(path)
    return value


# --------------------------------------------------------------------------- the import
class StandInFinder(MetaPathFinder, Loader):
    """An import finder for names that Paddle 3.3.1 has and the facade lacks: the imported objects
    are stand-ins.

    Any name may be imported from a module whose names are not in the release's table.
    """

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of a stand-in, also for a function in ``from paddle.module import function``."""
        owner, _, name = paddles(fullname).rpartition(".")
        known = release_names().get(owner)
        of_paddle = owner.partition(".")[0] == "paddle" and (
            known is None or name in known or f"{owner}.{name}" in OF_GPU_BUILDS
        )
        return ModuleSpec(fullname, self, is_package=True) if of_paddle else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The stand-in."""
        return stand_in(paddles(spec.name))

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a stand-in has no code."""


_finder = StandInFinder()


def install_paddle() -> None:
    """Make ``import paddle``, and everything below it, resolve to the facade, or to stand-ins for
    missing names.

    Modules are shared, so a class is the same under every import path. An installed Paddle stays as
    it is, but is not found until `uninstall_paddle`. Calling this again does nothing.

    Raises:
        RuntimeError: another ``paddle`` was imported before.
    """
    imported = sys.modules.get("paddle")
    if imported is not None and imported is not sys.modules.get(FACADE):
        raise RuntimeError(
            f"Another paddle ({getattr(imported, '__file__', imported)}) is already imported in "
            "this process. Call pylayer.install_paddle() before anything imports paddle, or in a "
            "separate process."
        )
    if imported is None:
        import_module(FACADE)
        for name, module in _facade().items():
            sys.modules[paddles(name)] = module
    if _finder not in sys.meta_path:
        sys.meta_path.append(_finder)


def uninstall_paddle() -> None:
    """Undo `install_paddle`, if it was called: the next ``import paddle`` looks for an installed
    one.
    """
    facade_ids = {id(module) for module in _facade().values()}
    for name, module in list(sys.modules.items()):
        stands_in = name.startswith("paddle") and id(module) in facade_ids
        if stands_in or isinstance(module, StandIn):
            del sys.modules[name]
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def _facade() -> dict[str, ModuleType]:
    """The imported modules of the facade, by their names in the engine."""
    inside = f"{FACADE}."
    return {name: module for name, module in sys.modules.items() if f"{name}.".startswith(inside)}


# --------------------------------------------------------------------------- errors
CLASSES = {
    "pylayer.tensor.tensor.Tensor": "paddle.Tensor",
    "pylayer.nn.layer.Layer": "paddle.nn.Layer",
    "pylayer.static.program.Program": "paddle.static.Program",
    "pylayer.static.program.Block": "paddle.pir.Block",
    "pylayer.static.variable.Variable": "paddle.pir.Value",
    "pylayer.static.executor.Executor": "paddle.static.Executor",
    "pylayer.optimizer.base.Optimizer": "paddle.optimizer.Optimizer",
}
"""The classes whose members are in the list of the release."""

NOT_IMPORTED = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")


def missing_name(error: BaseException) -> str:
    """The name, present in Paddle and missing in the engine, because of which `error` was raised;
    empty if there is another reason.

    The error is an AttributeError, an ImportError, an error of a stand-in, or one raised from any
    of these.
    """
    missing = ""
    if isinstance(error, UnsupportedError):
        missing = error.feature
    elif isinstance(error, ModuleNotFoundError) and error.name:
        owner, _, name = error.name.rpartition(".")
        missing = in_release(paddles(owner), name)
    elif isinstance(error, ImportError) and (match := NOT_IMPORTED.match(str(error))):
        missing = in_release(paddles(match[2]), match[1])
    elif isinstance(error, AttributeError) and error.name:
        missing = next(
            (path for owner in owners(error.obj) if (path := in_release(owner, error.name))),
            getattr(error.obj if isinstance(error.obj, type) else None, STANDS_FOR, ""),
        )
    return missing or (missing_name(error.__cause__) if error.__cause__ is not None else "")


def in_release(owner: str, name: str) -> str:
    """The dotted name if the release has it, otherwise empty; also for a module that the list
    covers only in part.
    """
    return f"{owner}.{name}" if name in release_names().get(owner, ()) else ""


def owners(value: Any) -> list[str]:
    """The release's name for a module of the facade, a class, or an object's class."""
    if isinstance(value, ModuleType):
        return [paddles(value.__name__)]
    bases = (value if isinstance(value, type) else type(value)).__mro__
    return [
        CLASSES[base] for kind in bases if (base := f"{kind.__module__}.{kind.__name__}") in CLASSES
    ]
