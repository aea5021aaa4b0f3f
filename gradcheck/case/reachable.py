"""The objects that code can reach, by name or as attributes, and the packages that they come from.

`references` returns all objects that an object refers to, `reads` only those that a call of it
names. Every question about user code is a traversal along one of the two.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from gradcheck.backends.base import FRAMEWORK_PACKAGES, Backend, Tensor, package_of

Reference = tuple[Any, Any]
"""The name or number by which an object is referred to, and the object."""

CLOSED = sys.stdlib_module_names | FRAMEWORK_PACKAGES | {"numpy", "gradcheck"}
"""Packages whose functions never refer to the user's objects, wherever they are installed."""
PARTS_OF_WRAPPERS: dict[type, tuple[str, ...]] = {
    functools.partial: ("func", "args", "keywords"),
    MethodType: ("__func__", "__self__"),
    BuiltinFunctionType: ("__self__",),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget",),
    functools.cached_property: ("func",),
}
"""The attributes of objects that wrap functions."""


# -------------------------- the owner of an object
def modules_of(value: Any) -> Iterator[str]:
    """The modules that define a value: the modules of its classes, of its code, and of the object
    that it is bound to.
    """
    if isinstance(value, functools.partial):
        yield from modules_of(value.func)
    elif isinstance(value, FunctionType):
        # a framework's decorator returns a function with the framework's code
        yield str(value.__globals__.get("__name__", ""))
    elif isinstance(value, (MethodType, BuiltinFunctionType)):
        yield str(value.__module__)
        yield from modules_of(value.__self__)
    else:
        for base in (value if isinstance(value, type) else type(value)).__mro__:
            yield str(getattr(base, "__module__", ""))


def frameworks_of(values: Iterable[Any]) -> set[str]:
    """The framework packages that objects, modules included, belong to."""
    packages = set[str]()
    for value in values:
        modules = [value.__name__] if isinstance(value, ModuleType) else modules_of(value)
        packages.update(module.partition(".")[0] for module in modules)
    return packages & FRAMEWORK_PACKAGES


@functools.cache
def is_open(package: str, home: str) -> bool:
    """Whether the code of a package may refer to the user's objects: the package is not in
    `CLOSED`, and it is `home` or not installed.
    """
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    is_installed = "site-packages" in Path(file).parts
    return package not in CLOSED and (package == home or not is_installed)


# ------------------------------ names in code
@dataclass
class NamesInCode:
    """The names that code, or a function within it, reads."""

    variables: set[str] = field(default_factory=set)
    """Global ones."""
    attributes: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    """Modules that the code imports."""


@functools.lru_cache(maxsize=1024)
def names_in(code: CodeType) -> NamesInCode:
    """The names that code reads."""
    names = NamesInCode()
    kinds = {
        "LOAD_GLOBAL": names.variables,
        "LOAD_NAME": names.variables,
        "LOAD_ATTR": names.attributes,
        "LOAD_METHOD": names.attributes,
        "IMPORT_NAME": names.modules,
    }
    waiting = [code]
    while waiting:
        block = waiting.pop()
        waiting += (constant for constant in block.co_consts if isinstance(constant, CodeType))
        for step in dis.get_instructions(block):
            if step.opname in kinds:
                kinds[step.opname].add(step.argval)
    return names


def closure_of(function: FunctionType) -> dict[str, Any]:
    """The variables of enclosing functions that a function reads and that already have a value."""
    variables = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # raised for a variable without a value
            variables[name] = cell.cell_contents
    return variables


def globals_of(function: FunctionType) -> dict[str, Any]:
    """The global variables that a function reads."""
    names = names_in(function.__code__).variables & function.__globals__.keys()
    return {name: function.__globals__[name] for name in sorted(names)}


