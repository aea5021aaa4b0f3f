"""Running cases for a command: the executor, the screen, the record, signals that end a run,
reports, the exit code.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradcheck import __version__
from gradcheck.case.case import Case
from gradcheck.commands.bugs import stop_for_bug
from gradcheck.commands.errors import INTERRUPTED, NOTHING_SELECTED, USAGE
from gradcheck.commands.shared_options import ScreenOptions
from gradcheck.commands.specs import suite_of
from gradcheck.report.files import render_report
from gradcheck.report.record import PagePart, Report, versions
from gradcheck.result import NOT_RUN, Result
from gradcheck.run.interpreter import START, START_METHODS
from gradcheck.run.journal import Journal
from gradcheck.run.ordering import Executor
from gradcheck.run.results import NO_BASELINE, Baseline, SideBySide
from gradcheck.run.runner import Runner
from gradcheck.support.display_paths import count, with_heading
from gradcheck.support.escape import safe
from gradcheck.support.file_io import write_whole
from gradcheck.support.user_error import UserError

if TYPE_CHECKING:
    from gradcheck.report.console import RichScreen
    from gradcheck.report.plain import PlainScreen
    from gradcheck.run.dask import DaskExecutor


# ------------------------------------------------------------------------------------------ running
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a run cleanly."""
SHOW_CURSOR = b"\x1b[?25h\n"
"""Makes a terminal show its cursor (DECTCEM)."""


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run by `gradcheck run`."""

    shown: str = ""
    """A line on the settings of the project and the environment."""
    max_failures: float = inf
    """The number of failures, in the order of the cases, after which no more cases are run or
    reported.
    """
    known: Mapping[str, Result] = field(default_factory=dict)
    """Known results by name; these cases are not run again."""
    record: Journal = field(default_factory=Journal)
    """A function that gets each new result at once."""
    baseline: Baseline = NO_BASELINE
    """Known failures, which count as expected."""
    shuffle: int | None = None
    """The seed of the order in which cases run; None for the order of the files."""
    require: Callable[[Result], object] = bool
    """A function that raises UserError for a result that shows a mistake in the command."""


USUAL_SETTINGS = RunSettings()


def make_executor(
    executor: str = "local", jobs: int = 1, limited: bool = True
) -> Runner | DaskExecutor:
    """Return the executor of the cases: processes on this machine, or a Dask cluster, for which
    `jobs` may be a limit.

    Raises RunnerError: no cluster answers.
    """
    if executor != "local":
        from gradcheck.run.dask import DaskExecutor

        return DaskExecutor(executor.removeprefix("dask:"), jobs if limited else None)
    if START not in START_METHODS:
        methods = " or ".join(START_METHODS)
        raise UserError(f"GRADCHECK_START={START}: write {methods}, or remove it")
    return Runner(jobs)


def run_all(
    cases: Sequence[Case],
    executor: Runner | DaskExecutor,
    screen: PlainScreen | RichScreen,
    settings: RunSettings = USUAL_SETTINGS,
) -> tuple[Sequence[Result], bool]:
    """Run the cases and show them; return the results in the order of the cases, and whether a
    signal ended the run.
    """
    started = time.perf_counter()
    by_name = {case.name: case for case in cases}
    results = list[Result]()
    failures = 0

    def on_done(case: Case, result: Result, was_known: bool) -> None:
        if not was_known:
            settings.record.append(case, result)
        screen.count(result)

    side_by_side, heading = SideBySide(), header(cases, executor.slots)
    shown = screen.running(heading, len(cases), settings.shown, executor.at_work)
    with stopped_by_signals(executor), shown, executor:
        ordered = executor.results(cases, settings.known, on_done, settings.shuffle)
        for plain_result in side_by_side.with_comparisons(ordered):
            settings.require(plain_result)
            result = settings.baseline.mark_if_known(plain_result)
            results.append(result)
            screen.show(result)
            if result.compared_with:
                settings.record.append(by_name[result.cases[0]], result)
            failures += not result.status.green
            if failures == settings.max_failures:
                break
        interrupted = executor.stopped
    screen.finish(results, time.perf_counter() - started, missing_results(cases, results))
    for line in missing_names(results):
        click.echo(line, err=True)
    if side_by_side.compared:
        pairs = count(side_by_side.compared, "pair")
        click.echo(
            f"gradcheck: outputs and gradients of {pairs} of cases compared across backends",
            err=True,
        )
    return results, interrupted


def missing_names(results: Sequence[Result]) -> list[str]:
    """Return a line per name that the engine lacks, with its number of cases, most frequent
    first.
    """
    needed = Counter(result.missing_name for result in results if result.missing_name)
    lines = [f"  {safe(name)}: {count(number, 'case')}" for name, number in needed.most_common()]
    return with_heading("gradcheck: not part of the bundled engine; `-b paddle` has them:", lines)


def missing_results(cases: Sequence[Case], results: Sequence[Result]) -> int:
    """Return how many cases have no result."""
    return len(cases) - sum(not result.compared_with for result in results)


def leave_at_once(number: int, frame: object) -> None:
    """Show the cursor that a progress bar hides, and end this process, which also ends its
    servers.
    """
    if os.isatty(2):
        os.write(2, SHOW_CURSOR)
    os._exit(128 + number)


@contextmanager
def stopped_by_signals(executor: Executor) -> Iterator[None]:
    """Let the first signal end the run cleanly, and a second one end the command at once."""
    before: dict[int, Any] = {}

    def stop(number: int, frame: object) -> None:
        for each in before:
            signal.signal(each, leave_at_once)
        executor.stop()

    for number in STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a job in the background
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


# ------------------------------------------------------------------------------------------ showing
def make_screen(options: ScreenOptions, again_options: str) -> PlainScreen | RichScreen:
    """Return the screen of the run: results on stdout, progress on stderr."""
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    colored = is_colored(options.color, is_terminal)
    shared: dict[str, Any] = {
        "verbose": options.verbose, "quiet": options.quiet, "again_options": again_options
    }  # fmt: skip
    if options.layout == "plain" or (options.layout == "auto" and not is_terminal):
        from gradcheck.report.plain import PlainScreen

        return PlainScreen(color=colored, **shared)
    from gradcheck.report.console import OpenConsole, RichScreen

    # Without a colour system rich writes no escape sequence at all; its own handling of NO_COLOR
    # would leave bold and dim.
    system: Any = "auto" if is_terminal else "standard"
    console = OpenConsole(
        color_system=system if colored else None,
        force_terminal=colored or None,
        no_color=False,
        highlight=False,
    )
    progress = OpenConsole(
        stderr=True, color_system="auto" if colored else None, no_color=False, highlight=False
    )
    return RichScreen(console, progress, **shared)


def is_colored(color: str, is_terminal: bool) -> bool:
    """Whether ``--color`` means colours on stdout."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return is_terminal or bool(os.environ.get("FORCE_COLOR"))


