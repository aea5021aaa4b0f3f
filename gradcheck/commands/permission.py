"""Permission to run code from the user's spec files, given by --allow-code, the environment or the
project; and the message if it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
from click.core import ParameterSource

from gradcheck.case.case import Case
from gradcheck.commands.shared_options import VARIABLE
from gradcheck.config import Project
from gradcheck.spec.model import LayerRef, Scenario
from gradcheck.support.display_paths import count, shown_path
from gradcheck.support.escape import one_line
from gradcheck.support.resources import bundled_specs
from gradcheck.support.user_error import UserError


class Permission(NamedTuple):
    """Permission to run code from specs and modules: its source, and the code that it covers."""

    for_all: bool
    """Whether --allow-code or the environment gives permission."""
    by_variable: bool
    project: Project

    def covers(self, path: Path) -> bool:
        """Whether code of a spec file may run: a project's permission covers the files inside
        it.
        """
        file = self.project.file
        if self.for_all or file is None or not self.project.config.allow_code:
            return self.for_all
        # A spec from stdin is in no project.
        return str(path) != "-" and path.resolve().is_relative_to(file.parent.resolve())

    def summary(self) -> str:
        """Return in one line the permission of the project and the environment; empty if there is
        none.
        """
        parts = [f"code allowed by {VARIABLE}"] if self.by_variable else []
        if self.project.file is not None:
            keys = ", ".join(self.project.table)
            parts.append(f"{shown_path(str(self.project.file))} sets {keys}")
        return " · ".join(parts)


def permission_of(project: Project, allow_code: bool) -> Permission:
    """Return this command's permission to run code."""
    source = click.get_current_context().get_parameter_source("allow_code")
    return Permission(allow_code, source is ParameterSource.ENVIRONMENT, project)


def require_permission(cases: Sequence[Case], permission: Permission) -> None:
    """Refuse to run code of `cases` without permission; nothing has been imported or run.

    Raises UserError: there is such code; all its source positions have been printed.
    """
    bundled = bundled_specs().resolve()
    scenarios = {id(case.scenario): case.scenario for case in cases if case.not_run() is None}
    refused = [
        f"{shown_path(scenario.path)}:{line}: {scenario.id} would run {code}"
        for scenario in scenarios.values()
        if not Path(scenario.path).resolve().is_relative_to(bundled)
        if not permission.covers(Path(scenario.path))
        for line, code in code_in(scenario)
    ]
    if not refused:
        return
    click.echo("\n".join(refused), err=True)
    how = (
        ", or for this project with `allow-code = true` under [tool.gradcheck] in its "
        "pyproject.toml"
    )
    if permission.project.config.allow_code:
        how = "; the project allows only the files inside its folder"
    raise UserError(
        "this code is not from gradcheck, so it was not run. Read it; then allow it with "
        f"--allow-code{how}"
    )


def code_in(scenario: Scenario) -> Iterator[tuple[int, str]]:
    """Yield the line of each piece of code that running `scenario` executes, and a description of
    it.
    """
    for key, code in (("layer", scenario.layer), ("script", scenario.script)):
        if isinstance(code, str):
            lines = count(len(code.splitlines()), "line")
            yield scenario.line_of(key), f"its {key}, {lines} of Python"
        if isinstance(code, LayerRef):
            for reference in code.references:
                yield scenario.line_of(key), f"what importing {reference} runs"
    if scenario.call is not None:
        yield scenario.line_of("call"), f"call: {one_line(scenario.call)[:100]}"
    for path, expect in scenario.expectations():
        place = ".".join(str(step) for step in path if isinstance(step, str))
        for expression in expect.values:
            line = scenario.line_of(f"{place}.values.{expression}")
            yield line, f"the expression {one_line(expression)[:100]}"
