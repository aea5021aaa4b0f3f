"""``gradcheck backends``: what scenarios can run on here, and releases in environments of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from gradcheck.backends.base import BACKENDS, version_of
from gradcheck.backends.environments import (
    BackendPlace,
    folder,
    folder_of,
    made_environments,
    make,
    name_problem,
    place_of_backend,
    remove_environment,
)
from gradcheck.commands.choose import check_backend, environments_of, untrusted
from gradcheck.commands.run_options import allow_code_option
from gradcheck.commands.specs import fail
from gradcheck.commands.trust import leave_of
from gradcheck.config import Config, load_project
from gradcheck.result import Result
from gradcheck.run.in_child import warm_up_case
from gradcheck.run.pool import Pool
from gradcheck.run.supervisor import ExecutorError
from gradcheck.support.escape import safe


@click.group(invoke_without_command=True)
@allow_code_option
@click.pass_context
def backends(context: click.Context, allow_code: bool) -> None:
    """List what scenarios can run on: versions, where they are, and why not.

    A release of Paddle runs in an environment of its own: `gradcheck backends add paddle@3.0.0`, then
    `gradcheck run -b numpy,paddle@3.0.0`. Interpreters that exist already can be named under
    [tool.gradcheck.environments] in the pyproject.toml of a trusted project.
    """
    if context.invoked_subcommand is not None:
        return
    leave = leave_of(load_project(), allow_code)
    rows = list(backend_rows(leave.project.config, environments_of(leave)))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, version, state in rows:
        click.echo(safe(f"{name:{widths[0]}}  {version:{widths[1]}}  {state}"))
    click.echo(f"\nenvironments are made in {safe(str(folder()))}", err=True)


@backends.command()
@click.argument("names", nargs=-1, required=True, metavar="BACKEND@VERSION...")
def add(names: tuple[str, ...]) -> None:
    """Make the environment of a release, such as paddle@3.0.0, with uv if it is there, else with venv and pip."""
    for name in names:
        release(name)
    for name in names:
        place = place_of_backend(name, {})
        if not place.problem:
            click.echo(f"{name} is there: {safe(place.interpreter)}")
            continue
        try:
            place = make(name, lambda command: click.echo(f"$ {safe(command)}", err=True), tried)
        except OSError as error:
            raise fail(str(error)) from None
        click.echo(f"{name} is ready: {safe(place.interpreter)}")


@backends.command()
@click.argument("names", nargs=-1, required=True, metavar="BACKEND@VERSION...")
def remove(names: tuple[str, ...]) -> None:
    """Remove environments that `gradcheck backends add` made."""
    for name in names:
        release(name)
    for name in names:
        try:
            there = remove_environment(name)
        except OSError as error:
            raise fail(str(error)) from None
        if not there:
            raise fail(f"{name} has no environment in {folder()}; `gradcheck backends` lists what there is")
        click.echo(f"{name}: {safe(str(folder_of(name)))} is removed")


def backend_rows(config: Config, environments: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Per backend: its name, its version, and where it is or why it cannot run."""
    for name in dict.fromkeys([*BACKENDS, *config.environments, *made_environments()]):
        place = place_of_backend(name, environments)
        python = f" (Python {place.python})" if place.python else ""
        state = f"{place.interpreter or 'here'}{python}"
        if place.problem:
            state = place.problem + untrusted(name, config, environments)
        yield name, version_of(name) or "–", state


def release(name: str) -> None:
    """See that a name is a backend's with a version. Raises SystemExit: it is not."""
    check_backend(name)
    if "@" not in name or name_problem(name):
        raise fail(f"{name}: write a release, such as paddle@3.0.0")


def tried(place: BackendPlace) -> str:
    """What goes wrong with a first case on a backend; empty if nothing does."""
    case = warm_up_case(place.backend).model_copy(update={"interpreter": place.interpreter})
    try:
        with Pool(1) as pool:
            result: Result = pool.run(case)
    except ExecutorError as error:
        return str(error)
    return "" if result.status.green else f"{result.status} {result.message}"
