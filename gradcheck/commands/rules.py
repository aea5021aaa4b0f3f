"""``gradcheck rules``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from gradcheck.commands.specs import fail, read_bundled
from gradcheck.matrix.catalogue import Document, Rule, all_rules, catalogue, citing
from gradcheck.support.display_paths import count
from gradcheck.support.suggest import hint

if TYPE_CHECKING:
    from gradcheck.spec.model import Scenario


@click.command("rules")
@click.argument("names", nargs=-1, metavar="[RULE]...")
@click.option("--uncovered", is_flag=True, help="Only rules that no scenario cites, and scenarios that cite none.")
def rules(names: tuple[str, ...], uncovered: bool) -> None:
    """List the rules of the documents, each with the bundled scenarios that hold implementations to it.

    With names, those rules in full: statement, quote, what was decided, and the scenarios. `gradcheck run --bundled
    -t RULE` runs them. With --uncovered the exit status is 1 if there is anything to print.
    """
    known = {rule.id: (rule, document) for rule, document in all_rules(catalogue())}
    scenarios = [scenario for spec in read_bundled() for scenario in spec.scenarios]
    for name in names:
        if name not in known:
            raise fail(f"there is no rule {name!r}; {hint(name, known, '`gradcheck rules` lists them')}")
    if uncovered:
        lines = list(gaps(known.values(), scenarios))
        click.echo("\n".join(lines), nl=bool(lines))
        raise SystemExit(int(bool(lines)))
    if names:
        click.echo("\n\n".join("\n".join(full(*known[name], scenarios)) for name in names))
        return
    width = max(map(len, known))
    for rule, document in known.values():
        number = count(len(citing(rule, scenarios)), "scenario")
        click.echo(f"{rule.id:<{width}}  {rule.says}  [{document.document}]  {number}")


def full(rule: Rule, document: Document, scenarios: Sequence[Scenario]) -> Iterator[str]:
    """A rule with all there is to say about it."""
    yield f"{rule.id}: {rule.says}"
    yield f"  {document.document}, {rule.section}: “{rule.quote}”"
    if document.url:
        yield f"  {document.url}"
    if rule.decided:
        yield f"  decided: {rule.decided}"
    for scenario in citing(rule, scenarios):
        yield f"  {scenario.id}  {scenario.title or ''}"


def gaps(known: Iterable[tuple[Rule, Document]], scenarios: Sequence[Scenario]) -> Iterator[str]:
    """What is missing: a line for each rule that no scenario cites, and for each scenario that cites none."""
    known = list(known)
    for rule, document in known:
        if not citing(rule, scenarios):
            yield f"{rule.id}: no scenario cites it  [{document.document}]"
    ids = {rule.id for rule, _ in known}
    for scenario in scenarios:
        if ids.isdisjoint(scenario.tags):
            yield f"{scenario.id}: cites no rule"
