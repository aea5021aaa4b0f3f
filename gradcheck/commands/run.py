"""``gradcheck run``."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

import click

from gradcheck.backends.base import BACKENDS
from gradcheck.case.case import MEMORY, TIMEOUT, Case
from gradcheck.commands import INTERRUPTED, stop_for_bug
from gradcheck.commands.choose import chosen_backends, configured
from gradcheck.commands.screen import Screen, header, make_screen
from gradcheck.commands.specs import NOTHING_SELECTED, fail, is_path, read_specs, selection_options
from gradcheck.commands.trust import require_trust
from gradcheck.config import ConfigError, load_config
from gradcheck.report.files import FORMATS
from gradcheck.result import NOT_RUN, Result
from gradcheck.run import journal
from gradcheck.run.compact import Results
from gradcheck.run.limits import parse_size, shown_size
from gradcheck.run.plan import plan, shard
from gradcheck.run.select import SelectionError, select
from gradcheck.run.supervisor import Executor, ExecutorError, Supervisor

STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that end a run in order."""


class Pool(Executor, AbstractContextManager[Any], Protocol):
    """An executor that is to be closed."""


@click.command()
@click.argument("names", nargs=-1, metavar="[PATH|ID]...")
@click.option("-b", "--backend", "backends", multiple=True, metavar="NAME", help=f"{', '.join(BACKENDS)}, or a release such as paddle@3.0.0; repeatable.")
@selection_options
@click.option("-j", "--jobs", metavar="N", help="Cases at a time; auto (the default) is one per core.")
@click.option("-x", "--exitfirst", is_flag=True, help="Stop after the first failure.")
@click.option("--max-fail", type=click.IntRange(1), metavar="N", help="Stop after N failures.")
@click.option(
    "--mode", type=click.Choice(["auto", "probe", "full"]), default="auto", show_default=True,
    help="How much of every Jacobian is compared: projections, also the entries of a diagonal one, or all entries.",
)  # fmt: skip
@click.option(
    "--effort", type=click.Choice(["usual", "full"]), default="usual", show_default=True,
    help="How much is spent on naming what is wrong: about ten times the check itself, or what every entry takes.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of all cases, in place of the scenarios' own.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True, max=86_400),
    metavar="SECONDS",
    help=f"Limit of a case, in place of the scenarios' own (default: {TIMEOUT:g}).",
)
@click.option("--memory", metavar="SIZE", help=f"Limit of a case, such as 512M or 2G (default: {shown_size(MEMORY)}).")
@click.option("--lf", is_flag=True, help="Only the cases that failed in the last run.")
@click.option("--resume", is_flag=True, help="Go on with the last run: only cases that have no result yet are run.")
@click.option("--shard", "part", metavar="I/N", help="Only part I of N; a case is always in the same one.")
@click.option("--executor", default="local", metavar="local|dask:ADDRESS", help="Where cases run.")
@click.option("--allow-code", is_flag=True, help="Run code in spec files that are not bundled with gradcheck.")
@click.option("--require-backend", is_flag=True, help="A backend that cannot be used is an error, not a SKIP.")
@click.option(
    "--report", "reports", multiple=True, metavar="FORMAT:PATH", help=f"Write {', '.join(FORMATS)}; repeatable."
)
@click.option("--format", "layout", type=click.Choice(["auto", "rich", "plain"]), default="auto", help="Of the screen.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours.")
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
    mode: Literal["auto", "probe", "full"],
    effort: Literal["usual", "full"],
    seed: int | None,
    timeout: float | None,
    memory: str | None,
    lf: bool,
    resume: bool,
    part: str | None,
    executor: str,
    allow_code: bool,
    require_backend: bool,
    reports: tuple[str, ...],
    layout: str,
    color: str,
    verbose: bool,
    quiet: bool,
) -> None:
    """Run scenarios and check their gradients.

    A PATH is a spec file or a folder of them, an ID a scenario or a case (ID@BACKEND) in those files, or in the bundled
    ones if there is no PATH. Without arguments, all files that [tool.gradcheck] names, or else the bundled ones, are
    run.

    Exit code: 0 all as expected, 1 something failed, 2 usage or an invalid spec, 3 a bug in gradcheck, 5 nothing
    selected, 130 interrupted.
    """
    if lf and resume:
        raise fail("--lf runs failed cases again, and --resume takes them over: use one of them")
    try:
        config = load_config()
        records = journal.read() if lf or resume else []
        failed = {record.result.name: record.result.path for record in records if not record.result.status.green}
        if lf and not config.paths and not any(map(is_path, names)):
            names = (*names, *dict.fromkeys(failed.values()))
        specs, ids = read_specs(names, config.paths)
        environments = configured(config, allow_code or config.allow_code)
        in_cases = [*ids, *(failed if lf else ())]
        places = chosen_backends(backends, in_cases, config, environments, require_backend)
        size = parse_size(memory) if memory else MEMORY
        default_timeout = config.timeout or TIMEOUT
        cases = plan(
            specs, list(places), seed=seed, mode=mode, effort=effort,
            timeout=timeout, default_timeout=default_timeout, memory=size, places=places,
        )  # fmt: skip
        cases = select(cases, ids, keywords, tags)
        cases = shard(cases, *shard_numbers(part)) if part else cases
    except (ConfigError, SelectionError, journal.JournalError, ValueError) as error:
        raise fail(str(error)) from None
    files = [report_file(report) for report in reports]
    count = number_of_jobs(jobs or config.jobs)
    if lf:
        cases = last_failed(cases, failed)
    if not cases:
        raise fail("nothing is selected", NOTHING_SELECTED)
    require_trust(cases, allow_code or config.allow_code)
    known = journal.known_results(cases, records) if resume else {}
    if resume:
        click.echo(f"gradcheck: {len(known)} of {len(cases)} results are there from the last run", err=True)
    options = [f"--seed {seed}"] * (seed is not None) + [f"--mode {mode}"] * (mode != "auto")
    options += [f"--effort {effort}"] * (effort != "usual")
    options += ["--allow-code"] * allow_code
    screen = make_screen(layout, color, verbose, quiet, " ".join(options))
    record = journal.Journal(append=resume or lf)
    pool = make_pool(executor, min(count, len(cases)), jobs is not None)
    limit = 1 if exitfirst else max_fail
    try:
        results, interrupted = run_all(cases, pool, screen, limit=limit, known=known, record=record)
    except ExecutorError as error:
        raise fail(f"{error}; what had finished is kept: add --resume to go on") from None
    if record.problem:
        click.echo(f"gradcheck: {record.problem}", err=True)
    for name, path in files:
        write_report(name, path, results)
    raise SystemExit(exit_code(results, interrupted))


