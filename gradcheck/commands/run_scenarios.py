"""What ``gradcheck run`` does: its options, and what they mean, are in `gradcheck.commands.run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import click

from gradcheck.case.case import Case
from gradcheck.case.naming import MEMORY, TIMEOUT
from gradcheck.commands.choose import chosen_backends, environments_of
from gradcheck.commands.exits import NOTHING_SELECTED
from gradcheck.commands.run_cases import exit_code, make_pool, run_all, settle, write_reports
from gradcheck.commands.run_options import ScreenOptions, number_of_jobs, report_file, shard_numbers
from gradcheck.commands.screen import make_screen
from gradcheck.commands.specs import fail, is_path, read_specs
from gradcheck.commands.trust import leave_of, require_trust
from gradcheck.config import load_project
from gradcheck.result import Result
from gradcheck.run import journal
from gradcheck.run.baseline import Baseline
from gradcheck.run.limits import parse_size
from gradcheck.run.plan import plan, shard
from gradcheck.run.select import nothing_selected, select
from gradcheck.run.supervisor import ExecutorError
from gradcheck.run.worker_process import WorkerProcess
from gradcheck.support.escape import safe


def run_scenarios(
    ahead: WorkerProcess | None,
    *,
    names: tuple[str, ...],
    backends: tuple[str, ...],
    bundled: bool,
    keywords: str | None,
    tags: str | None,
    jobs: str | None,
    exitfirst: bool,
    max_fail: int | None,
    mode: Literal["auto", "probe", "full"],
    order: Literal[1, 2],
    effort: Literal["usual", "full"],
    seed: int | None,
    timeout: float | None,
    memory: str | None,
    lf: bool,
    resume: bool,
    part: str | None,
    executor: str,
    allow_code: bool,
    baseline: str | None,
    baseline_update: bool,
    baseline_prune: bool,
    require_backend: bool,
    reports: tuple[str, ...],
    screen: ScreenOptions,
    durations: int,
) -> None:
    """Run scenarios as the options say, on the worker `ahead` as well, if there is one.

    Raises:
        SystemExit: with the exit code.
    """
    known_failures = Baseline.read(Path(baseline), new=baseline_update) if baseline else None
    project = load_project()
    config, leave = project.config, leave_of(project, allow_code)
    last = journal.read_journal() if lf or resume else journal.NOTHING
    red = [one.result for one in last.records if not one.result.status.green]
    failed = {name: result.path for result in red for name in result.cases}
    if lf and not bundled and not any(map(is_path, names)):
        names = (*names, *(path for path in dict.fromkeys(failed.values()) if not Path(path).is_dir()))
    specs, ids = read_specs(names, project, bundled=bundled, trusted=leave.for_all or leave.trusted)
    in_cases = [*ids, *(failed if lf else ())]
    places = chosen_backends(backends, in_cases, config, environments_of(leave), require_backend)
    try:
        size = parse_size(memory) if memory else MEMORY
    except ValueError as error:
        raise fail(f"--memory {error}") from None
    default_timeout = config.timeout or TIMEOUT
    everything = plan(
        specs, list(places), seed=seed, mode=mode, order=order, effort=effort,
        timeout=timeout, default_timeout=default_timeout, memory=size, places=places,
    )  # fmt: skip
    cases = select(everything, ids, keywords, tags)
    cases = shard(cases, *shard_numbers(part)) if part else cases
    files = [report_file(report) for report in reports]
    cores = number_of_jobs("auto")
    count = number_of_jobs(jobs) if jobs else min(number_of_jobs(config.jobs), cores)
    if lf:
        cases = last_failed(cases, failed)
    if not cases:
        whole = f"; shard {part} may have none of so few" if part else ""
        raise fail(nothing_selected(keywords, everything) + whole, NOTHING_SELECTED)
    require_trust(cases, leave)
    known = journal.known_results(cases, last.records) if resume else {}
    if last.passed_over:
        click.echo(f"gradcheck: {journal.passed_over(last)}", err=True)
    if resume:
        click.echo(f"gradcheck: {len(known)} of {len(cases)} results are there from the last run", err=True)
    asked = {
        f"--seed {seed}": seed is not None,
        f"--mode {mode}": mode != "auto",
        "--order 2": order == 2,
        f"--effort {effort}": effort != "usual",
        "--allow-code": allow_code,
    }
    again = " ".join(option for option, given in asked.items() if given)
    shown = make_screen(screen, again)
    record = journal.Journal(last.run)
    pool = make_pool(executor, min(count, len(cases)), jobs is not None, ahead)
    limit, began = 1 if exitfirst else max_fail, datetime.now(UTC)
    try:
        results, interrupted = run_all(
            cases, pool, shown, believed=leave.believed(), limit=limit, known=known, record=record,
            baseline=known_failures,
        )  # fmt: skip
    except ExecutorError as error:
        kept = f"; {record.problem}" if record.problem else "; what had finished is kept: add --resume to go on"
        raise fail(f"{error}{kept}") from None
    for line in slowest(results, durations):
        click.echo(line)
    if record.problem:
        click.echo(f"gradcheck: {record.problem}", err=True)
    elif interrupted:
        click.echo("gradcheck: what had finished is kept: add --resume to go on", err=True)
    if known_failures is not None:
        settle(known_failures, results, update=baseline_update, prune=baseline_prune)
    write_reports(files, cases, results, began, again)
    raise SystemExit(exit_code(results, interrupted))


def slowest(results: Sequence[Result], number: int) -> list[str]:
    """The slowest of the cases, a line each."""
    ran = sorted((one for one in results if not one.beside and one.seconds), key=lambda one: -one.seconds)[:number]
    return [*(["slowest:"] if ran else []), *(f"  {one.seconds:6.2f} s  {safe(one.name)}" for one in ran)]


def last_failed(cases: Sequence[Case], failed: Mapping[str, str]) -> list[Case]:
    """Those of `cases` that failed; all, and a word about it, if nothing did."""
    if not failed:
        click.echo("gradcheck: nothing failed in the last run, so all cases are run", err=True)
    return [case for case in cases if case.name in failed or not failed]
