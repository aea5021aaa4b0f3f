"""Reports that go to files: ``--report FORMAT:PATH``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcheck.report.record import Report

FORMATS = {
    "json": "gradcheck.report.record:as_json",
    "jsonl": "gradcheck.report.record:as_json_lines",
    "junit": "gradcheck.report.junit:as_junit",
    "github": "gradcheck.report.github:as_github",
    "markdown": "gradcheck.report.markdown:as_markdown",
    "sarif": "gradcheck.report.sarif:as_sarif",
    "html": "gradcheck.report.html:as_html",
}
"""Name of a format → the function that writes it, imported when it is asked for."""


def rendered(name: str, report: Report) -> str:
    """The report in the format of that name."""
    module, _, function = FORMATS[name].partition(":")
    write: Callable[[Report], str] = getattr(import_module(module), function)
    return write(report)
