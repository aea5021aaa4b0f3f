"""The report for a terminal: progress while it runs, then a table, a panel per failure, and the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console, Group
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from gradcheck.report.text import failure_block, one_line, place, shown_path, summary
from gradcheck.result import Result, Status

STYLES = {
    Status.PASS: "green",
    Status.KINK: "cyan",
    Status.XFAIL: "yellow",
    Status.SKIP: "dim",
    Status.UNSUPPORTED: "dim",
    Status.INCONCLUSIVE: "magenta",
}
"""Colours; every other status is red. The word is always there too."""


def style(status: Status) -> str:
    """The colour of a status."""
    return STYLES.get(status, "bold red")


class Live:
    """The transient progress bar with the counts so far."""

    def __init__(self, console: Console, total: int) -> None:
        self.counts: Counter[Status] = Counter()
        self.progress = Progress(
            SpinnerColumn(),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self.task = self.progress.add_task("", total=total, counts="")

    def add(self, result: Result) -> None:
        """Count a finished case."""
        self.counts[result.status] += 1
        counts = "  ".join(f"{count} {status}" for status, count in self.counts.items())
        self.progress.update(self.task, advance=1, counts=counts)


def print_report(
    console: Console, results: Sequence[Result], seconds: float, *, verbose: bool, quiet: bool, allow_code: bool
) -> None:
    """The table (unless `quiet`), the panels and the summary line."""
    if not quiet:
        console.print(table(results, verbose=verbose))
    for result in results:
        if not result.status.green:
            console.print(panel(result, allow_code=allow_code))
    line = Text(summary(results, seconds))
    line.stylize("bold green" if all(r.status.green for r in results) else "bold red")
    console.print(line)


def table(results: Iterable[Result], *, verbose: bool = False) -> Table:
    """One row per spec file with its counts; under it a row for each result that did not simply pass, or for all."""
    grid = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    grid.add_column("scenario", overflow="fold")
    grid.add_column("status", no_wrap=True)
    grid.add_column("worst error / bar", justify="right", no_wrap=True)
    grid.add_column("seconds", justify="right", no_wrap=True)
    for path, group in groupby(results, key=lambda result: result.path):
        members = list(group)
        counts = Counter(result.status for result in members)
        words = Text(", ").join(Text(f"{count} {status}", style(status)) for status, count in counts.items())
        ratios = [r.gradient.worst_error for r in members if r.gradient is not None and r.status is Status.PASS]
        total = sum(result.seconds for result in members)
        grid.add_row(Text(shown_path(path), "bold"), words, error_ratio(max(ratios, default=None)), f"{total:.2f}")
        for result in members:
            if verbose or result.status is not Status.PASS:
                grid.add_row(*row(result))
    return grid


def row(result: Result) -> tuple[Text, Text, str, str]:
    """One result as a row of the table."""
    name = Text(f"  {result.name}")
    if result.status is not Status.PASS and result.status.green and result.message:
        name.append(f"\n    {one_line(result.message)}", "dim")
    ratio = result.gradient.worst_error if result.gradient is not None else None
    return name, Text(str(result.status), style(result.status)), error_ratio(ratio), f"{result.seconds:.2f}"


def error_ratio(ratio: float | None) -> str:
    """The largest |analytic − numeric| over its bar: at most 1 where they agree."""
    return "" if ratio is None else f"{ratio:.2g}"


def panel(result: Result, *, allow_code: bool) -> Panel:
    """What is wrong with one result, and how to run it again."""
    title = Text.assemble((str(result.status), style(result.status)), f" {result.name} · {place(result)}")
    lines = [Text(line) for line in failure_block(result, allow_code=allow_code)]
    return Panel(Group(*lines), title=title, title_align="left", border_style=style(result.status))
