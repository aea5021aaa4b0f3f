"""``gradcheck trust``, and whose word counts: code in spec files that are not ours runs only if the user, or a project
that the user trusts, allows it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from click.core import ParameterSource

from gradcheck.case.case import Case
from gradcheck.commands.shared_options import VARIABLE
from gradcheck.config import Project, load_project
from gradcheck.support import trusted
from gradcheck.support.bounded import read_bounded
from gradcheck.support.display_paths import count, shown_path
from gradcheck.support.escape import one_line, safe
from gradcheck.support.pyproject import MOST_PYPROJECT_BYTES, ConfigError, nearest_file
from gradcheck.support.resources import bundled_specs
from gradcheck.support.trusted import Standing
from gradcheck.support.user_error import UserError

if TYPE_CHECKING:
    from gradcheck.spec.model import Scenario

REFUSALS_SHOWN = 20
SECTION = "[tool.gradcheck]"


# ------------------------------------------------------------------------------------- the command
@click.command()
@click.argument("path", default=".", metavar="[PATH]", type=click.Path(path_type=Path))
@click.option("--list", "listed", is_flag=True, help="List the projects that are trusted.")
@click.option("--revoke", is_flag=True, help="Trust the project no more.")
def trust(path: Path, listed: bool, revoke: bool) -> None:
    """Trust a project: believe `allow-code`, `environments`, and `paths` that lead out of it, in its pyproject.toml.

    PATH is a folder of the project, by default the current one; its pyproject.toml is the nearest one upward, no
    further than a folder with .git. Code in the spec files of that project then runs without --allow-code, and the
    interpreters that it names are started, until its [tool.gradcheck] changes. Read them first: such code can do what
    you can do.
    """
    if listed and revoke:
        raise UserError("--list shows what is trusted, and --revoke ends it: use one of them")
    if listed:
        known = trusted.trusted_digests()
        for root in sorted(known):
            click.echo(f"{safe(root)}: {one_line(state_of(root, known))}")
        if not known:
            click.echo("no project is trusted")
    elif revoke:
        revoke_trust(path)
    else:
        give_trust(path)


def state_of(root: str, known: Mapping[str, str]) -> str:
    """How a project of the user's list stands."""
    if not os.path.isdir(root):
        return "it is not there any more"
    try:
        project = load_project(Path(root))
    except ConfigError as error:
        return str(error)
    if project.file is None or str(project.file.parent) != root:
        return "it has no [tool.gradcheck] any more"
    return trusted.standing(project, known)


def revoke_trust(path: Path) -> None:
    """Trust the project of `path` no more, or the one that was there."""
    here = Path(os.path.realpath(path))
    file = nearest_file(here)
    for folder in (here, *([file.parent] if file else [])):
        if trusted.revoke(folder):
            click.echo(f"{safe(str(folder))}: not trusted any more")
            return
    raise UserError(f"{here}: not trusted; `gradcheck trust --list` shows what is")


def give_trust(path: Path) -> None:
    """Trust the project of `path`, and show what is believed from now on."""
    if not path.is_dir():
        raise UserError(f"{path}: name a folder of the project")
    project = load_project(path)
    if project.file is None:
        raise UserError(f"{path}: there is no pyproject.toml with {SECTION} to trust; `gradcheck init` writes one")
    if not project.asks:
        what = f"{SECTION} asks for nothing that needs trust; write `allow-code = true` there first"
        raise UserError(f"{shown_path(str(project.file))}: {what}")
    trusted.trust_root(project.file.parent, project.table)
    if project.config.allow_code:
        click.echo(asking(project))
    for name, interpreter in project.config.environments.items():
        click.echo(f"{shown_path(str(project.file))}: {name} is run by {safe(interpreter)}")
    for outside in project.outside:
        click.echo(f"{shown_path(str(project.file))}: {safe(outside)} is read")
    click.echo(f"{safe(str(project.file.parent))}: trusted until {SECTION} changes")


