"""The report for a terminal: progress while it runs, then a table, a panel per failure, and the summary.

All text from specs and layers goes into ``rich.text.Text``, which reads no markup, after `report.text` has escaped it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column, Table
from rich.text import Text

from gradcheck.escape import one_line
from gradcheck.report.plain import color_of
from gradcheck.report.text import ALL_ENTRIES, ENTRIES_SHOWN, counts_of, failure_block, marks, place, summary
from gradcheck.result import Result, Status
from gradcheck.shown import shown_path

PANEL_FRAME = 4
"""Columns of a panel that are border and padding."""
MOST_SAID = 80
"""Characters of a failure's message that its row has."""


class OpenConsole(Console):
    """A console that leaves it to the command what to do when nobody reads on."""

    def on_broken_pipe(self) -> None:
        """Let the error through that led here: rich calls this while it handles it."""
        raise


class AtWork(ProgressColumn):
    """The names of the cases that run at the moment, as many as there is room for."""

    names: Callable[[], Sequence[str]] = tuple

    def render(self, task: Task) -> Text:
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
        self.progress = Progress(
            SpinnerColumn(),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            self.at_work,
            console=progress_console,
            transient=True,
            disable=quiet or not progress_console.is_terminal,
        )

    @contextmanager
    def running(
        self, header: str, total: int, believed: str = "", at_work: Callable[[], Sequence[str]] = tuple
    ) -> Iterator[None]:
        """Print the `header` and what is `believed`; show the progress bar while cases run."""
        self.at_work.names = at_work
        for line in (header, believed):
            if line and not self.quiet:
                self.console.print(Text(line, "dim"))
        self.task = self.progress.add_task("", total=total)
        with self.progress:
            yield

    def count(self, result: Result) -> None:
        """Advance the progress bar by a result, though it may not be its turn."""
        self.counts[result.status] += 1
        counts = "  ".join(f"{count} {status}" for status, count in self.counts.items())
        self.progress.update(self.task, advance=1, description=counts)

    def show(self, result: Result) -> None:
        """Nothing: results are shown together, at the end."""

    def finish(self, results: Sequence[Result], seconds: float, not_run: int) -> None:
        """Print the table, a panel per failure, and the summary line."""
        if not self.quiet and results:
            self.console.print(table(results, verbose=self.verbose))
        for result in results:
            if not result.status.green:
                entries = ALL_ENTRIES if self.verbose else ENTRIES_SHOWN
                self.console.print(panel(result, self.again_options, self.console.width - PANEL_FRAME, entries))
        good = all(result.status.green for result in results) and not not_run
        self.console.print(Text(summary(results, seconds, not_run), "bold green" if good else "bold red"))


def style(status: Status) -> str:
    """How the word of a status looks."""
    return color_of(status) if status.green else f"bold {color_of(status)}"


def table(results: Sequence[Result], *, verbose: bool = False) -> Table:
    """A row per spec file with its counts; below it one for each result that did not simply pass, or for all."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("scenario", overflow="fold")
    grid.add_column("status", overflow="fold")
    grid.add_column("worst error / bar", justify="right", no_wrap=True)
    grid.add_column("seconds", justify="right", no_wrap=True)
    for path, group in groupby(results, key=lambda result: result.path):
        members = list(group)
        counts = counts_of(members)
        words = Text(", ").join(
            Text(f"{count}\N{NO-BREAK SPACE}{status}", style(status)) for status, count in counts.items()
        )
        right = [r.gradient for r in members if r.gradient is not None and r.gradient.verdict is Status.PASS]
        ratios = [gradient.worst_error for gradient in right]  # not of backwards that are rightly found to differ
        total = sum(result.seconds for result in members)
        grid.add_row(Text(shown_path(path), "bold"), words, error_ratio(max(ratios, default=None)), f"{total:.2f}")
        for result in members:
            if verbose or result.status is not Status.PASS:
                grid.add_row(*row(result))
    return grid


def row(result: Result) -> tuple[RenderableType, Text, str, str]:
    """One result as a row of the table; why it is no PASS stands below its name, all of it where no panel follows."""
    name: RenderableType = Padding(Text(result.name), (0, 0, 0, 2))
    if result.message:
        said = one_line(result.message)
        said = said if result.status.green or len(said) <= MOST_SAID else f"{said[:MOST_SAID]}…"
        name = Group(name, Padding(Text(said, "dim"), (0, 0, 0, 4)))
    ratio = result.gradient.worst_error if result.gradient is not None else None
    status = Text(" ".join([str(result.status), *marks(result.gradient)]), style(result.status))
    return name, status, error_ratio(ratio), f"{result.seconds:.2f}"


def error_ratio(ratio: float | None) -> str:
    """The largest |analytic − numeric| over its bar: at most 1 where they agree."""
    return "" if ratio is None else f"{ratio:.2g}"


def panel(result: Result, again_options: str, width: int, entries: int = ENTRIES_SHOWN) -> Panel:
    """What is wrong with one result, and how to run it again, in lines of at most `width`."""
    status = " ".join([str(result.status), *marks(result.gradient)])
    which = f"{result.name} · {place(result)}"
    lines = [Text(line) for line in failure_block(result, again_options, width, entries)]
    title = Text.assemble((status, style(result.status)), f" {which}")
    if title.cell_len > width:  # a title is cut where it is too long
        title, lines = Text(status, style(result.status)), [Text(which, overflow="fold"), *lines]
    return Panel(Group(*lines), title=title, title_align="left", border_style=style(result.status))
