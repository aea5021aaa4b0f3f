"""Files that come with the package: the bundled specs, the JSON Schemas, and what `gradcheck init`
lays out.
"""

from __future__ import annotations

import functools
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def bundled_specs() -> Path:
    """The folder of the bundled ``*.grad.yaml`` files.

    It lies in the package where that was installed from a wheel, in ``specs/`` of a checkout or an
    editable install.
    """
    inside = PACKAGE / "specs"
    return inside if inside.is_dir() else PACKAGE.parent / "specs"


def bundled_files() -> list[Path]:
    """The bundled spec files for Paddle; those in ``torch/`` are about torch itself."""
    files = bundled_specs().rglob("*.grad.yaml")
    return sorted(file for file in files if file.parent.name != "torch")


@functools.cache
def is_bundled(path: str) -> bool:
    """Whether a spec file is one of the bundled ones."""
    return path.endswith(".grad.yaml") and Path(path).resolve().is_relative_to(bundled_specs())


def packaged(path: str) -> str:
    """The text of a file of the package, such as ``schemas/spec.json``, which
    `tests/commands/schemas.py` writes.
    """
    return (PACKAGE / path).read_text(encoding="utf-8")
