"""The report for a terminal: progress while it runs, then a table, a panel per cause of failures, and the summary.

All text from specs and layers goes into ``rich.text.Text``, which reads no markup, after `report.result_text` has
escaped it.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import groupby
from typing import NamedTuple

from rich import progress
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Column
from rich.text import Text

from gradcheck.report.plain import color_of
from gradcheck.report.result_text import (
    ALL_ENTRIES,
    ENTRIES_SHOWN,
    by_cause,
    counts_of,
    failure_block,
    marks,
    place,
    summary,
)
from gradcheck.result import Result, Status
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import one_line

PANEL_FRAME = 4
"""Columns of a panel that are border and padding."""


class OpenConsole(Console):
    """A console that leaves it to the command what to do when nobody reads on."""

    def on_broken_pipe(self) -> None:
        """Let the error through that led here: rich calls this while it handles it."""
        raise


class AtWork(progress.ProgressColumn):
    """The names of the cases that run at the moment, as many as there is room for."""

    names: Callable[[], Sequence[str]] = tuple

    def render(self, task: progress.Task) -> Text:
        """The names, dim."""
        return Text(one_line(" ".join(self.names())), "dim")


class RichScreen:
    """Shows a header and a transient progress bar while cases run, and everything else at the end."""

    def __init__(
        self,
        console: Console,
        progress_console: Console,
        *,
        verbose: bool = False,
        quiet: bool = False,
        again_options: str = "",
    ) -> None:
        self.console, self.verbose, self.quiet, self.again_options = console, verbose, quiet, again_options
        self.counts: Counter[Status] = Counter()
        self.at_work = AtWork(table_column=Column(no_wrap=True, overflow="ellipsis"))
        self.progress = progress.Progress(
            progress.SpinnerColumn(),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.description}"),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            self.at_work,
            console=progress_console,
            transient=True,
            disable=quiet or not progress_console.is_terminal,
        )

    @contextmanager
    def running(
        self, header: str, total: int, settings: str = "", at_work: Callable[[], Sequence[str]] = tuple
    ) -> Iterator[None]:
        """Print the `header` and what is `settings`; show the progress bar while cases run."""
        self.at_work.names = at_work
        for line in (header, settings):
            if line and not self.quiet:
                for part in wrapped(Text(line, "dim"), self.console.width, " · "):
                    self.console.print(part)
        self.task = self.progress.add_task("", total=total)
        with nullcontext() if self.progress.disable else self.progress:  # rich 14 ends a disabled one with a line
            yield

    def count(self, result: Result) -> None:
        """Advance the progress bar by a result, though it may not be its turn."""
        self.counts[result.status] += 1
        counts = "  ".join(f"{count} {status}" for status, count in self.counts.items())
        self.progress.update(self.task, advance=1, description=counts)

    def show(self, result: Result) -> None:
        """Nothing: results are shown together, at the end."""

    def finish(self, results: Sequence[Result], seconds: float, not_run: int) -> None:
        """Print the table, a panel per cause or, if verbose, per failure, and the summary line."""
        if not self.quiet and results:
            for line in table(results, self.console.width, verbose=self.verbose):
                self.console.print(line, overflow="fold")
        for first, *others in by_cause(results):
            for result in (first, *others) if self.verbose else (first,):
                alike = () if self.verbose else others
                entries = ALL_ENTRIES if self.verbose else ENTRIES_SHOWN
                width = self.console.width - PANEL_FRAME
                self.console.print(panel(result, self.again_options, width, entries, alike))
        good = all(result.status.green for result in results) and not not_run
        said = Text(summary(results, seconds, not_run), "bold green" if good else "bold red")
        for part in wrapped(said, self.console.width):
            self.console.print(part)


def panel(result: Result, again_options: str, width: int, entries: int, others: Sequence[Result]) -> Panel:
    """What is wrong with one result, how to run it again, and `others` like it, in lines of at most `width`."""
    status = " ".join([str(result.status), *marks(result.gradient)])
    which = f"{one_line(result.name)} · {place(result)}"
    lines = [Text(line) for line in failure_block(result, again_options, width, entries, others)]
    title = Text.assemble((status, style(result.status)), f" {which}")
    if title.cell_len > width:  # a title is cut where it is too long
        title, lines = Text(status, style(result.status)), [Text(which, overflow="fold"), *lines]
    return Panel(Group(*lines), title=title, title_align="left", border_style=style(result.status))


# ------------------------------------------------------------------------------------------------- the table
# A row per spec file, and one for each case that did not simply pass, at any width. A name is never cut and shares its
# line with nothing that would push it: what does not fit beside it stands below.
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