def header(cases: Sequence[Case], jobs: int) -> str:
    """Return the line above a report: versions, backends, seeds, jobs."""
    python = ".".join(map(str, sys.version_info[:3]))
    packages = [f"{package} {version}" for package, version in versions().items()]
    seeds = sorted({case.seed for case in cases})
    parts = [
        f"gradcheck {__version__}",
        f"Python {python}",
        *packages,
        f"on {', '.join(dict.fromkeys(case.backend for case in cases))}",
        f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds",
        count(jobs, "job"),
        count(len(cases), "case"),
    ]
    if suite := suite_of(cases):
        parts.append(f"suite {suite.replace(f'{__version__}, ', '')}")
    return " · ".join(parts)


# ---------------------------------------------------------------------------------------- reporting
@dataclass(frozen=True)
class Beginning:
    """The start of a run: its date, and the reading of a monotonic clock."""

    date: datetime
    clock: float

    @classmethod
    def now(cls) -> Beginning:
        """Return this moment."""
        return cls(datetime.now(UTC), time.perf_counter())


def write_reports(
    files: Sequence[tuple[str, Path]],
    cases: Sequence[Case],
    results: Sequence[Result],
    began: Beginning,
    again: str,
) -> None:
    """Write reports, by format and path; on GitHub Actions, also write annotations into its log.

    `again` are the options that repeat one of the cases under the same conditions. Raises
    SystemExit: one could not be written.
    """
    on_github = bool(os.environ.get("GITHUB_ACTIONS"))
    if not files and not on_github:
        return
    report = Report(
        suite=suite_of(cases),
        command=tuple(sys.argv[1:]),
        again=again,
        seeds=tuple(sorted({case.seed for case in cases})),
        started=began.date.isoformat(timespec="seconds"),
        seconds=time.perf_counter() - began.clock,
        not_run=missing_results(cases, results),
        results=tuple(results),
        cases=tuple(cases),
        matrix=matrix_part(cases, results) if "html" in dict(files) else None,
    )
    is_refused, bugs = False, list[str]()
    for name, path in files:
        try:
            write_whole(path, render_report(name, report))
        except (OSError, UserError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            click.echo(safe(f"gradcheck: --report {name}:{path}: {reason}"), err=True)
            is_refused = True
        except Exception as error:  # the other reports are still written
            bugs.append("".join(traceback.format_exception(error)))
            reason = f"not written, {type(error).__name__}"
            click.echo(safe(f"gradcheck: --report {name}:{path}: {reason}"), err=True)
    if on_github:
        write_for_github(report)
    if bugs:
        stop_for_bug("\n".join(bugs))
    if is_refused:
        raise SystemExit(USAGE)


def matrix_part(cases: Sequence[Case], results: Sequence[Result]) -> PagePart | None:
    """Return the matrix of a run over several backends, for its page."""
    if len({case.backend for case in cases}) < 2:
        return None
    from gradcheck.conformance.matrix_formats import make_page_part  # not for a user's own layers

    return make_page_part(cases, results)


def write_for_github(report: Report) -> None:
    """Write annotations into the log, bypassing the stream that escapes workflow commands, and a
    summary.
    """
    print(render_report("github", report), end="", file=sys.__stdout__, flush=True)
    if page := os.environ.get("GITHUB_STEP_SUMMARY"):
        with suppress(OSError), open(page, "ab") as file:
            file.write(render_report("markdown", report).encode("utf-8", "backslashreplace"))


def exit_code(results: Sequence[Result], interrupted: bool) -> int:
    """Return the exit code. Raises SystemExit, UserError: a bug in gradcheck, or nothing ran."""
    bugs = [
        f"{result.name}\n{result.internal_error}" for result in results if result.internal_error
    ]
    if bugs:
        stop_for_bug("\n\n".join(bugs))
    if interrupted:
        return INTERRUPTED
    statuses = {result.status for result in results}
    if statuses and statuses <= NOT_RUN:
        reasons = dict.fromkeys(result.message for result in results)
        raise UserError(f"nothing was run: {'; '.join(list(reasons)[:3])}", NOTHING_SELECTED)
    return 0 if all(status.green for status in statuses) else 1
