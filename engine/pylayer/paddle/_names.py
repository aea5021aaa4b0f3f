"""How the facade's modules are filled from tables of names, and what they say of a name that they lack."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from pylayer.ops.spellings import ALIASES, respelled
from pylayer.release import paddles, release_modules
from pylayer.stand_in import stand_in


def exported(table: Mapping[str, str]) -> dict[str, Any]:
    """The objects that a table names: by module of the engine, the names, separated by spaces.

    Functions take Paddle's other words for their arguments, too.
    """
    return {
        name: respelled(name, getattr(import_module(f"pylayer.{module}"), name))
        for module, names in table.items()
        for name in names.split()
    }


def aliases(found: Mapping[str, Any]) -> dict[str, Any]:
    """The functions of a module under their other names."""
    return {alias: found[name] for alias, name in ALIASES.items() if name in found and alias != "mul_"}


def missing(module: str) -> Callable[[str], Any]:
    """A module's ``__getattr__``: a stand-in for a module that it lacks, else the error, with the nearest."""
    shown = paddles(module)

    def getattr_(name: str) -> Any:
        if name.startswith("__"):  # what Python itself asks for
            raise AttributeError(f"module {shown!r} has no attribute {name!r}")
        if f"{shown}.{name}" in release_modules():
            return stand_in(f"{shown}.{name}")
        public = [n for n in vars(sys.modules[module]) if not n.startswith("_")]
        near = difflib.get_close_matches(name, public, n=3)
        hint = f" Did you mean {' or '.join(f'{shown}.{n}' for n in near)}?" if near else ""
        text = f"{shown}.{name} is not part of the bundled engine.{hint}"
        raise AttributeError(text, name=name, obj=sys.modules[module])

    return getattr_
