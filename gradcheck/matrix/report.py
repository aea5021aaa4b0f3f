"""The matrix of rules and backends as text, Markdown, JSON, or a page."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from gradcheck.matrix.table import (
    GRAVE,
    HELD,
    MEANING,
    NO_FAILURE,
    Cell,
    Does,
    GraveFinding,
    Note,
    ReleaseChange,
    Row,
    RuleMatrix,
    span,
    title,
)
from gradcheck.report.markdown import text as escaped
from gradcheck.report.page import templates
from gradcheck.support.escape import one_line

TEXT_WIDTH = 120
"""Columns of the text where no terminal says otherwise."""
WORST = "Crashes and other gradients"
HEADING = "What each release of Paddle does with each rule of the documents"


INTRODUCTION = """\
Each rule is a statement of Paddle's documents, or an observation where they are silent, and has scenarios that
assert it. `gradcheck matrix` runs them on each release (CPU) and on the bundled engine; what a release does otherwise
is pinned, and anything else fails. `crash 2/3` says that 2 of the 3 scenarios of a rule are as documented, and the
worst of the others a crash."""
FOOT = (
    "`gradcheck rules RULE` shows what a document says, `gradcheck run --bundled -t RULE` runs what asserts it, and "
    "`gradcheck show SCENARIO --reproduce` prints a program that shows what a release does without gradcheck."
)


def note_line(note: Note, matrix: RuleMatrix) -> str:
    """``3.0.0 to 3.2.2: crash: why it does; mended in 3.3.1``, without the scenarios."""
    mended = f"; mended in {note.mended_in}" if note.mended_in else ""
    tracked = f"; {note.issue}" if note.issue else ""
    return f"{span(note.backends, matrix.backends)}: {note.does}: {one_line(note.reason)}{mended}{tracked}"


def legend(matrix: RuleMatrix) -> list[tuple[Does, str]]:
    """The words that there are, and what they mean."""
    used = {cell.does for row in matrix.rows for cell in row.cells.values()}
    return [(does, meaning) for does, meaning in MEANING.items() if does in used]


def as_text(matrix: RuleMatrix, width: int = TEXT_WIDTH) -> str:
    """A table for a terminal: the rules, a column for each backend, below each rule what is done otherwise."""
    names = [title(backend) for backend in matrix.backends]
    columns = [
        max([len(name), *(len(str(row.cells[backend])) for row in matrix.rows)])
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
    lines += ["", *[WORST.upper()] * bool(matrix.grave), *(part for one in matrix.grave for part in told(one.note))]
    for heading, rows in matrix.sections():
        if rows:
            lines += ["", *line(heading.upper(), names)]
        for row in rows:
            lines += line(row.rule.says, [str(row.cells[backend]) for backend in matrix.backends])
            lines += (part for note in row.notes for part in told(note))
    for change in matrix.changes():
        heading = f"FROM {title(change.older)} TO {title(change.newer)}"
        lines += ["", heading]
        for what, some in changed(change):
            lines += textwrap.wrap(
                f"{what}: {', '.join(row.rule.id for row in some) or 'none'}",
                width, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False,
            )  # fmt: skip
    return "\n".join([*lines, "", matrix.made] if matrix.made else lines) + "\n"


def changed(change: ReleaseChange) -> list[tuple[str, tuple[Row, ...]]]:
    """What differs between two releases, in three parts."""
    return [("mended", change.mended), ("broken", change.broken), ("broken otherwise", change.otherwise)]


def as_json(matrix: RuleMatrix) -> str:
    """An object for programs: for each rule its statement, cells and notes; each scenario; what changed."""
    rows = [
        {
            "rule": row.rule.id,
            "says": row.rule.says,
            "kind": "observation" if row.document.is_observation else "document",
            "document": row.document.document,
            "section": row.rule.section,
            "quote": row.rule.quote,
            "cells": {
                backend: {"does": word(cell.does), "holds": cell.holds, "of": cell.of}
                for backend, cell in row.cells.items()
            },
            "notes": [note_object(note) for note in row.notes],
            "scenarios": list(row.scenarios),
        }
        for row in matrix.rows
    ]
    whole = {
        "format": "gradcheck-matrix/2",
        "made": matrix.made,
        "backends": {backend: title(backend) for backend in matrix.backends},
        "rules": rows,
        "scenarios": {id: {b: word(does) for b, does in told.items()} for id, told in matrix.scenarios.items()},
        "changes": [
            {"from": one.older, "to": one.newer, **{what: [row.rule.id for row in rows] for what, rows in changed(one)}}
            for one in matrix.changes()
        ],
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def word(does: Does) -> str:
    """What is done, in letters."""
    return {Does.HOLDS: "as documented", Does.NOT_RUN: "not run"}.get(does, str(does))


def note_object(note: Note) -> dict[str, Any]:
    """A note for programs."""
    return {
        **{key: list(value) if isinstance(value, tuple) else value for key, value in note._asdict().items()},
        "reproduce": [f"gradcheck show {scenario} --reproduce" for scenario in note.scenarios],
    }


def badges(matrix: RuleMatrix) -> dict[str, str]:
    """For each backend a badge of shields.io (an endpoint): how many of the documents' rules it keeps.

    Keys are names of files, such as ``paddle-3.3.1.json``.
    """
    found = {}
    _, rows = matrix.kinds()[0]
    for backend in matrix.backends:
        ran = [row.cells[backend] for row in rows if row.cells[backend].does is not Does.NOT_RUN]
        kept = sum(not cell.fails for cell in ran)
        color = "brightgreen" if kept == len(ran) else "red" if any(c.does in GRAVE for c in ran) else "orange"
        badge = {
            "schemaVersion": 1,
            "label": f"PyLayer, {backend.replace('@', ' ')}",
            "message": f"{kept} of {len(ran)} rules",
            "color": color,
        }
        found[f"{backend.replace('@', '-')}.json"] = json.dumps(badge, indent=1) + "\n"
    return found


# --------------------------------------------------------------------------- Markdown
def as_markdown(matrix: RuleMatrix, programs: Mapping[str, str] | None = None) -> str:
    """A page: counts, releases, two tables with notes in the last column, an index, and `programs` by scenario."""
    programs = programs or {}
    names = [title(backend) for backend in matrix.backends]
    parts = [f"# {HEADING}", INTRODUCTION, *[escaped(matrix.made)] * bool(matrix.made), "## In short"]
    for heading, rows in matrix.kinds():
        counts = [
            [MEANING[does] if does is Does.HOLDS else str(does), *map(str, ns)] for does, ns in matrix.counts(rows)
        ]
        parts.append(markdown_table([f"{heading}: {len(rows)}", *names], counts))
    if matrix.releases:
        parts.append("## By release")
        broken = [(one, matrix.broken_by(one)) for one in matrix.releases]
        parts.append("\n".join(f"- {title(one)} breaks {len(rows)}: {links(rows)}" for one, rows in broken))
    for change in matrix.changes():
        parts.append(f"### What changed from {title(change.older)} to {title(change.newer)}")
        parts.append("\n".join(f"- {what}: {links(rows) or 'none'}" for what, rows in changed(change)))
    if matrix.grave:
        rows_of_grave = [[*finding_row(one, matrix), program_of(one.note, programs)] for one in matrix.grave]
        parts += [f"## {WORST}", markdown_table(["what happens", *names, "program that shows it"], rows_of_grave)]
    parts += ["## The words", "\n".join(f"- {does}: {meaning}" for does, meaning in legend(matrix))]
    for heading, members in matrix.sections():
        if members:
            parts.append(f"## {heading}")
            parts.append(
                "\n".join(f"- {anchor(row)}{escaped(row.rule.says)} (`{row.rule.id}`)" for row in members)
                if heading == HELD
                else markdown_table(
                    ["rule", *names, "what is done instead"], [markdown_row(row, matrix) for row in members]
                )
            )
    parts += index(matrix)
    parts.append(FOOT)
    if programs:
        parts += ["## Programs", "Each ends well where Paddle does what its documents ask, and fails otherwise."]
        parts += [f"### {scenario}\n\n```python\n{text.strip()}\n```" for scenario, text in programs.items()]
    return "\n\n".join(parts) + "\n"


def anchor(row: Row) -> str:
    """Where links to a rule lead."""
    return f'<a id="{row.rule.id}"></a>'


def links(rows: Iterable[Row]) -> str:
    """Links to some rules."""
    return ", ".join(f"[{row.rule.id}](#{row.rule.id})" for row in rows)


def index(matrix: RuleMatrix) -> Iterator[str]:
    """The sentences of each document, in its order, with their rules and who does otherwise: for its authors."""
    rows = [row for row in matrix.rows if not row.document.is_observation]
    if rows:
        yield "## Index by page and section"
    for document, members in groupby(rows, key=lambda row: row.document):
        lines = [
            [escaped(row.rule.section), f"“{escaped(row.rule.quote)}”", links([row]), otherwise(row, matrix)]
            for row in members
        ]
        yield f"### [{escaped(document.document)}]({document.url})"
        yield markdown_table(["section", "sentence", "rule", "otherwise in"], lines)


def otherwise(row: Row, matrix: RuleMatrix) -> str:
    """The backends that do not keep a rule; the sign of those that do where there are none."""
    return span([one for one in matrix.backends if row.cells[one].fails], matrix.backends) or str(Does.HOLDS)


def markdown_table(head: list[str], rows: list[list[str]]) -> str:
    """The lines of a table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rows])


