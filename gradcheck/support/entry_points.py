"""Operations and backends that installed packages add; `report.files` has their report formats."""

from __future__ import annotations

from typing import Any


def entry_points_of(group: str) -> list[Any]:
    """Return the entry points of a group. Nothing of them is imported."""
    from importlib.metadata import entry_points  # takes as long to import as all that reads specs

    return [*entry_points(group=group)]


def installed_operations() -> dict[str, str]:
    """Return the operations of installed packages: name → ``package.module:function``.

    They are the entry points of the group ``gradcheck.operations``. Nothing of them is imported.
    """
    return {entry.name: entry.value for entry in entry_points_of("gradcheck.operations")}
