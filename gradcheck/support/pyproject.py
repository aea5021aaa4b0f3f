"""The project's own pyproject.toml: which file that is, and its table ``[tool.gradcheck]`` as it stands there.

A stranger may have written it, so it is read within bounds, and Python's parser meets nothing that costs it more than
time in proportion to the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradcheck.support.bounded import UnfitFileError, read_bounded
from gradcheck.support.user_error import UserError

MOST_PYPROJECT_BYTES = 1_000_000
MOST_LEVELS = 40
"""Brackets within brackets, parts of a dotted key, and levels of ``[tool.gradcheck]``: as many as in a spec file."""
MOST_CHARACTERS = 1_000
"""Of a bare key or a number: Python takes time with the square of a number's digits, and refuses 4,301."""
LONGEST_MESSAGE = 300
"""Characters of a parser's message, which may quote a whole key."""

_STRING = re.compile(
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}|\'\'\'(?:[^']|'{1,2}(?!'))*+'{3,5}'''
    r"""|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|\#[^\n]*+""",
    re.DOTALL,
)
_DOTTED = re.compile(rf"""(?<![\w"-])(?:[\w"-]++[ \t]*+\.[ \t]*+){{{MOST_LEVELS}}}""", re.ASCII)
_LONG = re.compile(rf"[\w+-]{{{MOST_CHARACTERS + 1}}}", re.ASCII)


class ConfigError(UserError):
    """A configuration that cannot be used; the message says where, what is wrong, and what to write."""


def nearest_file(start: Path) -> Path | None:
    """The pyproject.toml of `start`, or of the nearest folder above, no further up than the first with ``.git``.

    One above that another user has put there is passed over.
    """
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if os.path.isfile(file) and (folder == start or speaks_for(file, start)):
            return file
        if os.path.lexists(folder / ".git"):
            return None
    return None


def root_of(start: Path) -> Path:
    """The folder of the project of `start`: that of `nearest_file`, else the one with ``.git``, else `start` itself."""
    if file := nearest_file(start):
        return file.parent
    return next((folder for folder in (start, *start.parents) if os.path.lexists(folder / ".git")), start)


def speaks_for(file: Path, start: Path) -> bool:
    """Whether a file above the folder `start` has a say there: this user, the system or the folder's owner wrote it.

    Anybody can put one into ``/tmp``, above everybody's folders.
    """
    if not hasattr(os, "geteuid"):
        return True
    of_the_folder = owners(start) if os.path.exists(start) else set()
    return owners(file) <= {os.geteuid(), 0, *of_the_folder}


def owners(file: Path) -> set[int]:
    """The users that a file belongs to: itself, and where it is a link also what it leads to."""
    return {os.lstat(file).st_uid, os.stat(file).st_uid}


def table_of(start: Path) -> tuple[Path, Mapping[str, Any]] | None:
    """The file and its ``[tool.gradcheck]``, from the folder `start` upward; None where no file says anything.

    Raises:
        ConfigError: the file is unreadable or no TOML, or what it has there is no table.
    """
    file = nearest_file(Path(os.path.realpath(start)))
    if file is None:
        return None
    tool = content_of(file).get("tool", {})
    table = tool.get("gradcheck", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: tool.gradcheck must be a table: write [tool.gradcheck] and the keys below it")
    if too_deep(table):
        raise ConfigError(f"{file}: [tool.gradcheck] has more than {MOST_LEVELS} levels")
    return (file, table) if table else None


def content_of(file: Path) -> dict[str, Any]:
    """What a TOML file holds. Raises ConfigError: it is unreadable, too large, or no TOML."""
    try:
        return parse_toml(read_bounded(file, MOST_PYPROJECT_BYTES).decode("utf-8"))
    except (UnfitFileError, UnicodeDecodeError, OSError, ConfigError) as error:
        raise ConfigError(f"{file}: {(error.strerror if isinstance(error, OSError) else None) or error}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """What a text in TOML says. Raises ConfigError: it is none, or has more of something than there is need of."""
    import tomllib  # here: it takes as long as all else of this, and most runs have no such file

    bare = _STRING.sub('""', text)
    level = deepest = 0
    for bracket in re.findall(r"[][{}]", bare):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
    if deepest > MOST_LEVELS or _DOTTED.search(bare):
        raise ConfigError(f"more than {MOST_LEVELS} levels")
    if _LONG.search(bare):
        raise ConfigError(f"a number or bare key of more than {MOST_CHARACTERS:,} characters")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a date such as 2020-13-01 is a ValueError of its own
        raise ConfigError(shortened(str(error))) from None


def too_deep(table: Mapping[str, Any]) -> bool:
    """Whether a table has more levels than `MOST_LEVELS`."""
    level: list[Any] = [table]
    for _ in range(MOST_LEVELS + 1):
        level = [
            below
            for value in level
            if isinstance(value, dict | list)
            for below in (value.values() if isinstance(value, dict) else value)
        ]
    return bool(level)


def shortened(text: str) -> str:
    """`text` for a message: its beginning, where it is long."""
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + "…"