def cell_texts(cells: Mapping[str, Cell], matrix: RuleMatrix) -> list[str]:
    """What each backend does; what is a failure stands out."""
    return [emphasized(cells[one].does, str(cells[one])) for one in matrix.backends]


def emphasized(does: Does, text: str) -> str:
    """A text that stands out where what is done is a failure."""
    return text if does in NO_FAILURE else f"**{text}**"


def finding_row(finding: GraveFinding, matrix: RuleMatrix) -> list[str]:
    """What happens, and where."""
    done = [finding.cells[one] for one in matrix.backends]
    return [escaped(finding.note.reason), *(emphasized(does, does) for does in done)]


def program_of(note: Note, programs: Mapping[str, str]) -> str:
    """A link to the program of the first scenario that has one."""
    shown = next((one for one in note.scenarios if one in programs), None)
    return f"[{shown}](#{shown})" if shown else f"`gradcheck run {note.scenarios[0]}`"


def markdown_row(row: Row, matrix: RuleMatrix) -> list[str]:
    """The cells of one row of a table."""
    notes = "<br>".join(markdown_note(note, matrix) for note in row.notes)
    return [f"{anchor(row)}{escaped(row.rule.says)} (`{row.rule.id}`)", *cell_texts(row.cells, matrix), notes]


