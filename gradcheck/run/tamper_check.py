"""What gradcheck itself computes with, as it was before a case: one that leaves it changed cannot be judged."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from operator import is_not
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from gradcheck.case.arguments import names_in

OURS = tuple(f"gradcheck.{room}" for room in ("backends", "case", "causes", "checking", "result"))
LIBRARY = ("numpy", "numpy.linalg", "numpy.random")
"""Modules in which only those names are looked at that the code in `OURS` uses. Looking at all of them would take as
long as running a case: a forked process must copy each page of memory before it can look at what is on it."""


class WatchedNames(NamedTuple):
    """A module or a class, and what some of its names stood for."""

    label: str
    names: Mapping[str, Any]
    """As they are now."""
    before: dict[str, Any]

    def changed(self) -> str:
        """The first name that stands for something else, such as ``numpy.abs``; empty if none does."""
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
            WatchedNames(label, vars(owner), {name: value for name, value in vars(owner).items() if is_code(value)})
            for label, owner in owners
        ]
        used = {name for one in self.namespaces for value in one.before.values() for name in names_used(value)}
        self.namespaces += [
            WatchedNames(name, vars(library), {one: value for one, value in vars(library).items() if one in used})
            for name in LIBRARY
            if (library := sys.modules.get(name))
        ]

    def changed(self) -> str:
        """The first name that is not what it was; empty if all are."""
        return next(filter(None, (one.changed() for one in self.namespaces)), "")


def is_code(value: Any) -> bool:
    """Whether a value is something to call or to look names up in: what a case would replace to be judged well."""
    return callable(value) or isinstance(value, (ModuleType, staticmethod, classmethod, property))


def names_used(value: Any) -> Iterator[str]:
    """The names that a function, a method or a property uses; none for others."""
    function = getattr(value, "__func__", getattr(value, "fget", value))
    return names_in(function.__code__) if isinstance(function, FunctionType) else iter(())
