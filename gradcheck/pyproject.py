"""The project's own pyproject.toml: which file that is, and its table ``[tool.gradcheck]`` as it stands there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class ConfigError(ValueError):
    """A configuration that cannot be used; the message says where, what is wrong, and what to write."""


def nearest_file(start: Path) -> Path | None:
    """The pyproject.toml of `start`, or of the nearest folder above, no further up than the first with ``.git``."""
    for folder in (start, *start.parents):
        if (folder / "pyproject.toml").is_file():
            return folder / "pyproject.toml"
        if os.path.lexists(folder / ".git"):
            return None
    return None


def table_of(start: Path) -> tuple[Path, Mapping[str, Any]] | None:
    """The file and its ``[tool.gradcheck]``, from the folder `start` upward; None where no file says anything.

    Raises:
        ConfigError: the file is unreadable or no TOML, or what it has there is no table.
    """
    file = nearest_file(start.resolve())
    if file is None:
        return None
    import tomllib  # here: it takes as long as all else of this, and most runs have no such file

    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{file}: {error}") from None
    tool = content.get("tool", {})
    table = tool.get("gradcheck", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: tool.gradcheck must be a table: write [tool.gradcheck] and the keys below it")
    return (file, table) if table else None
