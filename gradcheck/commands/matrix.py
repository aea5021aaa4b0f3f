"""``gradcheck matrix``."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from gradcheck.backends.base import missing
from gradcheck.backends.environments import made, place_of
from gradcheck.case.case import Case
from gradcheck.commands import completion
from gradcheck.commands.choose import check_backend, chosen_backends, environments_of
from gradcheck.commands.conduct import exit_code, make_pool, run_all
from gradcheck.commands.run_options import number_of_jobs
from gradcheck.commands.specs import fail, read_bundled
from gradcheck.commands.trust import leave_of
from gradcheck.config import load_project
from gradcheck.matrix import Matrix, assumed, matrix_of
from gradcheck.pyproject import ConfigError
from gradcheck.report.matrix import WIDTH, as_html, as_json, as_markdown, as_text
from gradcheck.report.plain import PlainScreen
from gradcheck.reproduce import NoProgramError, reproducer
from gradcheck.result import Result
from gradcheck.rules import catalogue
from gradcheck.run.plan import plan


class Aside(PlainScreen):
    """A screen that shows signs of life alone: what a run gives goes into the matrix."""

    def show(self, result: Result) -> None:
        """Nothing."""

    def finish(self, results: Sequence[Result], seconds: float, not_run: int) -> None:
        """Nothing."""


@click.command()
@click.option(
    "-b", "--backend", "backends", multiple=True, metavar="NAME", shell_complete=completion.backends,
    help="The columns, as of `gradcheck run`; by default the engine and every release of Paddle that is here.",
)  # fmt: skip
@click.option("--pinned", is_flag=True, help="Run nothing: show what the bundled scenarios pin, of any release.")
@click.option(
    "--format", "layout", type=click.Choice(["table", "markdown", "json"]), default="table", show_default=True,
    help="The form of what is printed.",
)  # fmt: skip
@click.option("--html", metavar="FILE", type=click.Path(dir_okay=False), help="Write a page as well.")
@click.option("-j", "--jobs", metavar="N", default="auto", help="Cases at a time; auto (the default) is one per core.")
def matrix(backends: tuple[str, ...], pinned: bool, layout: str, html: str | None, jobs: str) -> None:
    """Show what each backend does with each rule of the documents.

    The bundled scenarios are run on all of them, about a minute for each. Where releases differ comes first.

    Exit code: as `gradcheck run`; 1 where a backend does neither what is documented nor what is pinned of it.
    """
    try:
        project = load_project()
    except ConfigError as error:
        raise fail(str(error)) from None
    specs = read_bundled()
    chosen = [name.strip() for word in backends for name in word.split(",") if name.strip()] or all_here()
    if pinned:
        for name in chosen:
            check_backend(name)
        cases = plan(specs, chosen)
        results: Sequence[Result] = [assumed(case) for case in cases]
        status = 0
    else:
        places = chosen_backends(chosen, (), project.config, environments_of(leave_of(project, False)), True)
        cases = plan(specs, list(places), places=places)
        results, status = run(cases, number_of_jobs(jobs))
    found = matrix_of(catalogue(), cases, results)
    width = shutil.get_terminal_size((WIDTH, 0)).columns if sys.stdout.isatty() else WIDTH
    if layout == "markdown":
        text = as_markdown(found, programs(found, cases))
    else:
        text = as_json(found) if layout == "json" else as_text(found, width)
    click.echo(text, nl=False)
    if html:
        try:
            Path(html).write_text(as_html(found), encoding="utf-8")
        except OSError as error:
            raise fail(f"--html {html}: {error.strerror or error}") from None
    raise SystemExit(status)


def programs(matrix: Matrix, cases: Sequence[Case]) -> dict[str, str]:
    """For each of the worst findings the program of its first scenario that has one, by that scenario's id."""
    by_scenario = {case.scenario.id: case for case in reversed(cases)}  # the first point of its matrix
    found = {}
    for finding in matrix.grave:
        for id in finding.note.scenarios:
            with suppress(NoProgramError):
                found[id] = reproducer(by_scenario[id])
                break
    return found


def run(cases: Sequence[Case], jobs: int) -> tuple[Sequence[Result], int]:
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
    releases = [name for name in made() if not place_of(name, {}).problem]
    return ["numpy", *(releases or ["paddle"] * (not missing("paddle")))]