# --------------------------------------------------------------------------------------- the leave
class Leave(NamedTuple):
    """Whether code in files that are not ours may run, and whose word that is."""

    for_all: bool
    """By --allow-code, or by the environment."""
    by_variable: bool
    project: Project
    standing: Standing | None
    """How a project stands that asks for leave; None if it does not."""

    @property
    def trusted(self) -> bool:
        """Whether the project's word counts."""
        return self.standing is Standing.TRUSTED

    def covers(self, path: Path) -> bool:
        """Whether code of the spec file may run: a project speaks for files in its folder, and those it names."""
        if self.for_all or not self.trusted or self.project.file is None or not self.project.config.allow_code:
            return self.for_all
        places = [self.project.file.parent, *map(Path, self.project.config.paths)]
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(os.path.realpath(place)) for place in places)

    def believed(self) -> str:
        """What of the project and of the environment is believed, in one line; empty if they say nothing."""
        parts = [f"code allowed by {VARIABLE}"] * self.by_variable
        if self.project.file is not None:
            keys = [key for key in self.project.table if key not in self.project.asks]
            asked = [f"its {key} {self.holds(key)}: the project is {self.standing}" for key in self.project.asks]
            said = [f"sets {', '.join(keys)}"] * bool(keys) + asked
            parts.append(f"{shown_path(str(self.project.file))} {' · '.join(said)}")
        return " · ".join(parts)

    def holds(self, key: str) -> str:
        """Whether the project's word counts, of a key."""
        plural = key.endswith("s")
        return ("hold" if plural else "holds") if self.trusted else ("do not hold" if plural else "does not hold")


def leave_of(project: Project, allow_code: bool) -> Leave:
    """The leave that this command has. Raises ConfigError: the user's list of trusted projects cannot be read."""
    source = click.get_current_context().get_parameter_source("allow_code")
    by_variable = allow_code and source is ParameterSource.ENVIRONMENT
    return Leave(allow_code, by_variable, project, trusted.standing(project) if project.asks else None)


def asking(project: Project) -> str:
    """The place and the text of the line in which a project asks for leave."""
    number = 1
    with suppress(OSError, ValueError):
        lines = read_bounded(project.file or Path(), MOST_PYPROJECT_BYTES).decode("utf-8").splitlines()
        number = next((at for at, line in enumerate(lines, 1) if re.match(r"[^#]*\ballow-code\b", line)), 1)
    return f"{shown_path(str(project.file))}:{number}: allow-code = true"


def require_trust(cases: Sequence[Case], leave: Leave) -> None:
    """Refuse to run code of `cases` from files that are not ours without leave; nothing has been imported or run.

    Raises UserError: there is such code; every place has been named.
    """
    bundled = bundled_specs().resolve()
    scenarios = {id(case.scenario): case.scenario for case in cases if case.not_run() is None}
    outside = [one for one in scenarios.values() if not Path(one.path).resolve().is_relative_to(bundled)]
    refused = [(one, line, what) for one in outside for line, what in code_in(one) if not leave.covers(Path(one.path))]
    if not refused:
        return
    for scenario, line, what in refused[:REFUSALS_SHOWN]:
        click.echo(f"{shown_path(scenario.path)}:{line}: {scenario.id} would run {what}", err=True)
    if len(refused) > REFUSALS_SHOWN:
        click.echo(f"and {len(refused) - REFUSALS_SHOWN} more", err=True)
    how = f", or for this project with `allow-code = true` under {SECTION} in its pyproject.toml and `gradcheck trust`"
    if not leave.project.config.allow_code:
        pass
    elif leave.trusted:
        how = ": the trusted project speaks only for files in its folder, and for those that it names"
    else:
        click.echo(f"{asking(leave.project)} {leave.holds('allow-code')}: the project is {leave.standing}", err=True)
        how = ", or for this project with `gradcheck trust`"
    allow = f"Read it; then allow it with --allow-code{how}"
    raise UserError(f"this code is not from gradcheck, so it was not run. {allow}")


def code_in(scenario: Scenario) -> Iterator[tuple[int, str]]:
    """The file line of each piece of code that running `scenario` would run, and what it is."""
    for key in ("layer", "script"):
        code = getattr(scenario, key)
        if isinstance(code, str):
            yield scenario.line_of(key), f"its {key}, {count(len(code.splitlines()), 'line')} of Python"
    if reference := getattr(scenario.layer, "ref", ""):
        yield scenario.line_of("layer"), f"what importing {reference} runs"
    if scenario.call is not None:
        yield scenario.line_of("call"), f"call: {one_line(scenario.call)[:100]}"
    expectations = [("expect", scenario.expect)]
    for name in scenario.backends:
        for one in scenario.entries_of(name):
            places = (("expect", one.expect), ("observed", one.observed))
            expectations += [(f"backends.{name}.{key}", expect) for key, expect in places if expect]
    for place, expect in expectations:
        for expression in expect.values:
            yield scenario.line_of(f"{place}.values.{expression}"), f"the expression {one_line(expression)[:100]}"
