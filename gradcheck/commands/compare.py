"""``gradcheck compare``: what has changed from one report to another."""

from __future__ import annotations

import json
from pathlib import Path

import click
from pydantic import ValidationError

from gradcheck.report.record import Report
from gradcheck.result import Result
from gradcheck.support.display_paths import count
from gradcheck.support.escape import one_line
from gradcheck.support.files import TooLargeError, read_limited
from gradcheck.support.user_error import UserError

MOST_REPORT_BYTES = 250_000_000
"""Some 100,000 results; read, they take ten times as much memory."""


@click.command()
@click.argument("before", metavar="A.json")
@click.argument("after", metavar="B.json")
def compare(before: str, after: str) -> None:
    """Show the cases whose status differs between two JSON reports. Exits with 1 if B has a failure that A has not."""
    one, other = (by_name(path) for path in (before, after))
    worse = 0
    for name in dict.fromkeys([*one, *other]):
        left, right = one.get(name), other.get(name)
        if left is not None and right is not None and left.status is right.status:
            continue
        new = right is not None and not right.status.green and (left is None or left.status.green)
        worse += new
        was, now = (str(result.status) if result else "absent" for result in (left, right))
        said = f"  {one_line(right.message)}" if right is not None and right.message else ""
        click.echo(f"{was} → {now}  {one_line(name)}{said}")
    same = sum(1 for name in one if name in other and one[name].status is other[name].status)
    click.echo(f"{count(worse, 'new failure')}, {same} the same of {len({*one, *other})}")
    raise SystemExit(1 if worse else 0)


def by_name(path: str) -> dict[str, Result]:
    """The results in a report."""
    try:
        report = Report.model_validate(json.loads(read_limited(Path(path), MOST_REPORT_BYTES)))
        if "format" not in report.model_fields_set:
            raise ValueError("every field of a report has a default, but it says what it is")
    except OSError as error:
        writes = f"; `gradcheck run --report json:{path}` writes one" if isinstance(error, FileNotFoundError) else ""
        raise UserError(f"{path}: {error.strerror or error}{writes}") from None
    except TooLargeError as error:
        raise UserError(f"{path}: {error}") from None
    except (ValueError, RecursionError, ValidationError):
        raise UserError(f"{path}: this is no report; `gradcheck run --report json:{path}` writes one") from None
    return {result.name: result for result in report.results}
