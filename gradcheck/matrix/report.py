"""The matrix of rules and backends as text, Markdown, JSON, or a page."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gradcheck.matrix.table import (
    GRAVE,
    HELD,
    MEANING,
    NO_FAILURE,
    Does,
    Note,
    ReleaseChange,
    Row,
    RuleMatrix,
    span,
    title,
)
from gradcheck.report.markdown import text
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


def badges(matrix: RuleMatrix, folder: Path) -> dict[Path, str]:
    """For each backend a badge of shields.io (an endpoint): how many of the documents' rules it keeps.

    Keys are files in a folder, such as ``paddle-3.3.1.json``.
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
        found[folder / f"{backend.replace('@', '-')}.json"] = json.dumps(badge, indent=1) + "\n"
    return found


# --------------------------------------------------------------------------- pages
def as_markdown(matrix: RuleMatrix, programs: Mapping[str, str] | None = None) -> str:
    """A page: counts, releases, two tables with notes in the last column, an index, and `programs` by scenario."""
    page = templates(escaped=False).get_template("matrix.md.jinja")
    return page.render(shown(matrix, programs) | {"introduction": INTRODUCTION, "text": text})


def as_html(matrix: RuleMatrix, programs: Mapping[str, str] | None = None) -> str:
    """A page by itself, readable without a network and without JavaScript, with `programs` by scenario."""
    return templates().get_template("matrix.html.jinja").render(shown(matrix, programs))


def shown(matrix: RuleMatrix, programs: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the part of a page that is a matrix is made of."""
    return {
        "grave": WORST,
        "heading": HEADING,
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
        "otherwise": lambda row: span(matrix.breaking(row), matrix.backends) or Does.HOLDS,
        "one_line": one_line,
        "programs": programs or {},
    }
