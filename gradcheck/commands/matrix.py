"""``gradcheck matrix``: the behaviour of each release of Paddle under each rule of the
documents.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from platform import machine, python_version, system

import click

from gradcheck.backends.base import kind_of, missing, version_of
from gradcheck.backends.environments import made_environments, place_of_backend
from gradcheck.case.case import Case
from gradcheck.commands.backends import chosen_backends, split_names
from gradcheck.commands.report_options import report_files
from gradcheck.commands.run_cases import exit_code, make_executor, run_all
from gradcheck.commands.shared_options import backends_option, number_of_jobs
from gradcheck.commands.specs import read_bundled, with_releases
from gradcheck.config import load_project
from gradcheck.conformance.behaviour import result_as_recorded
from gradcheck.conformance.catalogue import load_catalogue
from gradcheck.conformance.matrix_formats import (
    TEXT_WIDTH,
    as_badges,
    as_html,
    as_json,
    as_markdown,
    as_text,
)
from gradcheck.conformance.releases import read_release, require_recorded
from gradcheck.conformance.suite import suite_version
from gradcheck.conformance.table import RuleMatrix, build_matrix, column_title
from gradcheck.report.plain import PlainScreen
from gradcheck.result import Result
from gradcheck.run.plan import plan
from gradcheck.support.file_io import write_whole
from gradcheck.support.resources import release_paths
from gradcheck.support.user_error import refusals_of


class ProgressOnly(PlainScreen):
    """A screen that shows only progress: the results of the run go into the matrix."""

    def show(self, result: Result) -> None:
        """Nothing."""

    def finish(self, results: Sequence[Result], seconds: float, not_run: int) -> None:
        """Nothing."""


@click.command()
@backends_option(
    "The columns, as for `gradcheck run`; by default the engine and every installed release of "
    "Paddle."
)
@click.option(
    "--recorded",
    is_flag=True,
    help="Take releases of Paddle from their recorded release files instead of running them.",
)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["table", "markdown", "json"]),
    default="table",
    show_default=True,
    help="The output format.",
)
@click.option(
    "--report", "reports", multiple=True, metavar="FORMAT:PATH",
    help="Write html, markdown or json to a file, or badges (a shields.io endpoint for each "
    "column) to a folder.",
)  # fmt: skip
@click.option(
    "-j",
    "--jobs",
    metavar="N",
    default="auto",
    help="Cases at a time; auto (the default) is one per core.",
)
def matrix(
    backends: tuple[str, ...], recorded: bool, layout: str, reports: tuple[str, ...], jobs: str
) -> None:
    """Show the behaviour of each backend under each rule of the documents.

    The bundled scenarios are run on all of them, a few minutes for each. Sentences that a release
    breaks come first.

    Exit code: as `gradcheck run`; 1 if a backend behaves neither as expected nor as recorded.
    """
    files = report_files(reports, [*FILES, "badges"], in_folder="badges")
    specs = read_bundled()
    chosen = split_names(backends) or (
        ["numpy", *(f"paddle@{release}" for release in release_paths())]
        if recorded
        else installed_backends()
    )
    taken = [name for name in chosen if recorded and kind_of(name) == "paddle"]
    cases = with_releases(plan(specs, taken))
    results = [*recorded_results(cases)]
    status = 0
    if running := [name for name in chosen if name not in taken]:
        places = chosen_backends(running, config=load_project().config, specs=specs)
        ran = with_releases(plan(specs, list(places), places=places))
        outcome, interrupted = run_all(
            ran, make_executor(jobs=number_of_jobs(jobs)), ProgressOnly()
        )
        status = exit_code(outcome, interrupted)
        if interrupted:  # the matrix is not complete
            raise SystemExit(status)
        cases, results = [*ran, *cases], [*outcome, *results]
    rule_matrix = build_matrix(load_catalogue(), cases, results, describe_run(running, taken))
    width = shutil.get_terminal_size((TEXT_WIDTH, 0)).columns
    click.echo(
        as_text(rule_matrix, width) if layout == "table" else FILES[layout](rule_matrix), nl=False
    )
    for name, path in files:
        texts = {path: FILES[name](rule_matrix)} if name in FILES else as_badges(rule_matrix, path)
        for file, text in texts.items():
            with refusals_of(f"--report {name}:{path}"):
                write_whole(file, text)
    raise SystemExit(status)


FILES: dict[str, Callable[[RuleMatrix], str]] = {
    "html": as_html,
    "markdown": as_markdown,
    "json": as_json,
}
"""Functions that return the text of a file, by format."""


def recorded_results(cases: Iterable[Case]) -> Iterator[Result]:
    """Yield the results of cases on releases, from the release files.

    Raises UserError: a release has no file.
    """
    for case in cases:
        release = require_recorded(version_of(case.backend))
        yield result_as_recorded(case, read_release(release_paths()[release]))


def describe_run(running: Sequence[str], recorded: Sequence[str]) -> str:
    """Describe when and where backends were run, in a sentence or two."""
    parts = []
    if running:
        python = f"Python {python_version()}, {system()} {machine()}"
        titles = ", ".join(map(column_title, running))
        parts.append(f"{titles}: run on {date.today()}, gradcheck {suite_version()}, {python}.")
    runs: dict[str, list[str]] = {}
    for name in recorded:
        release = read_release(release_paths()[require_recorded(version_of(name))])
        run = f"run on {release.run.date}, {release.run.suite}, Python {release.run.python}"
        runs.setdefault(run, []).append(column_title(name))
    parts += [f"{', '.join(titles)}: {run}." for run, titles in runs.items()]
    return " ".join(parts)


def installed_backends() -> list[str]:
    """Return the engine, and every release of Paddle that can be run here."""
    releases = [name for name in made_environments() if not place_of_backend(name, {}).problem]
    return ["numpy", *(releases or ["paddle"] * (not missing("paddle")))]
