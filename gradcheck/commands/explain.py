"""``gradcheck explain``: what a diagnosis code means, or what a scenario expects."""

from __future__ import annotations

import click

from gradcheck.codes import CODES, explained
from gradcheck.hint import hint


@click.command()
@click.argument("codes", metavar="[CODE]…", nargs=-1)
def explain(codes: tuple[str, ...]) -> None:
    """Explain diagnosis codes: the cause, how to tell it, the fix, an example. Without one, list them all."""
    if not codes:
        for code, row in CODES.items():
            click.echo(f"{code}  {row.title}")
        return
    for number, code in enumerate(codes):
        name = code.upper()
        if name not in CODES:
            meant = hint(name, CODES, "gradcheck explain lists all codes")
            raise click.UsageError(f"there is no code {code!r}; {meant}")
        if number:
            click.echo()
        click.echo("\n".join(explained(name)))
