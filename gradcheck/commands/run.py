"""``gradcheck run``."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradcheck.backends.base import BACKENDS, missing, unsupported
from gradcheck.commands.select import NOTHING_SELECTED, USAGE, code_outside, fail, read_specs, selection_options
from gradcheck.config import Config, ConfigError, load_config
from gradcheck.report.files import FORMATS
from gradcheck.report.text import shown_path
from gradcheck.result import Result, Status
from gradcheck.run.plan import Case, SelectionError, plan, select_ids, select_names, select_tags

if TYPE_CHECKING:
    from gradcheck.spec.model import SpecFile

HEARTBEAT = 30.0
"""Seconds between signs of life on stderr where there is no progress bar."""


@click.command()
@click.argument("names", nargs=-1, metavar="[PATH|ID]...")
@click.option("-b", "--backend", "backends", multiple=True, metavar="NAME", help=f"Backend: {', '.join(BACKENDS)}. Repeatable.")
@selection_options
@click.option("-j", "--jobs", metavar="N", help="Cases at a time; auto (the default) is one per core.")
@click.option("-x", "--exitfirst", is_flag=True, help="Stop after the first failure.")
@click.option("--max-fail", type=click.IntRange(1), metavar="N", help="Stop after N failures.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of all cases, in place of the scenarios' own.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), help="Seconds a case may take (default: 60).")
@click.option("--report", "reports", multiple=True, metavar="FORMAT:PATH", help=f"Write a report: {', '.join(FORMATS)}. Repeatable.")
@click.option("--format", "layout", type=click.Choice(["auto", "rich", "plain"]), default="auto", help="Screen format.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")
@click.option("--allow-code", is_flag=True, help="Run code in spec files that are not bundled with gradcheck.")
@click.option("--require-backend", is_flag=True, help="A backend that is not installed is an error, not a SKIP.")
@click.option("-v", "--verbose", is_flag=True, help="Show every result, and the details of those that passed.")
@click.option("-q", "--quiet", is_flag=True, help="Show only failures and the summary.")
def run(
    names: tuple[str, ...],
    backends: tuple[str, ...],
    keywords: str | None,
    tags: str | None,
    jobs: str | None,
    exitfirst: bool,
    max_fail: int | None,
    seed: int | None,
    timeout: float | None,
    reports: tuple[str, ...],
    layout: str,
    color: str,
    allow_code: bool,
    require_backend: bool,
    verbose: bool,
    quiet: bool,
) -> None:
    """Run scenarios and check their gradients.

    Without arguments, the bundled scenarios. A PATH is a spec file or a folder of them, an ID a scenario or a case.

    Exit status: 0 all as expected, 1 something failed, 2 usage or an invalid spec, 3 a bug in gradcheck, 5 nothing
    selected, 130 interrupted.
    """
    try:
        config = load_config()
    except ConfigError as error:
        raise fail(str(error)) from None
    specs, ids = read_specs(names, [str(config.folder / path) for path in config.paths])
    chosen = chosen_backends(backends or config.backends, require_backend)
    writers = [report_writer(report) for report in reports]
    try:
        cases = select_ids(plan(specs, chosen, seed=seed, timeout=timeout or config.timeout or 60.0), ids)
        cases = select_names(cases, keywords) if keywords else cases
        cases = select_tags(cases, tags) if tags else cases
    except SelectionError as error:
        raise fail(str(error)) from None
    if not cases:
        raise fail("nothing is selected", NOTHING_SELECTED)
    require_trust(specs, cases, allow_code, config)
    limit = 1 if exitfirst else max_fail
    screen = Screen(layout, color, verbose, quiet, allow_code or config.allow_code)
    status = screen.run(cases, number_of_jobs(jobs or config.jobs), limit, writers)
    sys.exit(status)


def chosen_backends(names: Sequence[str], required: bool) -> list[str]:
    """The backends by name, numpy if there are none; commas separate as well."""
    chosen = list(dict.fromkeys(name for word in names for name in word.split(","))) or ["numpy"]
    for name in chosen:
        if name not in BACKENDS:
            raise fail(f"there is no backend {name!r}; the backends are {', '.join(BACKENDS)}")
        reason = missing(name) or unsupported(name)
        if required and reason:
            raise fail(f"backend {name}: {reason}")
    return chosen


def report_writer(text: str) -> Callable[[Sequence[Result]], None]:
    """What writes the report that ``FORMAT:PATH`` asks for."""
    name, colon, path = text.partition(":")
    if name not in FORMATS or not colon or not path:
        raise fail(f"--report {text}: expected FORMAT:PATH with a format of {', '.join(FORMATS)}")
    if not Path(path).absolute().parent.is_dir():
        raise fail(f"--report {text}: there is no folder {Path(path).parent}")
    return lambda results: Path(path).write_text(FORMATS[name](results), encoding="utf-8") and None


def number_of_jobs(jobs: str | int | None) -> int:
    """How many cases run at a time."""
    if jobs in (None, "auto"):
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        count = int(str(jobs))
    except ValueError:
        count = 0
    if count < 1:
        raise fail(f"-j {jobs}: expected a number from 1 on, or auto")
    return count


def require_trust(specs: Sequence[SpecFile], cases: Sequence[Case], allow_code: bool, config: Config) -> None:
    """Refuse to run code from files that are not ours unless the user or the project allows it."""
    if allow_code or config.allow_code:
        return
    selected = {case.scenario.id for case in cases}
    refused = [(s, kinds) for s, kinds in code_outside(specs) if s.id in selected]
    if refused:
        for scenario, kinds in refused:
            click.echo(f"{shown_path(scenario.path)}:{scenario.line}: {scenario.id} would run its {kinds}", err=True)
        raise fail(
            "these files hold code, which was not run. Read it; then allow it with --allow-code, or for this project with "
            "`allow-code = true` under [tool.gradcheck] in pyproject.toml.",
            USAGE,
        )


class Screen:
    """Runs cases and shows how they go, on a terminal or in a pipe: results on stdout, progress on stderr."""

    def __init__(self, layout: str, color: str, verbose: bool, quiet: bool, allow_code: bool) -> None:
        from rich.console import Console

        colors = {"always": True, "never": False}.get(color)
        self.console = Console(force_terminal=colors, no_color=colors is False or None, highlight=False, emoji=False)
        self.errors = Console(stderr=True, highlight=False, emoji=False)
        self.rich = layout == "rich" or (layout == "auto" and sys.stdout.isatty())
        self.verbose, self.quiet, self.allow_code = verbose, quiet, allow_code
        self.done = 0

    def run(
        self,
        cases: Sequence[Case],
        jobs: int,
        limit: int | None,
        writers: Sequence[Callable[[Sequence[Result]], None]],
    ) -> int:
        """Run all cases, show and write the results; the exit status."""
        started = time.perf_counter()
        results: list[Result] = []
        interrupted = False
        try:
            self.collect(cases, jobs, limit, results)
        except KeyboardInterrupt:
            interrupted = True
        seconds = time.perf_counter() - started
        self.finish(results, len(cases), seconds)
        for write in writers:
            write(results)
        if any(result.internal_error for result in results):
            from gradcheck.commands import write_bug_report

            report = write_bug_report("\n\n".join(f"{r.name}\n{r.internal_error}" for r in results if r.internal_error))
            click.echo(f"gradcheck: this is a bug in gradcheck. Please report it with the file {report}", err=True)
            return 3
        if interrupted:
            click.echo(f"interrupted: {len(results)} of {len(cases)} cases had finished", err=True)
            return 130
        return 0 if all(result.status.green for result in results) else 1

    def collect(self, cases: Sequence[Case], jobs: int, limit: int | None, results: list[Result]) -> None:
        """Put the results into `results` in the order of the cases, until all are there or `limit` have failed."""
        from gradcheck.report.console import Live
        from gradcheck.run.pool import Pool

        runnable = [case for case in cases if not reason_not_to_run(case)]
        live = Live(self.errors, len(runnable)) if self.rich and not self.quiet else None
        if self.rich and not self.quiet:
            self.console.print(header(cases, jobs), style="dim")
        stop = threading.Event()
        heartbeat = threading.Thread(target=self.heartbeat, args=(stop, len(runnable)), daemon=True)

        def on_done(result: Result) -> None:
            self.done += 1
            if live is not None:
                live.add(result)

        failures = 0
        with Pool(min(jobs, max(1, len(runnable)))) as pool:
            if live is not None:
                live.progress.start()
            else:
                heartbeat.start()
            try:
                finished = pool.map(runnable, on_done)
                for case in cases:
                    reason = reason_not_to_run(case)
                    result = skipped(case, *reason) if reason else next(finished)
                    results.append(result)
                    if not self.rich:
                        self.print_plain(result)
                    failures += not result.status.green
                    if limit is not None and failures >= limit:
                        break
            finally:
                stop.set()
                if live is not None:
                    live.progress.stop()

    def print_plain(self, result: Result) -> None:
        """The lines of one result, as soon as it is its turn."""
        from gradcheck.report.plain import result_lines

        if not self.quiet or not result.status.green:
            for line in result_lines(result, verbose=self.verbose, allow_code=self.allow_code):
                click.echo(line)

    def heartbeat(self, stop: threading.Event, total: int) -> None:
        """A sign of life every half minute."""
        while not stop.wait(HEARTBEAT):
            click.echo(f"gradcheck: {self.done} of {total} cases done", err=True)

    def finish(self, results: Sequence[Result], total: int, seconds: float) -> None:
        """The end of the screen: on a terminal the table and the panels, everywhere the summary line."""
        from gradcheck.report.console import print_report
        from gradcheck.report.text import summary

        if self.rich:
            print_report(
                self.console, results, seconds, verbose=self.verbose, quiet=self.quiet, allow_code=self.allow_code
            )
        else:
            click.echo(summary(results, seconds))
        if len(results) < total:
            click.echo(f"{total - len(results)} of {total} cases were not run", err=True)


def reason_not_to_run(case: Case) -> tuple[Status, str] | None:
    """Why a case is not run at all, if so: its scenario says so, or its backend is not there."""
    entry = next((entry for name, entry in case.scenario.backends.items() if name == case.backend), None)
    if entry is not None and entry.skip is not None:
        return Status.SKIP, entry.skip.reason
    if reason := missing(case.backend):
        return Status.SKIP, reason
    if reason := unsupported(case.backend):
        return Status.UNSUPPORTED, reason
    return None


def skipped(case: Case, status: Status, reason: str) -> Result:
    """The result of a case that is not run."""
    from gradcheck.run.worker import failed

    return failed(case, status, reason, "", 0.0)


def header(cases: Sequence[Case], jobs: int) -> str:
    """The line above the table: versions, backends, seeds, jobs."""
    from importlib.metadata import version

    from gradcheck import __version__

    backends = ", ".join(dict.fromkeys(case.backend for case in cases))
    seeds = sorted({case.seed for case in cases})
    seed = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    python = ".".join(map(str, sys.version_info[:3]))
    return f"gradcheck {__version__} · Python {python} · numpy {version('numpy')} · {backends} · {seed} · {jobs} jobs"
