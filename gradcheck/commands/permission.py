"""Permission to run code in spec files that are not gradcheck's: the user's, or that of the project one works in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from click.core import ParameterSource

from gradcheck.case.case import Case
from gradcheck.commands.shared_options import VARIABLE
from gradcheck.config import Project
from gradcheck.support.display_paths import count, shown_path
from gradcheck.support.escape import one_line
from gradcheck.support.resources import bundled_specs
from gradcheck.support.user_error import UserError

if TYPE_CHECKING:
    from gradcheck.spec.model import Scenario

REFUSALS_SHOWN = 20


class Permission(NamedTuple):
    """Which code may run, and who says so."""

    for_all: bool
    """By --allow-code, or by the environment."""
    by_variable: bool
    project: Project

    def covers(self, path: Path) -> bool:
        """Whether code of a spec file may run: a project speaks for the files inside it."""
        if self.for_all or self.project.file is None or not self.project.config.allow_code:
            return self.for_all
        return Path(os.path.realpath(path)).is_relative_to(
            os.path.realpath(self.project.file.parent)
        )

    def summary(self) -> str:
        """Return in one line what the project and the environment set; empty if they set nothing."""
        parts = [f"code allowed by {VARIABLE}"] if self.by_variable else []
        if self.project.file is not None:
            parts.append(
                f"{shown_path(str(self.project.file))} sets {', '.join(self.project.table)}"
            )
        return " · ".join(parts)


def permission_of(project: Project, allow_code: bool) -> Permission:
    """Return the permission that this command has."""
    source = click.get_current_context().get_parameter_source("allow_code")
    return Permission(allow_code, allow_code and source is ParameterSource.ENVIRONMENT, project)


def require_permission(cases: Sequence[Case], permission: Permission) -> None:
    """Refuse to run code of `cases` without permission; nothing has been imported or run.

    Raises UserError: there is such code; every place has been named.
    """
    bundled = bundled_specs().resolve()
    scenarios = {id(case.scenario): case.scenario for case in cases if case.not_run() is None}
    outside = [
        one for one in scenarios.values() if not Path(one.path).resolve().is_relative_to(bundled)
    ]
    refused = [
        f"{shown_path(scenario.path)}:{line}: {scenario.id} would run {what}"
        for scenario in outside
        if not permission.covers(Path(scenario.path))
        for line, what in code_in(scenario)
    ]
    if not refused:
        return
    for text in refused[:REFUSALS_SHOWN]:
        click.echo(text, err=True)
    if len(refused) > REFUSALS_SHOWN:
        click.echo(f"and {len(refused) - REFUSALS_SHOWN} more", err=True)
    how = (
        "or for this project with `allow-code = true` under [tool.gradcheck] in its pyproject.toml"
    )
    if permission.project.config.allow_code:
        how = "the project allows only the files inside its folder"
    raise UserError(
        f"this code is not from gradcheck, so it was not run. Read it; then allow it with --allow-code, {how}"
    )


def code_in(scenario: Scenario) -> Iterator[tuple[int, str]]:
    """Yield the file line of each piece of code that running `scenario` would run, and what it is."""
    for key in ("layer", "script"):
        code = getattr(scenario, key)
        if isinstance(code, str):
            yield (
                scenario.line_of(key),
                f"its {key}, {count(len(code.splitlines()), 'line')} of Python",
            )
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
            yield (
                scenario.line_of(f"{place}.values.{expression}"),
                f"the expression {one_line(expression)[:100]}",
            )
