"""``gradcheck validate``: reads spec files and shows every mistake; runs nothing of what they hold."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gradcheck.spec.diagnostic import Diagnostic

_MOST_SHOWN = 100


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.pass_context
def validate(context: click.Context, paths: tuple[str, ...]) -> None:
    """Check spec files, or all *.grad.yaml files below folders, without running anything.

    Without a PATH the bundled specs are checked. Exits with 0 if all is well, with 2 if there are mistakes.
    """
    from gradcheck.escape import escape
    from gradcheck.spec.diagnostic import SpecError
    from gradcheck.spec.read import find, read, shared_ids

    if not paths:
        from gradcheck.resources import bundled_specs

        paths = (str(bundled_specs()),)
    color = context.color if context.color is not None else sys.stdout.isatty()
    files, empty = find(paths)
    good = []
    results: dict[str, list[Diagnostic]] = {one.path: [one] for one in empty}
    for file in files:
        results[str(file)] = []
        try:
            good.append(read(file))
        except SpecError as error:
            results[str(file)] = error.diagnostics
    for shared in shared_ids(good):
        results[shared.path].append(shared)
    counts = {spec.path: len(spec.scenarios) for spec in good}
    for path, mistakes in results.items():
        for mistake in mistakes[:_MOST_SHOWN]:
            click.echo(mistake.render(color), color=color)
        if len(mistakes) > _MOST_SHOWN:
            click.echo(f"{escape(path)}: and {len(mistakes) - _MOST_SHOWN} more errors")
        verdict = _count(len(mistakes), "error") if mistakes else f"ok, {_count(counts[path], 'scenario')}"
        click.echo(f"{escape(path)}: {verdict}")
    total = sum(map(len, results.values()))
    scenarios = _count(sum(counts.values()), "scenario")
    click.echo(
        f"{_count(total, 'error')} in {_count(sum(map(bool, results.values())), 'file')} of {len(results)}"
        if total
        else f"{_count(len(results), 'file')}, {scenarios}: all valid"
    )
    context.exit(2 if total else 0)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
