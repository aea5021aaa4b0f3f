"""What shows a run: which screen, in which colours, under which header."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from gradcheck import __version__
from gradcheck.case.case import Case
from gradcheck.commands.run_options import ScreenOptions
from gradcheck.report.record import versions as installed
from gradcheck.result import Result
from gradcheck.support.display_paths import count

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class Screen(Protocol):
    """Shows a run: `report.plain.PlainScreen` or `report.console.RichScreen`."""

    def running(
        self, header: str, total: int, believed: str = "", at_work: Callable[[], Sequence[str]] = tuple
    ) -> AbstractContextManager[None]:
        """While cases run. The `header` tells what runs, `believed` what of the project's settings counts.

        `at_work` gives the names of the cases that run at the moment.
        """

    def count(self, result: Result) -> None:
        """A result is there; called in the order in which they come, from any thread, one at a time."""

    def show(self, result: Result) -> None:
        """It is a result's turn, in the order of the cases."""

    def finish(self, results: Sequence[Result], seconds: float, not_run: int) -> None:
        """All is done."""


def make_screen(options: ScreenOptions, again_options: str) -> Screen:
    """What shows the run: on stdout results, on stderr progress."""
    layout, color, verbose, quiet = options
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    colored = color == "always" or (color == "auto" and wants_color(terminal))
    if layout == "plain" or (layout == "auto" and not terminal):
        from gradcheck.report.plain import PlainScreen

        return PlainScreen(verbose=verbose, quiet=quiet, color=colored, again_options=again_options)
    from gradcheck.report.console import OpenConsole, RichScreen

    # Without a colour system rich writes no escape sequence at all; its own look at NO_COLOR would leave bold and dim.
    system = ("auto" if terminal else "standard") if colored else None
    console = OpenConsole(color_system=system, force_terminal=colored or None, no_color=False, highlight=False)  # type: ignore[arg-type]
    progress = OpenConsole(stderr=True, color_system="auto" if colored else None, no_color=False, highlight=False)
    return RichScreen(console, progress, verbose=verbose, quiet=quiet, again_options=again_options)


def wants_color(terminal: bool) -> bool:
    """Whether to colour where the command line leaves it open: NO_COLOR, FORCE_COLOR, or else on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or terminal


def header(cases: Sequence[Case], jobs: int) -> str:
    """The line above a report: versions, backends, seeds, jobs."""
    versions = f"gradcheck {__version__} · Python {'.'.join(map(str, sys.version_info[:3]))}"
    versions += "".join(f" · {package} {version}" for package, version in installed().items())
    backends = ", ".join(dict.fromkeys(case.backend for case in cases))
    seeds = {case.seed for case in cases}
    seed = f"seed {seeds.pop()}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    return f"{versions} · on {backends} · {seed} · {count(jobs, 'job')} · {count(len(cases), 'case')}"
