"""The version of the suite: one for every report, from the text of its specs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from installed import variables

from gradcheck.commands import main
from gradcheck.conformance import suite
from gradcheck.conformance.suite import suite_version
from gradcheck.support.resources import bundled_specs

CASE = "backward-rules-user-exception-keeps-type"


def test_it_changes_with_every_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "specs"
    shutil.copytree(bundled_specs(), folder)
    monkeypatch.setattr(suite, "bundled_files", lambda framework: sorted(folder.rglob("*.grad.yaml")))
    whole = suite_version.__wrapped__()
    for file in folder.rglob("*.grad.yaml"):
        text = file.read_bytes()
        file.write_bytes(text.replace(b"\n", b"\r\n"))
        assert suite_version.__wrapped__() == whole
        file.write_bytes(text + b"#\n")
        assert suite_version.__wrapped__() != whole
        file.write_bytes(text)


def test_it_is_known_without_reading_a_spec() -> None:
    code = (
        "import sys, gradcheck.conformance.suite as suite; suite.suite_version();"
        "print([name for name in sys.modules if name.startswith(('gradcheck.spec', 'yaml'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=variables())
    assert done.stdout.strip() == "[]"


def test_every_report_of_a_run_of_the_suite_has_it(tmp_path: Path) -> None:
    version = suite_version()
    formats = ("json", "jsonl", "junit", "markdown", "sarif", "html")
    reports = [f"--report={name}:{tmp_path / name}" for name in formats]
    done = CliRunner().invoke(main, ["run", CASE, "--format=rich", *reports])
    assert done.exit_code == 0, done.output
    assert f"suite {version.rpartition(' ')[2]}" in " ".join(done.output.split())
    texts = {name: (tmp_path / name).read_text(encoding="utf-8").replace("\\", "") for name in formats}
    assert [name for name, text in texts.items() if version not in text] == []


def test_a_run_of_a_users_own_scenarios_has_none(tmp_path: Path) -> None:
    spec = tmp_path / "own.grad.yaml"
    spec.write_text("schema: gradcheck/v1\nscenarios: [{id: own, layer: {op: tanh}, inputs: {x: [2]}}]\n")
    done = CliRunner().invoke(main, ["run", str(spec), "--format=rich"])
    assert done.exit_code == 0, done.output
    assert "suite" not in done.output
