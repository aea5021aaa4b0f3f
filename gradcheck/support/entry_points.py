"""Entry points of installed packages: operations that they add, and the lookup that backends and
report formats use.
"""

from __future__ import annotations

from typing import Any


def entry_points_of(group: str) -> list[Any]:
    """Return the entry points of a group. They are not imported."""
    from importlib.metadata import entry_points  # its import takes as long as reading specs

    return [*entry_points(group=group)]


def installed_operations() -> dict[str, str]:
    """Return the operations of installed packages: name → ``package.module:function``.

    They are the entry points of the group ``gradcheck.operations``. They are not imported.
    """
    return {entry.name: entry.value for entry in entry_points_of("gradcheck.operations")}
