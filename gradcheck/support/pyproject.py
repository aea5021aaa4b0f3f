"""Finding the project's pyproject.toml, and reading its table ``[tool.gradcheck]``."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradcheck.support.file_io import read_limited
from gradcheck.support.user_error import UserError, refusals_of

MOST_BYTES = 1_000_000
LONGEST_MESSAGE = 300
"""The most characters of a parser's message, which may quote a whole key."""


class ConfigError(UserError):
    """A configuration that cannot be used; the message has the position, the mistake and the
    correction.
    """


def root_of(start: Path) -> Path:
    """Return the root of the project of `start`: the nearest folder, from `start` up, with a
    pyproject.toml or ``.git``; `start` itself if there is none.
    """
    for folder in (start, *start.parents):
        if (folder / "pyproject.toml").is_file() or os.path.lexists(folder / ".git"):
            return folder
    return start


def roots(folder: Path | None = None) -> list[Path]:
    """Return the folders in which a user's modules are searched for: `folder` (the current one),
    the folder around its package, the project's root (`root_of`) and its src.
    """
    start = folder.absolute() if folder is not None else Path.cwd()
    root, around = root_of(start), around_package(start)
    return list(dict.fromkeys([start, Path.cwd(), around, root, root / "src"]))


def around_package(folder: Path) -> Path:
    """Return the folder that contains the outermost package around `folder`; `folder` itself if it
    is not in a package.
    """
    outside = (each for each in (folder, *folder.parents) if not (each / "__init__.py").is_file())
    return next(outside, folder)


def table_of(start: Path) -> tuple[Path, Mapping[str, Any]] | None:
    """Return the file and its ``[tool.gradcheck]``, from the folder `start` upward; None without
    any.

    Raises:
        ConfigError: the file is unreadable or not TOML, or ``[tool.gradcheck]`` is not a table.
    """
    file = root_of(Path(os.path.realpath(start))) / "pyproject.toml"
    if not file.is_file():
        return None
    try:
        table = content_of(file)["tool"]["gradcheck"]
    except (KeyError, TypeError):  # `tool` may be anything
        return None
    if not isinstance(table, dict):
        raise ConfigError(
            f"{file}: tool.gradcheck must be a table: write [tool.gradcheck] and the keys below it"
        )
    return (file, table) if table else None


def content_of(file: Path) -> dict[str, Any]:
    """Return the content of a TOML file. Raises ConfigError: the file is unreadable or not TOML."""
    try:
        with refusals_of(file, ConfigError):
            return tomllib.loads(read_limited(file, MOST_BYTES).decode("utf-8"))
    except (ValueError, RecursionError) as error:  # a date such as 2020-13-01
        raise ConfigError(f"{file}: {shorten_message(str(error))}") from None


def shorten_message(text: str) -> str:
    """Return `text` for a message, shortened if it is long."""
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + "…"
