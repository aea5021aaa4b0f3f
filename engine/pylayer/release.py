"""The names of Paddle 3.3.1, by module and class, as the facade's table has them."""

from __future__ import annotations

import functools
import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

FACADE = "pylayer.paddle"


@functools.cache
def _table() -> dict[str, list[str]]:
    lines = (Path(__file__).parent / "paddle/release-3.3.1.txt").read_text().splitlines()
    return {owner: names.split() for owner, names in (line.split(": ", 1) for line in lines)}


@functools.cache
def release_names() -> dict[str, frozenset[str]]:
    """By module or class of Paddle 3.3.1, its names; not every module is there."""
    return {owner: frozenset(name.removesuffix("/") for name in names) for owner, names in _table().items()}


@functools.cache
def release_modules() -> frozenset[str]:
    """The modules that are in those there, by their dotted names."""
    return frozenset(f"{owner}.{name[:-1]}" for owner, names in _table().items() for name in names if name[-1] == "/")


OTHERS = frozenset({"paddle.softmax", "paddle.tensor.softmax", "paddle.Tensor.softmax"})
"""Functions that do something else than those of the engine of that name: these take no ``axis``."""


def shared_names(owner: str) -> list[str]:
    """The names of a module or class of Paddle 3.3.1 under which the engine's objects stand there; none of modules."""
    return [
        name
        for name in sorted(release_names().get(owner, ()))
        if (path := f"{owner}.{name}") not in OTHERS and path not in release_modules()
    ]


def paddles(module: str) -> str:
    """The name of a module of the facade as users import it."""
    return "paddle" + module.removeprefix(FACADE) if module.startswith(FACADE) else module


def defined(source: str) -> dict[str, Any]:
    """What a module of the engine has of the engine's own, its imports among it; of a package what is defined inside.

    Modules are left out.
    """
    module = import_module(f"pylayer.{source}")
    found = {
        name: value
        for name, value in vars(module).items()
        if not isinstance(value, ModuleType) and getattr(value, "__module__", "").partition(".")[0] == "pylayer"
    }
    for inner in pkgutil.iter_modules(getattr(module, "__path__", ())):
        names = defined(f"{source}.{inner.name}").items()
        found |= {n: v for n, v in names if hasattr(v, "op") or v.__module__.startswith(f"pylayer.{source}.")}
    return found
