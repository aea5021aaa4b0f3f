"""The backends and where each runs: ``gradcheck backends``, and the choice that a run makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from gradcheck.backends.base import (
    BACKENDS,
    framework_of_backend,
    installed_rows,
    usual_backend,
    version_of,
)
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
from gradcheck.commands.errors import NOTHING_SELECTED
from gradcheck.commands.specs import ids_in, scenario_of
from gradcheck.config import Config, load_project
from gradcheck.run.plan import with_usual_backends
from gradcheck.spec.model import SpecFile
from gradcheck.support.display_paths import align_columns, count
from gradcheck.support.escape import safe
from gradcheck.support.user_error import UserError, refusals_of


@click.group(invoke_without_command=True)
@click.pass_context
def backends(context: click.Context) -> None:
    """List the backends: versions, locations, and why one cannot run.

    Each release of Paddle runs in its own environment: `gradcheck backends add paddle@3.0.0`, then
    `gradcheck run -b numpy,paddle@3.0.0`. Interpreters that exist already can be named under
    [tool.gradcheck.environments] in the project's pyproject.toml.
    """
    if context.invoked_subcommand is not None:
        return
    rows = places_of_backends(load_project().config)
    click.echo(safe("\n".join(align_columns(rows))))
    click.echo(f"\nenvironments are made in {safe(str(folder()))}", err=True)


@backends.command()
@click.argument("names", nargs=-1, required=True, metavar="BACKEND@VERSION...")
def add(names: tuple[str, ...]) -> None:
    """Make the environment of a release, such as paddle@3.0.0, with uv if it is there, otherwise
    with venv and pip.
    """
    require_releases(names)
    for name in names:
        place, state = place_of_backend(name, {}), "there"
        if place.problem:
            place, state = made_environment(name), "ready"
        click.echo(f"{name} is {state}: {safe(place.interpreter)}")


def made_environment(name: str) -> BackendPlace:
    """Make the environment of a release. Raises UserError: it cannot be made, or does not work."""
    with refusals_of(name):
        return make(name, lambda command: click.echo(f"$ {safe(command)}", err=True), problem_of)


@backends.command()
@click.argument("names", nargs=-1, required=True, metavar="BACKEND@VERSION...")
def remove(names: tuple[str, ...]) -> None:
    """Remove environments that `gradcheck backends add` made."""
    require_releases(names)
    for name in names:
        with refusals_of(name):
            is_removed = remove_environment(name)
        if not is_removed:
            raise UserError(
                f"{name} has no environment in {folder()}; `gradcheck backends` lists all"
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
    """Raise UserError: a name is not a backend with a version."""
    for name in names:
        require_backend(name)
        if "@" not in name:
            raise UserError(f"{name}: write a release, such as paddle@3.0.0")


def problem_of(place: BackendPlace) -> str:
    """Run a first case on a backend, and return its error; empty if it passes."""
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
    *,
    specs: Sequence[SpecFile],
) -> dict[str, BackendPlace]:
    """Return the backends of ``-b``, of the case names among `ids`, or of the settings. Backends
    from the settings are completed by the usual backends of frameworks in `specs` that they do not
    run.

    Raises:
        UserError: there is no such backend; one of ``-b``, or a usual one, cannot be used; or
            nothing that is selected can run on them.
    """
    config = config or Config.model_construct()
    in_cases = [name.partition("@")[2] for name in ids if "@" in name]
    named = split_names(names)
    for name in (*in_cases, *named):
        require_backend(name)
    chosen = named or in_cases or with_usual_backends(config.backends, specs)
    places = {name: place_of_backend(name, config.environments) for name in chosen}
    for name, place in places.items():
        if place.problem and (named or name not in (*in_cases, *config.backends)):
            raise UserError(f"backend {name}: {place.problem}")
    report_left_out(specs, ids, places)
    return places


def report_left_out(specs: Sequence[SpecFile], ids: Iterable[str], names: Iterable[str]) -> None:
    """Print how many of the selected scenarios are for a framework that no backend in `names` runs.

    Raises UserError: all selected scenarios are, or one that the user named.
    """
    runs = {framework_of_backend(name) for name in names}
    wanted = {scenario_of(name) for name in ids}
    left_out = [
        spec.framework
        for spec in specs
        if spec.framework not in runs
        for id in ids_in([spec])
        if not wanted or id in wanted
    ]
    if not left_out:
        return
    frameworks = sorted(set(left_out))
    backends = ",".join(map(usual_backend, frameworks))
    text = f"left out: {count(len(left_out), 'scenario')} of {' and '.join(frameworks)}"
    text += f", as -b {backends} is not given"
    if wanted or runs.isdisjoint(spec.framework for spec in specs):
        raise UserError(
            f"{text}; files with layers of {min(runs)} have 'framework: {min(runs)}' at their top",
            NOTHING_SELECTED,
        )
    click.echo(f"gradcheck: {text}", err=True)


def split_names(words: Iterable[str]) -> list[str]:
    """Return the backends in words, with commas or spaces between several."""
    return [name for word in words for name in word.replace(",", " ").split()]


def require_backend(name: str) -> None:
    """Raise UserError: a name is not a backend."""
    if problem := name_problem(name):
        raise UserError(problem)
