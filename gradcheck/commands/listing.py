"""``gradcheck list``: list scenarios, rules, codes or backends, one line each. Nothing is run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from gradcheck.codes import CODES
from gradcheck.commands.backends import places_of_backends
from gradcheck.commands.errors import NOTHING_SELECTED
from gradcheck.commands.shared_options import bundled_option, selection_options
from gradcheck.commands.specs import bundled_scenarios, read_specs
from gradcheck.config import load_project
from gradcheck.conformance.catalogue import iterate_rules, load_catalogue, scenarios_citing
from gradcheck.run.plan import plan, with_usual_backends
from gradcheck.run.select import nothing_selected, select
from gradcheck.spec.model import Scenario
from gradcheck.support.display_paths import align_columns, count, shown_path
from gradcheck.support.escape import one_line, safe
from gradcheck.support.user_error import UserError


@click.command("list")
@click.argument("names", nargs=-1, metavar="[rules|codes|backends] [PATH|ID]...")
@bundled_option
@selection_options
@click.option(
    "--uncovered",
    is_flag=True,
    help="For rules: list those that no scenario cites, and scenarios that cite none.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, for programs.")
def list_all(
    names: tuple[str, ...],
    bundled: bool,
    keywords: str | None,
    tags: str | None,
    uncovered: bool,
    as_json: bool,
) -> None:
    """List scenarios: id, title, tags, and where each is; or rules, codes or backends.

    Without a PATH, the scenarios of the project: of the files that [tool.gradcheck] names,
    otherwise of all *.grad.yaml files below its root. An ID that the project does not have may be
    one of gradcheck's scenarios. `list rules` shows the rules of the documents with the number of
    bundled scenarios that assert each; with --uncovered the exit status is 1 if there is anything
    to print.
    """
    subject, *rest = names or ("",)
    if uncovered and subject != "rules":
        raise UserError("--uncovered is for rules: gradcheck list rules --uncovered")
    plural = f"{subject.lower().removesuffix('s')}s"
    if plural in SUBJECTS and subject != plural:
        raise UserError(f"`gradcheck list {plural}` lists the {plural}")
    if subject not in SUBJECTS:
        rows = scenario_rows(names, bundled, keywords, tags)
    elif rest:
        takes_none = f"`gradcheck list {subject}` takes no names"
        is_shown = subject != "backends" and rest[0] not in SUBJECTS
        shows = f"; `gradcheck show {rest[0]}` shows one"
        raise UserError(takes_none + shows * is_shown)
    else:
        rows = uncovered_rows() if uncovered else SUBJECTS[subject]()
    if as_json:
        click.echo(json.dumps([row.data for row in rows], indent=1))
    else:
        for line in align_columns([(row.name, row.text) for row in rows]):
            click.echo(line)
    raise SystemExit(int(uncovered and bool(rows)))


@dataclass(frozen=True)
class ListedRow:
    """A listed item: its name, the rest of its line, and its JSON object."""

    name: str
    text: str
    data: dict[str, Any]


def scenario_rows(
    names: Sequence[str], bundled: bool, keywords: str | None, tags: str | None
) -> list[ListedRow]:
    """Return the scenarios that names and options select. Raises UserError: there are none."""
    specs, ids = read_specs(names, bundled=bundled, command="list")
    everything = plan(specs, with_usual_backends((), specs))
    selected = {case.scenario.id: case.scenario for case in select(everything, ids, keywords, tags)}
    if not selected:
        raise UserError(nothing_selected(keywords, everything), NOTHING_SELECTED)
    return [row_of(scenario) for scenario in selected.values()]


def row_of(scenario: Scenario) -> ListedRow:
    """Return the listed items of a scenario."""
    path = shown_path(scenario.path)
    tags = f"  [{', '.join(scenario.tags)}]" if scenario.tags else ""
    data = {
        "id": scenario.id,
        "title": scenario.title,
        "tags": list(scenario.tags),
        "path": path,
        "line": scenario.line,
        "matrix": {name: list(values) for name, values in scenario.matrix.items()},
    }
    title = one_line(scenario.title or "")
    return ListedRow(scenario.id, f"{title}{tags}  {path}:{scenario.line}", data)


def rule_rows() -> list[ListedRow]:
    """Return the listed items of each rule."""
    scenarios, rows = bundled_scenarios(), []
    for rule, document in iterate_rules(load_catalogue()):
        number = len(scenarios_citing(rule, scenarios))
        text = f"{rule.says}  [{document.document}]  {count(number, 'scenario')}"
        data = {"rule": rule.id, "says": rule.says, "document": document.document}
        rows.append(ListedRow(rule.id, text, {**data, "scenarios": number}))
    return rows


def uncovered_rows() -> list[ListedRow]:
    """Return a row for each rule that no scenario cites, and for each scenario that cites none."""
    rules = rule_rows()
    ids = {row.name for row in rules}
    missing = [f"{row.name}: no scenario cites it" for row in rules if not row.data["scenarios"]]
    for scenario in bundled_scenarios():
        if ids.isdisjoint(scenario.tags):
            missing.append(f"{scenario.id}: cites no rule")
    return [ListedRow(text, "", {"uncovered": text}) for text in missing]


def code_rows() -> list[ListedRow]:
    """Return the listed items of each diagnosis code."""
    return [
        ListedRow(code, row.title, {"code": code, "title": row.title})
        for code, row in CODES.items()
    ]


def backend_rows() -> list[ListedRow]:
    """Return the listed items of each backend."""
    return [
        ListedRow(
            name, f"{version}  {safe(state)}", {"backend": name, "version": version, "state": state}
        )
        for name, version, state in places_of_backends(load_project().config)
    ]


SUBJECTS = {"rules": rule_rows, "codes": code_rows, "backends": backend_rows}
"""Words that select a list other than that of scenarios."""
