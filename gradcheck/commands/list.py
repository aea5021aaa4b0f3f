"""``gradcheck list``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from gradcheck.commands.exits import NOTHING_SELECTED
from gradcheck.commands.specs import fail, read_specs, selection_options
from gradcheck.config import ConfigError, load_config
from gradcheck.escape import one_line
from gradcheck.run.plan import plan
from gradcheck.run.select import SelectionError, nothing_selected, select
from gradcheck.shown import shown_path

if TYPE_CHECKING:
    from gradcheck.spec.model import Scenario


@click.command("list")
@click.argument("names", nargs=-1, metavar="[PATH|ID]...")
@selection_options
@click.option("--json", "as_json", is_flag=True, help="As a JSON list, for programs.")
def list_scenarios(names: tuple[str, ...], keywords: str | None, tags: str | None, as_json: bool) -> None:
    """List scenarios: id, title, tags, and where each stands.

    Without arguments, those of the files that [tool.gradcheck] names, or else the bundled ones.
    """
    try:
        specs, ids = read_specs(names, load_config().paths)
        everything = plan(specs, ["numpy"])
        cases = select(everything, ids, keywords, tags)
    except (ConfigError, SelectionError) as error:
        raise fail(str(error)) from None
    scenarios = list({case.scenario.id: case.scenario for case in cases}.values())
    if not scenarios:
        raise fail(nothing_selected(keywords, everything), NOTHING_SELECTED)
    if as_json:
        click.echo(json.dumps([plain(scenario) for scenario in scenarios], indent=1))
        return
    width = max(len(scenario.id) for scenario in scenarios)
    for scenario in scenarios:
        tag_list = f"  [{', '.join(scenario.tags)}]" if scenario.tags else ""
        where = f"{shown_path(scenario.path)}:{scenario.line}"
        click.echo(f"{scenario.id:<{width}}  {one_line(scenario.title or '')}{tag_list}  {where}")


def plain(scenario: Scenario) -> dict[str, Any]:
    """What is listed of a scenario."""
    return {
        "id": scenario.id,
        "title": scenario.title,
        "tags": list(scenario.tags),
        "path": shown_path(scenario.path),
        "line": scenario.line,
        "matrix": {name: list(values) for name, values in scenario.matrix.items()},
    }
