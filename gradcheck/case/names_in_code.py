"""The names that a user's code uses, and whether code is a user's."""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

PADDLE_PACKAGES = ("pylayer", "paddle")
"""The top-level packages of the engine and of the installed Paddle."""
CLOSED = sys.stdlib_module_names | {"numpy", *PADDLE_PACKAGES}
"""Packages of which no function refers to what a user has made, wherever they are installed."""


@functools.cache
def is_installed(package: str) -> bool:
    """Whether a package was installed, rather than being the user's own code."""
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is not None and "site-packages" in Path(file).parts


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def names_in(code: CodeType) -> Iterator[str]:
    """The global names and attributes that a function's code, or that of a function within it, uses."""
    return (name for one in codes_in(code) for name in one.co_names)


def variables_and_attributes(code: CodeType) -> tuple[set[str], set[str]]:
    """The global names, and the attributes, that code reads, or that of a function within it."""
    steps = [
        (step.opname, step.argval) for one in codes_in(code) for step in dis.get_instructions(one)
    ]
    variables = {name for opname, name in steps if opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return variables, {name for opname, name in steps if opname in ("LOAD_ATTR", "LOAD_METHOD")}


def cell_is_set(cell: Any) -> bool:
    """Whether a variable of an enclosing function has a value by now."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
