"""The matrix of rules and backends as text, Markdown, JSON, or a page."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from gradcheck.escape import one_line
from gradcheck.matrix import MEANING, NO_FAILURE, Does, Finding, Matrix, Note, Row, span, title
from gradcheck.report.markdown import text as escaped
from gradcheck.report.page import templates

WIDTH = 120
"""Columns of the text where no terminal says otherwise."""
GRAVE = "Crashes and other gradients"
HEADING = "What each release of Paddle does with each rule of the documents"


INTRODUCTION = """\
Each rule is a statement of Paddle's documents, or an observation where they are silent, and has scenarios that
assert it. `gradcheck matrix` runs them on each release (CPU) and on the bundled engine; what a release does otherwise
is pinned, and anything else fails."""


def note_line(note: Note, matrix: Matrix) -> str:
    """``3.0.0 to 3.2.2: crash: why it does``, without the scenarios."""
    return f"{span(note.backends, matrix.backends)}: {note.does}: {one_line(note.reason)}"


def legend(matrix: Matrix) -> list[tuple[Does, str]]:
    """The words that there are, and what they mean."""
    used = {does for row in matrix.rows for does in row.cells.values()}
    return [(does, meaning) for does, meaning in MEANING.items() if does in used]


def as_text(matrix: Matrix, width: int = WIDTH) -> str:
    """A table for a terminal: the rules, a column for each backend, below each rule what is done otherwise."""
    names = [title(backend) for backend in matrix.backends]
    columns = [
        max([len(name), *(len(row.cells[backend]) for row in matrix.rows)])
        for name, backend in zip(names, matrix.backends, strict=True)
    ]
    first = max(24, width - sum(columns) - 2 * len(columns))

    def line(what: str, words: list[str]) -> Iterator[str]:
        parts = textwrap.wrap(what, first) or [""]
        tail = "  ".join(f"{word:<{w}}" for word, w in zip(words, columns, strict=True))
        yield f"{parts[0]:<{first}}  {tail}".rstrip()
        yield from parts[1:]

    def told(note: Note) -> list[str]:
        said = f"{note_line(note, matrix)} ({', '.join(note.scenarios)})"
        return textwrap.wrap(
            said, width, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False
        )  # fmt: skip

    lines = [f"{does}: {meaning}" for does, meaning in legend(matrix)]
    lines += ["", *[GRAVE.upper()] * bool(matrix.grave), *(part for one in matrix.grave for part in told(one.note))]
    for heading, rows in matrix.sections():
        if rows:
            lines += ["", *line(heading.upper(), names)]
        for row in rows:
            lines += line(row.rule.says, [str(row.cells[backend]) for backend in matrix.backends])
            lines += (part for note in row.notes for part in told(note))
    return "\n".join(lines) + "\n"


def as_json(matrix: Matrix) -> str:
    """An object for programs: for each rule its statement, cells and notes."""
    names = {backend: title(backend) for backend in matrix.backends}
    rows = [
        {
            "rule": row.rule.id,
            "says": row.rule.says,
            "document": row.document.document,
            "quote": row.rule.quote,
            "cells": {backend: "as documented" if d is Does.HOLDS else str(d) for backend, d in row.cells.items()},
            "notes": [
                {
                    "does": str(note.does),
                    "backends": list(note.backends),
                    "reason": note.reason,
                    "scenarios": list(note.scenarios),
                    "reproduce": [f"gradcheck show {scenario} --reproduce" for scenario in note.scenarios],
                }
                for note in row.notes
            ],
        }
        for row in matrix.rows
    ]
    whole = {"format": "gradcheck-matrix/1", "backends": names, "rules": rows}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def as_markdown(matrix: Matrix, programs: Mapping[str, str] | None = None) -> str:
    """A page: in short, a table for each section with the notes in its last column, and `programs` by scenario."""
    programs = programs or {}
    names = [title(backend) for backend in matrix.backends]
    parts = [f"# {HEADING}", INTRODUCTION, "## In short"]
    counts = [[MEANING[does] if does is Does.HOLDS else str(does), *map(str, ns)] for does, ns in matrix.counts()]
    parts.append(markdown_table([f"of {len(matrix.rows)} rules", *names], counts))
    if matrix.grave:
        rows = [[*finding_row(one, matrix), program_of(one.note, programs)] for one in matrix.grave]
        parts += [f"## {GRAVE}", markdown_table(["what happens", *names, "program that shows it"], rows)]
    parts += ["## The words", "\n".join(f"- {does}: {meaning}" for does, meaning in legend(matrix))]
    for heading, members in matrix.sections():
        if not members:
            continue
        parts.append(f"## {heading}")
        if heading.startswith("As documented"):
            parts.append("\n".join(f"- {escaped(row.rule.says)} (`{row.rule.id}`)" for row in members))
            continue
        rows = [markdown_row(row, matrix) for row in members]
        parts.append(markdown_table(["rule", *names, "what is done instead"], rows))
    parts.append(
        "`gradcheck rules RULE` shows what a document says. `gradcheck show SCENARIO --reproduce` prints a "
        "program that shows what a release does without gradcheck."
    )
    if programs:
        parts += ["## Programs", "Each ends well where Paddle does what its documents ask, and fails otherwise."]
        parts += [f"### {scenario}\n\n```python\n{text.strip()}\n```" for scenario, text in programs.items()]
    return "\n\n".join(parts) + "\n"


def markdown_table(head: list[str], rows: list[list[str]]) -> str:
    """The lines of a table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rows])


def words(cells: Mapping[str, Does], matrix: Matrix) -> list[str]:
    """What each backend does, in bold where that is not what is documented."""
    return [str(d) if d in NO_FAILURE else f"**{d}**" for d in (cells[one] for one in matrix.backends)]


def finding_row(finding: Finding, matrix: Matrix) -> list[str]:
    """What happens, and where."""
    return [escaped(finding.note.reason), *words(finding.cells, matrix)]


def program_of(note: Note, programs: Mapping[str, str]) -> str:
    """A link to the program of the first scenario that has one."""
    shown = next((one for one in note.scenarios if one in programs), None)
    return f"[{shown}](#{shown})" if shown else f"`gradcheck run {note.scenarios[0]}`"


def markdown_row(row: Row, matrix: Matrix) -> list[str]:
    """The cells of one row of a table."""
    notes = "<br>".join(markdown_note(note, matrix) for note in row.notes)
    return [f"{escaped(row.rule.says)} (`{row.rule.id}`)", *words(row.cells, matrix), notes]


def markdown_note(note: Note, matrix: Matrix) -> str:
    """``**3.0.0 to 3.2.2**, crash: why it does (`scenario`)``."""
    scenarios = ", ".join(f"`{scenario}`" for scenario in note.scenarios)
    return f"**{span(note.backends, matrix.backends)}**, {note.does}: {escaped(note.reason)} ({scenarios})"


def as_html(matrix: Matrix) -> str:
    """A page by itself, readable without a network and without JavaScript."""
    return templates().get_template("matrix.html.jinja").render(heading=HEADING, **shown(matrix))


def shown(matrix: Matrix) -> dict[str, Any]:
    """What the part of a page that is a matrix is made of."""
    return {
        "grave": GRAVE,
        "introduction": INTRODUCTION.replace("`", ""),
        "matrix": matrix,
        "names": [title(backend) for backend in matrix.backends],
        "legend": legend(matrix),
        "holds": MEANING[Does.HOLDS],
        "usual": NO_FAILURE,
        "span": span,
        "one_line": one_line,
    }
