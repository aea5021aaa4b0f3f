"""The report for a terminal: progress while it runs, then a table, a panel per cause of failures, and the summary.

All text from specs and layers goes into ``rich.text.Text``, which reads no markup, after `report.result_text` has
escaped it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from rich.console import Console, Group
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
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from gradcheck.report.groups import by_cause
from gradcheck.report.result_table import style, table, wrapped
from gradcheck.report.result_text import ALL_ENTRIES, ENTRIES_SHOWN, failure_block, marks, place, summary
from gradcheck.result import Result, Status
from gradcheck.support.escape import one_line

PANEL_FRAME = 4
"""Columns of a panel that are border and padding."""


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
            TimeRemainingColumn(),
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
