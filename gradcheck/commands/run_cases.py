"""Conducts a run: what executes the cases, what shows and records them, what ends it, and the exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import click

from gradcheck.case.case import Case
from gradcheck.commands.bug import stop_for_bug
from gradcheck.commands.exits import INTERRUPTED, NOTHING_SELECTED, USAGE
from gradcheck.commands.screen import Screen, header
from gradcheck.commands.specs import fail
from gradcheck.report.files import rendered
from gradcheck.report.record import Report
from gradcheck.result import NOT_RUN, Result
from gradcheck.run import journal
from gradcheck.run.baseline import Baseline
from gradcheck.run.result_store import Results
from gradcheck.run.side_by_side import SideBySide
from gradcheck.run.supervisor import Executor, Supervisor
from gradcheck.run.worker_process import WorkerProcess
from gradcheck.support.display_paths import count
from gradcheck.support.escape import safe
from gradcheck.support.whole_file import write_whole

STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that end a run in order."""
SHOW_CURSOR = b"\x1b[?25h\n"
"""What makes a terminal show its cursor (DECTCEM)."""


class ClosingExecutor(Executor, AbstractContextManager[Any], Protocol):
    """An executor that is to be closed."""


def make_pool(executor: str, jobs: int, limited: bool, ahead: WorkerProcess | None = None) -> ClosingExecutor:
    """What runs the cases: `jobs` processes here, or a cluster, on which `jobs` counts only if it is a limit.

    `ahead` is a process for cases here that has been started already.

    Raises:
        ExecutorError: the cluster cannot be reached.
    """
    if executor == "local":
        from gradcheck.run import interpreter, pool

        if interpreter.START not in pool.WORKERS:
            raise fail(f"GRADCHECK_START={interpreter.START}: write {' or '.join(pool.WORKERS)}, or remove it")
        return pool.Pool(jobs, ahead=ahead)
    from gradcheck.run.dask import DaskPool

    return DaskPool(executor.partition(":")[2], jobs if limited else None)


def run_all(
    cases: Sequence[Case],
    pool: ClosingExecutor,
    screen: Screen,
    *,
    believed: str = "",
    limit: int | None = None,
    known: Mapping[str, Result] | None = None,
    record: journal.Journal | None = None,
    baseline: Baseline | None = None,
) -> tuple[Sequence[Result], bool]:
    """Run the cases and show them; the results in the order of the cases, and whether a signal ended it.

    Each new result goes into `record` at once. After `limit` failures, counted in the order of the cases, no more are
    run or reported, so that the report does not depend on which case was the quicker. Failures in the `baseline` are
    none.
    """
    started = time.perf_counter()
    results = Results()
    failures = 0

    def on_done(case: Case, result: Result, was_known: bool) -> None:
        if record is not None and not was_known:
            record.append(case, result)
        screen.count(result)

    supervisor, side_by_side = Supervisor(pool, on_done), SideBySide()
    shown = screen.running(header(cases, pool.slots), len(cases), believed, supervisor.at_work)
    with stopped_by_signals(supervisor), shown, pool:
        all_results = side_by_side.beside(cases, supervisor.run(cases, known))
        for one in all_results:
            result = baseline.judged(one) if baseline else one
            results.append(result)
            screen.show(result)
            if result.beside and record is not None:
                record.append(next(case for case in cases if case.name in result.cases), result)
            failures += not result.status.green
            if failures == limit:
                break
    screen.finish(results, time.perf_counter() - started, left(cases, results))
    if lacking := getattr(pool, "lacking", ""):  # a cluster does not tell
        click.echo(f"gradcheck: {lacking} (SECURITY.md, What a case can break)", err=True)
    if side_by_side.compared:
        what = count(side_by_side.compared, "pair")
        click.echo(f"gradcheck: outputs and gradients of {what} of cases compared across backends", err=True)
    return results, supervisor.stopped


def left(cases: Sequence[Case], results: Sequence[Result]) -> int:
    """How many cases have no result."""
    return len(cases) - sum(not result.beside for result in results)


