"""Code in spec files that are not ours runs only if the user, or the user's project, allows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradcheck.case.case import Case
from gradcheck.commands.specs import fail
from gradcheck.escape import one_line
from gradcheck.report.text import shown_path
from gradcheck.resources import bundled_specs

if TYPE_CHECKING:
    from gradcheck.spec.model import Scenario

REFUSALS_SHOWN = 20


def require_trust(cases: Sequence[Case], allowed: bool) -> None:
    """Refuse to run code of `cases` from files that are not ours unless the user or the project allows it.

    Raises:
        SystemExit: there is such code; every place is named, and nothing has been imported or run.
    """
    bundled = bundled_specs().resolve()
    scenarios = {id(case.scenario): case.scenario for case in cases if case.not_run() is None}
    outside = [one for one in scenarios.values() if not Path(one.path).resolve().is_relative_to(bundled)]
    refused = [(one, line, what) for one in outside for line, what in code_in(one)]
    if allowed or not refused:
        return
    for scenario, line, what in refused[:REFUSALS_SHOWN]:
        click.echo(f"{shown_path(scenario.path)}:{line}: {scenario.id} would run {what}", err=True)
    if len(refused) > REFUSALS_SHOWN:
        click.echo(f"and {len(refused) - REFUSALS_SHOWN} more", err=True)
    raise fail(
        "this code is not from gradcheck, so it was not run. Read it; then allow it with --allow-code, "
        "or for this project with `allow-code = true` under [tool.gradcheck] in its pyproject.toml"
    )


def code_in(scenario: Scenario) -> Iterator[tuple[int, str]]:
    """The file line of each piece of code that running `scenario` would run, and what it is."""
    for key in ("layer", "script"):
        code = getattr(scenario, key)
        if isinstance(code, str):
            yield scenario.line_of(key), f"its {key}, {len(code.splitlines())} lines of Python"
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
