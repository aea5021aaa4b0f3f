"""``gradcheck run``."""

from __future__ import annotations

import difflib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from gradcheck import __version__
from gradcheck.backends.base import BACKENDS, missing, unsupported
from gradcheck.commands import INTERRUPTED, stop_for_bug
from gradcheck.commands.select import NOTHING_SELECTED, fail, read_specs, selection_options
from gradcheck.config import Config, ConfigError, load_config
from gradcheck.report.files import FORMATS
from gradcheck.report.text import one_line, shown_path
from gradcheck.resources import bundled_specs
from gradcheck.result import Result
from gradcheck.run.plan import TIMEOUT, Case, SelectionError, plan, select

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from gradcheck.spec.model import Scenario

REFUSALS_SHOWN = 20


class Screen(Protocol):
    """Shows a run: `report.plain.PlainScreen` or `report.console.RichScreen`."""

    def running(self, header: str, total: int) -> AbstractContextManager[None]:
        """While cases run."""

    def count(self, result: Result) -> None:
        """A result is there; called in the order in which they come, from any thread, one at a time."""

    def show(self, result: Result) -> None:
        """It is a result's turn, in the order of the cases."""

    def finish(self, results: Sequence[Result], seconds: float, not_run: int) -> None:
        """All is done."""


@click.command()
@click.argument("names", nargs=-1, metavar="[PATH|ID]...")
@click.option("-b", "--backend", "backends", multiple=True, metavar="NAME", help=f"{', '.join(BACKENDS)}; repeatable.")
@selection_options
@click.option("-j", "--jobs", metavar="N", help="Cases at a time; auto (the default) is one per core.")
@click.option("-x", "--exitfirst", is_flag=True, help="Stop after the first failure.")
@click.option("--max-fail", type=click.IntRange(1), metavar="N", help="Stop after N failures.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Seed of all cases, in place of the scenarios' own.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True, max=86_400),
    metavar="SECONDS",
    help=f"Limit of a case, in place of the scenarios' own (default: {TIMEOUT:g}).",
)
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
    seed: int | None,
    timeout: float | None,
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
    try:
        config = load_config()
        specs, ids = read_specs(names, config.paths)
        chosen = chosen_backends(backends, ids, config, require_backend)
        cases = plan(specs, chosen, seed=seed, timeout=timeout, default_timeout=config.timeout or TIMEOUT)
        cases = select(cases, ids, keywords, tags)
    except (ConfigError, SelectionError) as error:
        raise fail(str(error)) from None
    files = [report_file(report) for report in reports]
    count = min(number_of_jobs(jobs or config.jobs), len(cases))
    if not cases:
        raise fail("nothing is selected", NOTHING_SELECTED)
    require_trust(cases, allow_code or config.allow_code)
    options = [f"--seed {seed}"] * (seed is not None) + ["--allow-code"] * allow_code
    screen = make_screen(layout, color, verbose, quiet, " ".join(options))
    results, interrupted = run_all(cases, count, 1 if exitfirst else max_fail, screen)
    for name, path in files:
        write_report(name, path, results)
    raise SystemExit(exit_code(results, interrupted))


def chosen_backends(names: Sequence[str], ids: Sequence[str], config: Config, required: bool) -> list[str]:
    """Those of ``-b``, or of the case names among `ids`, or of the configuration, or numpy; commas separate as well.

    Raises:
        SystemExit: there is no such backend, or one that is required, or the bundled engine itself, cannot be used.
    """
    wanted = [name.strip() for word in names for name in word.split(",")]
    in_cases = [name for name in (id.rpartition("@")[2] for id in ids if "@" in id) if name in BACKENDS]
    chosen = list(dict.fromkeys(wanted or in_cases or config.backends or ["numpy"]))
    for name in chosen:
        if name not in BACKENDS:
            near = difflib.get_close_matches(name, BACKENDS, 1)
            hint = f"did you mean {near[0]}?" if near else f"the backends are {', '.join(BACKENDS)}"
            raise fail(f"there is no backend {name!r}; {hint}")
        reason = missing(name) or unsupported(name)
        if reason and (required or not BACKENDS[name].extra):
            raise fail(f"backend {name}: {reason}")
    return chosen


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


