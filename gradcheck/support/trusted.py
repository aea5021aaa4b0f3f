"""Which projects the user trusts: for each its root, and the digest of the ``[tool.gradcheck]`` that the user has read.

What a folder says of itself is not believed because it says so. ``allow-code`` of a pyproject.toml holds only while
this list, which lies among the user's own configuration, has that folder with that very section.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from gradcheck.config import Project
from gradcheck.support.bounded import UnfitFileError, read_bounded
from gradcheck.support.pyproject import ConfigError, shortened
from gradcheck.support.user_dirs import config_folder
from gradcheck.support.whole_file import replace

TRUSTED_FILE = "trusted.json"
MOST_LIST_BYTES = 1_000_000
"""Some 5,000 projects."""


class Standing(StrEnum):
    """How a project stands with the user, in words that complete “the project is …”."""

    TRUSTED = "trusted"
    CHANGED = "not trusted since its [tool.gradcheck] changed"
    UNKNOWN = "not trusted"


def digest(table: Mapping[str, Any]) -> str:
    """A digest of the section: the same for the same keys and values, however they are written."""
    return hashlib.sha256(json.dumps(table, sort_keys=True, default=repr).encode()).hexdigest()


def standing(project: Project, known: Mapping[str, str] | None = None) -> Standing:
    """Whether the user trusts the project as it is now, by the list `known` if that has been read.

    Raises:
        ConfigError: the user's list cannot be read.
    """
    known = trusted_digests() if known is None else known
    recorded = known.get(str(project.file.parent)) if project.file else None
    if recorded is None:
        return Standing.UNKNOWN
    return Standing.TRUSTED if recorded == digest(project.table) else Standing.CHANGED


def trusted_digests() -> dict[str, str]:
    """Root → digest, of all projects that the user trusts. Raises ConfigError: the user's list cannot be read."""
    file = _file()
    try:
        content = json.loads(read_bounded(file, MOST_LIST_BYTES, own=True))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}; mend it or remove it") from None
    except (UnfitFileError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: {shortened(str(error))}; mend it or remove it") from None
    if not isinstance(content, dict) or not all(map(_is_entry, content.items())):
        raise ConfigError(f"{file}: must be a table of folders and digests; remove it, and trust your projects anew")
    return content


def _is_entry(entry: tuple[str, Any]) -> bool:
    """Whether a key and its value are the path of a folder and a digest."""
    root, recorded = entry
    return isinstance(recorded, str) and os.path.isabs(root) and "\0" not in root


def trust_root(root: Path, table: Mapping[str, Any]) -> None:
    """Trust the project in a folder, with this section. Raises ConfigError: the list cannot be read or written."""
    _write({**trusted_digests(), str(root): digest(table)})


def revoke(root: Path) -> bool:
    """Trust the project in that folder no more; whether it was trusted.

    Raises:
        ConfigError: the user's list cannot be read or written.
    """
    known = trusted_digests()
    was_there = known.pop(str(root), None) is not None
    if was_there:
        _write(known)
    return was_there


def _file() -> Path:
    try:
        return config_folder() / TRUSTED_FILE
    except OSError as error:
        raise ConfigError(str(error)) from None


def _write(known: Mapping[str, str]) -> None:
    """Put a whole new list in the place of the old one; where that is a link, of what it leads to."""
    file = Path(os.path.realpath(_file()))
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace(file, json.dumps(known, indent=1, sort_keys=True).encode(), 0o600)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}") from None
