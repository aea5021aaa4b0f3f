"""Files that come with the package: the bundled specs, the JSON Schemas, and the files that
`gradcheck init` writes.
"""

from __future__ import annotations

import functools
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def bundled_specs() -> Path:
    """The folder of the bundled ``*.grad.yaml`` files.

    It is in the package if that was installed from a wheel, otherwise ``specs/`` of the checkout.
    """
    inside = PACKAGE / "specs"
    return inside if inside.is_dir() else PACKAGE.parent / "specs"


SUITES = {"paddle": ("checker", "design", "documents", "recorded"), "torch": ("torch",)}
"""Framework → the folders of the bundled specs that compare its releases with its documents."""


def bundled_files(framework: str = "paddle") -> list[Path]:
    """The bundled spec files of a framework's suite."""
    folders = [bundled_specs() / folder for folder in SUITES[framework]]
    return sorted(file for folder in folders for file in folder.rglob("*.grad.yaml"))


@functools.cache
def release_paths(framework: str = "paddle") -> dict[str, Path]:
    """Release of a framework → its release file, the oldest first."""
    from packaging.version import Version  # slow to import, and most commands ask for no release

    paths = {}
    for path in (bundled_specs() / "releases").glob(f"{framework}-*.yaml"):
        paths[path.stem.removeprefix(f"{framework}-")] = path
    return dict(sorted(paths.items(), key=lambda item: Version(item[0])))


@functools.cache
def is_bundled(path: str) -> bool:
    """Whether a spec file is one of the bundled ones."""
    return path.endswith(".grad.yaml") and Path(path).resolve().is_relative_to(bundled_specs())


def read_packaged(path: str) -> str:
    """The text of a file of the package, such as ``schemas/spec.json``, which
    `tests/commands/schemas.py` writes.
    """
    return (PACKAGE / path).read_text(encoding="utf-8")
