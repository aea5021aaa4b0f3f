"""``gradcheck list``: scenarios, rules, codes or backends, a line each. Nothing is run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from gradcheck.codes import CODES
from gradcheck.commands.backends import backend_rows
from gradcheck.commands.errors import NOTHING_SELECTED
from gradcheck.commands.shared_options import bundled_option, selection_options
from gradcheck.commands.specs import bundled_scenarios, read_specs
from gradcheck.config import load_project
from gradcheck.conformance.catalogue import iterate_rules, load_catalogue, scenarios_citing
from gradcheck.run.plan import plan
from gradcheck.run.select import nothing_selected, select
from gradcheck.spec.model import Scenario
from gradcheck.support.display_paths import count, shown_path
from gradcheck.support.escape import one_line, safe
from gradcheck.support.user_error import UserError

SUBJECTS = ("rules", "codes", "backends")
"""Words in place of paths and ids: what is listed instead of scenarios."""


@click.command("list")
@click.argument("names", nargs=-1, metavar="[rules|codes|backends] [PATH|ID]...")
@bundled_option
@selection_options
@click.option(
    "--uncovered",
    is_flag=True,
    help="Of rules: those that no scenario cites, and scenarios that cite none.",
)
@click.option("--json", "as_json", is_flag=True, help="As a JSON list, for programs.")
def list_all(
    names: tuple[str, ...],
    bundled: bool,
    keywords: str | None,
    tags: str | None,
    uncovered: bool,
    as_json: bool,
) -> None:
    """List scenarios: id, title, tags, and where each stands; or rules, codes or backends.

    Without a PATH, the scenarios of the project: of the files that [tool.gradcheck] names, or else
    of all *.grad.yaml files below its root. An ID that the project has not may be one of
    gradcheck's own. `list rules` has the rules of the documents with the number of bundled
    scenarios that assert each; with --uncovered the exit status is 1 if there is anything to print.
    """
    subject = names[0] if names and names[0] in SUBJECTS else "scenarios"
    if uncovered and subject != "rules":
        raise UserError("--uncovered is for rules: gradcheck list rules --uncovered")
    if subject != "scenarios" and names[1:]:
        raise UserError(
            f"`gradcheck list {subject}` takes no names; `gradcheck show {names[1]}` shows one"
        )
    match subject:
        case "scenarios":
            scenarios = selected_scenarios(names, bundled, keywords, tags)
            rows = [row_of(scenario) for scenario in scenarios]
        case "rules":
            rows = uncovered_rules() if uncovered else rule_rows()
        case "codes":
            rows = [{"code": code, "title": row.title} for code, row in CODES.items()]
        case _:
            fields = ("backend", "version", "state")
            places = backend_rows(load_project().config)
            rows = [dict(zip(fields, place, strict=True)) for place in places]
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    else:
        print_table([columns_of(row) for row in rows])
    raise SystemExit(int(uncovered and bool(rows)))


def selected_scenarios(
    names: Sequence[str], bundled: bool, keywords: str | None, tags: str | None
) -> Sequence[Scenario]:
    """Return the scenarios that names and selections mean. Raises UserError: there are none."""
    specs, ids = read_specs(names, bundled=bundled, command="list")
    everything = plan(specs, ["numpy"])
    selected = {case.scenario.id: case.scenario for case in select(everything, ids, keywords, tags)}
    if not selected:
        raise UserError(nothing_selected(keywords, everything), NOTHING_SELECTED)
    return list(selected.values())


def row_of(scenario: Scenario) -> dict[str, Any]:
    """Return what is listed of a scenario."""
    return {
        "id": scenario.id,
        "title": scenario.title,
        "tags": list(scenario.tags),
        "path": shown_path(scenario.path),
        "line": scenario.line,
        "matrix": {name: list(values) for name, values in scenario.matrix.items()},
    }


def rule_rows() -> list[dict[str, Any]]:
    """Return what is listed of each rule."""
    scenarios = bundled_scenarios()
    return [
        {
            "rule": rule.id,
            "says": rule.says,
            "document": document.document,
            "scenarios": len(scenarios_citing(rule, scenarios)),
        }
        for rule, document in iterate_rules(load_catalogue())
    ]


def uncovered_rules() -> list[dict[str, Any]]:
    """Return a row for each rule that no scenario cites, and for each scenario that cites none."""
    rules = rule_rows()
    ids = {row["rule"] for row in rules}
    missing = [f"{row['rule']}: no scenario cites it" for row in rules if not row["scenarios"]]
    for scenario in bundled_scenarios():
        if ids.isdisjoint(scenario.tags):
            missing.append(f"{scenario.id}: cites no rule")
    return [{"uncovered": text} for text in missing]


def columns_of(row: dict[str, Any]) -> tuple[str, str]:
    """Return the first column of a row and the rest of its line."""
    name, *rest = row.values()
    if "path" in row:
        tags = f"  [{', '.join(row['tags'])}]" if row["tags"] else ""
        return name, f"{one_line(row['title'] or '')}{tags}  {row['path']}:{row['line']}"
    if "rule" in row:
        return name, f"{row['says']}  [{row['document']}]  {count(row['scenarios'], 'scenario')}"
    return name, "  ".join(safe(one) for one in rest)


def print_table(rows: Sequence[tuple[str, str]]) -> None:
    """Print a line for each row, the second column below itself."""
    width = max((len(name) for name, _ in rows), default=0)
    for name, rest in rows:
        click.echo(f"{name:<{width}}  {rest}".rstrip())
