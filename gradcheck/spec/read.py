"""Spec files from disk: `read` for one, `load` for files and folders. Nothing in them is executed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from gradcheck.spec import scenario_rules
from gradcheck.spec.code import first_line
from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.spec.folders import find
from gradcheck.spec.messages import report_errors
from gradcheck.spec.model import SpecFile
from gradcheck.spec.parts import default_dtype, default_verdict
from gradcheck.spec.resolve import resolve
from gradcheck.spec.text import SpecText, decode, read_text
from gradcheck.spec.tree import Node, describe, parse

_CODE = ("layer", "script", "call")
_POSITION_DEPTH = 4  # backends.paddle.expect.gradient; expressions below expect.values


def read(path: str | os.PathLike[str]) -> SpecFile:
    """The scenarios of the file `path`, with ``extends`` and ``defaults`` worked out.

    Raises SpecError with every mistake that can be reached, sorted by position: a file that cannot be read or is
    larger than 10 MB, not UTF-8, deeper than 40 levels, of more than 50,000 values, not of the format, or with
    code in it that is not Python.
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

    Raises one SpecError with `mistakes` and those of all files, ids used in more than one file included.
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


def given_in(spec: SpecFile) -> list[Given]:
    """Where the ids of a file are given."""
    return [Given(spec.path, one.id, *one.positions["id"]) for one in spec.scenarios]


def interpret(text: SpecText) -> SpecFile:
    """As `read`, for a text that has been read."""
    root, complete = parse(text)
    if root is None or root.kind != "mapping":
        empty = root is None or (root.kind == "scalar" and root.value is None)
        if empty and not text.found:
            text.report((1, 1, 1), "the file is empty", "begin it with 'schema: gradcheck/v1' and 'scenarios:'")
        elif root is not None and not empty and complete and root.kind != "unreadable":
            help = "begin the file with 'schema: gradcheck/v1', and put the scenarios under 'scenarios:'"
            text.report(root.start, f"a spec file must be a mapping, not {describe(root)}", help)
        raise text.error()
    if not complete:
        _keep_what_is_whole(root)
    scenario_rules.prepare(root, text)
    root = resolve(root, text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a doubtful escape in a documented program is not ours to judge
        scenario_rules.check_scenarios(root, text)
        spec = _build(root, text)
        if spec is not None and not text.found:
            scenario_rules.check_subjects(root, text)
    if spec is None or text.found:
        raise text.error()
    return spec


def _keep_what_is_whole(root: Node) -> None:
    """Where reading stopped early: keep the scenarios that certainly ended before that place."""
    root.incomplete = True
    last = next(reversed(root.entries), None)
    if last is None:
        return
    value = root.entries[last][1]
    if last == "scenarios":
        value.items = value.items[:-1]  # the last may lack keys only because of the mistake
    if last != "scenarios" or not value.items:
        value.kind = "unreadable"


def _build(root: Node, text: SpecText) -> SpecFile | None:
    """The model, with what the reader knows: positions, the inputs' dtypes, the verdict expected by default."""
    data: dict[str, Any] = root.data()
    data["path"] = text.path
    data.setdefault("defaults", {})  # else pydantic would build a validator of Defaults alone, and all that is in it
    scenarios, defaults = root.get("scenarios"), root.mapping("defaults")
    nodes = scenarios.items if scenarios and scenarios.kind == "sequence" else []
    for node, scenario in zip(nodes, data["scenarios"] if nodes else (), strict=True):
        if not isinstance(scenario, dict):
            continue
        scenario |= {"path": text.path, "line": node.line, "column": node.column, "begins": node.begins or node.line}
        scenario["positions"] = dict(_positions(node))
        for name, (_, input) in node.under("inputs").items():
            if input.kind == "mapping":
                values = scenario["inputs"][name]
                values["dtype_written"], values["layout_written"] = "dtype" in values, "layout" in values
                values.setdefault("dtype", default_dtype(defaults))
        _fill_in_verdicts(scenario, node, default_verdict(node, defaults))
    try:
        return SpecFile.model_validate(data)
    except ValidationError as error:
        report_errors(error.errors(include_url=False, include_input=False), root, text)
        return None


def _fill_in_verdicts(scenario: dict[str, Any], node: Node, verdict: str) -> None:
    expectations = [(scenario.setdefault("expect", {}), verdict)]
    for backend in node.under("backends"):
        entries = scenario["backends"][backend]
        for entry in entries if isinstance(entries, tuple) else (entries,):
            if isinstance(entry, dict):
                expectations += [(entry.get("expect"), verdict), (entry.get("observed"), "unchecked")]
    for expect, usual in expectations:
        if isinstance(expect, dict):
            default = "unchecked" if "raises" in expect else "differs" if expect.get("differs") else usual
            expect.setdefault("gradient", default)


def _positions(node: Node, prefix: str = "", depth: int = 1) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each key below a scenario with its place, a list of backends' entries by their numbers."""
    for name, (key, value) in node.entries.items():
        here = prefix + name
        code = value.style in ("|", ">") or (value.kind == "scalar" and name in _CODE)
        yield here, first_line(value) if code else (key.line, key.column)
        if depth < _POSITION_DEPTH and value.kind != "scalar":
            yield from _positions(value, here + ".", depth + 1)
            for index, item in enumerate(value.items if prefix == "backends." else ()):
                yield from _positions(item, f"{here}.{index}.", depth + 1)
