"""The names of Paddle 3.3.1, by module and class, as the facade's table has them."""

from __future__ import annotations

import functools
from importlib.resources import files

FACADE = "pylayer.paddle"


@functools.cache
def _table() -> dict[str, list[str]]:
    lines = files(FACADE).joinpath("release-3.3.1.txt").read_text().splitlines()
    return {owner: names.split() for owner, names in (line.split(": ", 1) for line in lines)}


@functools.cache
def release_names() -> dict[str, frozenset[str]]:
    """By module or class of Paddle 3.3.1, its names; not every module is there."""
    return {owner: frozenset(name.removesuffix("/") for name in names) for owner, names in _table().items()}


@functools.cache
def release_modules() -> frozenset[str]:
    """The modules that are in those there, by their dotted names."""
    return frozenset(f"{owner}.{name[:-1]}" for owner, names in _table().items() for name in names if name[-1] == "/")


def paddles(module: str) -> str:
    """The name of a module of the facade as users import it."""
    return "paddle" + module.removeprefix(FACADE) if module.startswith(FACADE) else module
