"""``gradcheck show`` and ``explain``: a scenario, a rule or a diagnosis code in full. Nothing is run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from gradcheck.codes import CODES, explained
from gradcheck.commands.shared_options import codes_and_scenarios
from gradcheck.commands.specs import bundled_scenarios, read_specs, scenario_of
from gradcheck.conformance.catalogue import (
    Document,
    Rule,
    iterate_rules,
    load_catalogue,
    scenarios_citing,
)
from gradcheck.run.plan import plan
from gradcheck.run.select import select_ids
from gradcheck.spec.model import Scenario, SpecFile
from gradcheck.spec.text import read_text
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import safe
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError


@click.command()
@click.argument(
    "names",
    nargs=-1,
    required=True,
    metavar="[PATH]... ID|RULE|CODE...",
    shell_complete=codes_and_scenarios,
)
@click.option(
    "--reproduce",
    is_flag=True,
    help="Print a program that shows without gradcheck what releases do instead.",
)
def show(names: tuple[str, ...], reproduce: bool) -> None:
    """Show scenarios as their files have them, rules with their quotes, diagnosis codes with cause and fix.

    What a scenario takes over from another one and from the file's defaults is shown as well. With --reproduce, a
    program for each scenario of which it is recorded that a release of Paddle does not do what is asked for: it ends
    well where that is done, and dies or raises on such a release.
    """
    rules = {rule.id: (rule, document) for rule, document in iterate_rules(load_catalogue())}
    texts = ["\n".join(explained(name.upper())) for name in names if name.upper() in CODES]
    if wanted := [name for name in names if name in rules]:
        scenarios = bundled_scenarios()
        texts += ["\n".join(rule_lines(*rules[name], scenarios)) for name in wanted]
    others = [name for name in names if name.upper() not in CODES and name not in rules]
    if texts:
        click.echo("\n\n".join(texts))
    if others:
        show_scenarios(others, reproduce, list(rules))


@click.command()
@click.argument("names", metavar="[CODE]...", nargs=-1, shell_complete=codes_and_scenarios)
@click.pass_context
def explain(context: click.Context, names: tuple[str, ...]) -> None:
    """Explain diagnosis codes: the cause, how to tell it, the fix, an example. Without a code, list them.

    It shows scenarios and rules as well, as `gradcheck show` does.
    """
    if names:
        context.invoke(show, names=names, reproduce=False)
        return
    for code, row in CODES.items():
        click.echo(f"{code}  {row.title}")


def rule_lines(rule: Rule, document: Document, scenarios: Sequence[Scenario]) -> Iterator[str]:
    """Yield the lines that show a rule: statement, quote, decision, and the scenarios that assert it."""
    yield f"{rule.id}: {rule.says}"
    yield f"  {document.document}, {rule.section}: “{rule.quote}”"
    if document.url:
        yield f"  {document.url}"
    if rule.decided:
        yield f"  decided: {rule.decided}"
    for scenario in scenarios_citing(rule, scenarios):
        yield f"  {scenario.id}  {scenario.title or ''}"


def show_scenarios(names: Sequence[str], reproduce: bool, rules: Sequence[str]) -> None:
    """Print scenarios, or the programs that reproduce what is recorded of them. Raises UserError."""
    for name in names:
        if Path(name).exists() or "::" in name:
            continue
        if digits := re.fullmatch(r"(?:GC)?([0-9OIL]{1,4})", name.upper()):
            code = "GC" + digits[1].translate(str.maketrans("OIL", "011"))
            near = (
                f"did you mean {code}?"
                if code in CODES
                else f"the codes are {min(CODES)} to {max(CODES)}"
            )
            raise UserError(f"there is no code {name!r}; {near}; `gradcheck list codes` lists them")
    specs, ids = read_specs(names)
    if not ids:
        raise UserError("name the scenario to show; `gradcheck list` shows what there is")
    all_ids = sorted({scenario.id for spec in specs for scenario in spec.scenarios})
    for name in ids:
        if scenario_of(name) not in all_ids:
            near = hint(name, [*all_ids, *rules], "`gradcheck list` shows what there is")
            raise UserError(f"there is no scenario, rule or code {name!r}; {near}")
    cases = select_ids(plan(specs, ["numpy"]), ids)
    if reproduce:
        from gradcheck.conformance.reproduce import (
            write_program,  # here: it needs NumPy, without which `show` is quicker
        )

        for case in {case.scenario.id: case for case in reversed(cases)}.values():
            click.echo(safe(write_program(case)), nl=False)
        return
    chosen = {case.scenario.id for case in cases}
    for spec in specs:
        by_id = {scenario.id: scenario for scenario in spec.scenarios}
        for scenario in by_id.values():
            if scenario.id in chosen:
                show_scenario(scenario, spec, by_id)


def show_scenario(scenario: Scenario, spec: SpecFile, known: dict[str, Scenario]) -> None:
    """Print a scenario, with the defaults, the layer and the scenarios that it takes keys from."""
    show_defaults(spec)
    show_layer(scenario, spec)
    chain: Scenario | None = scenario
    while chain is not None:
        click.echo(
            f"# {shown_path(chain.path)}:{chain.line}:{chain.column}\n{safe(source(chain, spec))}"
        )
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
    lines = read_text(Path(scenario.path), scenario.path).lines
    starts = sorted(
        {line for other in spec.scenarios for line in (other.line, other.begins)} | {len(lines) + 1}
    )

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
