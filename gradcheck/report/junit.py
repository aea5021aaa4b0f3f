"""``--report junit:PATH``: what CI servers show as a list of tests (the XML of Jenkins' junit plugin)."""

from __future__ import annotations

from itertools import groupby
from xml.etree import ElementTree

from gradcheck.report.record import Report
from gradcheck.report.result_text import failure_block
from gradcheck.result import Result, Status
from gradcheck.support.display_paths import shown_path
from gradcheck.support.escape import one_line, safe

ERRORS = frozenset({Status.ERROR, Status.CRASH, Status.TIMEOUT})
"""What went wrong elsewhere than in what was tested."""
SKIPPED = frozenset({Status.SKIP, Status.UNSUPPORTED, Status.XFAIL})


def as_junit(report: Report) -> str:
    """A suite for each spec file, a test for each case. `escape` leaves no character that XML cannot hold."""
    root = ElementTree.Element("testsuites", name="gradcheck", time=f"{report.seconds:.3f}")
    for path, group in groupby(report.results, key=lambda result: result.path):
        members = list(group)
        suite = ElementTree.SubElement(
            root, "testsuite", name=shown_path(path), timestamp=report.started
        )
        for result in members:
            add_case(suite, result, report.again)
        counts(suite, members)
    counts(root, report.results)
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def counts(element: ElementTree.Element, results: list[Result] | tuple[Result, ...]) -> None:
    """Say how many there are of each kind."""
    element.set("tests", str(len(results)))
    element.set("errors", str(sum(one.status in ERRORS for one in results)))
    element.set(
        "failures", str(sum(not one.status.green and one.status not in ERRORS for one in results))
    )
    element.set("skipped", str(sum(one.status in SKIPPED for one in results)))
    if element.tag == "testsuite":
        element.set("time", f"{sum(one.seconds for one in results):.3f}")


def add_case(suite: ElementTree.Element, result: Result, again: str) -> None:
    """One case, with the panel of a failure as its text."""
    path = shown_path(result.path)
    case = ElementTree.SubElement(
        suite, "testcase", classname=path.removesuffix(".grad.yaml").replace("/", "."), name=one_line(result.name),
        file=path, line=str(result.line), time=f"{result.seconds:.3f}",
    )  # fmt: skip
    said = f"{result.status}: {one_line(result.message)}".removesuffix(": ")
    if result.status in SKIPPED:
        ElementTree.SubElement(case, "skipped", type=str(result.status), message=said)
    elif not result.status.green:
        kind = "error" if result.status in ERRORS else "failure"
        found = ElementTree.SubElement(case, kind, type=str(result.status), message=said)
        found.text = "\n".join(failure_block(result, again))
    if result.output.strip():
        ElementTree.SubElement(case, "system-out").text = safe(result.output)
