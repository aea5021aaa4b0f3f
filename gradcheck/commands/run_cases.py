"""Conducts a run: what executes the cases, what shows and records them, what ends it, its reports and exit code."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from gradcheck import __version__
from gradcheck.backends.environments import BackendPlace
from gradcheck.case.case import Case
from gradcheck.case.foreign_frameworks import REFUSAL
from gradcheck.case.naming import MEMORY, TIMEOUT
from gradcheck.commands.backends import chosen_backends
from gradcheck.commands.errors import INTERRUPTED, NOTHING_SELECTED, USAGE, stop_for_bug
from gradcheck.commands.permission import permission_of, require_permission
from gradcheck.commands.shared_options import (
    ScreenOptions,
    number_of_jobs,
    report_files,
    shard_numbers,
)
from gradcheck.commands.specs import is_path, read_specs
from gradcheck.config import load_project
from gradcheck.report.files import rendered
from gradcheck.report.record import PagePart, Report, versions
from gradcheck.result import NOT_RUN, Result
from gradcheck.run import journal
from gradcheck.run.interpreter import START, START_METHODS
from gradcheck.run.limits import parse_size
from gradcheck.run.ordering import OrderedRun
from gradcheck.run.plan import plan, shard
from gradcheck.run.results import Baseline, Results, SideBySide
from gradcheck.run.runner import Runner, RunnerError
from gradcheck.run.select import nothing_selected, select
from gradcheck.spec.diagnostic import SpecError
from gradcheck.spec.draft import Signature
from gradcheck.spec.read import read_bytes
from gradcheck.support.display_paths import count
from gradcheck.support.escape import safe
from gradcheck.support.file_io import write_whole
from gradcheck.support.user_error import UserError

if TYPE_CHECKING:
    from gradcheck.report.console import RichScreen
    from gradcheck.report.plain import PlainScreen
    from gradcheck.run.dask import DaskExecutor


# --------------------------------------------------------------------------------- what a command asks to be run
def run_scenarios(
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
    """Run scenarios as the options of `gradcheck run` say.

    Raises SystemExit: with the exit code.
    """
    known_failures = Baseline.read(Path(baseline), new=baseline_update) if baseline else None
    project = load_project()
    config, permission = project.config, permission_of(project, allow_code)
    last = journal.read_journal() if lf or resume else journal.NOTHING
    red = [one.result for one in last.records if not one.result.status.green]
    failed = {name: result.path for result in red for name in result.cases}
    if lf and not bundled and not any(map(is_path, names)):
        names = (
            *names,
            *(path for path in dict.fromkeys(failed.values()) if not Path(path).is_dir()),
        )
    specs, ids = read_specs(names, project, bundled=bundled)
    in_cases = [*ids, *(failed if lf else ())]
    places = chosen_backends(backends, in_cases, config, require_backend)
    try:
        size = parse_size(memory) if memory else MEMORY
    except ValueError as error:
        raise UserError(f"--memory {error}") from None
    default_timeout = config.timeout or TIMEOUT
    everything = plan(
        specs, list(places), seed=seed, mode=mode, order=order, effort=effort,
        timeout=timeout, default_timeout=default_timeout, memory=size, places=places,
    )  # fmt: skip
    cases = select(everything, ids, keywords, tags)
    cases = shard(cases, *shard_numbers(part)) if part else cases
    files = report_files(reports)
    at_a_time = (
        number_of_jobs(jobs) if jobs else min(number_of_jobs(config.jobs), number_of_jobs("auto"))
    )
    if lf:
        cases = last_failed(cases, failed)
    if not cases:
        whole = f"; shard {part} may have none of so few" if part else ""
        raise UserError(nothing_selected(keywords, everything) + whole, NOTHING_SELECTED)
    require_permission(cases, permission)
    known = journal.known_results(cases, last.records) if resume else {}
    if last.skipped:
        click.echo(f"gradcheck: {journal.skipped_message(last.skipped)}", err=True)
    if resume:
        click.echo(
            f"gradcheck: {len(known)} of {len(cases)} results are there from the last run", err=True
        )
    asked = {
        f"--seed {seed}": seed is not None,
        f"--mode {mode}": mode != "auto",
        "--order 2": order == 2,
        f"--effort {effort}": effort != "usual",
        "--allow-code": allow_code,
    }
    again = " ".join(option for option, given in asked.items() if given)
    shown = make_screen(screen, again)
    record = journal.Journal(go_on=lf or resume)
    runner = make_executor(executor, min(at_a_time, len(cases)), jobs is not None)
    limit, began = 1 if exitfirst else max_fail, Beginning.now()
    try:
        results, interrupted = run_all(
            cases, runner, shown, settings=permission.summary(), limit=limit, known=known, record=record,
            baseline=known_failures,
        )  # fmt: skip
    except RunnerError as error:
        kept = (
            f"; {record.problem}"
            if record.problem
            else "; what had finished is kept: add --resume to go on"
        )
        raise UserError(f"{error}{kept}") from None
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


class Beginning(NamedTuple):
    """When a run began: its date, and a clock that nobody sets, as they do the system's, by which it is timed."""

    date: datetime
    clock: float

    @classmethod
    def now(cls) -> Beginning:
        """This moment."""
        return cls(datetime.now(UTC), time.perf_counter())


