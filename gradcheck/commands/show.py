"""``gradcheck show``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradcheck.commands import completion
from gradcheck.commands.specs import fail, read_specs
from gradcheck.run.plan import plan
from gradcheck.run.select import select_ids
from gradcheck.spec.text import read_text
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import safe

if TYPE_CHECKING:
    from gradcheck.spec.model import Scenario, SpecFile


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="[PATH]... ID...", shell_complete=completion.scenarios)
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
        raise fail("name the scenario to show; `gradcheck list` shows what there is")
    cases = select_ids(plan(specs, ["numpy"]), ids)
    if reproduce:
        from gradcheck.matrix.reproduce import reproducer  # here: it needs NumPy, without which `show` is quicker

        for case in {case.scenario.id: case for case in reversed(cases)}.values():
            click.echo(safe(reproducer(case)), nl=False)
        return
    scenarios = {case.scenario.id: case.scenario for case in cases}
    for spec in specs:
        known = {scenario.id: scenario for scenario in spec.scenarios}
        for scenario in known.values():
            if scenario.id in scenarios:
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
