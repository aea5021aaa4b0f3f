"""``gradcheck show`` and ``explain``: show a scenario, a rule or a diagnosis code in full.

Nothing is run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from gradcheck.codes import CODES, explained
from gradcheck.commands.shared_options import codes_and_scenarios
from gradcheck.commands.specs import bundled_scenarios, ids_in, read_specs, scenario_of
from gradcheck.conformance.catalogue import (
    Document,
    Rule,
    iterate_rules,
    load_catalogue,
    scenarios_citing,
)
from gradcheck.run.plan import plan, with_usual_backends
from gradcheck.run.select import select_ids
from gradcheck.spec.model import CLASSES, Scenario, SpecFile
from gradcheck.spec.text import read_text
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import safe
from gradcheck.support.suggest import nearest, require_one_name
from gradcheck.support.user_error import UserError

DIGITS = str.maketrans("OIL", "011")
"""Letters that may be typed in a code in place of digits."""
LISTS = "`gradcheck list`, `gradcheck list rules` and `gradcheck list codes` list them all"


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
    help="Print a program that shows, without gradcheck, how releases deviate.",
)
def show(names: tuple[str, ...], reproduce: bool) -> None:
    """Show scenarios as in their files, rules with their quotes, diagnosis codes with cause and
    fix.

    A scenario is shown with the keys that it inherits from another one and from the file's
    defaults. With --reproduce: a program for each scenario from which a release of Paddle is
    recorded to deviate; it succeeds where the scenario holds, and crashes or raises on such a
    release.
    """
    rules = {rule.id: (rule, document) for rule, document in iterate_rules(load_catalogue())}
    codes, rule_texts, scenario_names = [], [], []
    for name in names:
        if name.upper() in CODES:
            codes.append("\n".join(explained(name.upper())))
        elif name in rules:
            rule_texts.append("\n".join(rule_lines(*rules[name])))
        else:
            scenario_names.append(name)
    if codes or rule_texts:
        click.echo("\n\n".join([*codes, *rule_texts]))
    if scenario_names:
        show_scenarios(scenario_names, reproduce, list(rules))


@click.command()
@click.argument("names", metavar="[CODE]...", nargs=-1, shell_complete=codes_and_scenarios)
@click.pass_context
def explain(context: click.Context, names: tuple[str, ...]) -> None:
    """Explain diagnosis codes: the cause, how to recognise it, the fix, an example. Without a code,
    list them.

    It shows scenarios and rules as well, as `gradcheck show` does.
    """
    if names:
        context.invoke(show, names=names, reproduce=False)
        return
    for code, row in CODES.items():
        click.echo(f"{code}  {row.title}")


def rule_lines(rule: Rule, document: Document) -> Iterator[str]:
    """Yield the lines that show a rule: statement, quote, decision, scenarios that assert it."""
    yield f"{rule.id}: {rule.says}"
    yield f"  class: {rule.class_} ({CLASSES[rule.class_]})"
    where = f"{document.document}, {rule.section}" if rule.section else document.document
    yield f"  {where}: “{rule.quote}”" if rule.quote else f"  {where}"
    if rule.gloss:
        yield f"  in English: “{rule.gloss}”"
    if document.url:
        yield f"  {document.url}"
    if rule.decided:
        yield f"  against it: {rule.against}"
        yield f"  decided: {rule.decided}"
    for scenario in scenarios_citing(rule, bundled_scenarios()):
        yield f"  {scenario.id}  {scenario.title or ''}"


def show_scenarios(names: Sequence[str], reproduce: bool, rules: Sequence[str]) -> None:
    """Print scenarios, or programs that reproduce the deviations recorded for them.

    Raises UserError: there is no such scenario.
    """
    specs, ids = read_specs(names)
    if not ids:
        raise UserError("name the scenario to show; `gradcheck list` lists all")
    known = sorted(ids_in(specs))
    for name in ids:
        if scenario_of(name) not in known:
            require_one_name(name, {*known, *rules, *CODES}.__contains__)
            near = " or ".join(near_codes(name) or near_codes("".join(ids)))
            near = near or nearest(name, [*known, *rules])
            meant = f"did you mean {near}?" if near else LISTS
            raise UserError(f"there is no scenario, rule or code {name!r}; {meant}")
    everything = plan(specs, with_usual_backends((), specs))
    cases = {case.scenario.id: case for case in reversed(select_ids(everything, ids))}
    if reproduce:
        from gradcheck.conformance.reproduce import write_program  # needs NumPy, slow to import

        for case in cases.values():
            click.echo(safe(write_program(case)), nl=False)
        return
    for spec in specs:
        for scenario in spec.scenarios:
            if scenario.id in cases:
                show_scenario(scenario, spec)


def near_codes(text: str) -> list[str]:
    """Return the diagnosis codes that a text may mean: written otherwise, or with a digit too
    many.
    """
    digits = text.upper().removeprefix("GC").strip("-_ ").translate(DIGITS)
    meant = [digits, *(digits[:k] + digits[k + 1 :] for k in range(len(digits)))]
    codes = [f"GC{number}" for number in dict.fromkeys(meant) if f"GC{number}" in CODES]
    return codes[:1] if codes[:1] == [f"GC{digits}"] else codes


def show_scenario(scenario: Scenario, spec: SpecFile) -> None:
    """Print a scenario, with the defaults, the layer and the scenarios from which it inherits
    keys.
    """
    defaults = spec.defaults.model_dump(mode="json", exclude_unset=True)
    if defaults:
        click.echo(safe(f"# defaults: {json.dumps(defaults, ensure_ascii=False)}"))
    if isinstance(scenario.layer, str) and scenario.layer in spec.layers.values():
        place = f"{shown_path(scenario.path)}:{scenario.line_of('layer')}"
        click.echo(f"# its layer, {place}\n{safe(scenario.layer.rstrip())}")
    for other in extended_by(scenario, {other.id: other for other in spec.scenarios}):
        place = f"{shown_path(other.path)}:{other.line}:{other.column}"
        click.echo(f"# {place}\n{safe(source(other, spec))}")


def extended_by(scenario: Scenario, known: Mapping[str, Scenario]) -> Iterator[Scenario]:
    """Yield a scenario, the one that it extends, the one that this extends, and so on."""
    yield scenario
    if scenario.extends is not None:
        yield from extended_by(known[scenario.extends], known)


def source(scenario: Scenario, spec: SpecFile) -> str:
    """Return the lines of a scenario in its file; for a case, those of the scenario that has it.

    Comments and empty lines at the end belong to what follows.
    """
    lines = read_text(Path(scenario.path), scenario.path).lines
    starts = {other.begins for other in spec.scenarios} | {len(lines) + 1}
    end = min(line for line in starts if line > scenario.begins)
    block = lines[scenario.begins - 1 : end - 1]
    while not block[-1].strip() or block[-1].lstrip().startswith("#"):
        block.pop()
    return "\n".join(block)
