"""Spec files beside each other: ids that more than one of them gives, and which were found to be valid before.

Of the latter the content alone is looked at.

A spec file is valid or not by its own text, gradcheck's rules and catalogue, and the version of Python, which compiles
its code; no other file is read for it. Loads nothing that takes long: a file that is known is read without the model.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gradcheck import __version__
from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.spec.text import SpecText, read_text
from gradcheck.support.bounded import UnfitFileError, read_bounded
from gradcheck.support.resources import PACKAGE, bundled_specs
from gradcheck.support.user_dirs import cache_folder
from gradcheck.support.whole_file import replace

CACHE_FILE = "validated.json"
MOST_BYTES = 10_000_000
MOST_FILES = 1_000
"""Files that are remembered: the last ones."""


class Given(NamedTuple):
    """Where a scenario's id is given: the file, and the place in it from 1."""

    path: str
    id: str
    line: int
    column: int


def shared_ids(ids: Iterable[Given]) -> list[Diagnostic]:
    """A diagnostic at each place where an id is given that another of the files gives too."""
    places: dict[str, list[Given]] = {}
    for one in ids:
        places.setdefault(one.id, []).append(one)
    mistakes = []
    for id, given in places.items():
        for one in given if len(given) > 1 else ():
            other = next(another for another in given if another is not one)
            message = f"id '{id}' is also used in {other.path}:{other.line}"
            source = _source_line(one.path, one.line)
            help = "ids are unique in a run: rename one"
            mistakes.append(Diagnostic(one.path, one.line, one.column, len("id"), message, help, source))
    return mistakes


def _source_line(path: str, line: int) -> str:
    try:
        lines = read_text(Path(path), path).original
    except SpecError:  # gone since it was read
        return ""
    return lines[line - 1] if line <= len(lines) else ""


class Validated:
    """The files that were valid: by the digest of each the ids in it, which must not be those of another file."""

    def __init__(self) -> None:
        self.rules, self.new = deciding_code(), False
        self.files: dict[str, Any] = {}
        with suppress(OSError, UnfitFileError, ValueError, RecursionError):
            match json.loads(read_bounded(cache_folder() / CACHE_FILE, MOST_BYTES, own=True)):
                case {"rules": self.rules, "files": dict(files)}:
                    self.files = files

    def get(self, text: SpecText) -> list[Given] | None:
        """Where its ids are given; None if it is not known to be valid."""
        with suppress(KeyError, TypeError, ValueError):  # somebody has written something else there
            given = self.files[file_digest(text)]
            return [Given(text.path, str(id), int(line), int(column)) for id, line, column in given]
        return None

    def add(self, text: SpecText, ids: list[Given]) -> None:
        """Remember a file that is valid, and where its ids are given."""
        self.files[file_digest(text)], self.new = [(one.id, one.line, one.column) for one in ids], True

    def write(self) -> None:
        """Keep what is new for the next time, if that can be."""
        with suppress(OSError):
            if self.new:
                place = cache_folder() / CACHE_FILE
                place.parent.mkdir(parents=True, exist_ok=True)
                kept = dict([*self.files.items()][-MOST_FILES:])
                replace(place, json.dumps({"rules": self.rules, "files": kept}).encode(), 0o600)


def file_digest(text: SpecText) -> str:
    """A digest of a file as it stands."""
    return hashlib.sha256("\n".join(text.original).encode()).hexdigest()


def deciding_code() -> str:
    """What decides whether a file is valid: gradcheck, of which a checkout changes without its version, and Python."""
    folders = (PACKAGE, PACKAGE / "spec", PACKAGE / "support", bundled_specs() / "rules")
    files = sorted((one.path, one.stat()) for place in folders for one in os.scandir(place) if one.is_file())
    seen = [(path, status.st_size, status.st_mtime_ns) for path, status in files]
    return hashlib.sha256(repr((__version__, sys.version, seen)).encode()).hexdigest()
