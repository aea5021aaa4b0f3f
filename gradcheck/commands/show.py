"""``gradcheck show``."""

from __future__ import annotations

from pathlib import Path

import click

from gradcheck.commands.select import fail, read_specs
from gradcheck.report.text import safe, shown_path
from gradcheck.run.plan import SelectionError, plan, select_ids


@click.command()
@click.argument("scenario_id", metavar="ID")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
def show(scenario_id: str, paths: tuple[str, ...]) -> None:
    """Show one scenario as its file has it: source, code and expectations."""
    specs, _ = read_specs(paths)
    try:
        scenario = select_ids(plan(specs, ["numpy"]), [scenario_id])[0].scenario
    except SelectionError as error:
        raise fail(str(error)) from None
    lines = Path(scenario.path).read_text(encoding="utf-8-sig").splitlines()
    starts = sorted(s.line for spec in specs if spec.path == scenario.path for s in spec.scenarios)
    following = [line for line in starts if line > scenario.line]
    block = lines[scenario.line - 1 : following[0] - 1 if following else len(lines)]
    click.echo(f"# {shown_path(scenario.path)}:{scenario.line}:{scenario.column}")
    click.echo(safe("\n".join(block).rstrip()))
