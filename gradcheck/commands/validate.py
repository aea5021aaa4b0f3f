"""``gradcheck validate``: every mistake in spec files; nothing that they hold is run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import click

from gradcheck.commands.errors import USAGE
from gradcheck.commands.shared_options import bundled_option
from gradcheck.commands.specs import annotate, find_specs, nothing_found
from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.spec.read import Given, given_in, read, shared_ids
from gradcheck.support.display_paths import count
from gradcheck.support.escape import escape

_MOST_SHOWN = 100


@dataclass
class FileReport:
    """A spec file: its scenarios and its mistakes."""

    path: str
    given: list[Given] = field(default_factory=list)
    mistakes: list[Diagnostic] = field(default_factory=list)


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH|-]...")
@bundled_option
@click.option(
    "--format", "layout", type=click.Choice(["text", "json", "github"]), default="text",
    help="How mistakes are printed: for a reader, for programs, or as annotations on GitHub.",
)  # fmt: skip
@click.pass_context
def validate(context: click.Context, paths: tuple[str, ...], bundled: bool, layout: str) -> None:
    """Check spec files, or all *.grad.yaml files below folders, without running anything; ``-``
    reads one from stdin.

    Without a PATH those of the project are checked: what [tool.gradcheck] names, or else all below
    its root. Exits with 0 if all is well, with 2 if there are mistakes, with 5 if there is no file.
    """
    named = [path for path in paths if path != "-"]
    names: list[str] = ["-"] * (len(paths) - len(named))
    reports: dict[str, FileReport] = {}
    if named or not paths:
        files, mistakes = find_specs(named, bundled=bundled)
        reports = {one.path: FileReport(one.path, mistakes=[one]) for one in mistakes}
        names = [*map(str, files), *names]
    reports |= {name: checked_file(name) for name in names}
    if not reports:
        raise nothing_found("validate")
    for mistake in shared_ids(one for report in reports.values() for one in report.given):
        reports[mistake.path].mistakes.append(mistake)
    show = {"text": show_text, "json": show_json, "github": show_github}[layout]
    show(list(reports.values()), context)
    if os.environ.get("GITHUB_ACTIONS") and layout == "text":
        show_github(list(reports.values()), context)
    context.exit(USAGE if any(report.mistakes for report in reports.values()) else 0)


def checked_file(name: str) -> FileReport:
    """Return what is in a file, or for ``-`` in stdin."""
    try:
        return FileReport(name, given=given_in(read(name)))
    except SpecError as error:
        return FileReport(name, mistakes=error.diagnostics)


def show_text(reports: Sequence[FileReport], context: click.Context) -> None:
    """Print each mistake with its line, a line for each file, and the sum."""
    color = context.color if context.color is not None else sys.stdout.isatty()
    for report in reports:
        path, number = escape(report.path), len(report.mistakes)
        for mistake in report.mistakes[:_MOST_SHOWN]:
            click.echo(mistake.render(color), color=color)
        if number > _MOST_SHOWN:
            click.echo(f"{path}: and {number - _MOST_SHOWN} more errors")
        good = f"ok, {count(len(report.given), 'scenario')}"
        click.echo(f"{path}: {count(number, 'error') if number else good}")
    wrong = [len(report.mistakes) for report in reports if report.mistakes]
    scenarios = sum(len(report.given) for report in reports)
    if wrong:
        files = f"{count(len(wrong), 'file')} of {len(reports)}"
        click.echo(f"{count(sum(wrong), 'error')} in {files}")
    else:
        click.echo(f"{count(len(reports), 'file')}, {count(scenarios, 'scenario')}: all valid")


def show_json(reports: Sequence[FileReport], context: click.Context) -> None:
    """Print an object for each file: its path, how many scenarios it has, its mistakes."""
    import json  # text needs none

    files = [
        {
            "path": report.path,
            "scenarios": len(report.given),
            "errors": [asdict(mistake) for mistake in report.mistakes],
        }
        for report in reports
    ]
    click.echo(json.dumps(files, indent=1))


def show_github(reports: Sequence[FileReport], context: click.Context) -> None:
    """Print an annotation for each mistake."""
    annotate(mistake for report in reports for mistake in report.mistakes)
