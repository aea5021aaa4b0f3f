"""``gradcheck matrix``."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from platform import machine, python_version, system

import click

from gradcheck import __version__
from gradcheck.backends.base import missing
from gradcheck.backends.environments import made_environments, place_of_backend
from gradcheck.case.case import Case
from gradcheck.commands.choose import check_backend, chosen_backends, environments_of, split_names
from gradcheck.commands.run_cases import exit_code, make_pool, run_all
from gradcheck.commands.run_options import backends_option, number_of_jobs
from gradcheck.commands.specs import fail, read_bundled
from gradcheck.commands.trust import leave_of
from gradcheck.config import load_project
from gradcheck.matrix.catalogue import catalogue
from gradcheck.matrix.report import TEXT_WIDTH, as_html, as_json, as_markdown, as_text, badges
from gradcheck.matrix.reproduce import NoProgramError, reproducer
from gradcheck.matrix.table import RuleMatrix, assumed, matrix_of
from gradcheck.report.plain import PlainScreen
from gradcheck.result import Result
from gradcheck.run.plan import plan


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
    writers = [writer_of(text) for text in reports]
    project = load_project()
    specs = read_bundled()
    chosen = split_names(backends) or all_here()
    if pinned:
        for name in chosen:
            check_backend(name)
        cases = plan(specs, chosen)
        results: Sequence[Result] = [assumed(case) for case in cases]
        status, made = 0, None
    else:
        places = chosen_backends(chosen, (), project.config, environments_of(leave_of(project, False)), True)
        cases = plan(specs, list(places), places=places)
        results, status = run_whole(cases, number_of_jobs(jobs))
        made = f"Run on {date.today()} with gradcheck {__version__}, Python {python_version()}, {system()} {machine()}."
    found = matrix_of(catalogue(), cases, results, made)
    width = shutil.get_terminal_size((TEXT_WIDTH, 0)).columns if sys.stdout.isatty() else TEXT_WIDTH
    click.echo(as_text(found, width) if layout == "table" else FILES[layout](found, cases), nl=False)
    for write in writers:
        write(found, cases)
    raise SystemExit(status)


Writer = Callable[[RuleMatrix, Sequence[Case]], None]
FILES: dict[str, Callable[[RuleMatrix, Sequence[Case]], str]] = {
    "html": lambda matrix, cases: as_html(matrix, programs(matrix, cases)),
    "markdown": lambda matrix, cases: as_markdown(matrix, programs_of_the_worst(matrix, cases)),
    "json": lambda matrix, cases: as_json(matrix),
}
"""Format → the text of its file."""


def writer_of(text: str) -> Writer:
    """What writes ``FORMAT:PATH``.

    Raises:
        SystemExit: there is no such format, or no such folder; later, that the file cannot be written.
    """
    name, _, path = text.partition(":")
    known = [*FILES, "badges"]
    if name not in known or not path:
        raise fail(f"--report {text}: write FORMAT:PATH, such as html:matrix.html; the formats are {', '.join(known)}")
    if not (Path(path) if name == "badges" else Path(path).absolute().parent).is_dir():
        raise fail(f"--report {text}: there is no folder {path if name == 'badges' else Path(path).parent}: make it")

    def write(matrix: RuleMatrix, cases: Sequence[Case]) -> None:
        files = {path: FILES[name](matrix, cases)} if name in FILES else badges(matrix)
        for file, content in files.items():
            try:
                (Path(file) if name in FILES else Path(path, file)).write_text(content, encoding="utf-8")
            except OSError as error:
                raise fail(f"--report {text}: {error.strerror or error}") from None

    return write


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


def run_whole(cases: Sequence[Case], jobs: int) -> tuple[Sequence[Result], int]:
    """The results of all cases, and what the run exits with.

    Raises:
        SystemExit: it was interrupted: there is no whole matrix.
    """
    results, interrupted = run_all(cases, make_pool("local", jobs, True), Aside())
    status = exit_code(results, interrupted)
    if interrupted:
        raise SystemExit(status)
    return results, status


def all_here() -> list[str]:
    """The engine, and every release of Paddle that can be run here."""
    releases = [name for name in made_environments() if not place_of_backend(name, {}).problem]
    return ["numpy", *(releases or ["paddle"] * (not missing("paddle")))]