def settle(baseline: Baseline, results: Sequence[Result], *, update: bool, prune: bool) -> None:
    """Say which known failures have been mended, and write the baseline anew where that was asked for.

    Raises:
        SystemExit: the file cannot be written.
    """
    if baseline.mended and not (update or prune):
        names = ", ".join(baseline.mended[:5]) + (", …" if len(baseline.mended) > 5 else "")
        click.echo(f"gradcheck: no longer failing: {safe(names)}; --baseline-prune removes them", err=True)
    if update or prune:
        try:
            baseline.write(results, prune=not update)
        except OSError as error:
            raise fail(f"--baseline {baseline.path}: {error.strerror or error}") from None
        click.echo(f"gradcheck: {baseline.path}: {count(len(baseline.known), 'known failure')}", err=True)


def leave_at_once(number: int, frame: object) -> None:
    """End this process, which ends its workers, with the cursor that a progress bar hides."""
    if os.isatty(2):
        os.write(2, SHOW_CURSOR)
    os._exit(128 + number)


@contextmanager
def stopped_by_signals(supervisor: Supervisor) -> Iterator[None]:
    """Have the first signal end the run in order, and a second one the command at once, whatever it waits for."""
    before: dict[int, Any] = {}

    def stop(number: int, frame: object) -> None:
        for one in before:
            signal.signal(one, leave_at_once)
        supervisor.stop()

    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name) for name in STOPPING if hasattr(signal, name)):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a job in the background
                before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def write_reports(
    files: Sequence[tuple[str, Path]], cases: Sequence[Case], results: Sequence[Result], began: datetime, again: str
) -> None:
    """Write the reports that were asked for, by format and path; on GitHub Actions tell it, too.

    `again` are the options with which one of the cases runs again as it ran here. One that cannot be written costs
    none of the others.

    Raises:
        SystemExit: one could not be written.
    """
    on_github = bool(os.environ.get("GITHUB_ACTIONS"))
    if not files and not on_github:
        return
    report = Report(
        command=tuple(sys.argv[1:]),
        again=again,
        seeds=tuple(sorted({case.seed for case in cases})),
        started=began.isoformat(timespec="seconds"),
        seconds=(datetime.now(UTC) - began).total_seconds(),
        not_run=left(cases, results),
        results=tuple(results),
        cases=tuple(cases),
    )
    writers = [(f"--report {name}:{path}", partial(write_report, name, path, report)) for name, path in files]
    if on_github:
        writers.append(("GITHUB_ACTIONS", partial(tell_github, report)))
    refused, bugs = False, []
    for what, write in writers:
        try:
            write()
        except OSError as error:
            fail(f"{what}: {error.strerror or error}")
            refused = True
        except Exception as error:
            fail(f"{what}: not written, {type(error).__name__}")
            bugs.append("".join(traceback.format_exception(error)))
    if bugs:
        stop_for_bug("\n".join(bugs))
    if refused:
        raise SystemExit(USAGE)


def write_report(name: str, path: Path, report: Report) -> None:
    """Write a report in the format `name`."""
    write_whole(path, rendered(name, report))


def tell_github(report: Report) -> None:
    """On GitHub Actions: annotations into the log, which nothing else that is printed can be, and a step's summary."""
    log, page = sys.__stdout__, os.environ.get("GITHUB_STEP_SUMMARY")
    if log is not None:
        log.write(rendered("github", report))
        log.flush()
    if page:
        with suppress(OSError), open(page, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(rendered("markdown", report))


def exit_code(results: Sequence[Result], interrupted: bool) -> int:
    """What the run exits with; a bug of ours first leaves its report in a file.

    Raises:
        SystemExit: there was such a bug.
    """
    bugs = [f"{result.name}\n{result.internal_error}" for result in results if result.internal_error]
    if bugs:
        stop_for_bug("\n\n".join(bugs))
    if interrupted:
        return INTERRUPTED
    if results and all(result.status in NOT_RUN for result in results):
        reasons = dict.fromkeys(result.message for result in results)
        raise fail(f"nothing was run: {'; '.join(list(reasons)[:3])}", NOTHING_SELECTED)
    return 0 if all(result.status.green for result in results) else 1
