"""Ids that more than one spec file gives: each must be unique in a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.spec.text import read_text


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
