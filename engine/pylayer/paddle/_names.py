"""How the facade's modules are filled from their table, and what they say of a name that they lack."""

from __future__ import annotations

import difflib
import functools
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pylayer.install import StandIn, stand_in
from pylayer.ops.methods import FORMS_IN_PLACE
from pylayer.ops.spellings import ALIASES, respelled
from pylayer.paddle._modules import ALSO, MODULES
from pylayer.release import FACADE, defined, paddles, release_modules, shared_names


class Facade(ModuleType):
    """A module of the facade, on which imports leave no stand-ins: none hides a function of its name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, StandIn):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """A stand-in for a module that it lacks, else the error, with the nearest name."""
        shown = paddles(self.__name__)
        if name.startswith("__"):  # what Python itself asks for
            raise AttributeError(f"module {shown!r} has no attribute {name!r}")
        if f"{shown}.{name}" in release_modules():
            return stand_in(f"{shown}.{name}")
        near = difflib.get_close_matches(name, [n for n in vars(self) if not n.startswith("_")], n=3)
        hint = f" Did you mean {' or '.join(f'{shown}.{n}' for n in near)}?" if near else ""
        text = f"{shown}.{name} is not part of the bundled engine.{hint}"
        raise AttributeError(text, name=name, obj=self)


@functools.cache
def names_in(source: str) -> dict[str, Any]:
    """What a module or package of the engine offers to the facade."""
    return {**defined(source), **(FORMS_IN_PLACE if source == "ops" else {})}


def named(owner: str, sources: Iterable[str]) -> dict[str, Any]:
    """The names of a module of the facade, and what they are, from a row of its table.

    Functions take Paddle's other words for their arguments, too.
    """
    found: dict[str, Any] = {}
    wanted = shared_names(owner)
    for source in sources:
        renamed, _, place = source.rpartition("=")
        module, _, names = place.partition(":")
        if names:
            there = vars(import_module(f"pylayer.{module}")) | names_in(module)
            new = {renamed or name: there[name] for name in names.split(",")}
        else:
            there = names_in(module)
            new = {n: there[ALIASES.get(n, n)] for n in wanted if ALIASES.get(n, n) in there}
        found = {**{name: respelled(name, value) for name, value in new.items()}, **found}
    return found


def fill() -> None:
    """Make the modules of the facade, each in its parent and where Python finds what is imported."""
    for path, sources in MODULES.items():
        name = f"{FACADE}.{path}".removesuffix(".")
        parent, _, last = name.rpartition(".")
        if path:
            module: ModuleType = Facade(name, f"`{paddles(name)}`.")
            sys.modules[name] = module
            module.__file__, module.__spec__ = __file__, ModuleSpec(name, None, is_package=True)
            module.__path__ = []  # what is imported from it is looked for, if it lacks that
            vars(sys.modules[parent]).setdefault(last, module)  # two have the names of their functions, which go before
        else:
            module = sys.modules[name]
            module.__class__ = Facade
        vars(module).update(named(paddles(name), sources.split()))
    for path, place in ALSO.items():
        owner, _, last = path.rpartition(".")
        setattr(sys.modules[f"{FACADE}.{owner}".removesuffix(".")], last, sys.modules[f"{FACADE}.{place}"])
