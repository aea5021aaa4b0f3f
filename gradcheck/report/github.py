"""``--report github:PATH``: annotations for GitHub Actions, shown at the lines of a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gradcheck.report.record import Report
from gradcheck.report.result_text import (
    by_cause,
    failure_block,
    place,
    places_of,
)
from gradcheck.result import Result
from gradcheck.spec.diagnostic import Diagnostic
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import escape, safe, without_commands

SHOWN = 10
"""The number of annotations of a kind that GitHub shows for one step; it drops the others."""


def as_github(report: Report) -> str:
    """A workflow command for each cause, the largest error first.

    Failures with one cause share an annotation: that of the first, as on the terminal, with the
    names of the others. A notice counts the failures beyond `SHOWN` annotations.
    """
    groups = by_cause(report.results)
    groups.sort(key=lambda failures: max(map(error_of, failures)), reverse=True)
    lines = [annotation(first, report.again, same_cause) for first, *same_cause in groups[:SHOWN]]
    if remaining := sum(map(len, groups[SHOWN:])):
        lines.append(
            f"::notice title=gradcheck::and {remaining} more, in the log and in the summary"
        )
    return "".join(f"{line}\n" for line in lines)


def error_of(result: Result) -> float:
    """The largest ratio of error to bound of a result; infinite if nothing was measured."""
    return result.checked.worst_error


def annotation(result: Result, again: str, same_cause: Sequence[Result]) -> str:
    """A workflow command at the line of the layer that is wrong, raised or crashed, if it is known,
    otherwise at the line of the scenario.

    It names `same_cause`, the further failures of its cause.
    """
    lines = failure_block(result, again, same_cause=same_cause)
    wrong, *related = places_of(result)
    if related:
        lines.append(f"scenario: {place(result)}")
    title = f"{result.status} {result.name}"
    return command(shown_path(wrong.file), wrong.line, wrong.column, title, "\n".join(lines))


def mistake_annotations(mistakes: Iterable[Diagnostic]) -> Iterator[str]:
    """Yield a workflow command for each mistake in a spec file."""
    for mistake in mistakes:
        text = f"{mistake.message} ({mistake.help})" if mistake.help else mistake.message
        line, column = max(mistake.line, 1), max(mistake.column, 1)
        yield command(mistake.path, line, column, "gradcheck validate", text)


def command(path: str, line: int, column: int, title: str, text: str) -> str:
    """An annotation with a text at a position in a file."""
    properties = f"file={_value(path)},line={line},col={column},title={_value(title)}"
    return f"::error {properties}::{_text(without_commands(safe(text)))}"


def _text(text: str) -> str:
    """Escape text for GitHub's runner (actions/toolkit, command.ts)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    """Escape text for a property, which ends at a comma and must not contain a colon."""
    return _text(escape(text)).replace(":", "%3A").replace(",", "%2C")
