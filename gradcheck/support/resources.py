"""Files that come with the package: the bundled specs, and the JSON Schemas."""

from __future__ import annotations

import functools
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def bundled_specs() -> Path:
    """The folder of the bundled ``*.grad.yaml`` files.

    It lies in the package where that was installed from a wheel, in ``specs/`` of a checkout or an editable install.
    """
    inside = PACKAGE / "specs"
    return inside if inside.is_dir() else PACKAGE.parent / "specs"


def bundled_files() -> list[Path]:
    """The bundled spec files."""
    return sorted(bundled_specs().rglob("*.grad.yaml"))


def schema_text(name: str) -> str:
    """The JSON Schema ``spec`` or ``report``, as `tests/commands/schemas.py` writes it from the models.

    It is a file so that printing it loads no model.
    """
    return (PACKAGE / "schemas" / f"{name}.json").read_text(encoding="utf-8")
