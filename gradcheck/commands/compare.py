"""``gradcheck compare``: what has changed from one report to another."""

from __future__ import annotations

import json
from pathlib import Path

import click
from pydantic import ValidationError

from gradcheck.report.record import Report
from gradcheck.result import Result
from gradcheck.run.known_failure import KnownFailure
from gradcheck.support.display_paths import count
from gradcheck.support.escape import one_line
from gradcheck.support.file_io import FileTooLargeError, read_limited
from gradcheck.support.user_error import UserError

MOST_REPORT_BYTES = 250_000_000
"""Some 100,000 results; read, they take ten times as much memory."""


@click.command()
@click.argument("before", metavar="A.json")
@click.argument("after", metavar="B.json")
def compare(before: str, after: str) -> None:
    """Show the cases that differ between two JSON reports: in their status, or in what is wrong.

    Exits with 1 if B has a failure that A has not. What is wrong are the gradients of inputs and the broken contracts,
    never how a cause is worded.
    """
    one, other = (by_name(path) for path in (before, after))
    worse = same = 0
    for name in dict.fromkeys([*one, *other]):
        left, right = one.get(name), other.get(name)
        is_new, change = change_between(left, right)
        worse += is_new
        same += not change
        if change:
            said = f"  {one_line(right.message)}" if right is not None and right.message else ""
            click.echo(f"{change}  {one_line(name)}{said}")
    click.echo(f"{count(worse, 'new failure')}, {same} the same of {len({*one, *other})}")
    raise SystemExit(1 if worse else 0)


def change_between(left: Result | None, right: Result | None) -> tuple[bool, str]:
    """Whether the second result of a case is a new failure, and how it differs from the first; empty if it does not."""
    if left is not None and right is not None and left.status is right.status:
        new = [] if left.status.green else KnownFailure.of(left).new_in(right)
        return bool(
            new
        ), f"{left.status} → {right.status} ({one_line(', '.join(new))} as well)" if new else ""
    is_new = right is not None and not right.status.green and (left is None or left.status.green)
    was, now = (str(result.status) if result else "absent" for result in (left, right))
    return is_new, f"{was} → {now}"


def by_name(path: str) -> dict[str, Result]:
    """The results in a report."""
    try:
        report = Report.model_validate(json.loads(read_limited(Path(path), MOST_REPORT_BYTES)))
        if "format" not in report.model_fields_set:
            raise ValueError("every field of a report has a default, but it says what it is")
    except OSError as error:
        writes = (
            f"; `gradcheck run --report json:{path}` writes one"
            if isinstance(error, FileNotFoundError)
            else ""
        )
        raise UserError(f"{path}: {error.strerror or error}{writes}") from None
    except FileTooLargeError as error:
        raise UserError(f"{path}: {error}") from None
    except (ValueError, RecursionError, ValidationError):
        raise UserError(
            f"{path}: this is no report; `gradcheck run --report json:{path}` writes one"
        ) from None
    return {result.name: result for result in report.results}
