"""``--report html:PATH``: one page with everything in it, readable without a network and without JavaScript."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import quote

from gradcheck.case.case import Case
from gradcheck.report.drawings import CELL, FRAME, heat_maps, plot
from gradcheck.report.page import templates
from gradcheck.report.record import Report
from gradcheck.report.result_text import (
    ENTRIES_SHOWN,
    again,
    by_cause,
    cause_with_line,
    counts_of,
    explaining,
    further_lines,
    marks,
    number,
    place,
    shown_line,
    summary,
    told_causes,
    window,
    worst_first,
)
from gradcheck.result import Diagnosis, Result
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import one_line, safe

SOURCE_SHOWN = 400
"""Characters of a line of source: longer ones are cut around what is marked."""


class ShownCause(NamedTuple):
    """A cause as the page shows it: the line of the forward with the operation marked in it."""

    label: str
    text: str
    where: str
    source: tuple[str, str, str]
    """The line before, within and after what is marked."""
    detail: str


def as_html(report: Report) -> str:
    """The page. The template escapes all that it is given."""
    environment = templates()
    environment.filters["one_line"] = one_line
    environment.globals.update(
        FRAME,
        place=place,
        number=number,
        shown_path=shown_path,
        cell=CELL,
        entries_shown=ENTRIES_SHOWN,
    )
    cases = {case.name: case for case in report.cases}
    cards = {one.name: card(one, report.again, cases.get(one.cases[0])) for one in report.results}
    groups = sorted(by_cause(report.results), key=len, reverse=True)
    green = [
        (path, counts_of(members), [cards[one.name] for one in members])
        for path, group in groupby(report.results, key=lambda one: one.path)
        if (members := [one for one in group if one.status.green])
    ]
    return environment.get_template("page.html.jinja").render(
        report=report,
        summary=summary(report.results, report.seconds, report.not_run),
        counts=counts_of(report.results),
        groups=[([cards[one.name] for one in group], heading(group[0])) for group in groups],
        files=green,
        choices={
            "backend": sorted({one.backend for one in report.results}),
            "tag": sorted({tag for one in cards.values() for tag in one["tags"]}),
            "file": sorted({shown_path(one.path) for one in report.results}),
        },
        matrix=report.matrix,
    )


def heading(result: Result) -> tuple[str, str]:
    """What a group of failures has in common: the cause in words, and its ``file:line`` if it has one."""
    cause = cause_with_line(result)
    return (
        (one_line(result.message), "")
        if cause is None
        else (one_line(cause.text), shown_line(cause))
    )


def card(result: Result, options: str, case: Case | None) -> dict[str, Any]:
    """A result as the template reads it; of what is as expected no more than it shows."""
    scenario = None if case is None else case.scenario
    found: dict[str, Any] = {
        "result": result,
        "anchor": quote(result.name, safe="@/=,:+~"),
        "name": one_line(result.name),
        "message": one_line(result.message),
        "marks": " ".join(marks(result.gradient)),
        "title": one_line(scenario.title or "") if scenario is not None else "",
        "tags": scenario.tags if scenario is not None else (),
        "source": scenario.source if scenario is not None else None,
    }
    if result.status.green:
        return found
    gradient, said = result.gradient, [result.message, *result.details]
    wrong = worst_first(gradient.wrong) if gradient is not None else []
    return found | {
        "where": heading(result)[1],
        "causes": list(shown_causes(result, said)),
        "further": safe("\n".join([*result.details, *further_lines(result, said)])),
        "wrong": wrong,
        "maps": heat_maps(gradient) if gradient is not None else [],
        "plot": plot(gradient.scan) if gradient is not None and gradient.scan is not None else None,
        "commands": [
            one_line(again(result, options)),
            *(explaining(gradient) if gradient is not None else []),
        ],
    }


def shown_causes(result: Result, said: list[str]) -> Iterator[ShownCause]:
    """What a failure is put down to."""
    for label, found in told_causes(result.gradient, said) if result.gradient is not None else ():
        if label or found.line:
            where = shown_line(found) if found.line else ""
            yield ShownCause(
                label, one_line(found.text), where, marked(found), one_line(found.detail)
            )


def marked(found: Diagnosis) -> tuple[str, str, str]:
    """The line of a cause before, within and after the operation."""
    source, start, end = window(found, SOURCE_SHOWN)
    before, within, after = (
        safe(part) for part in (source[:start], source[start:end], source[end:])
    )
    return before, within, after
