"""``gradcheck explain``: what a diagnosis code means, what a scenario asserts, what a rule says."""

from __future__ import annotations

import click

from gradcheck.codes import CODES, explained
from gradcheck.commands.shared_options import codes_and_scenarios


@click.command()
@click.argument("names", metavar="[CODE|ID|RULE]…", nargs=-1, shell_complete=codes_and_scenarios)
def explain(names: tuple[str, ...]) -> None:
    """Explain diagnosis codes, scenarios and rules; without a name, list the codes.

    A code (GC104): the cause, how to tell it, the fix, an example. A scenario: where its statement comes from, and what
    must hold. A rule of the documents: its quote, and the scenarios that assert it. Nothing is run.
    """
    if not names:
        for code, row in CODES.items():
            click.echo(f"{code}  {row.title}")
        return
    others = [name for name in names if name.upper() not in CODES]
    texts = {name: "\n".join(explained(name.upper())) for name in names if name not in others}
    if others:
        from gradcheck.commands.rules import explain_all  # which reads specs; codes need not wait for that

        texts |= explain_all(others)
    click.echo("\n\n".join(texts[name] for name in dict.fromkeys(names)))
