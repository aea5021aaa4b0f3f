"""Which backends there are, and where each runs; ``gradcheck backends``, and the choice that a run
makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from gradcheck.backends.base import BACKENDS, backend_row, installed_rows, version_of
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

    A release of Paddle runs in an environment of its own: `gradcheck backends add paddle@3.0.0`,
    then `gradcheck run -b numpy,paddle@3.0.0`. Interpreters that exist already can be named under
    [tool.gradcheck.environments] in the project's pyproject.toml.
    """
    if context.invoked_subcommand is not None:
        return
    rows = places_of_backends(load_project().config)
    name_width = max(len(name) for name, _, _ in rows)
    version_width = max(len(version) for _, version, _ in rows)
    for name, version, state in rows:
        click.echo(safe(f"{name:{name_width}}  {version:{version_width}}  {state}"))
    click.echo(f"\nenvironments are made in {safe(str(folder()))}", err=True)


@backends.command()
@click.argument("names", nargs=-1, required=True, metavar="BACKEND@VERSION...")
def add(names: tuple[str, ...]) -> None:
    """Make the environment of a release, such as paddle@3.0.0, with uv if it is there, else with
    venv and pip.
    """
    require_releases(names)
    for name in names:
        place, state = place_of_backend(name, {}), "there"
        if place.problem:
            place, state = made_environment(name), "ready"
        click.echo(f"{name} is {state}: {safe(place.interpreter)}")


def made_environment(name: str) -> BackendPlace:
    """Make the environment of a release. Raises UserError: the system refuses it, or it fails."""
    try:
        return make(name, lambda command: click.echo(f"$ {safe(command)}", err=True), problem_of)
    except OSError as error:
        raise UserError(str(error)) from None


@backends.command()
@click.argument("names", nargs=-1, required=True, metavar="BACKEND@VERSION...")
def remove(names: tuple[str, ...]) -> None:
    """Remove environments that `gradcheck backends add` made."""
    require_releases(names)
    for name in names:
        try:
            is_removed = remove_environment(name)
        except OSError as error:
            raise UserError(str(error)) from None
        if not is_removed:
            raise UserError(
                f"{name} has no environment in {folder()}; `gradcheck backends` lists what there is"
            )
        click.echo(f"{name}: {safe(str(folder_of(name)))} is removed")


def places_of_backends(config: Config) -> list[tuple[str, str, str]]:
    """Return per backend: its name, its version, and where it is or why it cannot run."""
    rows = []
    for name in dict.fromkeys(
        [
            *BACKENDS,
            *installed_rows(),
            *config.environments,
            *made_environments(),
        ]
    ):
        place = place_of_backend(name, config.environments)
        python = f" (Python {place.python})" if place.python else ""
        state = place.problem or f"{place.interpreter or 'here'}{python}"
        rows.append((name, version_of(name) or "–", state))
    return rows


def require_releases(names: Iterable[str]) -> None:
    """Raise UserError: a name is not that of a backend with a version."""
    for name in names:
        require_backend(name)
        if "@" not in name:
            raise UserError(f"{name}: write a release, such as paddle@3.0.0")


def problem_of(place: BackendPlace) -> str:
    """Return what goes wrong with a first case on a backend; empty if nothing does."""
    from gradcheck.run.in_case import warm_up_case
    from gradcheck.run.runner import Runner, RunnerError

    case = warm_up_case(place.backend).model_copy(update={"interpreter": place.interpreter})
    try:
        with Runner(1) as runner:
            result = runner.run(case)
    except RunnerError as error:
        return str(error)
    return "" if result.status.green else f"{result.status} {result.message}"


# --------------------------------------------------------------------------- the choice of a run
def chosen_backends(
    names: Sequence[str],
    ids: Sequence[str] = (),
    config: Config | None = None,
    required: bool = True,
) -> dict[str, BackendPlace]:
    """Return those of ``-b``, or of the case names among `ids`, or of the settings, or numpy.

    Raises:
        UserError: there is no such backend, or one cannot be used that ``-b`` names, that is
            `required`, or that needs no package.
    """
    config = config or Config.model_construct()
    in_cases = [name.partition("@")[2] for name in ids if "@" in name]
    named = split_names(names)
    chosen = named or in_cases or config.backends or ["numpy"]
    for name in (*in_cases, *chosen):
        require_backend(name)
    places = {}
    for name in chosen:
        place = places[name] = place_of_backend(name, config.environments)
        is_needed = named or required or not backend_row(name).requirement
        if place.problem and is_needed:
            raise UserError(f"backend {name}: {place.problem}")
    return places


def split_names(words: Iterable[str]) -> list[str]:
    """Return the backends that words name, between commas."""
    return [name.strip() for word in words for name in word.split(",") if name.strip()]


def require_backend(name: str) -> None:
    """Raise UserError: a name is not that of a backend."""
    if problem := name_problem(name):
        raise UserError(problem)
