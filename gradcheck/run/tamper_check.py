"""What gradcheck itself computes with, as it was before a case: one that leaves it changed cannot be judged."""

from __future__ import annotations

import ctypes
import gc
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from operator import is_not
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from gradcheck.case.names_in_code import names_in

OURS = tuple(f"gradcheck.{room}" for room in ("backends", "case", "causes", "checking", "result"))
LIBRARY = ("numpy", "numpy.linalg", "numpy.random")
"""Modules in which only those names are looked at that the code in `OURS` uses."""


class WatchedNames(NamedTuple):
    """A module or a class, and what some of its names stood for."""

    label: str
    names: Mapping[str, Any]
    """As they are now."""
    before: dict[str, Any]
    version: ctypes.c_uint64
    """Of `names`, as it is now."""
    version_before: int

    @classmethod
    def of(cls, label: str, names: Mapping[str, Any], watched: Callable[[str, Any], object]) -> WatchedNames:
        """Those of the names, with their values, that are to be watched."""
        version = dict_version(names)
        before = {name: value for name, value in names.items() if watched(name, value)}
        return cls(label, names, before, version, version.value)

    def changed(self) -> str:
        """The first name that stands for something else, such as ``numpy.abs``; empty if none does."""
        if VERSIONED and self.version.value == self.version_before:
            return ""
        differ = map(is_not, map(self.names.get, self.before), self.before.values())
        return next((f"{self.label}.{name}" for name in itertools.compress(self.before, differ)), "")


class Judges:
    """The modules of gradcheck that reach a verdict, their classes, and what they use of NumPy."""

    def __init__(self) -> None:
        modules = [module for name, module in list(sys.modules.items()) if name.startswith(OURS)]
        owners: list[tuple[str, Any]] = [(module.__name__, module) for module in modules]
        for module in modules:
            owners += [
                (f"{module.__name__}.{name}", value)
                for name, value in vars(module).items()
                if isinstance(value, type) and value.__module__ == module.__name__
            ]
        self.namespaces = [
            WatchedNames.of(label, vars(owner), lambda name, value: is_code(value)) for label, owner in owners
        ]
        used = {name for one in self.namespaces for value in one.before.values() for name in names_used(value)}
        self.namespaces += [
            WatchedNames.of(name, vars(library), lambda name, value: name in used)
            for name in LIBRARY
            if (library := sys.modules.get(name))
        ]

    def changed(self) -> str:
        """The first name that is not what it was; empty if all are."""
        return next(filter(None, (one.changed() for one in self.namespaces)), "")


def dict_version(names: Mapping[str, Any]) -> ctypes.c_uint64:
    """The number that CPython gives to each state of a dict (PEP 509), of `vars` of a module or a class. It lies behind
    the reference count, the type and the length, and is read without a write: to look at a value writes how often that
    is referred to, and a forked process has to copy the page of memory first."""
    held = names if isinstance(names, dict) else gc.get_referents(names)[0]  # of a class there is but a view
    return ctypes.c_uint64.from_address(id(held) + 3 * ctypes.sizeof(ctypes.c_void_p))


def is_versioned() -> bool:
    """Whether this interpreter counts the states of dicts there, as CPython does up to 3.13."""
    if sys.implementation.name != "cpython":
        return False
    names = {"a": 0}
    version = dict_version(names)
    before = version.value
    names["a"] = 1
    return version.value != before


VERSIONED = is_versioned()


def is_code(value: Any) -> bool:
    """Whether a value is something to call or to look names up in: what a case would replace to be judged well."""
    return callable(value) or isinstance(value, (ModuleType, staticmethod, classmethod, property))


def names_used(value: Any) -> Iterator[str]:
    """The names that a function, a method or a property uses; none for others."""
    function = getattr(value, "__func__", getattr(value, "fget", value))
    return names_in(function.__code__) if isinstance(function, FunctionType) else iter(())
