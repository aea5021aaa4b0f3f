"""``--report markdown:PATH``: a page for a pull request or a step's summary."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradcheck.report.record import Report
from gradcheck.report.result_text import (
    by_cause,
    by_file,
    counts_of,
    failure_block,
    marks,
    place,
    summary,
)
from gradcheck.result import Result
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import one_line

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~&$:@])")


def as_markdown(report: Report) -> str:
    """The summary, a table of counts by file, and each cause of failures as on the screen."""
    head = summary(report.results, report.seconds, report.not_run)
    parts = [f"## gradcheck: {head}", status_table(report)]
    parts += [
        block(first, report.again, same_cause) for first, *same_cause in by_cause(report.results)
    ]
    lines = []
    for result in report.results:
        if result.status.green and result.message:
            lines.append(f"- {result.status} {text(result.name)}: {text(result.message)}")
    if lines:
        parts.append("\n".join(["### Not simply passed", "", *lines]))
    packages = [f"{name} {version}" for name, version in report.versions.items()]
    suite = [f"suite {report.suite}"] if report.suite else []
    tools = [f"gradcheck {report.gradcheck}", *suite, f"Python {report.python}", *packages]
    parts.append(text(", ".join(tools)))
    return "\n\n".join(parts) + "\n"


def status_table(report: Report) -> str:
    """A row for each spec file, a column for each status that occurs."""
    statuses = list(counts_of(report.results))
    rows = [["file", *statuses], ["---", *["--:"] * len(statuses)]]
    for path, results in by_file(report.results):
        counts = counts_of(results)
        rows.append([text(shown_path(path)), *(str(counts.get(s, "")) for s in statuses)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def block(result: Result, again: str, same_cause: Sequence[Result]) -> str:
    """A failure as on the screen, with `same_cause`; no text in it can end the code fence."""
    body = "\n".join(failure_block(result, again, same_cause=same_cause))
    longest = max(map(len, re.findall("`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    title = " ".join([str(result.status), text(result.name), *map(text, marks(result.checked))])
    return f"### {title}\n\n{text(place(result))}\n\n{fence}text\n{body}\n{fence}"


def text(raw: str) -> str:
    """`raw` on one line, with everything escaped that Markdown, HTML or mentions interpret."""
    escaped = _SPECIAL.sub(r"\\\1", one_line(raw))
    return escaped.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")
