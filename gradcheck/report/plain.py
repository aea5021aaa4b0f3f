"""The report for pipes and logs: one line per result, status word first, then its name; failures as indented blocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click

from gradcheck.report.result_text import (
    ALL_ENTRIES,
    ENTRIES_SHOWN,
    failure_block,
    key_of,
    marks,
    place,
    summary,
    worst_first,
)
from gradcheck.result import Result, Status, element
from gradcheck.support.display_paths import count
from gradcheck.support.escape import one_line, safe

HEARTBEAT = 30.0
"""Seconds between signs of life."""


def color_of(status: Status) -> str:
    """The colour of a status on terminals. The word is always there too."""
    return {"PASS": "green", "KINK": "cyan"}.get(status, "yellow" if status.green else "red")


def result_line(result: Result) -> str:
    """``FAIL lstm-cell@numpy specs/rnn.grad.yaml:12:5 W_hh[1,2] rel=3.2e-02 bar=5e-13 0.41s``, never truncated.

    Marks of the verdict stand in brackets before the time: status and name are always the first two words.
    """
    parts = [str(result.status), one_line(result.name), place(result)]
    if result.gradient is not None and result.gradient.wrong and result.status is Status.FAIL:
        worst = worst_first(result.gradient.wrong)[0]
        parts.append(
            f"{element(worst.input, worst.index)} rel={worst.relative_error:.1e} bar={worst.bar:.0e}"
        )
    elif result.message:
        parts.append(one_line(result.message))
    return " ".join([*parts, *marks(result.gradient), f"{result.seconds:.2f}s"])


class PlainScreen:
    """Shows each result as soon as it is its turn, on stdout; now and then a sign of life on stderr."""

    def __init__(
        self,
        *,
        verbose: bool = False,
        quiet: bool = False,
        color: bool = False,
        again_options: str = "",
    ) -> None:
        self.verbose, self.quiet, self.color, self.again_options = (
            verbose,
            quiet,
            color,
            again_options,
        )
        self.done = 0
        self.told: dict[tuple[str, ...], str] = {}
        """The causes that had a block, and the name of the first case of each."""

    @contextmanager
    def running(
        self,
        header: str,
        total: int,
        settings: str = "",
        at_work: Callable[[], Sequence[str]] = tuple,
    ) -> Iterator[None]:
        """While cases run: what is `settings` and signs of life on stderr. No `header`: a line is a result."""
        if settings and not self.quiet:
            click.echo(f"gradcheck: {settings}", err=True)
        started, stop = time.monotonic(), threading.Event()

        def beat() -> None:
            while not stop.wait(HEARTBEAT):
                seconds = time.monotonic() - started
                now = f"; running: {safe(', '.join(names))}" if (names := at_work()) else ""
                click.echo(
                    f"gradcheck: {self.done} of {count(total, 'case')} done after {seconds:.0f} s{now}",
                    err=True,
                )

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def count(self, result: Result) -> None:
        """Take note of a result that is there, though it may not be its turn."""
        self.done += 1

    def show(self, result: Result) -> None:
        """Print the line of a result, and its block where it is not as expected, all of it for the first of a cause."""
        if self.quiet and result.status.green:
            return
        line = result_line(result)
        if self.color:
            word = str(result.status)
            line = (
                click.style(
                    word, fg=color_of(result.status), bold=None if result.status.green else True
                )
                + line[len(word) :]
            )
        click.echo(line, color=self.color)
        if not result.status.green:
            said = (
                one_line(result.message)
                if result.message and one_line(result.message) in line
                else ""
            )
            entries = ALL_ENTRIES if self.verbose else ENTRIES_SHOWN
            block = failure_block(result, self.again_options, entries=entries)
            first = self.told.setdefault(key_of(result), result.name)
            if first != result.name and not self.verbose:
                block = [f"the same cause as of {one_line(first)}", block[-1]]
            for part in block:
                if part != said:
                    click.echo(f"    {part}")
        elif self.verbose:
            for part in result.details:
                click.echo(f"    {one_line(part)}")

    def finish(self, results: Sequence[Result], seconds: float, not_run: int) -> None:
        """The summary, last."""
        click.echo(summary(results, seconds, not_run))
