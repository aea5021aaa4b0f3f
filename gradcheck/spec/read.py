"""Spec files from disk: `read` for one, `load` for files and folders. Nothing is executed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.spec.document import parse
from gradcheck.spec.folders import find
from gradcheck.spec.messages import report_errors
from gradcheck.spec.model import SpecFile
from gradcheck.spec.resolve import resolve
from gradcheck.spec.scenario_rules import ScenarioRules
from gradcheck.spec.text import SpecText, decode, read_text


def read(path: str | os.PathLike[str]) -> SpecFile:
    """The scenarios of the file `path`, with ``extends`` and ``defaults`` worked out.

    Raises SpecError with every mistake that can be reached, sorted by position: a file that cannot
    be read or is larger than 10 MB, not UTF-8, deeper than 40 levels, of more than 50,000 values,
    not of the format, or with code in it that is not Python.
    """
    return interpret(read_text(Path(path), os.fspath(path)))


def read_bytes(raw: bytes, path: str) -> SpecFile:
    """As `read`, for the content `raw` of a file called `path`."""
    return interpret(decode(raw, path))


def load(paths: Iterable[str | os.PathLike[str]]) -> list[SpecFile]:
    """The spec files that `paths` (files or folders) name, in order.

    Raises one SpecError with the mistakes of all of them, ids used in more than one file included.
    """
    return read_all(*find(paths))


def read_all(files: Iterable[Path], mistakes: Iterable[Diagnostic] = ()) -> list[SpecFile]:
    """The spec files, in order.

    Raises one SpecError with `mistakes` and those of all files, ids used in more than one file
    included.
    """
    specs: list[SpecFile] = []
    mistakes = list(mistakes)
    for file in files:
        try:
            specs.append(read(file))
        except SpecError as error:
            mistakes += error.diagnostics
    mistakes += shared_ids(given for spec in specs for given in given_in(spec))
    if mistakes:
        raise SpecError(mistakes)
    return specs


class Given(NamedTuple):
    """The place of a scenario's id: the file, and the line and column in it, from 1."""

    path: str
    id: str
    line: int
    column: int


def shared_ids(ids: Iterable[Given]) -> list[Diagnostic]:
    """A diagnostic where an id is given that another of the files gives too: one for two files."""
    places: dict[str, list[Given]] = {}
    for given in ids:
        places.setdefault(given.id, []).append(given)
    shared: dict[tuple[str, str], list[tuple[Given, Given]]] = {}
    for same in places.values():
        for given, other in zip(same, [*same[1:], same[0]], strict=True):
            if given is not other:
                shared.setdefault((given.path, other.path), []).append((given, other))
    mistakes = []
    for (given, other), *more in shared.values():
        message = f"id '{given.id}' is also used in {other.path}:{other.line}"
        help = "ids are unique in a run: rename one"
        if more:  # as in a folder with two checkouts
            message += f", and {len(more)} more ids of this file are used there"
            help += ", or name one of the files or folders"
        where = (given.path, given.line, given.column, len("id"))
        mistakes.append(Diagnostic(*where, message, help, _source_line(given.path, given.line)))
    return mistakes


def _source_line(path: str, line: int) -> str:
    try:
        lines = read_text(Path(path), path).lines
    except SpecError:  # gone since it was read
        return ""
    return lines[line - 1] if line <= len(lines) else ""


def given_in(spec: SpecFile) -> list[Given]:
    """Return the places of a file's ids."""
    return [Given(spec.path, one.id, *one.positions["id"]) for one in spec.scenarios]


def interpret(text: SpecText) -> SpecFile:
    """As `read`, for a text that has been read."""
    document = resolve(parse(text), text)
    try:
        with warnings.catch_warnings():
            # A doubtful escape in a documented program is not ours to judge.
            warnings.simplefilter("ignore")
            spec = SpecFile.model_validate(document, context=ScenarioRules())
    except ValidationError as error:
        report_errors(error, document, text)
    if text.mistakes:
        raise text.error()
    scenarios = tuple(scenario.complete(spec.defaults) for scenario in spec.scenarios)
    return spec.model_copy(update={"path": text.path, "scenarios": scenarios})
