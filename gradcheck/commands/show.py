"""``gradcheck list`` and ``show``: scenarios as their files have them, in a line each or whole. Nothing is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradcheck.commands.errors import NOTHING_SELECTED
from gradcheck.commands.shared_options import bundled_option, scenarios, selection_options
from gradcheck.commands.specs import read_specs
from gradcheck.run.plan import plan
from gradcheck.run.select import nothing_selected, select, select_ids
from gradcheck.spec.text import read_text
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import one_line, safe
from gradcheck.support.user_error import UserError

if TYPE_CHECKING:
    from gradcheck.spec.model import Scenario, SpecFile


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
    specs, ids = read_specs(names, bundled=bundled, command="list")
    everything = plan(specs, ["numpy"])
    cases = select(everything, ids, keywords, tags)
    selected = list({case.scenario.id: case.scenario for case in cases}.values())
    if not selected:
        raise UserError(nothing_selected(keywords, everything), NOTHING_SELECTED)
    if as_json:
        click.echo(json.dumps([plain(scenario) for scenario in selected], indent=1))
        return
    width = max(len(scenario.id) for scenario in selected)
    for scenario in selected:
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


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="[PATH]... ID...", shell_complete=scenarios)
@click.option(
    "--reproduce", is_flag=True, help="Print a program that shows without gradcheck what releases do instead."
)
def show(names: tuple[str, ...], reproduce: bool) -> None:
    """Show scenarios as their files have them: source, code and expectations.

    What a scenario takes over from another one and from the file's defaults is shown as well. With --reproduce, a
    program for each scenario of which it is pinned that a release of Paddle does not do what is asked for: it ends
    well where that is done, and dies or raises on such a release.
    """
    specs, ids = read_specs(names)
    if not ids:
        raise UserError("name the scenario to show; `gradcheck list` shows what there is")
    cases = select_ids(plan(specs, ["numpy"]), ids)
    if reproduce:
        from gradcheck.matrix.reproduce import reproducer  # here: it needs NumPy, without which `show` is quicker

        for case in {case.scenario.id: case for case in reversed(cases)}.values():
            click.echo(safe(reproducer(case)), nl=False)
        return
    chosen = {case.scenario.id: case.scenario for case in cases}
    for spec in specs:
        known = {scenario.id: scenario for scenario in spec.scenarios}
        for scenario in known.values():
            if scenario.id in chosen:
                show_defaults(spec)
                show_layer(scenario, spec)
                chain: Scenario | None = scenario
                while chain is not None:
                    click.echo(f"# {shown_path(chain.path)}:{chain.line}:{chain.column}\n{safe(source(chain, spec))}")
                    chain = known.get(chain.extends or "")


def show_defaults(spec: SpecFile) -> None:
    """The file's defaults in one line, if it has any."""
    defaults = spec.defaults.model_dump(mode="json", exclude_unset=True)
    if defaults:
        click.echo(safe(f"# defaults: {json.dumps(defaults, ensure_ascii=False)}"))


def show_layer(scenario: Scenario, spec: SpecFile) -> None:
    """The layer's source, if the scenario has it from the file's layers."""
    if isinstance(scenario.layer, str) and scenario.layer in spec.layers.values():
        place = f"{shown_path(scenario.path)}:{scenario.line_of('layer')}"
        click.echo(f"# its layer, {place}\n{safe(scenario.layer.rstrip())}")


def source(scenario: Scenario, spec: SpecFile) -> str:
    """The scenario's lines in its file, without what introduces the next one; of a case, what it shares before it."""
    lines = read_text(Path(scenario.path), scenario.path).original
    starts = sorted({line for other in spec.scenarios for line in (other.line, other.begins)} | {len(lines) + 1})

    def block(first: int, column: int) -> list[str]:
        found = lines[first - 1 : next(line for line in starts if line > first) - 1]
        while found and is_between(found[-1], column - 1):
            found.pop()
        return found

    shared = block(scenario.begins, 1) if scenario.begins != scenario.line else []
    return "\n".join([*shared, *block(scenario.line, scenario.column)])


def is_between(line: str, indentation: int) -> bool:
    """Whether a line at the end of a scenario, whose keys stand at `indentation`, is no part of it."""
    text = line.lstrip(" ")
    return not text or (text.startswith("#") and len(line) - len(text) < indentation)