def require_trust(cases: Sequence[Case], allowed: bool) -> None:
    """Refuse to run code of `cases` from files that are not ours unless the user or the project allows it.

    Raises:
        SystemExit: there is such code; every place is named, and nothing has been imported or run.
    """
    bundled = bundled_specs().resolve()
    scenarios = {id(case.scenario): case.scenario for case in cases if case.not_run() is None}
    outside = [one for one in scenarios.values() if not Path(one.path).resolve().is_relative_to(bundled)]
    refused = [(one, line, what) for one in outside for line, what in code_in(one)]
    if allowed or not refused:
        return
    for scenario, line, what in refused[:REFUSALS_SHOWN]:
        click.echo(f"{shown_path(scenario.path)}:{line}: {scenario.id} would run {what}", err=True)
    if len(refused) > REFUSALS_SHOWN:
        click.echo(f"and {len(refused) - REFUSALS_SHOWN} more", err=True)
    raise fail(
        "this code is not from gradcheck, so it was not run. Read it; then allow it with --allow-code, "
        "or for this project with `allow-code = true` under [tool.gradcheck] in its pyproject.toml"
    )


def code_in(scenario: Scenario) -> Iterator[tuple[int, str]]:
    """The file line of each piece of code that running `scenario` would run, and what it is."""
    for key in ("layer", "script"):
        code = getattr(scenario, key)
        if isinstance(code, str):
            yield scenario.line_of(key), f"its {key}, {len(code.splitlines())} lines of Python"
    if reference := getattr(scenario.layer, "ref", ""):
        yield scenario.line_of("layer"), f"what importing {reference} runs"
    if scenario.call is not None:
        yield scenario.line_of("call"), f"call: {one_line(scenario.call)[:100]}"
    expectations = [("expect", scenario.expect)]
    expectations += [(f"backends.{name}.expect", one.expect) for name, one in scenario.backends.items() if one.expect]
    for place, expect in expectations:
        for expression in expect.values:
            yield scenario.line_of(f"{place}.values.{expression}"), f"the expression {one_line(expression)[:100]}"


def make_screen(layout: str, color: str, verbose: bool, quiet: bool, again_options: str) -> Screen:
    """What shows the run: on stdout results, on stderr progress."""
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    colored = color == "always" or (color == "auto" and wants_color(terminal))
    if layout == "plain" or (layout == "auto" and not terminal):
        from gradcheck.report.plain import PlainScreen

        return PlainScreen(verbose=verbose, quiet=quiet, color=colored, again_options=again_options)
    from rich.console import Console

    from gradcheck.report.console import RichScreen

    # Without a colour system rich writes no escape sequence at all; its own look at NO_COLOR would leave bold and dim.
    system = ("auto" if terminal else "standard") if colored else None
    console = Console(color_system=system, force_terminal=colored or None, no_color=False, highlight=False)  # type: ignore[arg-type]
    progress = Console(stderr=True, color_system="auto" if colored else None, no_color=False, highlight=False)
    return RichScreen(console, progress, verbose=verbose, quiet=quiet, again_options=again_options)


def wants_color(terminal: bool) -> bool:
    """Whether to colour where the command line leaves it open: NO_COLOR, FORCE_COLOR, or else on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or terminal


def header(cases: Sequence[Case], jobs: int) -> str:
    """The line above a report: versions, backends, seeds, jobs."""
    versions = f"gradcheck {__version__} · Python {'.'.join(map(str, sys.version_info[:3]))}"
    for package in ("numpy", "cupy", "paddlepaddle"):
        try:
            versions += f" · {package} {version(package)}"
        except PackageNotFoundError:
            continue
    backends = ", ".join(dict.fromkeys(case.backend for case in cases))
    seeds = {case.seed for case in cases}
    seed = f"seed {seeds.pop()}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    return f"{versions} · on {backends} · {seed} · {jobs} job{'s' if jobs > 1 else ''} · {len(cases)} cases"


def run_all(cases: Sequence[Case], jobs: int, limit: int | None, screen: Screen) -> tuple[list[Result], bool]:
    """Run the cases and show them; the results in the order of the cases, and whether Ctrl-C ended it.

    After `limit` failures, counted in that order, no more are run or reported, so that the report does not depend on
    which case was the quicker. After Ctrl-C all that had finished are reported.
    """

    from gradcheck.run.pool import Pool

    started = time.perf_counter()
    results: list[Result] = []
    finished: dict[str, Result] = {}
    failures = 0
    interrupted = False

    def on_done(result: Result) -> None:
        finished[result.name] = result
        screen.count(result)

    try:
        with screen.running(header(cases, jobs), len(cases)), Pool(jobs) as pool:
            for result in pool.map(cases, on_done):
                results.append(result)
                screen.show(result)
                failures += not result.status.green
                if failures == limit:
                    break
    except KeyboardInterrupt:
        interrupted = True
        for case in cases[len(results) :]:
            if case.name in finished:
                results.append(finished[case.name])
                screen.show(finished[case.name])
    screen.finish(results, time.perf_counter() - started, len(cases) - len(results))
    return results, interrupted


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
    return 0 if all(result.status.green for result in results) else 1
