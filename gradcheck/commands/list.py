"""``gradcheck list``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gradcheck.case.naming import case_name, points
from gradcheck.commands.exits import NOTHING_SELECTED
from gradcheck.commands.specs import bundled_option, fail, find_specs, is_path, read_specs, selection_options
from gradcheck.run.select import nothing_selected, select
from gradcheck.support import gc_pause as garbage
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import one_line
from gradcheck.support.resources import bundled_files

if TYPE_CHECKING:
    from gradcheck.spec.model import Scenario
    from gradcheck.spec.outline import Outline


class Listed(NamedTuple):
    """A case, as far as it can be selected: its name and its scenario."""

    name: str
    scenario: Scenario | Outline


@click.command("list")
@click.argument("names", nargs=-1, metavar="[PATH|ID]...")
@bundled_option
@selection_options
@click.option("--json", "as_json", is_flag=True, help="As a JSON list, for programs.")
def list_scenarios(
    names: tuple[str, ...], bundled: bool, keywords: str | None, tags: str | None, as_json: bool
) -> None:
    """List scenarios: id, title, tags, and where each stands.

    Without a PATH, those of the project: of the files that [tool.gradcheck] names, or else of all *.grad.yaml files
    below its root. An ID that the project has not may be one of gradcheck's own.
    """
    scenarios, ids = scenarios_of(names, bundled)
    everything = [Listed(case_name(one.id, at, "numpy"), one) for one in scenarios for at in points(one.matrix)]
    cases = select(everything, ids, keywords, tags)
    selected = list({case.scenario.id: case.scenario for case in cases}.values())
    if not selected:
        raise fail(nothing_selected(keywords, everything), NOTHING_SELECTED)
    if as_json:
        click.echo(json.dumps([plain(scenario) for scenario in selected], indent=1))
        return
    width = max(len(scenario.id) for scenario in selected)
    for scenario in selected:
        tag_list = f"  [{', '.join(scenario.tags)}]" if scenario.tags else ""
        where = f"{shown_path(scenario.path)}:{scenario.line}"
        click.echo(f"{scenario.id:<{width}}  {one_line(scenario.title or '')}{tag_list}  {where}")


def scenarios_of(names: Sequence[str], bundled: bool) -> tuple[Sequence[Scenario | Outline], list[str]]:
    """The scenarios of the files that `names`, the project or `bundled` mean, and the names that are ids instead.

    Of the bundled specs, which tests hold free of mistakes, only what is listed is read.
    """
    without_specs = bundled or (bool(names) and not any(find_specs(())))  # the latter: ids, and a project without any
    if without_specs and not any(map(is_path, names)):
        with garbage.kept():
            from gradcheck.spec.outline import outlines

            files = [outlines(file) for file in bundled_files()]
        if None not in files:
            return [one for file in files for one in file or ()], list(names)
    specs, ids = read_specs(names, bundled=bundled, command="list")
    return [scenario for spec in specs for scenario in spec.scenarios], ids


def plain(scenario: Scenario | Outline) -> dict[str, Any]:
    """What is listed of a scenario."""
    return {
        "id": scenario.id,
        "title": scenario.title,
        "tags": list(scenario.tags),
        "path": shown_path(scenario.path),
        "line": scenario.line,
        "matrix": {name: list(values) for name, values in scenario.matrix.items()},
    }
