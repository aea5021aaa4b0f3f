"""``--report junit:PATH``: a list of tests for CI servers (the XML of Jenkins' junit plugin)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

from gradcheck.report.record import Report
from gradcheck.report.result_text import by_file, failure_block
from gradcheck.result import Result, Status
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import one_line, safe

ERRORS = frozenset({Status.ERROR, Status.CRASH, Status.TIMEOUT})
"""Failures that are not about the tested gradient."""
SKIPPED = frozenset({Status.SKIP, Status.UNSUPPORTED, Status.XFAIL})


def as_junit(report: Report) -> str:
    """A suite for each spec file, a test for each case.

    `escape` removes every character that XML cannot represent.
    """
    root = ElementTree.Element("testsuites", name="gradcheck", time=f"{report.seconds:.3f}")
    for path, results in by_file(report.results):
        attributes = {"name": shown_path(path), "timestamp": report.started}
        suite = ElementTree.SubElement(root, "testsuite", attributes)
        if report.suite:
            properties = ElementTree.SubElement(suite, "properties")
            ElementTree.SubElement(properties, "property", name="suite", value=report.suite)
        for result in results:
            add_case(suite, result, report.again)
        set_counts(suite, results)
        suite.set("time", f"{sum(result.seconds for result in results):.3f}")
    set_counts(root, report.results)
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def set_counts(element: ElementTree.Element, results: Sequence[Result]) -> None:
    """Set how many results of each kind an element has."""
    kinds = Counter(outcome_of(result.status) for result in results)
    element.set("tests", str(len(results)))
    names = {"error": "errors", "failure": "failures", "skipped": "skipped"}
    for kind, name in names.items():
        element.set(name, str(kinds[kind]))


def outcome_of(status: Status) -> str:
    """The element of a test with a status; empty if it passes."""
    if status in SKIPPED:
        return "skipped"
    if status.green:
        return ""
    return "error" if status in ERRORS else "failure"


def add_case(suite: ElementTree.Element, result: Result, again: str) -> None:
    """Add one case, with the panel of a failure as its text."""
    path = shown_path(result.path)
    attributes = {
        "classname": path.removesuffix(".grad.yaml").replace("/", "."),
        "name": one_line(result.name),
        "file": path,
        "line": str(result.line),
        "time": f"{result.seconds:.3f}",
    }
    case = ElementTree.SubElement(suite, "testcase", attributes)
    if kind := outcome_of(result.status):
        message = f"{result.status}: {one_line(result.message)}".removesuffix(": ")
        outcome = {"type": str(result.status), "message": message}
        element = ElementTree.SubElement(case, kind, outcome)
        if not result.status.green:
            element.text = "\n".join(failure_block(result, again))
    if result.output.strip():
        ElementTree.SubElement(case, "system-out").text = safe(result.output)
