"""``--report html:PATH``: one page with everything in it, readable without a network and without JavaScript."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any, NamedTuple

from gradcheck.escape import one_line
from gradcheck.matrix import matrix_of
from gradcheck.report.matrix import shown as matrix_shown
from gradcheck.report.page import templates
from gradcheck.report.plot import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, plot
from gradcheck.report.record import Report
from gradcheck.report.text import counts_of, failure_block, marks, number, place, summary, worst_first
from gradcheck.result import Result, WrongEntry, element
from gradcheck.rules import catalogue
from gradcheck.shown import shown_path

MOST_CELLS = 40
"""Rows and columns of a heat map: more are too small to see."""
CELL = 14
"""Pixels of a cell."""


class Cell(NamedTuple):
    """An entry in a heat map, at its column and row from 0."""

    x: int
    y: int
    shade: float
    """How dark: 0.15 where the error is just above its bar, 1 where it is a billion times that, or no number."""
    title: str


class HeatMap(NamedTuple):
    """The wrong entries of the Jacobian of one output with respect to one input."""

    input: str
    output: str
    columns: list[str]
    rows: list[str]
    cells: list[Cell]


def as_html(report: Report) -> str:
    """The page. The template escapes all that it is given."""
    environment = templates()
    environment.globals.update(
        shown_path=shown_path,
        place=place,
        one_line=one_line,
        number=number,
        element=element,
        cell=CELL,
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=WIDTH - RIGHT,
        top=TOP,
        bottom=HEIGHT - BOTTOM,
    )
    files = [
        (path, counts_of(members), [shown(one, report.again) for one in members])
        for path, members in ((path, list(group)) for path, group in groupby(report.results, key=lambda one: one.path))
    ]
    return environment.get_template("page.html.jinja").render(
        report=report,
        summary=summary(report.results, report.seconds, report.not_run),
        files=files,
        statuses=list(counts_of(report.results)),
        backends=sorted({one.backend for one in report.results}),
        **{"matrix": None, **matrix_part(report)},
    )


def matrix_part(report: Report) -> dict[str, Any]:
    """The matrix of a run over several backends; empty for one backend, or where no rule was asked for."""
    if len({case.backend for case in report.cases}) < 2:
        return {}
    matrix = matrix_of(catalogue(), report.cases, report.results, "")
    return matrix_shown(matrix) if matrix.rows else {}


def shown(result: Result, again: str) -> dict[str, Any]:
    """A result as the template reads it."""
    red = not result.status.green
    gradient = result.gradient
    wrong = worst_first(gradient.wrong) if red and gradient is not None else []
    return {
        "result": result,
        "red": red,
        "marks": " ".join(marks(gradient)),
        "panel": "\n".join(failure_block(result, again)) if red else "",
        "maps": heat_maps(wrong) if red else [],
        "plot": plot(gradient.scan) if red and gradient is not None and gradient.scan is not None else None,
        "wrong": wrong,
    }


def heat_maps(wrong: list[WrongEntry]) -> list[HeatMap]:
    """A map for each input and output that have wrong entries, of those that are listed."""
    by_pair: dict[tuple[str, str], list[WrongEntry]] = {}
    for entry in wrong:
        by_pair.setdefault((entry.input, entry.output), []).append(entry)
    return [heat_map(*pair, entries) for pair, entries in by_pair.items() if len(entries) > 1]


def heat_map(input: str, output: str, entries: list[WrongEntry]) -> HeatMap:
    """The wrong entries of one output with respect to one input, at the rows and columns that have any."""
    columns = sorted({entry.index for entry in entries})[:MOST_CELLS]
    rows = sorted({entry.output_index for entry in entries})[:MOST_CELLS]
    cells = [
        Cell(columns.index(entry.index), rows.index(entry.output_index), shade(entry), title(entry))
        for entry in entries
        if entry.index in columns and entry.output_index in rows
    ]
    names = [element(input, index) for index in columns], [element(output, index) for index in rows]
    return HeatMap(input, output, *names, cells)


def shade(entry: WrongEntry) -> float:
    """How dark an entry is: by the decades that its error lies above its bar."""
    if not 0 < entry.bar < math.inf or not 0 < entry.error < math.inf:
        return 1.0
    return min(1.0, 0.15 + 0.85 * max(0.0, math.log10(entry.error) - math.log10(entry.bar)) / 9)


def title(entry: WrongEntry) -> str:
    """What an entry says when it is pointed at."""
    what = f"d {element(entry.output, entry.output_index)} / d {element(entry.input, entry.index)}"
    return f"{what}: analytic {number(entry.analytic)}, numeric {number(entry.numeric)} ± {entry.bar:.0e}"
