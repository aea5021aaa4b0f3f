"""``gradcheck matrix``."""

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
from gradcheck.commands.backends import check_backend, chosen_backends, split_names
from gradcheck.commands.permission import permission_of
from gradcheck.commands.run_cases import exit_code, make_executor, run_all
from gradcheck.commands.shared_options import backends_option, number_of_jobs, report_files
from gradcheck.commands.specs import read_bundled
from gradcheck.config import load_project
from gradcheck.matrix.catalogue import catalogue
from gradcheck.matrix.report import TEXT_WIDTH, as_html, as_json, as_markdown, as_text, badges
from gradcheck.matrix.reproduce import NoProgramError, reproducer
from gradcheck.matrix.table import RuleMatrix, assumed, matrix_of
from gradcheck.report.plain import PlainScreen
from gradcheck.result import Result
from gradcheck.run.plan import plan
from gradcheck.support.file_io import write_whole
from gradcheck.support.user_error import UserError


class Aside(PlainScreen):
    """A screen that shows signs of life alone: what a run gives goes into the matrix."""

    def show(self, result: Result) -> None:
        """Nothing."""

    def finish(self, results: Sequence[Result], seconds: float, not_run: int) -> None:
        """Nothing."""


@click.command()
@backends_option("The columns, as of `gradcheck run`; by default the engine and every release of Paddle that is here.")
@click.option("--pinned", is_flag=True, help="Run nothing: show what the bundled scenarios pin, of any release.")
@click.option(
    "--format", "layout", type=click.Choice(["table", "markdown", "json"]), default="table", show_default=True,
    help="The form of what is printed.",
)  # fmt: skip
@click.option(
    "--report", "reports", multiple=True, metavar="FORMAT:PATH",
    help="Write html, markdown or json to a file, or badges, an endpoint of shields.io for each column, to a folder.",
)  # fmt: skip
@click.option("-j", "--jobs", metavar="N", default="auto", help="Cases at a time; auto (the default) is one per core.")
def matrix(backends: tuple[str, ...], pinned: bool, layout: str, reports: tuple[str, ...], jobs: str) -> None:
    """Show what each backend does with each rule of the documents.

    The bundled scenarios are run on all of them, about a minute for each. Where releases differ comes first.

    Exit code: as `gradcheck run`; 1 where a backend does neither what is documented nor what is pinned of it.
    """
    files = report_files(reports, [*FILES, "badges"], in_folder="badges")
    permission = permission_of(load_project(), False)
    specs = read_bundled()
    chosen = split_names(backends) or all_here()
    if pinned:
        for name in chosen:
            check_backend(name)
        cases = plan(specs, chosen)
        results: Sequence[Result] = [assumed(case) for case in cases]
        status, made = 0, None
    else:
        places = chosen_backends(chosen, permission=permission)
        cases = plan(specs, list(places), places=places)
        results, interrupted = run_all(cases, make_executor(jobs=number_of_jobs(jobs)), Aside())
        status = exit_code(results, interrupted)
        if interrupted:  # there is no whole matrix
            raise SystemExit(status)
        made = f"Run on {date.today()} with gradcheck {__version__}, Python {python_version()}, {system()} {machine()}."
    found = matrix_of(catalogue(), cases, results, made)
    width = shutil.get_terminal_size((TEXT_WIDTH, 0)).columns if sys.stdout.isatty() else TEXT_WIDTH
    click.echo(as_text(found, width) if layout == "table" else FILES[layout](found, cases), nl=False)
    for name, path in files:
        texts = {path: FILES[name](found, cases)} if name in FILES else badges(found, path)
        for file, text in texts.items():
            try:
                write_whole(file, text)
            except OSError as error:
                raise UserError(f"--report {name}:{path}: {error.strerror or error}") from None
    raise SystemExit(status)


FILES: dict[str, Callable[[RuleMatrix, Sequence[Case]], str]] = {
    "html": lambda matrix, cases: as_html(matrix, programs(matrix, cases)),
    "markdown": lambda matrix, cases: as_markdown(matrix, programs_of_the_worst(matrix, cases)),
    "json": lambda matrix, cases: as_json(matrix),
}
"""Format → the text of its file."""


def programs(matrix: RuleMatrix, cases: Sequence[Case]) -> dict[str, str]:
    """The programs that show what is done otherwise, by scenario, for those that have one."""
    by_scenario = {case.scenario.id: case for case in reversed(cases)}  # the first point of its matrix
    found = {}
    for id in dict.fromkeys(id for row in matrix.rows for note in row.notes for id in note.scenarios):
        with suppress(NoProgramError):
            found[id] = reproducer(by_scenario[id])
    return found


def programs_of_the_worst(matrix: RuleMatrix, cases: Sequence[Case]) -> dict[str, str]:
    """For each of the worst findings the program of its first scenario that has one, by that scenario's id."""
    there = programs(matrix, cases)
    first = [next((id for id in finding.note.scenarios if id in there), None) for finding in matrix.grave]
    return {id: there[id] for id in first if id is not None}


def all_here() -> list[str]:
    """The engine, and every release of Paddle that can be run here."""
    releases = [name for name in made_environments() if not place_of_backend(name, {}).problem]
    return ["numpy", *(releases or ["paddle"] * (not missing("paddle")))]
