"""``gradcheck validate``: list every mistake in spec files; no code in them is run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import click

from gradcheck.commands.errors import USAGE
from gradcheck.commands.shared_options import bundled_option
from gradcheck.commands.specs import (
    annotate_on_github,
    find_specs,
    nothing_found,
    require_spec_name,
)
from gradcheck.spec.diagnostic import Diagnostic
from gradcheck.spec.read import read_each, shared_ids
from gradcheck.support.display_paths import count
from gradcheck.support.escape import escape


@dataclass
class FileReport:
    """A spec file: how many scenarios it has, and its mistakes."""

    path: str
    scenarios: int = 0
    mistakes: list[Diagnostic] = field(default_factory=list)


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH|-]...")
@bundled_option
@click.option(
    "--format", "layout", type=click.Choice(["text", "json"]), default="text",
    help="How mistakes are printed: for a reader, or for programs.",
)  # fmt: skip
@click.pass_context
def validate(context: click.Context, paths: tuple[str, ...], bundled: bool, layout: str) -> None:
    """Check spec files, or all *.grad.yaml files below folders, without running anything; ``-``
    reads one from stdin.

    Without a PATH, the files of the project are checked: those that [tool.gradcheck] names, or all
    below its root. Exit code: 0 if all is well, 2 for mistakes, 5 without any file.
    """
    for path in paths:
        require_spec_name(path)
    files, mistakes = find_specs(paths, bundled=bundled)
    if not files and not mistakes:
        raise nothing_found("validate")
    names = [*(mistake.path for mistake in mistakes), *map(str, files)]
    reports = {path: FileReport(path) for path in names}
    specs, file_mistakes = read_each(files)
    mistakes += [*file_mistakes, *shared_ids(specs)]
    for spec in specs:
        reports[spec.path].scenarios = len(spec.scenarios)
    for mistake in mistakes:
        reports[mistake.path].mistakes.append(mistake)
    if layout == "json":
        show_json(list(reports.values()))
    else:
        show_text(list(reports.values()), context)
        annotate_on_github(mistakes)
    context.exit(USAGE if mistakes else 0)


def show_text(reports: Sequence[FileReport], context: click.Context) -> None:
    """Print each mistake with its line, a line for each file, and the total."""
    color = context.color if context.color is not None else sys.stdout.isatty()
    for report in reports:
        path, number = escape(report.path), len(report.mistakes)
        for mistake in report.mistakes:
            click.echo(mistake.render(color), color=color)
        good = f"ok, {count(report.scenarios, 'scenario')}"
        click.echo(f"{path}: {count(number, 'error') if number else good}")
    wrong = [number for report in reports if (number := len(report.mistakes))]
    if wrong:
        files = f"{count(len(wrong), 'file')} of {len(reports)}"
        click.echo(f"{count(sum(wrong), 'error')} in {files}")
        return
    scenarios = sum(report.scenarios for report in reports)
    click.echo(f"{count(len(reports), 'file')}, {count(scenarios, 'scenario')}: all valid")


def show_json(reports: Sequence[FileReport]) -> None:
    """Print an object for each file: its path, how many scenarios it has, its mistakes."""
    import json  # not needed for text

    files = [
        {
            "path": report.path,
            "scenarios": report.scenarios,
            "errors": [asdict(mistake) for mistake in report.mistakes],
        }
        for report in reports
    ]
    click.echo(json.dumps(files, indent=1))
