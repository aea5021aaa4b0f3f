"""Where the bundled specs lie: beside the package in a wheel, in ``specs/`` of a checkout or an editable install."""

from __future__ import annotations

from pathlib import Path


def bundled_specs() -> Path:
    """The folder of the bundled ``*.grad.yaml`` files."""
    package = Path(__file__).resolve().parent
    inside = package / "specs"
    return inside if inside.is_dir() else package.parent / "specs"
