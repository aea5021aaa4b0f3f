"""Reports that go to files: ``--report FORMAT:PATH``.

An installed package adds a format with an entry point in the group ``gradcheck.reports``: its name
is the format, its object a function that takes a `Report` and returns the text of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from gradcheck.support.entry_points import entry_points_of
from gradcheck.support.foreign import describe_error, type_name
from gradcheck.support.user_error import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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
"""Name of a format → the function that writes it, imported when needed."""


def find_installed_formats() -> dict[str, EntryPoint]:
    """Return the formats of installed packages by name; the packages are not imported."""
    entries = entry_points_of("gradcheck.reports")
    return {entry.name: entry for entry in entries if entry.name not in FORMATS}


def list_formats() -> list[str]:
    """Return the names of all formats, gradcheck's own first."""
    return [*FORMATS, *sorted(find_installed_formats())]


def render_report(name: str, report: Report) -> str:
    """Return the report in the format of that name.

    Raises UserError: the function of an installed package fails or does not return text.
    """
    if name not in FORMATS:
        return _render_installed(find_installed_formats()[name], report)
    write: Callable[[Report], str] = resolve_name(FORMATS[name])
    return write(report)


def _render_installed(entry: EntryPoint, report: Report) -> str:
    package = entry.dist.name if entry.dist is not None else "an installed package"
    source = f"{entry.value} of {package}"
    try:
        text: Any = entry.load()(report)
    except Exception as error:
        raise UserError(f"{source} fails: {describe_error(error)}") from error
    if not isinstance(text, str):
        raise UserError(f"{source} returns {type_name(text)}; a report returns str")
    return text
