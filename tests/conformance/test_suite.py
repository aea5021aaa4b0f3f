"""The version of the suite: one for every report, from what scenarios run and expect."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from gradcheck.commands import main
from gradcheck.conformance.suite import suite_version
from gradcheck.spec.read import load
from gradcheck.support.resources import bundled_files, bundled_specs

CASE = "backward-rules-user-exception-keeps-type"


@pytest.fixture(scope="module")
def version() -> str:
    return suite_version(load(bundled_files()))


def test_it_changes_with_what_runs_and_must_hold_alone() -> None:
    [spec] = load([bundled_specs() / "documents" / "apply.grad.yaml"])
    first, *others = spec.scenarios

    def changed(**fields: object) -> str:
        scenarios = (first.model_copy(update=fields), *others)
        return suite_version([spec.model_copy(update={"scenarios": scenarios})])

    assert changed(title="Other", tags=()) == changed()
    assert changed(seed=7) != changed()


def test_every_report_of_a_run_of_the_suite_has_it(version: str, tmp_path: Path) -> None:
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