def markdown_note(note: Note, matrix: RuleMatrix) -> str:
    """``**3.0.0 to 3.2.2**, crash: why it does (`scenario`); mended in 3.3.1``."""
    scenarios = ", ".join(f"`{scenario}`" for scenario in note.scenarios)
    mended = f"; mended in {note.mended_in}" if note.mended_in else ""
    tracked = f"; [tracked]({note.issue})" if note.issue else ""
    where = span(note.backends, matrix.backends)
    return f"**{where}**, {note.does}: {escaped(note.reason)} ({scenarios}){mended}{tracked}"


# --------------------------------------------------------------------------- HTML
def as_html(matrix: RuleMatrix, programs: Mapping[str, str] | None = None) -> str:
    """A page by itself, readable without a network and without JavaScript, with `programs` by scenario."""
    return templates().get_template("matrix.html.jinja").render(heading=HEADING, **shown(matrix, programs))


def shown(matrix: RuleMatrix, programs: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the part of a page that is a matrix is made of."""
    return {
        "grave": WORST,
        "introduction": INTRODUCTION.replace("`", ""),
        "matrix": matrix,
        "names": [title(backend) for backend in matrix.backends],
        "legend": legend(matrix),
        "holds": MEANING[Does.HOLDS],
        "usual": NO_FAILURE,
        "held": HELD,
        "span": span,
        "title": title,
        "changed": changed,
        "otherwise": lambda row: otherwise(row, matrix),
        "one_line": one_line,
        "programs": programs or {},
    }
