"""``gradcheck run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import click

from gradcheck.backends.base import BACKENDS
from gradcheck.case.case import MEMORY, TIMEOUT, Case
from gradcheck.commands import completion
from gradcheck.commands.choose import chosen_backends, environments_of
from gradcheck.commands.exits import NOTHING_SELECTED
from gradcheck.commands.run_cases import check_executor, exit_code, make_pool, run_all, settle, write_reports
from gradcheck.commands.run_options import (
    color_option,
    layout_option,
    memory_size,
    number_of_jobs,
    quiet_option,
    report_file,
    report_option,
    shard_numbers,
    verbose_option,
)
from gradcheck.commands.screen import make_screen
from gradcheck.commands.specs import bundled_option, fail, is_path, read_specs, selection_options
from gradcheck.commands.trust import allow_code_option, leave_of, require_trust
from gradcheck.commands.watch import run_at_changes
from gradcheck.config import load_project
from gradcheck.result import Result
from gradcheck.run import journal
from gradcheck.run.baseline import Baseline
from gradcheck.run.limits import shown_size
from gradcheck.run.plan import plan, shard
from gradcheck.run.select import SelectionError, nothing_selected, select
from gradcheck.run.supervisor import ExecutorError
from gradcheck.support.escape import safe
from gradcheck.support.pyproject import ConfigError


@click.command()
@click.argument("names", nargs=-1, metavar="[PATH|ID]...", shell_complete=completion.scenarios)
@click.option(
    "-b", "--backend", "backends", multiple=True, metavar="NAME", shell_complete=completion.complete_backends,
    help=f"{', '.join(BACKENDS)}, or a release such as paddle@3.0.0 (see `gradcheck backends`); repeatable.",
)  # fmt: skip
@bundled_option
@selection_options
@click.option("-j", "--jobs", metavar="N", help="Cases at a time; auto (the default) is one per core.")
@click.option("-x", "--exitfirst", is_flag=True, help="Stop after the first failure.")
@click.option("--max-fail", type=click.IntRange(1), metavar="N", help="Stop after N failures.")
@click.option(
    "--mode", type=click.Choice(["auto", "probe", "full"]), default="auto", show_default=True,
    help="How much of every Jacobian is compared: projections, also the entries of a diagonal one, or all entries.",
)  # fmt: skip
@click.option(
    "--order", type=click.IntRange(1, 2), default=1, help="2: the derivative of every gradient that is checked as well."
)
@click.option(
    "--effort", type=click.Choice(["usual", "full"]), default="usual", show_default=True,
    help="How much is spent on naming what is wrong: about ten times the check itself, or what every entry takes.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of all cases, in place of the scenarios' own.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True, max=86_400),
    metavar="SECONDS",
    help=f"Time limit of a case, in place of the scenarios' own (default: {TIMEOUT:g}).",
)
@click.option(
    "--memory", metavar="SIZE", help=f"Memory limit of a case, such as 512M or 2G (default: {shown_size(MEMORY)})."
)
@click.option("--lf", is_flag=True, help="Only the cases that failed in the last run.")
@click.option("--watch", is_flag=True, help="Run again whenever a spec file or a Python file changes, until Ctrl-C.")
@click.option("--resume", is_flag=True, help="Go on with the last run: only cases that have no result yet are run.")
@click.option("--shard", "part", metavar="I/N", help="Only part I of N; a case is always in the same one.")
@click.option(
    "--executor",
    default="local",
    metavar="local|dask:ADDRESS",
    help="Where cases run: on this machine, or on a Dask cluster.",
)
@allow_code_option
@click.option(
    "--baseline", metavar="FILE", help="Known failures, which count as expected as long as they stay the same."
)
@click.option("--baseline-update", is_flag=True, help="Write the failures of this run into FILE as well.")
@click.option("--baseline-prune", is_flag=True, help="Remove from FILE what no longer fails.")
@click.option("--require-backend", is_flag=True, help="A backend that cannot be used is an error, not a SKIP.")
@report_option
@layout_option
@color_option
@verbose_option
@quiet_option
@click.option(
    "--durations", type=click.IntRange(0), default=0, metavar="N", help="Show the N slowest cases at the end."
)
def run(
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
    watch: bool,
    resume: bool,
    part: str | None,
    executor: str,
    allow_code: bool,
    baseline: str | None,
    baseline_update: bool,
    baseline_prune: bool,
    require_backend: bool,
    reports: tuple[str, ...],
    layout: str,
    color: str,
    verbose: bool,
    quiet: bool,
    durations: int,
) -> None:
    """Run scenarios and check their gradients.

    A PATH is a spec file or a folder of them, or one scenario of a file (FILE::ID, FILE:LINE); an ID is a scenario or
    a case (ID@BACKEND) in those files. Without a PATH,
    the files of the project are run: what [tool.gradcheck] names, or else all *.grad.yaml files below its root; an ID
    that these have not may be one of gradcheck's own.

    Exit code: 0 all as expected, 1 something failed, 2 usage or an invalid spec, 3 a bug in gradcheck, 5 nothing
    selected, 130 interrupted.
    """
    if (baseline_update or baseline_prune) and not baseline:
        raise fail("--baseline-update and --baseline-prune need --baseline FILE")
    check_executor(executor)
    if watch:
        raise SystemExit(run_at_changes(names))
    if lf and resume:
        raise fail("--lf runs failed cases again, and --resume takes them over: use one of them")
    try:
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
        size = memory_size(memory) if memory else MEMORY
        default_timeout = config.timeout or TIMEOUT
        everything = plan(
            specs, list(places), seed=seed, mode=mode, order=order, effort=effort,
            timeout=timeout, default_timeout=default_timeout, memory=size, places=places,
        )  # fmt: skip
        cases = select(everything, ids, keywords, tags)
        cases = shard(cases, *shard_numbers(part)) if part else cases
    except (ConfigError, SelectionError, journal.JournalError, ValueError) as error:
        raise fail(str(error)) from None
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
    screen = make_screen(layout, color, verbose, quiet, again)
    record = journal.Journal(last.run)
    pool = make_pool(executor, min(count, len(cases)), jobs is not None)
    limit, began = 1 if exitfirst else max_fail, datetime.now(UTC)
    try:
        results, interrupted = run_all(
            cases, pool, screen, believed=leave.believed(), limit=limit, known=known, record=record,
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
