"""The table on a terminal: a row per spec file, and one for each case that did not simply pass, at any width.

A name is never cut and shares its line with nothing that would push it: what does not fit beside it stands below.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from rich.text import Text

from gradcheck.report.plain import color_of
from gradcheck.report.result_text import counts_of, marks
from gradcheck.result import Result, Status
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import one_line

MOST_SAID = 2
"""Lines of a failure's message below its row; the panel has it whole."""
GAP = 2
"""Columns between columns."""
NARROW_SCREEN = 80
"""Columns below which the head of the table is brief."""
LEAST_NAME = 16
"""Columns that names have at least, where the screen has them."""


class TableRow(NamedTuple):
    """A row: what stands in its columns, and below it."""

    name: Text
    status: Text
    ratio: str
    seconds: str
    note: str = ""
    """Why it is no PASS."""
    most: int | None = None
    """Lines that the note may take; None for all that it needs."""
    file: bool = False
    """Whether the row is that of a spec file, which has counts in the place of a status."""


def style(status: Status) -> str:
    """How the word of a status looks."""
    return color_of(status) if status.green else f"bold {color_of(status)}"


def table(results: Sequence[Result], width: int, *, verbose: bool = False) -> Iterator[Text]:
    """The lines: a row per spec file with its counts; below it one for each result that did not simply pass, or all."""
    rows = list(rows_of(results, verbose))
    ratio = "worst error / bar" if width >= NARROW_SCREEN else "error / bar"
    head = TableRow(Text("scenario"), Text("status"), ratio, "seconds")
    numbers = max(len(ratio), *(len(row.ratio) for row in rows)), max(len(row.seconds) for row in (head, *rows))
    room = width - sum(numbers) - 3 * GAP  # of name and status
    longest = max(row.name.cell_len for row in rows)
    status = max(row.status.cell_len for row in (head, *rows))
    if longest + status > room:  # the counts of files stand below them, then
        states = [head.status.cell_len, *(row.status.cell_len for row in rows if not row.file)]
        status = max(state for state in states if state <= max(room - LEAST_NAME, states[0]))
    fitting = [row.name.cell_len for row in rows if row.name.cell_len <= room - status]
    name = max(len("scenario"), *fitting, 0)
    for number, row in enumerate((head, *rows)):
        yield from laid_out(row, (name, status, *numbers), width, "bold" if not number else "")


def rows_of(results: Sequence[Result], verbose: bool) -> Iterator[TableRow]:
    """The rows, in the order of the results."""
    for path, group in groupby(results, key=lambda result: result.path):
        members = list(group)
        words = [Text(f"{count} {status}", style(status)) for status, count in counts_of(members).items()]
        right = [r.gradient for r in members if r.gradient is not None and r.gradient.verdict is Status.PASS]
        ratios = [gradient.worst_error for gradient in right]  # not of backwards that are rightly found to differ
        total = sum(result.seconds for result in members)
        yield TableRow(
            Text(shown_path(path), "bold"),
            Text(", ").join(words),
            error_ratio(max(ratios, default=None)),
            f"{total:.2f}",
            file=True,
        )
        for result in members:
            if verbose or result.status is not Status.PASS:
                yield row(result)


def row(result: Result) -> TableRow:
    """One result; its message whole where no panel follows."""
    most = None if result.status.green else MOST_SAID
    ratio = result.gradient.worst_error if result.gradient is not None else None
    status = Text(" ".join([str(result.status), *marks(result.gradient)]), style(result.status))
    return TableRow(
        Text(f"  {one_line(result.name)}"),
        status,
        error_ratio(ratio),
        f"{result.seconds:.2f}",
        one_line(result.message),
        most,
    )


def laid_out(row: TableRow, widths: tuple[int, int, int, int], width: int, style: str) -> Iterator[Text]:
    """A row in lines of at most `width`, unless its name is wider: the console goes on with that in the next line."""
    name, status, ratio, seconds = widths
    beside = row.status.cell_len <= status
    line = Text().append_text(row.name)
    if line.cell_len > name:
        yield line
        line = Text()
    line.append(" " * (name - line.cell_len + GAP))
    shown = row.status if beside else Text()
    line.append_text(shown)
    line.append(" " * (status - shown.cell_len))
    line.append(f"  {row.ratio:>{ratio}}  {row.seconds:>{seconds}}")
    line.stylize(style)
    yield line
    if not beside:
        yield from wrapped(row.status, width, indent=" " * GAP)
    indent = " " * min(4, width // 4)
    for part in textwrap.wrap(
        row.note, width, initial_indent=indent, subsequent_indent=indent, max_lines=row.most, placeholder=" …"
    ):
        yield Text(part, "dim")


def wrapped(text: Text, width: int, between: str = ", ", indent: str = "") -> Iterator[Text]:
    """Parts in lines of at most `width`, none of them split; `between` stands between them."""
    line = Text(indent, text.style)
    for number, part in enumerate(parts := text.split(between)):
        last = number == len(parts) - 1
        if line.cell_len > len(indent) and line.cell_len + part.cell_len + (0 if last else len(between) - 1) > width:
            line.rstrip()
            yield line
            line = Text(indent, text.style)
        line.append_text(part)
        line.append("" if last else between)
    yield line


def error_ratio(ratio: float | None) -> str:
    """The largest |analytic − numeric| over its bar: at most 1 where they agree."""
    return "" if ratio is None else f"{ratio:.2g}"
