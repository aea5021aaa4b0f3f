"""The report for pipes and logs: one line per result, failures as indented blocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click

from gradcheck.report.result_text import failure_block, key_of, marks, place, summary
from gradcheck.report.wrong_entries import ALL_ENTRIES, ENTRIES_SHOWN, worst_first
from gradcheck.result import Result, Status, element
from gradcheck.support.display_paths import count
from gradcheck.support.escape import one_line, safe

HEARTBEAT = 30.0
"""Seconds between signs of life."""


def color_of(status: Status) -> str:
    """The colour of a status on terminals, in addition to its word."""
    return {"PASS": "green", "KINK": "cyan"}.get(status, "yellow" if status.green else "red")


def result_line(result: Result) -> str:
    """The line of a result: ``FAIL lstm-cell@numpy specs/rnn.grad.yaml:12:5 W_hh[1,2] rel=3.2e-02
    bound=5e-13 0.41s``.

    It is never truncated. Status and name are always the first two words; marks of the verdict in
    brackets come before the time.
    """
    parts = [str(result.status), one_line(result.name), place(result)]
    wrong = worst_first(result.checked.wrong)
    if wrong and result.status is Status.FAIL:
        error = f"rel={wrong[0].relative_error:.1e} bound={wrong[0].error_bound:.0e}"
        parts += [element(wrong[0].input, wrong[0].index), error]
    elif result.message:
        parts.append(one_line(result.message))
    return " ".join([*parts, *marks(result.checked), f"{result.seconds:.2f}s"])


class PlainScreen:
    """A screen that shows each result on stdout as soon as it is its turn, and signs of life on
    stderr.
    """

    def __init__(
        self,
        *,
        verbose: bool = False,
        quiet: bool = False,
        color: bool = False,
        again_options: str = "",
    ) -> None:
        self.verbose, self.quiet, self.color = verbose, quiet, color
        self.again_options = again_options
        self.done = 0
        self.first_by_cause: dict[tuple[str, ...], str] = {}
        """The causes that were printed as a block, with the name of the first case of each."""

    @contextmanager
    def running(
        self,
        header: str,
        total: int,
        settings: str = "",
        at_work: Callable[[], Sequence[str]] = tuple,
    ) -> Iterator[None]:
        """Print `settings`, and signs of life while cases run, on stderr.

        The `header` is left out: every line on stdout is a result.
        """
        if settings and not self.quiet:
            click.echo(f"gradcheck: {settings}", err=True)
        started, stop = time.monotonic(), threading.Event()

        def beat() -> None:
            while not stop.wait(HEARTBEAT):
                seconds = time.monotonic() - started
                line = f"{self.done} of {count(total, 'case')} done after {seconds:.0f} s"
                if names := at_work():
                    line += f"; running: {safe(', '.join(names))}"
                click.echo(f"gradcheck: {line}", err=True)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def count(self, result: Result) -> None:
        """Count a result, in whatever order results come."""
        self.done += 1

    def show(self, result: Result) -> None:
        """Print the line of a result, and further lines about it, if any."""
        green = result.status.green
        if self.quiet and green:
            return
        line = result_line(result)
        word = str(result.status)
        styled = click.style(word, fg=color_of(result.status), bold=None if green else True)
        click.echo(styled + line[len(word) :] if self.color else line, color=self.color)
        details: Sequence[str] = ()
        if not green:
            details = self.block(result, line)
        elif self.verbose:
            details = [one_line(detail) for detail in result.details]
        for detail in details:
            click.echo(f"    {detail}")

    def block(self, result: Result, line: str) -> list[str]:
        """The further lines about a failure, below its `line`; complete for the first failure of a
        cause.
        """
        entries = ALL_ENTRIES if self.verbose else ENTRIES_SHOWN
        block = failure_block(result, self.again_options, entries=entries)
        first = self.first_by_cause.setdefault(key_of(result), result.name)
        if first != result.name and not self.verbose:
            block = [f"same cause as {one_line(first)}", block[-1]]
        message = one_line(result.message)
        return [text for text in block if text != message or message not in line]

    def finish(self, results: Sequence[Result], seconds: float, not_run: int) -> None:
        """The summary, last."""
        click.echo(summary(results, seconds, not_run))
