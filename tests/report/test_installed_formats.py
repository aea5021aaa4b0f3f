"""A package adds a format of reports with an entry point; its mistakes are its own."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gradcheck.commands import main
from gradcheck.report.files import FORMATS, find_installed_formats, list_formats

SPEC = """\
schema: gradcheck/v1
scenarios:
  - {id: own-tanh, title: t, source: {document: d}, layer: {op: tanh}, inputs: {x: [2]}}
"""
CODE = """\
from gradcheck.report.record import Report

def as_lines(report: Report) -> str:
    return "".join(f"{one.status} {one.scenario}\\n" for one in report.results)

def fails(report):
    return report.no_such_field

def number(report):
    return 7
"""
ENTRIES = """\
[gradcheck.reports]
lines = lab_reports:as_lines
fails = lab_reports:fails
number = lab_reports:number
absent = lab_reports_that_are_gone:write
json = lab_reports:fails
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution, as pip leaves one, and a folder with a spec."""
    site = tmp_path / "site-packages"
    info = site / "lab_reports-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-reports\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    (site / "lab_reports.py").write_text(textwrap.dedent(CODE))
    monkeypatch.syspath_prepend(str(site))
    (tmp_path / "a.grad.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_with_reports(*formats: str) -> Result:
    reports = [part for name in formats for part in ("--report", f"{name}:{name}.txt")]
    return CliRunner().invoke(main, ["run", "a.grad.yaml", *reports])


def test_a_format_of_an_installed_package_is_written_by_its_function(package: Path) -> None:
    done = run_with_reports("lines")
    assert (done.exit_code, done.stderr) == (0, "")
    assert (package / "lines.txt").read_text() == "PASS own-tanh\n"


def test_formats_are_listed_without_importing_the_package(package: Path) -> None:
    assert list_formats() == [*FORMATS, "absent", "fails", "lines", "number"]
    done = run_with_reports("line")
    assert done.exit_code == 2
    assert "did you mean lines:line.txt?" in done.stderr


def test_a_format_of_ours_is_not_replaced(package: Path) -> None:
    assert "json" not in find_installed_formats()
    assert run_with_reports("json").exit_code == 0
    assert (package / "json.txt").read_text().startswith("{")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "fails",
            "lab_reports:fails of lab-reports fails: AttributeError: 'Report' object has no attribute",
        ),
        ("number", "lab_reports:number of lab-reports returns int; a report returns str"),
        (
            "absent",
            "lab_reports_that_are_gone:write of lab-reports fails: ModuleNotFoundError: No module named",
        ),
    ],
)
def test_a_mistake_in_a_format_is_said_and_costs_no_other_report(package: Path, name: str, message: str) -> None:
    done: Any = run_with_reports(name, "junit")
    assert done.exit_code == 2
    assert f"gradcheck: --report {name}:{name}.txt: {message}" in done.stderr
    assert (package / "junit.txt").exists()
    assert not (package / f"{name}.txt").exists()
