"""``gradcheck export``."""

from __future__ import annotations

from pathlib import Path

import click

from gradcheck.commands.report_options import require_bare_path
from gradcheck.commands.specs import read_bundled, with_releases
from gradcheck.conformance.pytest_files import export_files
from gradcheck.conformance.releases import read_release, require_recorded
from gradcheck.run.plan import plan
from gradcheck.support.file_io import write_whole
from gradcheck.support.resources import release_paths
from gradcheck.support.user_error import refusals_of


@click.command()
@click.option(
    "--pytest", "folder", required=True, metavar="DIR", help="Write plain pytest files into DIR."
)
@click.option(
    "--as-version",
    default="",
    metavar="RELEASE",
    help="Mark the recorded deviations of this release (default: the newest that was run).",
)
def export(folder: str, as_version: str) -> None:
    """Write the scenarios that cite Paddle's documents as tests that need only Paddle and pytest.

    Known deviations of the release are xfail with their reasons; scenarios that kill the process
    are not run.
    """
    require_bare_path("--pytest ", folder, ["pytest"])
    release = require_recorded(as_version or [*release_paths()][-1])
    target = Path(folder)
    backend = f"paddle@{release}"
    documents = [spec for spec in read_bundled() if Path(spec.path).parent.name == "documents"]
    cases = with_releases(plan(documents, [backend]), release)
    files = export_files(cases, read_release(release_paths()[release]))
    with refusals_of(f"--pytest {folder}"):
        target.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_whole(target / name, text)
    tests = sum(text.count("\ndef test_") for text in files.values())
    click.echo(f"gradcheck: wrote {tests} tests into {folder}; next: pytest {folder}", err=True)
