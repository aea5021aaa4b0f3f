"""``gradcheck compare``: the changes from one report to another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import click

from gradcheck.commands.report_options import require_bare_path
from gradcheck.report.record import REPORT_FORMAT, Report
from gradcheck.result import Result
from gradcheck.run.known_failure import KnownFailure
from gradcheck.support.display_paths import count
from gradcheck.support.escape import one_line
from gradcheck.support.file_io import read_limited
from gradcheck.support.user_error import UserError, refusals_of

MOST_REPORT_BYTES = 250_000_000
"""The most bytes of a report: about 100,000 results; once read, they take ten times as much
memory.
"""


@click.command()
@click.argument("before", metavar="A.json")
@click.argument("after", metavar="B.json")
def compare(before: str, after: str) -> None:
    """Show the cases that differ between two JSON reports, in their status or in what is wrong.

    Exits with 1 if B has a failure that A does not have. Wrong gradients and broken contracts are
    compared, not the wording of causes.
    """
    for path in (before, after):
        require_bare_path("", path)
    first, second = results_in(before), results_in(after)
    names = dict.fromkeys([*first, *second])
    new_failures = unchanged = 0
    for name in names:
        change = change_between(first.get(name), second.get(name))
        new_failures += change.is_new_failure
        if not change.text:
            unchanged += 1
            continue
        message = second[name].message if name in second else ""
        click.echo(f"{change.text}  {one_line(name)}  {one_line(message)}".rstrip())
    click.echo(f"{count(new_failures, 'new failure')}, {unchanged} the same of {len(names)}")
    raise SystemExit(int(new_failures > 0))


class ResultChange(NamedTuple):
    """The difference between two results of a case."""

    text: str
    """The mistakes in B; empty if there are none."""
    is_new_failure: bool


def change_between(left: Result | None, right: Result | None) -> ResultChange:
    """Return the change from one result of a case to another; None for one that is absent."""
    before, after = ("absent" if each is None else str(each.status) for each in (left, right))
    was_green, is_green = (each is None or each.status.green for each in (left, right))
    if before != after:
        return ResultChange(f"{before} → {after}", was_green and not is_green)
    new = []
    if left is not None and right is not None and not is_green:
        new = KnownFailure.of(left).new_in(right)
    text = f"{before} → {after} ({one_line(', '.join(new))} as well)" if new else ""
    return ResultChange(text, bool(new))


def results_in(path: str) -> dict[str, Result]:
    """Return the results in a report by name. Raises UserError: the report cannot be read."""
    try:
        with refusals_of(path):
            content = read_limited(Path(path), MOST_REPORT_BYTES)
        report = Report.model_validate(json.loads(content))
        if "format" not in report.model_fields_set:
            raise ValueError("the format is the only field that every report states")
    except (ValueError, RecursionError):
        raise UserError(
            f"{path}: this is not a report of the format {REPORT_FORMAT}, which "
            "`gradcheck run --report json:results.json` writes"
        ) from None
    return {result.name: result for result in report.results}
