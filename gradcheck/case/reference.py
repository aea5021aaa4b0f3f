"""Layers by their name, ``package.module:Layer``, and ``import paddle`` where no Paddle is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gradcheck.support.pyproject import nearest_file
from gradcheck.support.suggest import hint


def roots(folder: Path | None = None) -> list[Path]:
    """The folders in which a user's modules are looked for: `folder`, the current one, the project's root and its src.

    The root is where the pyproject.toml is that is the nearest to `folder`.
    """
    here = folder.absolute() if folder is not None else Path.cwd()
    project = nearest_file(here)
    above = [project.parent, project.parent / "src"] if project else []
    return list(dict.fromkeys([here, Path.cwd(), *above]))


def import_reference(reference: str, folder: Path | None = None) -> Any:
    """The object that ``package.module:name`` names.

    It is looked for along `roots`.

    Raises:
        ImportError: there is no such module or name, or the reference is not of this form.
    """
    if not all(reference.partition(":")):
        raise ImportError(f"{reference!r} names nothing: write package.module:name, as layers.mine:Tanh")
    sys.path[:0] = [str(root) for root in roots(folder) if str(root) not in sys.path]
    module_name, _, name = reference.partition(":")
    value: Any = import_module(module_name)
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError as error:
            near = hint(part, [one for one in dir(value) if not one.startswith("_")], "")
            raise ImportError(f"module {module_name!r} has no {name!r}" + (near and f"; {near}")) from error
    return value


def installed_paddle() -> bool:
    """Whether ``import paddle`` would find an installed Paddle, or has; imports nothing."""
    if "paddle" in sys.modules:
        return True
    return find_spec("paddle") is not None


@contextmanager
def engine() -> Iterator[None]:
    """A block in which ``import paddle`` gives the bundled engine, if no Paddle is installed.

    What is imported in the block keeps the engine afterwards; ``import paddle`` itself is as before.
    """
    if installed_paddle():
        yield
        return
    import pylayer

    pylayer.install_paddle()
    try:
        yield
    finally:
        pylayer.uninstall_paddle()