def slowest(results: Sequence[Result], number: int) -> list[str]:
    """The slowest of the cases, a line each."""
    ran = sorted(
        (one for one in results if not one.beside and one.seconds), key=lambda one: -one.seconds
    )[:number]
    return [
        *(["slowest:"] if ran else []),
        *(f"  {one.seconds:6.2f} s  {safe(one.name)}" for one in ran),
    ]


def last_failed(cases: Sequence[Case], failed: Mapping[str, str]) -> list[Case]:
    """Those of `cases` that failed; all, and a word about it, if nothing did."""
    if not failed:
        click.echo("gradcheck: nothing failed in the last run, so all cases are run", err=True)
    return [case for case in cases if case.name in failed or not failed]


def check_drafted(
    text: str,
    signature: Signature,
    *,
    backends: Sequence[str],
    reports: Sequence[str],
    screen: ScreenOptions,
    **options: Any,
) -> int:
    """Run the scenario of a spec file's `text`, show and report it; the exit code. `options` are those of `plan`."""
    cases = drafted_cases(text, signature, chosen_backends(backends), **options)
    files = report_files(reports)
    again = shlex.join(["gradcheck", *sys.argv[1:]])
    shown, began = make_screen(screen, again), Beginning.now()
    results, interrupted = run_all(cases, make_executor(), shown)
    write_reports(files, cases, results, began, again)
    if any(result.message.startswith(REFUSAL) for result in results):
        return USAGE
    return exit_code(results, interrupted)


def drafted_cases(
    text: str, signature: Signature, places: Mapping[str, BackendPlace], **options: Any
) -> Sequence[Case]:
    """The cases of the one scenario of a spec file's `text`, which stands where the layer does.

    Raises UserError: the layer cannot be checked with what is given; the mistakes are in no file of the user's.
    """
    try:
        spec = read_bytes(
            text.encode(), str(Path.cwd() / signature.reference)
        )  # modules are looked for from there
    except SpecError as error:
        said = "; ".join(
            "; ".join(filter(None, [one.message, one.help])) for one in error.diagnostics
        )
        raise UserError(f"{signature.reference}: {said}") from None
    scenario = spec.scenarios[0].model_copy(update={"line": signature.line, "column": 1})
    spec = spec.model_copy(update={"scenarios": (scenario,)})
    return plan([spec], list(places), places=places, **options)


