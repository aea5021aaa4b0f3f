"""Making ``import paddle`` mean the engine, in this process."""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module

FACADE = "pylayer.paddle"


def _alias(name: str) -> str:
    return "paddle" + name.removeprefix(FACADE)


def _facade_modules() -> list[str]:
    """The names of the facade's modules, all to be imported now: one found through its path would be a second copy."""
    facade = import_module(FACADE)
    return [FACADE, *(found.name for found in pkgutil.walk_packages(facade.__path__, FACADE + "."))]


def install_paddle() -> None:
    """Make ``import paddle``, and everything below it that the engine has, resolve to the engine's facade.

    Modules are shared, so a class is the same however it was imported. An installed Paddle stays as it is; it is only
    not found until `uninstall_paddle`. Calling this again does nothing.

    Raises:
        RuntimeError: another ``paddle`` was imported before.
    """
    imported = sys.modules.get("paddle")
    if imported is not None and imported is not sys.modules.get(FACADE):
        raise RuntimeError(
            f"Another paddle ({getattr(imported, '__file__', imported)}) is already imported in this process. "
            f"Call pylayer.install_paddle() before anything imports paddle, or in a process of its own."
        )
    if imported is None:
        for name in _facade_modules():
            sys.modules[_alias(name)] = import_module(name)


def uninstall_paddle() -> None:
    """Undo `install_paddle`, if it was called: the next ``import paddle`` looks for an installed one."""
    for name in [name for name in sys.modules if name == FACADE or name.startswith(FACADE + ".")]:
        if sys.modules.get(_alias(name)) is sys.modules[name]:
            del sys.modules[_alias(name)]
