"""``gradcheck run``: its options, the cases that they select, and the run of these cases."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Literal, NoReturn

import click

from gradcheck.backends.base import BACKENDS
from gradcheck.case.case import Case
from gradcheck.case.defaults import MEMORY, TIMEOUT
from gradcheck.commands import shared_options as options
from gradcheck.commands.backends import chosen_backends
from gradcheck.commands.errors import NOTHING_SELECTED
from gradcheck.commands.permission import permission_of, require_permission
from gradcheck.commands.report_options import (
    report_files,
    report_option,
    require_bare_path,
    results_shown,
)
from gradcheck.commands.run_cases import (
    Beginning,
    RunSettings,
    exit_code,
    make_executor,
    make_screen,
    run_all,
    write_reports,
)
from gradcheck.commands.shared_options import number_of_jobs
from gradcheck.commands.specs import parse_target, read_specs, with_releases
from gradcheck.config import Config, Project, load_project
from gradcheck.result import Result
from gradcheck.run import journal
from gradcheck.run.limits import parse_size, shown_size
from gradcheck.run.plan import plan, shard
from gradcheck.run.results import NO_BASELINE, Baseline
from gradcheck.run.runner import RunnerError
from gradcheck.run.select import nothing_selected, select
from gradcheck.support.display_paths import count
from gradcheck.support.escape import safe
from gradcheck.support.user_error import UserError, refusals_of


def read_executor(context: click.Context, parameter: click.Parameter, text: str) -> str:
    """Return the executor that ``--executor`` names."""
    if not re.fullmatch("local|dask:.+", text):
        raise UserError(
            f"--executor {text}: write local, or dask:ADDRESS such as dask:tcp://10.0.0.1:8786"
        )
    return text


def read_size(context: click.Context, parameter: click.Parameter, text: str) -> int:
    """Return the number of bytes of ``--memory``."""
    try:
        return parse_size(text)
    except ValueError as error:
        raise UserError(f"--memory {error}") from None


def read_shard(context: click.Context, parameter: click.Parameter, text: str) -> tuple[int, int]:
    """Return the two numbers of ``I/N``; I is from 1 to N."""
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    number, total = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= total:
        raise UserError(f"--shard {text}: write I/N, such as 1/4 to 4/4")
    return number, total


@click.command()
@click.argument("names", nargs=-1, metavar="[PATH|ID]...", shell_complete=options.scenarios)
@options.backends_option(
    f"{', '.join(BACKENDS)}, or a release such as paddle@3.0.0 (see `gradcheck backends`); "
    f"repeatable."
)
@options.bundled_option
@options.selection_options
@click.option(
    "-j", "--jobs", metavar="N", help="Cases at a time; auto (the default) is one per core."
)
@click.option("-x", "--exitfirst", is_flag=True, help="Stop after the first failure.")
@click.option("--max-fail", type=click.IntRange(1), metavar="N", help="Stop after N failures.")
@options.mode_option
@options.order_option
@options.effort_option
@click.option(
    "--seed", type=options.SEED, help="Seed of all cases, in place of the scenarios' own."
)
@click.option(
    "--timeout", type=options.TIME_LIMIT, metavar="SECONDS",
    help=f"Time limit of a case, in place of the scenarios' own (default: {TIMEOUT:g}).",
)  # fmt: skip
@click.option(
    "--memory",
    metavar="SIZE",
    default=shown_size(MEMORY),
    callback=read_size,
    help=f"Memory limit of a case, such as 512M or 2G (default: {shown_size(MEMORY)}).",
)
@click.option(
    "--reruns",
    type=click.IntRange(0, 100),
    default=0,
    metavar="N",
    help="Run a case that fails up to N times more; one that then passes is shown as flaky.",
)
@click.option(
    "--shuffle",
    is_flag=True,
    help="Run the cases in a random order, the same for one --seed; reports keep their order.",
)
@click.option("--lf", is_flag=True, help="Only the cases that failed in the last run.")
@click.option(
    "--watch",
    is_flag=True,
    help="Run again whenever a spec file or a Python file changes, until Ctrl-C.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue the last run: only cases without a result are run.",
)
@click.option(
    "--shard",
    "part",
    metavar="I/N",
    default="1/1",
    callback=read_shard,
    help="Run only part I of N; a case always belongs to the same part.",
)
@click.option(
    "--executor",
    default="local",
    metavar="local|dask:ADDRESS",
    callback=read_executor,
    help="Where cases run: on this machine, or on a Dask cluster.",
)
@options.allow_code_option
@click.option(
    "--baseline",
    metavar="FILE",
    help="File of known failures; they count as expected unless something else is wrong in them.",
)
@click.option(
    "--baseline-update", is_flag=True, help="Write the failures of this run into FILE as well."
)
@click.option("--baseline-prune", is_flag=True, help="Remove cases from FILE that no longer fail.")
@report_option
@options.screen_options
@click.option(
    "--as-version",
    default="",
    metavar="RELEASE",
    help="Compare with the recorded deviations of this release, in place of the installed one's.",
)
@click.option(
    "--record",
    metavar="FILE",
    help="Write the release's results for the bundled suite into FILE, a release file.",
)
def run(watch: bool, **arguments: Any) -> None:
    """Run scenarios and check their gradients.

    A PATH is a spec file or a folder of them, - for one from stdin, or one scenario of a file
    (FILE::ID, FILE:LINE); an ID is a scenario or a case (ID@BACKEND) in those files. Without a
    PATH, the files of the project are run: those that [tool.gradcheck] names, or all *.grad.yaml
    files below its root. An ID that they do not have is looked up in the bundled files.

    Exit code: 0 all as expected, 1 something failed, 2 usage or an invalid spec, 3 a bug in
    gradcheck, 5 nothing selected, 130 interrupted.
    """
    if watch:
        from gradcheck.commands.watch import run_at_changes  # needs a package that few have

        raise SystemExit(run_at_changes(arguments["names"]))
    run_scenarios(RunOptions(**arguments))


@dataclass(frozen=True)
class RunOptions:
    """The options of `gradcheck run`."""

    names: tuple[str, ...]
    backends: tuple[str, ...]
    bundled: bool
    keywords: str | None
    tags: str | None
    jobs: str | None
    exitfirst: bool
    max_fail: int | None
    mode: Literal["auto", "probe", "full"]
    order: Literal[1, 2]
    effort: Literal["least", "usual", "full"]
    seed: int | None
    timeout: float | None
    memory: int
    reruns: int
    shuffle: bool
    lf: bool
    resume: bool
    part: tuple[int, int]
    executor: str
    allow_code: bool
    baseline: str | None
    baseline_update: bool
    baseline_prune: bool
    reports: tuple[str, ...]
    screen: options.ScreenOptions
    as_version: str
    record: str | None

    @property
    def goes_on(self) -> bool:
        """Whether the run adds to the record of the last one."""
        return self.lf or self.resume

    def require_consistency(self) -> None:
        """Raise UserError if two options exclude each other."""
        if (self.baseline_update or self.baseline_prune) and not self.baseline:
            raise UserError(
                "--baseline-update and --baseline-prune need --baseline FILE: it names the file"
            )
        if self.lf and self.resume:
            raise UserError(
                "--lf runs failed cases again, and --resume keeps their results: use one of them"
            )

    def again(self) -> str:
        """Return the options that run one of the cases again under the same conditions."""
        changed = {
            f"--seed {self.seed}": self.seed is not None,
            f"--mode {self.mode}": self.mode != "auto",
            "--order 2": self.order == 2,
            f"--effort {self.effort}": self.effort != "usual",
            "--allow-code": self.allow_code,
        }
        return " ".join(option for option, is_changed in changed.items() if is_changed)

    def read_baseline(self) -> Baseline:
        """Return the known failures. Raises UserError: the file cannot be read."""
        if self.baseline is None:
            return NO_BASELINE
        require_bare_path("--baseline ", self.baseline)
        return Baseline.read(Path(self.baseline), new=self.baseline_update)

    def slots(self, config: Config) -> int:
        """Return how many cases run at a time."""
        if self.jobs is not None:
            return number_of_jobs(self.jobs)
        return min(number_of_jobs(config.jobs), number_of_jobs("auto"))


def run_scenarios(options: RunOptions) -> NoReturn:
    """Run scenarios according to the options.

    Raises SystemExit: with the exit code.
    """
    options.require_consistency()
    files = report_files(options.reports)
    baseline = options.read_baseline()
    project = load_project()
    slots = options.slots(project.config)
    permission = permission_of(project, options.allow_code)
    last = journal.read_journal() if options.goes_on else journal.JournalContents()
    cases = selected_cases(options, project, last.failures() if options.lf else {})
    require_permission(cases, permission)
    known = last.known_results(cases) if options.resume else {}
    if last.skipped:
        click.echo(f"gradcheck: {journal.skipped_message(last.skipped)}", err=True)
    if options.resume:
        progress = f"{len(known)} of {len(cases)} results are known from the last run"
        click.echo(f"gradcheck: {progress}", err=True)
    record = journal.open_journal(go_on=options.goes_on)
    runner = make_executor(options.executor, min(slots, len(cases)), options.jobs is not None)
    settings = RunSettings(
        shown=permission.summary(),
        max_failures=1 if options.exitfirst else options.max_fail or inf,
        known=known,
        record=record,
        baseline=baseline,
        shuffle=(options.seed or 0) if options.shuffle else None,
    )
    began = Beginning.now()
    advice = "finished results are kept; --resume continues"
    try:
        with results_shown(files):
            screen = make_screen(options.screen, options.again())
            results, interrupted = run_all(cases, runner, screen, settings)
    except RunnerError as error:
        raise UserError(f"{error}; {record.problem or advice}") from None
    if record.problem or interrupted:
        click.echo(f"gradcheck: {record.problem or advice}", err=True)
    write_baseline(options, baseline, results)
    if options.record and not interrupted:
        from gradcheck.conformance.release_writer import write_release_file  # few runs record

        write_release_file(Path(options.record), cases, results)
    write_reports(files, cases, results, began, options.again())
    raise SystemExit(exit_code(results, interrupted))


def selected_cases(options: RunOptions, project: Project, failed: Mapping[str, str]) -> list[Case]:
    """Return the cases that the options select.

    `failed` are the cases of ``--lf`` with their files. Raises UserError: no case is selected.
    """
    config, names = project.config, options.names
    if not options.bundled and not any(parse_target(name).path for name in names):
        names = (*names, *dict.fromkeys(failed.values()))
    specs, ids = read_specs(names, project, bundled=options.bundled)
    places = chosen_backends(options.backends, [*ids, *failed], config, specs=specs)
    everything = plan(
        specs, list(places), places, seed=options.seed, mode=options.mode, order=options.order,
        effort=options.effort, timeout=options.timeout, default_timeout=config.timeout or TIMEOUT,
        memory=options.memory, recorded=bool(options.record), reruns=options.reruns,
    )  # fmt: skip
    cases = shard(select(everything, ids, options.keywords, options.tags), *options.part)
    if options.lf and not failed:
        click.echo("gradcheck: nothing failed in the last run, so all cases are run", err=True)
    if failed:
        cases = [case for case in cases if case.name in failed]
    if not cases:
        number, total = options.part
        shard_text = f", in shard {number}/{total}" * (total > 1)
        raise UserError(
            nothing_selected(options.keywords, everything) + shard_text, NOTHING_SELECTED
        )
    if options.record:
        from gradcheck.conformance.release_writer import require_recordable  # few runs record

        require_recordable(cases, options.record)
    return with_releases(cases, options.as_version)


def write_baseline(options: RunOptions, baseline: Baseline, results: Sequence[Result]) -> None:
    """Write the baseline according to the options, or print which of its failures are fixed."""
    if not options.baseline_update and not options.baseline_prune:
        if baseline.fixed:
            names = ", ".join(baseline.fixed[:5]) + ", …" * (len(baseline.fixed) > 5)
            click.echo(
                f"gradcheck: no longer failing: {safe(names)}; --baseline-prune removes them",
                err=True,
            )
        return
    if options.baseline_update:
        baseline.update(results)
    else:
        baseline.prune(results)
    with refusals_of(f"--baseline {baseline.path}"):
        baseline.write()
    known = count(len(baseline.known), "known failure")
    click.echo(f"gradcheck: {baseline.path}: {known}", err=True)
