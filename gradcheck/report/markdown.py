"""``--report markdown:PATH``: a page for a pull request or a step's summary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from gradcheck.report.record import Report
from gradcheck.report.result_text import by_cause, counts_of, failure_block, marks, summary
from gradcheck.result import Result
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import one_line

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~&$:@])")


def as_markdown(report: Report) -> str:
    """The summary, a table of counts by file, and each cause of failures as it is on the screen."""
    parts = [
        f"## gradcheck: {summary(report.results, report.seconds, report.not_run)}",
        status_table(report),
    ]
    parts += [block(first, report.again, others) for first, *others in by_cause(report.results)]
    known = [one for one in report.results if one.status.green and one.message]
    if known:
        lines = [f"- {one.status} {text(one.name)}: {text(one.message)}" for one in known]
        parts.append("\n".join(["### Not simply passed", "", *lines]))
    packages = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    parts.append(text(f"gradcheck {report.gradcheck}, Python {report.python}, {packages}"))
    return "\n\n".join(parts) + "\n"


def status_table(report: Report) -> str:
    """A row for each spec file, a column for each status that there is."""
    found = list(counts_of(report.results))
    rows = [["file", *found], ["---", *("--:" for _ in found)]]
    for path, group in groupby(report.results, key=lambda one: one.path):
        counts = counts_of(group)
        rows.append([text(shown_path(path)), *(str(counts.get(status, "")) for status in found)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def block(result: Result, again: str, others: Sequence[Result]) -> str:
    """A failure: its place, and what the screen says, which nothing in it can break out of; and `others` like it."""
    said = "\n".join(failure_block(result, again, others=others))
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", said)), default=0))
    title = " ".join([str(result.status), text(result.name), *map(text, marks(result.gradient))])
    where = text(f"{shown_path(result.path)}:{result.line}:{result.column}")
    return f"### {title}\n\n{where}\n\n{fence}text\n{said}\n{fence}"


def text(raw: str) -> str:
    """`raw` on one line, with everything escaped that markdown, HTML or GitHub's mentions would read as more."""
    return (
        _SPECIAL.sub(r"\\\1", one_line(raw))
        .replace("\\<", "&lt;")
        .replace("\\>", "&gt;")
        .replace("\\&", "&amp;")
    )
