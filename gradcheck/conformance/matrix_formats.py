"""The matrix of rules and backends as text, Markdown, JSON, badges, or a page."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gradcheck.case.case import Case
from gradcheck.conformance.behaviour import GRAVE, MEANING, Behaviour
from gradcheck.conformance.catalogue import load_catalogue
from gradcheck.conformance.matrix_record import matrix_record
from gradcheck.conformance.programs import read_programs
from gradcheck.conformance.table import (
    HEADINGS,
    Note,
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
from gradcheck.spec.model import CLASSES
from gradcheck.support.escape import one_line

TEXT_WIDTH = 120
"""The width of the text if no terminal determines it."""
LEAST_RULE_WIDTH = 24
"""The fewest columns for the statement of a rule."""
GAP = 2
"""Columns between columns."""
HEADING = "What each release of Paddle does with its documents"
INTRODUCTION = """\
Each rule has scenarios that assert it, and a class that says whose statement it is. Only a \
deviation from a sentence of Paddle's documents counts against a release. `crash 2/3` means that \
2 of the 3 scenarios of a rule are as expected, and the worst of the others is a crash. Each \
column is from a run."""


def describe_note(note: Note, matrix: RuleMatrix) -> str:
    """Describe a deviation, as in ``3.0.0 to 3.2.2: crash: why; fixed in 3.3.1``."""
    where = describe_backends(note.backends, matrix.backends)
    fixed = f"; fixed in {note.fixed_in}" if note.fixed_in else ""
    issue = f"; {note.issue}" if note.issue else ""
    return f"{where}: {note.behaviour}: {one_line(note.reason)}{fixed}{issue}"


def select_legend(matrix: RuleMatrix) -> list[tuple[Behaviour, str]]:
    """Return the words used in the matrix, and their meanings."""
    used = {cell.behaviour for row in matrix.rows for cell in row.cells.values()}
    return [(behaviour, meaning) for behaviour, meaning in MEANING.items() if behaviour in used]


# --------------------------------------------------------------------------- text
def as_text(matrix: RuleMatrix, width: int = TEXT_WIDTH) -> str:
    """Return a table for a terminal: the rules with their deviations, a column per backend."""
    lines = [f"{behaviour}: {meaning}" for behaviour, meaning in select_legend(matrix)]
    for class_, rows in matrix.sections():
        lines += _section_lines(matrix, HEADINGS[class_], rows, width)
    for change in matrix.changes():
        lines += ["", f"FROM {column_title(change.older)} TO {column_title(change.newer)}"]
        for word, changed in change.by_word.items():
            rules = ", ".join(row.anchor for row in changed)
            lines += _indent(f"{word}: {rules or 'none'}", width)
    without_deviation = sum(len(matrix.held(class_)) for class_ in HEADINGS)
    lines += ["", f"{without_deviation} rules have no deviation. {matrix.made}".rstrip()]
    return "\n".join(lines) + "\n"


def _section_lines(
    matrix: RuleMatrix, heading: str, rows: Sequence[Row], width: int
) -> Iterator[str]:
    """Yield a heading and the rules below it; nothing without rules."""
    columns = []
    for backend in matrix.backends:
        cells = [str(row.cells[backend]) for row in matrix.rows]
        columns.append(max(map(len, [column_title(backend), *cells])) + GAP)
    rule_width = max(LEAST_RULE_WIDTH, width - sum(columns))

    def row_lines(rule: str, words: Iterable[str]) -> Iterator[str]:
        first, *rest = textwrap.wrap(rule, rule_width)
        padded = (
            f"{'':{GAP}}{word}".ljust(size) for word, size in zip(words, columns, strict=True)
        )
        yield f"{first:<{rule_width}}{''.join(padded)}".rstrip()
        yield from rest

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


# --------------------------------------------------------------------------- JSON and badges
def as_json(matrix: RuleMatrix) -> str:
    """Return the matrix as an object in the format of ``schemas/matrix.json``."""
    record = matrix_record(matrix, read_programs())
    return json.dumps(record.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"


def as_badges(matrix: RuleMatrix, folder: Path) -> dict[Path, str]:
    """Return a badge of shields.io (an endpoint) for each backend: how many sentences it keeps.

    Keys are files in a folder, such as ``paddle-3.3.1.json``. A backend that was not run has none.
    """
    badges = {}
    for backend in matrix.backends:
        cells = matrix.ran(backend, "sentence")
        if not cells:
            continue
        kept_count = sum(not cell.deviates for cell in cells)
        color = "brightgreen"
        if kept_count < len(cells):
            color = "red" if any(cell.behaviour in GRAVE for cell in cells) else "orange"
        badge = {
            "schemaVersion": 1,
            "label": f"PyLayer, {backend.replace('@', ' ')}",
            "message": f"{kept_count} of {len(cells)} sentences",
            "color": color,
        }
        badges[folder / f"{backend.replace('@', '-')}.json"] = json.dumps(badge, indent=1) + "\n"
    return badges


# --------------------------------------------------------------------------- pages
ROOM = "gradcheck.conformance"
"""The package that contains the templates."""


def as_markdown(matrix: RuleMatrix) -> str:
    """Return a page: broken sentences with their programs, counts, changes, other classes."""
    page = templates(ROOM, escaped=False).get_template("matrix.md.jinja")
    markdown = {"introduction": INTRODUCTION, "text": text}
    return page.render(_template_values(matrix) | markdown)


def as_html(matrix: RuleMatrix) -> str:
    """Return a self-contained page, without network access or JavaScript."""
    page = templates(ROOM).get_template("matrix.html.jinja")
    return page.render(_template_values(matrix))


def make_page_part(cases: Sequence[Case], results: Sequence[Result]) -> PagePart | None:
    """Return the matrix of a run as a part of its page; None if the run is about no rule."""
    matrix = build_matrix(load_catalogue(), cases, results)
    if not matrix.rows:
        return None
    environment = templates(ROOM)
    html = environment.get_template("matrix_part.html.jinja").render(_template_values(matrix))
    return PagePart(html, environment.get_template("matrix.css").render())


def _template_values(matrix: RuleMatrix) -> dict[str, Any]:
    newest = matrix.releases[-1] if matrix.releases else matrix.backends[-1]
    return {
        "heading": HEADING,
        "introduction": INTRODUCTION.replace("`", ""),
        "matrix": matrix,
        "names": [column_title(backend) for backend in matrix.backends],
        "newest": newest,
        "broken": matrix.broken_by(newest),
        "legend": select_legend(matrix),
        "headings": HEADINGS,
        "classes": CLASSES,
        "span": describe_backends,
        "title": column_title,
        "one_line": one_line,
        "programs": read_programs(),
    }
