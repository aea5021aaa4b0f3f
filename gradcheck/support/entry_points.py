"""Operations that installed packages add; `report.files` has the formats that they add."""

from __future__ import annotations


def installed_operations() -> dict[str, str]:
    """Return the operations of installed packages: name → ``package.module:function``.

    They are the entry points of the group ``gradcheck.operations``. Nothing of them is imported.
    """
    from importlib.metadata import entry_points  # takes as long to import as all that reads specs

    return {entry.name: entry.value for entry in entry_points(group="gradcheck.operations")}