def references_of_function(function: FunctionType) -> Iterator[Reference]:
    """The globals, imported modules, closure and defaults of a function, by name."""
    code = function.__code__
    yield from globals_of(function).items()
    for name in sorted(names_in(code).modules & sys.modules.keys()):
        yield name, sys.modules[name]
    yield from closure_of(function).items()
    defaults = function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    yield from zip(positional[len(positional) - len(defaults) :], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()


def read_of_modules(function: FunctionType) -> Iterator[tuple[str, str, Any]]:
    """The attributes that a function reads from modules, as far as its names show: the module's
    name, the attribute's name, and the object.
    """
    attributes = names_in(function.__code__).attributes
    for _, module in references_of_function(function):
        if isinstance(module, ModuleType):
            for name in sorted(attributes & vars(module).keys()):
                yield module.__name__, name, vars(module)[name]


# ------------------------------ objects
def traverse(start: Iterable[Any], follow: Callable[[Any], Iterable[Any]]) -> list[Any]:
    """Objects and everything that `follow` yields from them, each once, in depth-first order."""
    visited, waiting = dict[Any, Any](), [*start][::-1]
    while waiting:
        value = waiting.pop()
        key: Any = id(value)
        if isinstance(value, MethodType):  # each reading of a method makes another object
            key = id(value.__func__), id(value.__self__)
        if key not in visited:
            visited[key] = value  # kept, so that no other object gets its id
            waiting += [*follow(value)][::-1]
    return [*visited.values()]


def reachable(function: Any) -> list[Any]:
    """A function and all objects that its code refers to, each once.

    Installed packages other than the function's own are not followed.
    """
    home = package_of(function)

    def follow(value: Any) -> Iterator[Any]:
        if isinstance(value, functools.partial) or is_open(package_of(value), home):
            yield from (item for _, item in references(value))

    return traverse([function], follow)


def references(value: Any) -> Iterable[Reference]:
    """The objects that a value refers to, with their names in it."""
    if isinstance(value, FunctionType):
        of_modules = ((name, item) for _, name, item in read_of_modules(value))
        return chain(references_of_function(value), of_modules)
    if isinstance(value, ModuleType):
        return ()
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, (list, tuple)):
        return enumerate(value)
    if attributes := next(filter(None, map(PARTS_OF_WRAPPERS.get, type(value).__mro__)), None):
        return enumerate(getattr(value, attribute) for attribute in attributes)
    return members_of(value)


def members_of(value: Any) -> Iterator[Reference]:
    """The parameters, classes and attributes of an object or a class."""
    if hasattr(type(value), "named_parameters"):  # a module
        yield from value.named_parameters()
    yield from enumerate(value.__bases__ if isinstance(value, type) else [type(value)])
    yield from getattr(value, "__dict__", {}).items()


# --------------------------------- objects that a call reads
def code_of_call(value: Any, backend: Backend) -> tuple[Any, Any]:
    """The function that calling an object runs, and the object whose method it is."""
    if isinstance(value, (FunctionType, MethodType)):
        function = value
    elif isinstance(value, backend.module_type):
        function = value.forward
    else:
        call = inspect.getattr_static(type(value), "__call__", None)
        function = inspect.getattr_static(value, "__wrapped__", call)
    return getattr(function, "__func__", function), getattr(function, "__self__", value)


def reads(value: Any, backend: Backend, home: str) -> Iterator[Any]:
    """The objects that calling an object reads, by the names in its code.

    Items of a list or a dict, such as a table of activations, may be unused and are left out.
    No user code runs.
    """
    if isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
        return
    function, owner = code_of_call(value, backend)
    members = inspect.getattr_static(owner, backend.submodules, {})
    if not isinstance(function, FunctionType) or not is_open(package_of(function), home):
        yield from members.values()  # the members of a container
        return
    yield from (item for _, item in references_of_function(function))
    for module, _, item in read_of_modules(function):
        if is_open(module.partition(".")[0], home):
            yield item
    for name in sorted(names_in(function.__code__).attributes):
        yield method_of(members.get(name, inspect.getattr_static(owner, name, None)), owner)


def method_of(member: Any, owner: Any) -> Any:
    """A member of an object as its code reads it: functions become bound methods."""
    if isinstance(member, (property, functools.cached_property, staticmethod, classmethod)):
        [(_, member)] = references(member)
    return MethodType(member, owner) if isinstance(member, FunctionType) else member


# ------------------------------ leaves
def name_by_shape(leaf: Tensor) -> str:
    """The name for a leaf that no variable refers to."""
    return f"a leaf of shape {list(leaf.shape)}"


def unused_name(name: str, used: Collection[str]) -> str:
    """A name, with a number appended if it is taken."""
    numbered = chain([name], (f"{name} ({k})" for k in count(2)))
    return next(candidate for candidate in numbered if candidate not in used)


def leaves_of(backend: Backend, function: Any) -> dict[str, Tensor]:
    """The leaves with a gradient that the code of a function refers to, such as a layer's
    parameters.

    They are named after variables, attributes or parameters, or by their shape.
    """
    names: dict[int, str] = {}
    leaves: dict[int, Tensor] = {}
    for value in reachable(function):
        for name, item in references(value):
            if isinstance(item, backend.tensor_type) and backend.is_parameter(item):
                leaves[id(item)] = item
                names[id(item)] = names.get(id(item)) or (name if isinstance(name, str) else "")
    named_leaves: dict[str, Tensor] = {}
    for key, leaf in leaves.items():
        named_leaves[unused_name(names[key] or name_by_shape(leaf), named_leaves)] = leaf
    return named_leaves
