"""Spec files from disk: `read` for one, `load` for files and folders. Nothing is executed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from gradcheck.spec.data import Map
from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.spec.document import parse
from gradcheck.spec.folders import find
from gradcheck.spec.messages import report_errors
from gradcheck.spec.model import Format, Scenario, SpecFile
from gradcheck.spec.resolve import resolve
from gradcheck.spec.scenario_rules import find_scenario_mistakes
from gradcheck.spec.text import SpecText, decode, read_text

LARGEST_CORRECTED = 100_000
"""The characters of a file above which no fixes are searched for; the largest bundled one has a
third.
"""
MOST_FIXES = 10
"""The mistakes after which no fixes are searched for in further files: each takes up to a second.
"""
AnyFormat = TypeVar("AnyFormat", bound=Format)


def read(path: str | os.PathLike[str], *, find_fixes: bool = True) -> SpecFile:
    """The scenarios of the file `path`, with ``extends`` and ``defaults`` applied.

    Raises SpecError with every mistake that can be found, sorted by position: the file cannot be
    read, is larger than 10 MB, is not UTF-8, is nested deeper than 40 levels, has more than 50,000
    values, does not follow the format, or has code in it that is not Python. If `find_fixes`, each
    mistake has the edit that removes it, if one is found.
    """
    text = read_text(Path(path), os.fspath(path))
    try:
        return interpret(text)
    except SpecError as error:
        if not find_fixes or len(text.content) > LARGEST_CORRECTED:
            raise
        from gradcheck.spec.corrections import with_fixes  # few files have mistakes

        is_syntax = bool(mistakes_of_lines(text.lines, text.path, parse))
        read_lines = partial(mistakes_of_lines, path=text.path, reader=compiled)
        fixed = with_fixes(text.lines, error.diagnostics, read_lines, is_syntax=is_syntax)
        raise SpecError(fixed) from None


def compiled(text: SpecText) -> None:
    """Read a text, and compile its code: some code can be parsed, and not compiled.

    Code with a ``finally`` is not, as that may take long: see `PythonCode`.
    """
    for scenario in interpret(text).scenarios:
        for source in (scenario.layer_source, scenario.script):
            if source and "finally" not in source:
                try:
                    with warnings.catch_warnings(action="ignore"):  # of code that nobody wrote
                        compile(source, text.path, "exec")
                except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                    text.report((scenario.line, 1, 1), f"the code does not compile: {error}")
                    raise text.error() from None


def mistakes_of_lines(
    lines: list[str], path: str, reader: Callable[[SpecText], object]
) -> list[Diagnostic]:
    """The mistakes that a reader finds in the lines of a file."""
    try:
        reader(SpecText(path, lines))
    except SpecError as error:
        return error.diagnostics
    return []


def read_bytes(raw: bytes, path: str) -> SpecFile:
    """Read the content `raw` of a file called `path`, like `read`."""
    return interpret(decode(raw, path))


def load(paths: Iterable[str | os.PathLike[str]]) -> list[SpecFile]:
    """The spec files that `paths` (files or folders) name, in order.

    Raises a single SpecError with the mistakes of all files, including ids that several files use.
    """
    return read_all(*find(paths))


def read_all(files: Iterable[Path], mistakes: Iterable[Diagnostic] = ()) -> list[SpecFile]:
    """The spec files, in order.

    Raises a single SpecError with `mistakes` and those of all files, including ids that several
    files use.
    """
    specs, file_mistakes = read_each(files)
    mistakes = [*mistakes, *file_mistakes, *shared_ids(specs)]
    if mistakes:
        raise SpecError(mistakes)
    return specs


def read_each(files: Iterable[Path]) -> tuple[list[SpecFile], list[Diagnostic]]:
    """The files without mistakes, in order; and the mistakes of the others."""
    specs, mistakes = list[SpecFile](), list[Diagnostic]()
    for file in files:
        try:
            specs.append(read(file, find_fixes=len(mistakes) < MOST_FIXES))
        except SpecError as error:
            mistakes += error.diagnostics
    return specs, mistakes


def shared_ids(specs: Iterable[SpecFile]) -> list[Diagnostic]:
    """A diagnostic for ids that a file shares with an earlier file: one per pair of files."""
    last: dict[str, Scenario] = {}
    shared: dict[tuple[str, str], list[tuple[Scenario, Scenario]]] = {}
    for scenario in chain.from_iterable(spec.scenarios for spec in specs):
        other = last.get(scenario.id)
        last[scenario.id] = scenario
        if other is not None:
            shared.setdefault((scenario.path, other.path), []).append((scenario, other))
    mistakes = []
    for (scenario, other), *more in shared.values():
        message = f"id '{scenario.id}' is also used in {other.path}:{other.positions['id'][0]}"
        help = "ids are unique in a run: rename one"
        if more:  # as in a folder with two checkouts
            message += f", and {len(more)} more ids of this file are used there"
            help += ", or name one of the files or folders"
        line, column = scenario.positions["id"]
        source = _source_line(scenario.path, line)
        mistakes.append(Diagnostic(scenario.path, line, column, len("id"), message, help, source))
    return mistakes


def _source_line(path: str, line: int) -> str:
    try:
        lines = read_text(Path(path), path).lines
    except SpecError:  # gone since it was read
        return ""
    return lines[line - 1] if line <= len(lines) else ""


def interpret(text: SpecText) -> SpecFile:
    """Read a text that is in memory, like `read`."""
    spec = validate_document(SpecFile, resolve(parse(text), text), text)
    scenarios = tuple(scenario.complete(spec.defaults) for scenario in spec.scenarios)
    return spec.model_copy(update={"path": text.path, "scenarios": scenarios})


def validate_document(kind: type[AnyFormat], document: Map, text: SpecText) -> AnyFormat:
    """Validate the document of a file as a part of the format.

    Raises SpecError with all mistakes.
    """
    # A key that is misspelt, or belongs elsewhere, may be what the scenarios lack.
    is_complete = document.keys() <= kind.keys().keys()
    framework = str(document.get("framework", "paddle")) if is_complete else ""
    rules = partial(find_scenario_mistakes, framework=framework)
    try:
        with warnings.catch_warnings():
            # Python's warnings about escapes in documented programs are not shown.
            warnings.simplefilter("ignore")
            model = kind.model_validate(document, context=rules)
    except ValidationError as error:
        report_errors(error, document, text)
    if text.mistakes:
        raise text.error()
    return model
