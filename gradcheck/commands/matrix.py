"""``gradcheck matrix``: what each release of Paddle does with each rule of the documents."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from platform import machine, python_version, system

import click

from gradcheck import __version__
from gradcheck.backends.base import missing
from gradcheck.backends.environments import made_environments, place_of_backend
from gradcheck.case.case import Case
from gradcheck.commands.backends import chosen_backends, require_backend, split_names
from gradcheck.commands.report_options import report_files
from gradcheck.commands.run_cases import exit_code, make_executor, run_all
from gradcheck.commands.shared_options import backends_option, number_of_jobs
from gradcheck.commands.specs import read_bundled
from gradcheck.config import load_project
from gradcheck.conformance.behaviour import result_as_pinned
from gradcheck.conformance.catalogue import load_catalogue
from gradcheck.conformance.matrix_formats import (
    TEXT_WIDTH,
    as_badges,
    as_html,
    as_json,
    as_markdown,
    as_text,
)
from gradcheck.conformance.reproduce import NoProgramError, write_program
from gradcheck.conformance.table import RuleMatrix, build_matrix
from gradcheck.report.plain import PlainScreen
from gradcheck.result import Result
from gradcheck.run.plan import plan
from gradcheck.support.file_io import write_whole
from gradcheck.support.user_error import UserError


class ProgressOnly(PlainScreen):
    """A screen that shows progress alone: the results of the run go into the matrix."""

    def show(self, result: Result) -> None:
        """Nothing."""

    def finish(self, results: Sequence[Result], seconds: float, not_run: int) -> None:
        """Nothing."""


@click.command()
@backends_option(
    "The columns, as of `gradcheck run`; by default the engine and every release of Paddle that "
    "is here."
)
@click.option(
    "--pinned",
    is_flag=True,
    help="Run nothing: show what the bundled scenarios pin, of any release.",
)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["table", "markdown", "json"]),
    default="table",
    show_default=True,
    help="The form of what is printed.",
)
@click.option(
    "--report", "reports", multiple=True, metavar="FORMAT:PATH",
    help="Write html, markdown or json to a file, or badges, an endpoint of shields.io for each "
         "column, to a folder.",
)  # fmt: skip
@click.option(
    "-j",
    "--jobs",
    metavar="N",
    default="auto",
    help="Cases at a time; auto (the default) is one per core.",
)
def matrix(
    backends: tuple[str, ...], pinned: bool, layout: str, reports: tuple[str, ...], jobs: str
) -> None:
    """Show what each backend does with each rule of the documents.

    The bundled scenarios are run on all of them, about a minute for each. Where releases differ
    comes first.

    Exit code: as `gradcheck run`; 1 where a backend does neither what is documented nor what is
    pinned of it.
    """
    files = report_files(reports, [*FILES, "badges"], in_folder="badges")
    config = load_project().config
    specs = read_bundled()
    chosen = split_names(backends) or installed_backends()
    if pinned:
        for name in chosen:
            require_backend(name)
        cases = plan(specs, chosen)
        results: Sequence[Result] = [result_as_pinned(case) for case in cases]
        status, made = 0, None
    else:
        places = chosen_backends(chosen, config=config)
        cases = plan(specs, list(places), places=places)
        results, interrupted = run_all(
            cases, make_executor(jobs=number_of_jobs(jobs)), ProgressOnly()
        )
        status = exit_code(results, interrupted)
        if interrupted:  # there is no whole matrix
            raise SystemExit(status)
        python = f"Python {python_version()}, {system()} {machine()}"
        made = f"Run on {date.today()} with gradcheck {__version__}, {python}."
    found = build_matrix(load_catalogue(), cases, results, made)
    width = shutil.get_terminal_size((TEXT_WIDTH, 0)).columns if sys.stdout.isatty() else TEXT_WIDTH
    click.echo(
        as_text(found, width) if layout == "table" else FILES[layout](found, cases), nl=False
    )
    for name, path in files:
        texts = {path: FILES[name](found, cases)} if name in FILES else as_badges(found, path)
        for file, text in texts.items():
            try:
                write_whole(file, text)
            except OSError as error:
                raise UserError(f"--report {name}:{path}: {error.strerror or error}") from None
    raise SystemExit(status)


FILES: dict[str, Callable[[RuleMatrix, Sequence[Case]], str]] = {
    "html": lambda matrix, cases: as_html(matrix, write_programs(matrix, cases)),
    "markdown": lambda matrix, cases: as_markdown(matrix, write_worst_programs(matrix, cases)),
    "json": lambda matrix, cases: as_json(matrix),
}
"""Format → the text of its file."""


def write_programs(matrix: RuleMatrix, cases: Sequence[Case]) -> dict[str, str]:
    """Return by scenario the programs that show a deviation, for the scenarios that have one."""
    # The case of a scenario's first point, as later ones are replaced.
    by_scenario = {case.scenario.id: case for case in reversed(cases)}
    programs = {}
    for note in (note for row in matrix.rows for note in row.notes):
        for scenario in note.scenarios:
            if scenario not in programs:
                with suppress(NoProgramError):
                    programs[scenario] = write_program(by_scenario[scenario])
    return programs


def write_worst_programs(matrix: RuleMatrix, cases: Sequence[Case]) -> dict[str, str]:
    """Return for each of the worst findings the program of its first scenario that has one, by that
    scenario's id.
    """
    programs = write_programs(matrix, cases)
    worst = {}
    for finding in matrix.grave:
        first = next(
            (scenario for scenario in finding.note.scenarios if scenario in programs), None
        )
        if first is not None:
            worst[first] = programs[first]
    return worst


def installed_backends() -> list[str]:
    """Return the engine, and every release of Paddle that can be run here."""
    releases = [name for name in made_environments() if not place_of_backend(name, {}).problem]
    return ["numpy", *(releases or ["paddle"] * (not missing("paddle")))]
