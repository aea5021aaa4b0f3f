"""``--report html:PATH``: one page, readable without a network and without JavaScript."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from gradcheck.case.case import Case
from gradcheck.report.drawings import CELL, FRAME, heat_maps, plot
from gradcheck.report.page import templates
from gradcheck.report.record import Report
from gradcheck.report.result_text import (
    again,
    by_cause,
    by_file,
    cause_with_line,
    counts_of,
    explaining,
    further_lines,
    labelled_causes,
    marks,
    place,
    shown_line,
    summary,
    window,
)
from gradcheck.report.wrong_entries import ENTRIES_SHOWN, told_apart, worst_first
from gradcheck.result import Diagnosis, GradientSummary, Result
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import one_line, safe

SOURCE_SHOWN = 400
"""The most characters of a line of source: longer lines are cut around the marked part."""


class ShownCause(NamedTuple):
    """A cause for the page: the line of the forward with the operation marked in it."""

    label: str
    text: str
    where: str
    source: tuple[str, str, str]
    """The line before, within and after the marked part."""
    detail: str


def as_html(report: Report) -> str:
    """The page. The template escapes all values."""
    environment = templates()
    environment.filters["one_line"] = one_line
    environment.globals.update(
        FRAME,
        place=place,
        told_apart=told_apart,
        shown_path=shown_path,
        cell=CELL,
        entries_shown=ENTRIES_SHOWN,
    )
    cases = {case.name: case for case in report.cases}
    cards = {}
    for result in report.results:
        cards[result.name] = card(result, report.again, cases.get(result.cases[0]))
    groups = []
    for group in sorted(by_cause(report.results), key=len, reverse=True):
        groups.append(([cards[result.name] for result in group], heading(group[0])))
    files = []
    for path, results in by_file(result for result in report.results if result.status.green):
        files.append((path, counts_of(results), [cards[result.name] for result in results]))
    return environment.get_template("page.html.jinja").render(
        report=report,
        summary=summary(report.results, report.seconds, report.not_run),
        counts=counts_of(report.results),
        groups=groups,
        files=files,
        choices={
            "backend": sorted({result.backend for result in report.results}),
            "tag": sorted(set().union(*(details["tags"] for details in cards.values()))),
            "file": sorted({shown_path(result.path) for result in report.results}),
        },
        matrix=report.matrix,
    )


def heading(result: Result) -> tuple[str, str]:
    """The cause of a group of failures in words, and its ``file:line``."""
    cause = cause_with_line(result)
    if cause is None:
        return one_line(result.message), ""
    return one_line(cause.text), shown_line(cause)


def card(result: Result, options: str, case: Case | None) -> dict[str, Any]:
    """A result for the template, without details if it is as expected."""
    values: dict[str, Any] = {
        "result": result,
        "anchor": quote(result.name, safe="@/=,:+~"),
        "name": one_line(result.name),
        "message": one_line(result.message),
        "marks": " ".join(marks(result.checked)),
        "title": "",
        "tags": (),
        "source": None,
    }
    if case is not None:
        scenario = case.scenario
        title = one_line(scenario.title or "")
        values |= {"title": title, "tags": scenario.tags, "source": scenario.source}
    if result.status.green:
        return values
    lines_above = [result.message, *result.details]
    problem, where = heading(result)
    gradient = result.checked
    return values | {
        "where": where,
        "cause": problem if problem != one_line(result.message) else "",
        "causes": list(shown_causes(gradient, lines_above)),
        "wrong": worst_first(gradient.wrong),
        "maps": heat_maps(gradient),
        "plot": None if gradient.scan is None else plot(gradient.scan),
        "further": safe("\n".join([*result.details, *further_lines(result, lines_above)])),
        "commands": [one_line(again(result, options)), *explaining(gradient)],
    }


def shown_causes(gradient: GradientSummary, lines_above: list[str]) -> Iterator[ShownCause]:
    """The causes of a failure that add something to its message."""
    for label, cause in labelled_causes(gradient, lines_above):
        if label or cause.line:
            where = shown_line(cause) if cause.line else ""
            text, detail = one_line(cause.text), one_line(cause.detail)
            yield ShownCause(label, text, where, split_at_operation(cause), detail)


def split_at_operation(cause: Diagnosis) -> tuple[str, str, str]:
    """The line of a cause before, within and after the operation."""
    source, start, end = window(cause, SOURCE_SHOWN)
    return safe(source[:start]), safe(source[start:end]), safe(source[end:])
