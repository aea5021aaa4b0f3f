"""``--report github:PATH``: annotations for GitHub Actions, which shows them beside the lines of a change."""

from __future__ import annotations

from collections.abc import Sequence

from gradcheck.report.record import Report
from gradcheck.report.result_text import by_cause, cause_with_line, failure_block, place
from gradcheck.result import Result
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import escape, safe, without_commands

SHOWN = 10
"""Annotations of a kind that GitHub shows of one step; further ones it drops."""


def as_github(report: Report) -> str:
    """A workflow command for each failure, the largest error first; what is beyond `SHOWN` is counted in a notice.

    Failures of one cause are one annotation, which names them.
    """
    failures = sorted(
        (one for one in report.results if not one.status.green), key=lambda one: -error_of(one)
    )
    shown = by_cause(failures)[:SHOWN]
    lines = [annotation(first, report.again, others) for first, *others in shown]
    if left := len(failures) - sum(map(len, shown)):
        lines.append(f"::notice title=gradcheck::and {left} more, in the log and in the summary")
    return "".join(f"{line}\n" for line in lines)


def error_of(result: Result) -> float:
    """The largest error of a result over its bar; what has no error at all comes first, being no verdict."""
    return result.gradient.worst_error if result.gradient is not None else float("inf")


def annotation(result: Result, again: str, others: Sequence[Result]) -> str:
    """One workflow command, at the line of the layer that is to blame if it is known, else of the scenario; it names
    `others` of the same cause."""
    lines = failure_block(result, again, others=others)
    cause = cause_with_line(result)
    if cause is None:
        path, line, column = shown_path(result.path), result.line, result.column
    else:
        file, _, at = cause.line.rpartition(":")
        path, line, column = shown_path(file), int(at), cause.column + 1
        lines = [*lines, f"scenario: {place(result)}"]
    return command(path, line, column, f"{result.status} {result.name}", "\n".join(lines))


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
