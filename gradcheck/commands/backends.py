"""Which backends there are, and where each runs; ``gradcheck backends``, and the choice that a run makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import click

from gradcheck.backends.base import BACKENDS, kind_of, version_of
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
from gradcheck.config import Config, load_project
from gradcheck.support.escape import safe
from gradcheck.support.user_error import UserError


@click.group(invoke_without_command=True)
@click.pass_context
def backends(context: click.Context) -> None:
    """List what scenarios can run on: versions, where they are, and why not.

    A release of Paddle runs in an environment of its own: `gradcheck backends add paddle@3.0.0`, then
    `gradcheck run -b numpy,paddle@3.0.0`. Interpreters that exist already can be named under
    [tool.gradcheck.environments] in the project's pyproject.toml.
    """
    if context.invoked_subcommand is not None:
        return
    rows = list(backend_rows(load_project().config))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, version, state in rows:
        click.echo(safe(f"{name:{widths[0]}}  {version:{widths[1]}}  {state}"))
    click.echo(f"\nenvironments are made in {safe(str(folder()))}", err=True)


@backends.command()
@click.argument("names", nargs=-1, required=True, metavar="BACKEND@VERSION...")
def add(names: tuple[str, ...]) -> None:
    """Make the environment of a release, such as paddle@3.0.0, with uv if it is there, else with venv and pip."""
    check_releases(names)
    for name in names:
        place = place_of_backend(name, {})
        if not place.problem:
            click.echo(f"{name} is there: {safe(place.interpreter)}")
            continue
        try:
            place = make(name, lambda command: click.echo(f"$ {safe(command)}", err=True), tried)
        except OSError as error:
            raise UserError(str(error)) from None
        click.echo(f"{name} is ready: {safe(place.interpreter)}")


@backends.command()
@click.argument("names", nargs=-1, required=True, metavar="BACKEND@VERSION...")
def remove(names: tuple[str, ...]) -> None:
    """Remove environments that `gradcheck backends add` made."""
    check_releases(names)
    for name in names:
        try:
            there = remove_environment(name)
        except OSError as error:
            raise UserError(str(error)) from None
        if not there:
            raise UserError(
                f"{name} has no environment in {folder()}; `gradcheck backends` lists what there is"
            )
        click.echo(f"{name}: {safe(str(folder_of(name)))} is removed")


def backend_rows(config: Config) -> Iterator[tuple[str, str, str]]:
    """Per backend: its name, its version, and where it is or why it cannot run."""
    for name in dict.fromkeys([*BACKENDS, *config.environments, *made_environments()]):
        place = place_of_backend(name, config.environments)
        python = f" (Python {place.python})" if place.python else ""
        state = f"{place.interpreter or 'here'}{python}"
        if place.problem:
            state = place.problem
        yield name, version_of(name) or "–", state


def check_releases(names: Sequence[str]) -> None:
    """See that names are those of backends, each with a version."""
    for name in names:
        check_backend(name)
        if "@" not in name:
            raise UserError(f"{name}: write a release, such as paddle@3.0.0")


def tried(place: BackendPlace) -> str:
    """What goes wrong with a first case on a backend; empty if nothing does."""
    from gradcheck.run.in_case import warm_up_case
    from gradcheck.run.runner import Runner, RunnerError

    case = warm_up_case(place.backend).model_copy(update={"interpreter": place.interpreter})
    try:
        with Runner(1) as runner:
            result = runner.run(case)
    except RunnerError as error:
        return str(error)
    return "" if result.status.green else f"{result.status} {result.message}"


# ------------------------------------------------------------------------------------------ the choice of a run
_IN_CASE = re.compile(rf"@(({'|'.join(BACKENDS)})(@[^@]+)?)$")


def chosen_backends(
    names: Sequence[str],
    ids: Sequence[str] = (),
    config: Config | None = None,
    required: bool = True,
) -> dict[str, BackendPlace]:
    """Those of ``-b``, or of the case names among `ids`, or of the configuration, or numpy; commas separate as well.

    `config` has the project's settings.

    Raises:
        UserError: there is no such backend, or one that ``-b`` names, that is `required`, or that needs nothing
            further, cannot be used.
    """
    config = config or Config.model_construct()
    environments = config.environments
    named = split_names(names)
    for name in ids:
        if "@" in name and not _IN_CASE.search(name):
            check_backend(name.partition("@")[2])
    in_cases = [match[1] for match in map(_IN_CASE.search, ids) if match]
    chosen = list(dict.fromkeys(named or in_cases or config.backends or ["numpy"]))
    for name in chosen:
        check_backend(name)
    found = {name: place_of_backend(name, environments) for name in chosen}
    for name, place in found.items():
        if place.problem and (named or required or not BACKENDS[kind_of(name)].extra):
            raise UserError(f"backend {name}: {place.problem}")
    return found


def split_names(words: Sequence[str]) -> list[str]:
    """The backends that words name, between commas."""
    return [name.strip() for word in words for name in word.split(",") if name.strip()]


def check_backend(name: str) -> None:
    """See that a name is that of a backend."""
    if problem := name_problem(name):
        raise UserError(problem)
