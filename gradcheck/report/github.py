"""``--report github:PATH``: annotations for GitHub Actions, which shows them beside the lines of a change."""

from __future__ import annotations

from gradcheck.escape import escape, safe, without_commands
from gradcheck.report.record import Report
from gradcheck.report.text import failure_block
from gradcheck.result import Result
from gradcheck.shown import shown_path

SHOWN = 10
"""Annotations of a kind that GitHub shows of one step; further ones it drops."""


def as_github(report: Report) -> str:
    """A workflow command for each failure, the largest error first; what is beyond `SHOWN` is counted in a notice."""
    failures = sorted((one for one in report.results if not one.status.green), key=lambda one: -error_of(one))
    lines = [annotation(one, report.again) for one in failures[:SHOWN]]
    if len(failures) > SHOWN:
        lines.append(f"::notice title=gradcheck::and {len(failures) - SHOWN} more, in the log and in the summary")
    return "".join(f"{line}\n" for line in lines)


def error_of(result: Result) -> float:
    """The largest error of a result over its bar; what has no error at all comes first, being no verdict."""
    return result.gradient.worst_error if result.gradient is not None else float("inf")


def annotation(result: Result, again: str) -> str:
    """One workflow command, at the line of the forward that is to blame if it is known, else of the scenario."""
    said = "\n".join(failure_block(result, again))
    return command(shown_path(result.path), result.line, result.column, f"{result.status} {result.name}", said)


def command(path: str, line: int, column: int, title: str, said: str) -> str:
    """An annotation that shows `said` at a place in a file."""
    properties = f"file={_value(path)},line={line},col={column},title={_value(title)}"
    return f"::error {properties}::{_text(without_commands(safe(said)))}"


def _text(text: str) -> str:
    """Escaped as the runner reads it (actions/toolkit, command.ts)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    """The same for a property, which ends at a comma and must not hold a colon."""
    return _text(escape(text)).replace(":", "%3A").replace(",", "%2C")
