"""``gradcheck list``."""

from __future__ import annotations

import click

from gradcheck.commands.specs import NOTHING_SELECTED, fail, read_specs, selection_options
from gradcheck.config import ConfigError, load_config
from gradcheck.escape import one_line
from gradcheck.report.text import shown_path
from gradcheck.run.plan import plan
from gradcheck.run.select import SelectionError, select


@click.command("list")
@click.argument("names", nargs=-1, metavar="[PATH|ID]...")
@selection_options
def list_scenarios(names: tuple[str, ...], keywords: str | None, tags: str | None) -> None:
    """List scenarios: id, title, tags, and where each stands.

    Without arguments, those of the files that [tool.gradcheck] names, or else the bundled ones.
    """
    try:
        specs, ids = read_specs(names, load_config().paths)
        cases = select(plan(specs, ["numpy"]), ids, keywords, tags)
    except (ConfigError, SelectionError) as error:
        raise fail(str(error)) from None
    scenarios = list({case.scenario.id: case.scenario for case in cases}.values())
    if not scenarios:
        raise fail("nothing is selected", NOTHING_SELECTED)
    width = max(len(scenario.id) for scenario in scenarios)
    for scenario in scenarios:
        tag_list = f"  [{', '.join(scenario.tags)}]" if scenario.tags else ""
        where = f"{shown_path(scenario.path)}:{scenario.line}"
        click.echo(f"{scenario.id:<{width}}  {one_line(scenario.title)}{tag_list}  {where}")