def report_file(text: str) -> tuple[str, Path]:
    """The format and the path in ``FORMAT:PATH``.

    Raises:
        SystemExit: there is no such format, or no such folder.
    """
    name, _, path = text.partition(":")
    if name not in FORMATS or not path:
        raise fail(
            f"--report {text}: write FORMAT:PATH, such as json:results.json; the formats are {', '.join(FORMATS)}"
        )
    if Path(path).is_dir() or not Path(path).absolute().parent.is_dir():
        raise fail(f"--report {text}: {path} cannot be a file: it is a folder, or its folder does not exist")
    return name, Path(path)


def write_report(name: str, path: Path, results: Sequence[Result]) -> None:
    """Write a report.

    Raises:
        SystemExit: the file cannot be written.
    """
    try:
        path.write_text(FORMATS[name](results), encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise fail(f"--report {name}:{path}: {error.strerror or error}") from None


def number_of_jobs(jobs: str | int) -> int:
    """How many cases run at a time.

    Raises:
        SystemExit: `jobs` is neither ``auto`` nor a number from 1 on.
    """
    if jobs == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not str(jobs).isdecimal() or int(jobs) < 1:
        raise fail(f"-j {jobs}: write a number from 1 on, or auto")
    return int(jobs)


def shard_numbers(text: str) -> tuple[int, int]:
    """The two numbers of ``I/N``.

    Raises:
        ValueError: it is not that, or I is not from 1 to N.
    """
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"--shard {text}: write I/N, such as 1/4 to 4/4")
    return int(match[1]), int(match[2])


def last_failed(cases: Sequence[Case], failed: Mapping[str, str]) -> list[Case]:
    """Those of `cases` that failed; all, and a word about it, if nothing did."""
    if not failed:
        click.echo("gradcheck: nothing failed in the last run, so all cases are run", err=True)
    return [case for case in cases if case.name in failed or not failed]


def make_pool(executor: str, jobs: int, limited: bool) -> Pool:
    """What runs the cases: `jobs` processes here, or a cluster, on which `jobs` counts only if it is a limit.

    Raises:
        SystemExit: there is no such executor, or the cluster cannot be reached.
    """
    kind, _, address = executor.partition(":")
    if executor == "local":
        from gradcheck.run import pool

        return pool.Pool(jobs)
    if kind != "dask" or not address:
        raise fail(f"--executor {executor}: write local, or dask:ADDRESS such as dask:tcp://10.0.0.1:8786")
    from gradcheck.run.dask import DaskPool

    try:
        return DaskPool(address, jobs if limited else None)
    except ExecutorError as error:
        raise fail(str(error)) from None


def run_all(
    cases: Sequence[Case],
    pool: Pool,
    screen: Screen,
    *,
    limit: int | None = None,
    known: Mapping[str, Result] | None = None,
    record: journal.Journal | None = None,
) -> tuple[Sequence[Result], bool]:
    """Run the cases and show them; the results in the order of the cases, and whether a signal ended it.

    Each new result goes into `record` at once. After `limit` failures, counted in the order of the cases, no more are
    run or reported, so that the report does not depend on which case was the quicker.
    """
    started = time.perf_counter()
    results = Results()
    failures = 0

    def on_done(case: Case, result: Result, was_known: bool) -> None:
        if record is not None and not was_known:
            record.append(case, result)
        screen.count(result)

    with screen.running(header(cases, pool.slots), len(cases)), pool:
        supervisor = Supervisor(pool, on_done)
        with stopped_by_signals(supervisor):
            for result in supervisor.run(cases, known):
                results.append(result)
                screen.show(result)
                failures += not result.status.green
                if failures == limit:
                    break
    screen.finish(results, time.perf_counter() - started, len(cases) - len(results))
    return results, supervisor.stopped


@contextmanager
def stopped_by_signals(supervisor: Supervisor) -> Iterator[None]:
    """Have the first signal end the run in order; the next one does what it does otherwise."""
    before: dict[int, Any] = {}

    def restore() -> None:
        while before:
            signal.signal(*before.popitem())

    def stop(number: int, frame: object) -> None:
        restore()
        supervisor.stop()

    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name) for name in STOPPING if hasattr(signal, name)):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a job in the background
                before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        restore()


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
