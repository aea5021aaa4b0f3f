"""Making ``import paddle`` mean the engine, in this process."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pylayer.release import FACADE, paddles, release_names
from pylayer.stand_in import StandIn, stand_in


class StandInFinder(MetaPathFinder, Loader):
    """Finds what Paddle 3.3.1 has and the facade lacks: whatever is imported is a stand-in.

    Of a module whose names are not in the table of the release, any name may be imported.
    """

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of a stand-in, also for a function in ``from paddle.module import function``."""
        owner, _, name = paddles(fullname).rpartition(".")
        known = release_names().get(owner)
        of_paddle = owner.partition(".")[0] == "paddle" and (known is None or name in known)
        return ModuleSpec(fullname, self, is_package=True) if of_paddle else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The stand-in."""
        return stand_in(paddles(spec.name))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: there is no code."""


_finder = StandInFinder()


def install_paddle() -> None:
    """Make ``import paddle``, and everything below it, resolve to the facade, or to stand-ins for what it lacks.

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
        import_module(FACADE)
        for name in [name for name in sys.modules if name == FACADE or name.startswith(FACADE + ".")]:
            sys.modules[paddles(name)] = sys.modules[name]
    if _finder not in sys.meta_path:
        sys.meta_path.append(_finder)


def uninstall_paddle() -> None:
    """Undo `install_paddle`, if it was called: the next ``import paddle`` looks for an installed one."""
    for name in [name for name in sys.modules if name == FACADE or name.startswith(FACADE + ".")]:
        if sys.modules.get(paddles(name)) is sys.modules[name]:
            del sys.modules[paddles(name)]
    for name in [name for name, module in sys.modules.items() if isinstance(module, StandIn)]:
        del sys.modules[name]
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
