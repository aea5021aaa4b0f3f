"""The report for a terminal: progress, then a table, a panel per cause of failures, the summary.

All text from specs and layers is escaped by `report.result_text` and put into ``rich.text.Text``,
which interprets no markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from rich import progress
from rich.cells import cell_len
from rich.console import Console, Group
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from gradcheck.report.plain import color_of
from gradcheck.report.result_text import (
    by_cause,
    by_file,
    counts_of,
    failure_block,
    marks,
    place,
    summary,
)
from gradcheck.report.wrong_entries import ALL_ENTRIES, ENTRIES_SHOWN
from gradcheck.result import Result, Status
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import one_line

PANEL_FRAME = 4
"""The columns of a panel that border and padding take."""
BAR_WIDTH = 24
"""The width of the progress bar, whatever is next to it."""
NARROW_SCREEN = 80
"""The width below which the progress has no bar, and the table no column of errors."""


class OpenConsole(Console):
    """A console that passes a closed pipe on to the command as an error."""

    def on_broken_pipe(self) -> None:
        """Re-raise the current error, which rich is handling when it calls this."""
        raise


class RichScreen:
    """A screen that shows a header and a transient progress bar while cases run, and everything
    else at the end.
    """

    def __init__(
        self,
        console: Console,
        progress_console: Console,
        *,
        verbose: bool = False,
        quiet: bool = False,
        again_options: str = "",
    ) -> None:
        self.console, self.verbose, self.quiet, self.again_options = (
            console,
            verbose,
            quiet,
            again_options,
        )
        self.current = CurrentCases()
        is_wide = progress_console.width >= NARROW_SCREEN
        self.progress = progress.Progress(
            progress.MofNCompleteColumn(table_column=Column(no_wrap=True)),
            *(
                [progress.BarColumn(BAR_WIDTH, complete_style="default", finished_style="default")]
                if is_wide
                else []
            ),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            self.current,
            console=progress_console,
            transient=True,
            expand=True,
            disable=quiet or not progress_console.is_terminal,
        )

    @contextmanager
    def running(
        self,
        header: str,
        total: int,
        settings: str = "",
        at_work: Callable[[], Sequence[str]] = tuple,
    ) -> Iterator[None]:
        """Print the `header` and the `settings`; show the progress bar while cases run.

        `at_work` returns the names of the cases that are running.
        """
        self.current.names = at_work
        for line in (header, settings):
            if line and not self.quiet:
                self.console.print(Text(line, "dim"))
        self.task = self.progress.add_task("", total=total)
        # rich 14 prints an empty line at the end of a disabled progress bar.
        with nullcontext() if self.progress.disable else self.progress:
            yield

    def count(self, result: Result) -> None:
        """Advance the progress bar by a result, in whatever order results come."""
        self.current.counts[result.status] += 1
        self.progress.update(self.task, advance=1)

    def show(self, result: Result) -> None:
        """Do nothing: results are shown together, at the end."""

    def finish(self, results: Sequence[Result], seconds: float, not_run: int) -> None:
        """Print the table, a panel per cause or, if verbose, per failure, and the summary line."""
        if results and not self.quiet:
            self.console.print(make_table(results, self.console.width, verbose=self.verbose))
        for group in by_cause(results):
            if self.verbose:
                for result in group:
                    self.print_panel(result, ALL_ENTRIES, ())
            else:
                self.print_panel(group[0], ENTRIES_SHOWN, group[1:])
        is_good = not not_run and all(result.status.green for result in results)
        line = summary(results, seconds, not_run)
        self.console.print(Text(line, "bold green" if is_good else "bold red"))

    def print_panel(self, result: Result, entries: int, same_cause: Sequence[Result]) -> None:
        """Print the panel of a failure with at most `entries` wrong entries.

        `same_cause` are the further failures of its cause.
        """
        width = self.console.width - PANEL_FRAME
        self.console.print(make_panel(result, self.again_options, width, entries, same_cause))


class CurrentCases(progress.ProgressColumn):
    """The counts by status, and as many names of running cases as there is room for."""

    def __init__(self) -> None:
        # Only this column is flexible, so that it never takes room from the count and the bar.
        super().__init__(Column(no_wrap=True, overflow="ellipsis", ratio=1))
        self.counts: Counter[Status] = Counter()
        self.names: Callable[[], Sequence[str]] = tuple

    def render(self, task: progress.Task) -> Text:
        """Return the counts, followed by the names in dim style."""
        counts = "  ".join(f"{count} {status}" for status, count in self.counts.items())
        names = one_line(" ".join(self.names()))
        return Text.assemble(counts, "  " if counts else "", (names, "dim"))


def make_panel(
    result: Result, again_options: str, width: int, entries: int, same_cause: Sequence[Result]
) -> Panel:
    """Return the panel of a failure, with names of `same_cause`, in lines of at most `width`."""
    style = style_of(result.status)
    status = Text(status_words(result), style)
    which = f"{one_line(result.name)} · {place(result)}"
    lines = [
        Text(line) for line in failure_block(result, again_options, width, entries, same_cause)
    ]
    title = Text.assemble(status, " ", which)
    if title.cell_len > width:  # rich cuts a title that is too long
        title, lines = status, [Text(which, overflow="fold"), *lines]
    return Panel(Group(*lines), title=title, title_align="left", border_style=style)


def status_words(result: Result) -> str:
    """Return the status and the marks of a result."""
    return " ".join([str(result.status), *marks(result.checked)])


def style_of(status: Status) -> str:
    """Return the style of the word of a status."""
    return color_of(status) if status.green else f"bold {color_of(status)}"


# --------------------------------------------------------------------------- the table
LEAST_NAMES = 72
"""The widths of names and messages on a wide screen; larger if a name needs it."""
COUNTS_WIDTH = 28
"""The width up to which the counts of a file are on one line."""


def make_table(results: Sequence[Result], width: int, *, verbose: bool = False) -> Table:
    """Return a row per spec file with its counts.

    Below it is a row for each result that did not simply pass, or for all.
    """
    names = [f"  {one_line(result.name)}" for result in results]
    paths = [shown_path(result.path) for result in results]
    longest = max(map(cell_len, [*names, *paths]))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("scenario", overflow="fold", max_width=max(LEAST_NAMES, longest))
    table.add_column("status")
    if width >= NARROW_SCREEN:
        table.add_column("worst error / bound", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)

    def add_row(name: Text, status: Text, ratio: str, seconds: float) -> None:
        ratios = [ratio] if width >= NARROW_SCREEN else []
        table.add_row(name, status, *ratios, f"{seconds:.2f}")

    for path, members in by_file(results):
        seconds = sum(result.seconds for result in members)
        name = Text(shown_path(path), "bold")
        add_row(name, file_counts(members), file_ratio(members), seconds)
        for result in members:
            if not verbose and result.status is Status.PASS:
                continue
            ratio = "" if result.gradient is None else f"{result.gradient.worst_error:.2g}"
            status = Text(status_words(result), style_of(result.status))
            add_row(Text(f"  {one_line(result.name)}"), status, ratio, result.seconds)
            if result.message:
                table.add_row(message_below(result))
    return table


def message_below(result: Result) -> Padding:
    """Return the message of a result, shown below its name; a single line if the result has a
    panel.
    """
    message = Text(one_line(result.message), "dim")
    if not result.status.green:
        message.no_wrap, message.overflow = True, "ellipsis"
    return Padding(message, (0, 0, 0, 4))


def file_counts(results: Sequence[Result]) -> Text:
    """Return the counts of the results of a file by status: in one line if that is short."""
    counts = counts_of(results)
    words = [Text(f"{count} {status}", style_of(status)) for status, count in counts.items()]
    line = Text(", ").join(words)
    return line if line.cell_len <= COUNTS_WIDTH else Text("\n").join(words)


def file_ratio(results: Sequence[Result]) -> str:
    """Return the largest ratio of error to bound among the right gradients of a file."""
    right = [
        result.checked.worst_error for result in results if result.checked.verdict is Status.PASS
    ]
    return f"{max(right):.2g}" if right else ""
