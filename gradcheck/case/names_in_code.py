"""The names that a user's code uses, and whether code is a user's."""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from gradcheck.backends.base import FRAMEWORK_PACKAGES

CLOSED = sys.stdlib_module_names | FRAMEWORK_PACKAGES | {"numpy"}
"""Packages of which no function refers to what a user has made, wherever they are installed."""


@functools.cache
def is_installed(package: str) -> bool:
    """Whether a package was installed, rather than being the user's own code."""
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is not None and "site-packages" in Path(file).parts


@dataclass
class NamesInCode:
    """The names that code reads, or that of a function within it."""

    variables: set[str] = field(default_factory=set)
    """Global ones."""
    attributes: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    """Modules that it imports."""


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
        part = waiting.pop()
        waiting += (constant for constant in part.co_consts if isinstance(constant, CodeType))
        for step in dis.get_instructions(part):
            if step.opname in kinds:
                kinds[step.opname].add(step.argval)
    return names


def references_of_function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The globals, imported modules, closure and defaults of a function, by their names."""
    code = function.__code__
    names = names_in(code)
    spaces = ((names.variables, function.__globals__), (names.modules, sys.modules))
    for wanted, space in spaces:
        yield from ((name, space[name]) for name in sorted(wanted & space.keys()))
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        if cell_is_set(cell):
            yield name, cell.cell_contents
    defaults = function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    yield from zip(positional[len(positional) - len(defaults) :], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()


def cell_is_set(cell: Any) -> bool:
    """Whether a variable of an enclosing function has a value by now."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
