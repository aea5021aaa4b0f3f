"""The matrix of rules and backends as text, Markdown, JSON, badges, or a page."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gradcheck.case.case import Case
from gradcheck.conformance.behaviour import GRAVE, MEANING, NO_FAILURE, Behaviour
from gradcheck.conformance.catalogue import load_catalogue
from gradcheck.conformance.table import (
    HELD,
    Note,
    ReleaseChange,
    Row,
    RuleMatrix,
    build_matrix,
    column_title,
    describe_backends,
)
from gradcheck.report.markdown import text
from gradcheck.report.page import templates
from gradcheck.report.record import PagePart
from gradcheck.result import Result
from gradcheck.support.escape import one_line

TEXT_WIDTH = 120
"""Columns of the text where no terminal says otherwise."""
LEAST_RULE_WIDTH = 24
"""Columns that the statement of a rule has at least."""
GAP = 2
"""Columns between columns."""
WORST = "Crashes and other gradients"
HEADING = "What each release of Paddle does with each rule of the documents"

INTRODUCTION = """\
Each rule is a statement of Paddle's documents, or an observation where they are silent, and has \
scenarios that
assert it. `gradcheck matrix` runs them on each release (CPU) and on the bundled engine; what a \
release does otherwise
is pinned, and anything else fails. `crash 2/3` says that 2 of the 3 scenarios of a rule are as \
documented, and the
worst of the others a crash."""


def describe_note(note: Note, matrix: RuleMatrix) -> str:
    """Describe a deviation: ``3.0.0 to 3.2.2: crash: why; mended in 3.3.1``."""
    where = describe_backends(note.backends, matrix.backends)
    fixed = f"; mended in {note.fixed_in}" if note.fixed_in else ""
    issue = f"; {note.issue}" if note.issue else ""
    return f"{where}: {note.behaviour}: {one_line(note.reason)}{fixed}{issue}"


def select_legend(matrix: RuleMatrix) -> list[tuple[Behaviour, str]]:
    """Return the words that the matrix has, and what they mean."""
    used = {cell.behaviour for row in matrix.rows for cell in row.cells.values()}
    return [(behaviour, meaning) for behaviour, meaning in MEANING.items() if behaviour in used]


def list_changes(change: ReleaseChange) -> list[tuple[str, tuple[Row, ...]]]:
    """Return the differences between two releases, each with its word."""
    return [
        ("mended", change.fixed),
        ("broken", change.broken),
        ("broken otherwise", change.otherwise),
    ]


# --------------------------------------------------------------------------- text
def as_text(matrix: RuleMatrix, width: int = TEXT_WIDTH) -> str:
    """Return a table for a terminal: the rules with their deviations, a column per backend."""
    lines = [f"{behaviour}: {meaning}" for behaviour, meaning in select_legend(matrix)]
    lines.append("")
    if matrix.grave:
        lines.append(WORST.upper())
    for finding in matrix.grave:
        lines += _note_lines(finding.note, matrix, width)

    for heading, rows in matrix.sections():
        lines += _section_lines(matrix, heading, rows, width)
    for change in matrix.changes():
        lines += ["", f"FROM {column_title(change.older)} TO {column_title(change.newer)}"]
        for word, changed in list_changes(change):
            rules = ", ".join(row.rule.id for row in changed)
            lines += _indent(f"{word}: {rules or 'none'}", width)
    if matrix.made:
        lines += ["", matrix.made]
    return "\n".join(lines) + "\n"


def _section_lines(
    matrix: RuleMatrix, heading: str, rows: Sequence[Row], width: int
) -> Iterator[str]:
    """Yield a heading, and the rules below it: nothing if there are none."""
    columns = []
    for backend in matrix.backends:
        cells = [str(row.cells[backend]) for row in matrix.rows]
        columns.append(max(map(len, [column_title(backend), *cells])) + GAP)
    rule_width = max(LEAST_RULE_WIDTH, width - sum(columns))

    def row_lines(rule: str, words: Iterable[str]) -> Iterator[str]:
        first, *others = textwrap.wrap(rule, rule_width)
        padded = (
            f"{'':{GAP}}{word}".ljust(size) for word, size in zip(words, columns, strict=True)
        )
        yield f"{first:<{rule_width}}{''.join(padded)}".rstrip()
        yield from others

    if rows:
        yield ""
        yield from row_lines(heading.upper(), map(column_title, matrix.backends))
    for row in rows:
        yield from row_lines(row.rule.says, map(str, row.cells.values()))
        for note in row.notes:
            yield from _note_lines(note, matrix, width)


def _note_lines(note: Note, matrix: RuleMatrix, width: int) -> list[str]:
    return _indent(f"{describe_note(note, matrix)} ({', '.join(note.scenarios)})", width)


def _indent(line: str, width: int) -> list[str]:
    return textwrap.wrap(
        line, width, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False
    )


# --------------------------------------------------------------------------- JSON
def as_json(matrix: RuleMatrix) -> str:
    """Return an object for programs: each rule with its cells and notes; scenarios; the changes."""
    scenarios = {}
    for scenario, behaviours in matrix.scenarios.items():
        scenarios[scenario] = {
            backend: _word(behaviour) for backend, behaviour in behaviours.items()
        }
    changes = []
    for change in matrix.changes():
        by_word = {word: [row.rule.id for row in rows] for word, rows in list_changes(change)}
        changes.append({"from": change.older, "to": change.newer, **by_word})
    whole = {
        "format": "gradcheck-matrix/2",
        "made": matrix.made,
        "backends": {backend: column_title(backend) for backend in matrix.backends},
        "rules": [_row_object(row) for row in matrix.rows],
        "scenarios": scenarios,
        "changes": changes,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _row_object(row: Row) -> dict[str, Any]:
    cells = {}
    for backend, cell in row.cells.items():
        cells[backend] = {"does": _word(cell.behaviour), "holds": cell.holds, "of": cell.of}
    return {
        "rule": row.rule.id,
        "says": row.rule.says,
        "kind": "observation" if row.document.is_observation else "document",
        "document": row.document.document,
        "section": row.rule.section,
        "quote": row.rule.quote,
        "cells": cells,
        "notes": [_note_object(note) for note in row.notes],
        "scenarios": list(row.scenarios),
    }


def _note_object(note: Note) -> dict[str, Any]:
    return {
        "does": note.behaviour,
        "backends": list(note.backends),
        "reason": note.reason,
        "scenarios": list(note.scenarios),
        "issue": note.issue,
        "first_seen": note.first_seen,
        "mended_in": note.fixed_in,
        "reproduce": [f"gradcheck show {scenario} --reproduce" for scenario in note.scenarios],
    }


def _word(behaviour: Behaviour) -> str:
    """Return a behaviour in letters."""
    words = {Behaviour.HOLDS: "as documented", Behaviour.NOT_RUN: "not run"}
    return words.get(behaviour, str(behaviour))


# --------------------------------------------------------------------------- badges
def as_badges(matrix: RuleMatrix, folder: Path) -> dict[Path, str]:
    """Return a badge of shields.io (an endpoint) for each backend: how many rules it keeps.

    Keys are files in a folder, such as ``paddle-3.3.1.json``.
    """
    badges = {}
    _, rows = matrix.kinds()[0]
    for backend in matrix.backends:
        cells = [row.cells[backend] for row in rows if row.cells[backend].of]
        kept = sum(not cell.fails for cell in cells)
        color = "brightgreen"
        if kept < len(cells):
            color = "red" if any(cell.behaviour in GRAVE for cell in cells) else "orange"
        badge = {
            "schemaVersion": 1,
            "label": f"PyLayer, {backend.replace('@', ' ')}",
            "message": f"{kept} of {len(cells)} rules",
            "color": color,
        }
        badges[folder / f"{backend.replace('@', '-')}.json"] = json.dumps(badge, indent=1) + "\n"
    return badges


# --------------------------------------------------------------------------- pages
ROOM = "gradcheck.conformance"
"""The package that has the templates."""


def as_markdown(matrix: RuleMatrix, programs: Mapping[str, str] | None = None) -> str:
    """Return a page: counts, releases, tables with notes, an index, `programs` by scenario."""
    page = templates(ROOM, escaped=False).get_template("matrix.md.jinja")
    markdown = {"introduction": INTRODUCTION, "text": text}
    return page.render(_template_values(matrix, programs) | markdown)


def as_html(matrix: RuleMatrix, programs: Mapping[str, str] | None = None) -> str:
    """Return a page, readable without a network or JavaScript, with `programs` by scenario."""
    page = templates(ROOM).get_template("matrix.html.jinja")
    return page.render(_template_values(matrix, programs))


def make_page_part(cases: Sequence[Case], results: Sequence[Result]) -> PagePart | None:
    """Return the matrix of a run as a part of its page.

    None if the run has one backend, or is about no rule.
    """
    if len({case.backend for case in cases}) < 2:
        return None
    matrix = build_matrix(load_catalogue(), cases, results, "")
    if not matrix.rows:
        return None
    environment = templates(ROOM)
    html = environment.get_template("matrix_part.html.jinja").render(_template_values(matrix, None))
    return PagePart(html, environment.get_template("matrix.css").render())


def _template_values(matrix: RuleMatrix, programs: Mapping[str, str] | None) -> dict[str, Any]:
    def otherwise(row: Row) -> str:
        return describe_backends(matrix.breaking(row), matrix.backends) or Behaviour.HOLDS

    return {
        "grave": WORST,
        "heading": HEADING,
        "introduction": INTRODUCTION.replace("`", ""),
        "matrix": matrix,
        "names": [column_title(backend) for backend in matrix.backends],
        "legend": select_legend(matrix),
        "holds": MEANING[Behaviour.HOLDS],
        "usual": NO_FAILURE,
        "held": HELD,
        "span": describe_backends,
        "title": column_title,
        "changed": list_changes,
        "otherwise": otherwise,
        "one_line": one_line,
        "programs": programs or {},
    }