# ------------------------------------------------------------------------------------------------ how it is run
STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that end a run in order."""
SHOW_CURSOR = b"\x1b[?25h\n"
"""What makes a terminal show its cursor (DECTCEM)."""


def make_executor(
    executor: str = "local", jobs: int = 1, limited: bool = True
) -> Runner | DaskExecutor:
    """Return what runs the cases: processes here, or a cluster, on which `jobs` counts only if it is a limit.

    Raises RunnerError: no cluster answers.
    """
    if executor != "local":
        from gradcheck.run.dask import DaskExecutor

        return DaskExecutor(executor.partition(":")[2], jobs if limited else None)
    if START not in START_METHODS:
        raise UserError(
            f"GRADCHECK_START={START}: write {' or '.join(START_METHODS)}, or remove it"
        )
    return Runner(jobs)


def run_all(
    cases: Sequence[Case],
    executor: Runner | DaskExecutor,
    screen: PlainScreen | RichScreen,
    *,
    settings: str = "",
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

    run, side_by_side = OrderedRun(executor, on_done), SideBySide()
    shown = screen.running(header(cases, executor.slots), len(cases), settings, run.at_work)
    with stopped_by_signals(run), shown, executor:
        all_results = side_by_side.beside(run.results(cases, known))
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
    for line in missing_names(results):
        click.echo(line, err=True)
    if side_by_side.compared:
        what = count(side_by_side.compared, "pair")
        click.echo(
            f"gradcheck: outputs and gradients of {what} of cases compared across backends",
            err=True,
        )
    return results, run.stopped


def missing_names(results: Sequence[Result]) -> list[str]:
    """Return a line per name that the engine lacks, with the number of cases that need it, the most needed first."""
    needed = Counter(result.missing_name for result in results if result.missing_name)
    if not needed:
        return []
    lines = [f"  {name}: {count(number, 'case')}" for name, number in needed.most_common()]
    return ["gradcheck: not part of the bundled engine; `-b paddle` has them:", *map(safe, lines)]


def left(cases: Sequence[Case], results: Sequence[Result]) -> int:
    """How many cases have no result."""
    return len(cases) - sum(not result.beside for result in results)


def settle(baseline: Baseline, results: Sequence[Result], *, update: bool, prune: bool) -> None:
    """Say which known failures have been mended, and write the baseline anew where that was asked for."""
    if baseline.mended and not (update or prune):
        names = ", ".join(baseline.mended[:5]) + (", …" if len(baseline.mended) > 5 else "")
        click.echo(
            f"gradcheck: no longer failing: {safe(names)}; --baseline-prune removes them", err=True
        )
    if update or prune:
        try:
            baseline.write(results, prune=not update)
        except OSError as error:
            raise UserError(f"--baseline {baseline.path}: {error.strerror or error}") from None
        click.echo(
            f"gradcheck: {baseline.path}: {count(len(baseline.known), 'known failure')}", err=True
        )


def leave_at_once(number: int, frame: object) -> None:
    """End this process, which ends its servers, with the cursor that a progress bar hides."""
    if os.isatty(2):
        os.write(2, SHOW_CURSOR)
    os._exit(128 + number)


@contextmanager
def stopped_by_signals(run: OrderedRun) -> Iterator[None]:
    """Have the first signal end the run in order, and a second one the command at once, whatever it waits for."""
    before: dict[int, Any] = {}

    def stop(number: int, frame: object) -> None:
        for one in before:
            signal.signal(one, leave_at_once)
        run.stop()

    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name) for name in STOPPING if hasattr(signal, name)):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a job in the background
                before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


# ----------------------------------------------------------------------------------------------- how it is shown
def make_screen(options: ScreenOptions, again_options: str) -> PlainScreen | RichScreen:
    """What shows the run: on stdout results, on stderr progress."""
    layout, color, verbose, quiet = options
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    wanted = not os.environ.get("NO_COLOR") and (bool(os.environ.get("FORCE_COLOR")) or terminal)
    colored = color == "always" or (color == "auto" and wanted)
    if layout == "plain" or (layout == "auto" and not terminal):
        from gradcheck.report.plain import PlainScreen

        return PlainScreen(verbose=verbose, quiet=quiet, color=colored, again_options=again_options)
    from gradcheck.report.console import OpenConsole, RichScreen

    # Without a colour system rich writes no escape sequence at all; its own look at NO_COLOR would leave bold and dim.
    system = ("auto" if terminal else "standard") if colored else None
    console = OpenConsole(
        color_system=system, force_terminal=colored or None, no_color=False, highlight=False
    )  # type: ignore[arg-type]
    progress = OpenConsole(
        stderr=True, color_system="auto" if colored else None, no_color=False, highlight=False
    )
    return RichScreen(console, progress, verbose=verbose, quiet=quiet, again_options=again_options)


def header(cases: Sequence[Case], jobs: int) -> str:
    """The line above a report: versions, backends, seeds, jobs."""
    said = f"gradcheck {__version__} · Python {'.'.join(map(str, sys.version_info[:3]))}"
    said += "".join(f" · {package} {version}" for package, version in versions().items())
    backends = ", ".join(dict.fromkeys(case.backend for case in cases))
    seeds = {case.seed for case in cases}
    seed = f"seed {seeds.pop()}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    return f"{said} · on {backends} · {seed} · {count(jobs, 'job')} · {count(len(cases), 'case')}"


def write_reports(
    files: Sequence[tuple[str, Path]],
    cases: Sequence[Case],
    results: Sequence[Result],
    began: Beginning,
    again: str,
) -> None:
    """Write the reports that were asked for, by format and path; on GitHub Actions tell it, too.

    `again` are the options with which one of the cases runs again as it ran here. One that cannot be written costs
    none of the others. Raises SystemExit: one could not be written.
    """
    wanted: list[tuple[str, Path | None]] = [
        *files,
        *[("github", None)] * bool(os.environ.get("GITHUB_ACTIONS")),
    ]
    if not wanted:
        return
    report = Report(
        command=tuple(sys.argv[1:]),
        again=again,
        seeds=tuple(sorted({case.seed for case in cases})),
        started=began.date.isoformat(timespec="seconds"),
        seconds=time.perf_counter() - began.clock,
        not_run=left(cases, results),
        results=tuple(results),
        cases=tuple(cases),
        matrix=matrix_part(cases, results) if any(name == "html" for name, _ in wanted) else None,
    )
    refused, bugs = False, []
    for name, path in wanted:
        what = safe(f"--report {name}:{path}") if path is not None else "GITHUB_ACTIONS"
        try:
            if path is not None:
                write_whole(path, rendered(name, report))
            else:
                tell_github(report)
        except OSError as error:
            click.echo(f"gradcheck: {what}: {safe(error.strerror or str(error))}", err=True)
            refused = True
        except UserError as error:
            click.echo(f"gradcheck: {what}: {safe(str(error))}", err=True)
            refused = True
        except Exception as error:
            click.echo(f"gradcheck: {what}: not written, {type(error).__name__}", err=True)
            bugs.append("".join(traceback.format_exception(error)))
    if bugs:
        stop_for_bug("\n".join(bugs))
    if refused:
        raise SystemExit(USAGE)


def matrix_part(cases: Sequence[Case], results: Sequence[Result]) -> PagePart | None:
    """Return the matrix of a run over several backends, for its page."""
    if len({case.backend for case in cases}) < 2:
        return None
    from gradcheck.conformance.matrix_formats import (
        make_page_part,
    )  # not loaded for a user's own layers

    return make_page_part(cases, results)


def tell_github(report: Report) -> None:
    """On GitHub Actions: annotations into the log, which nothing else that is printed can be, and a step's summary."""
    log, page = sys.__stdout__, os.environ.get("GITHUB_STEP_SUMMARY")
    if log is not None:
        log.write(rendered("github", report))
        log.flush()
    if page:
        with (
            suppress(OSError),
            open(page, "a", encoding="utf-8", errors="backslashreplace") as file,
        ):
            file.write(rendered("markdown", report))


def exit_code(results: Sequence[Result], interrupted: bool) -> int:
    """What the run exits with; after a bug of ours, whose report is left in a file, it does so at once."""
    bugs = [
        f"{result.name}\n{result.internal_error}" for result in results if result.internal_error
    ]
    if bugs:
        stop_for_bug("\n\n".join(bugs))
    if interrupted:
        return INTERRUPTED
    if results and all(result.status in NOT_RUN for result in results):
        reasons = dict.fromkeys(result.message for result in results)
        raise UserError(f"nothing was run: {'; '.join(list(reasons)[:3])}", NOTHING_SELECTED)
    return 0 if all(result.status.green for result in results) else 1
