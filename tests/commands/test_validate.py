"""``gradcheck validate`` and ``gradcheck schema``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from schemas import texts

from gradcheck.commands.init import schema
from gradcheck.commands.validate import validate

GOOD = """\
schema: gradcheck/v1
scenarios:
  - id: ID
    title: A
    source: {document: d}
    layer: {ref: "trap:Layer"}
    inputs: {x: {shape: [2]}}
"""
BAD = GOOD.replace("title", "titel").replace("shape", "shpae")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.grad.yaml").write_text(GOOD.replace("ID", "good"))
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(validate, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_valid_files_exit_with_0(folder):
    assert run(".") == (0, "good.grad.yaml: ok, 1 scenario\n1 file, 1 scenario: all valid\n")


def test_every_file_is_reported_and_mistakes_exit_with_2(folder):
    (folder / "bad.grad.yaml").write_text(BAD.replace("ID", "bad"))
    code, output = run(".", "nowhere.grad.yaml", "good.grad.yaml")
    assert code == 2
    assert "bad.grad.yaml:4:5: error: unknown key 'titel' in a scenario\n" in output
    assert "bad.grad.yaml:7:18: error: unknown key 'shpae' in an input\n" in output
    assert "      help: did you mean 'shape'?\n" in output
    assert "\nbad.grad.yaml: 2 errors\ngood.grad.yaml: ok, 1 scenario\n" in output
    assert "nowhere.grad.yaml: error: there is no such file or folder\n" in output
    assert output.endswith("3 errors in 2 files of 3\n")
    assert "\x1b" not in output


def test_an_id_in_two_files_is_one_mistake(folder):
    (folder / "copy.grad.yaml").write_text(GOOD.replace("ID", "good"))
    code, output = run(".")
    assert code == 2
    assert "good.grad.yaml:3:5: error: id 'good' is also used in copy.grad.yaml:3\n" in output
    assert output.count("is also used in") == 1


def test_an_empty_folder_does_not_hide_the_other_paths(folder):
    (folder / "empty").mkdir()
    code, output = run("empty", "good.grad.yaml")
    assert code == 2
    assert "empty: error: there is no *.grad.yaml file in this folder\n" in output
    assert "good.grad.yaml: ok, 1 scenario\n" in output


def test_nothing_of_a_spec_is_imported_or_run_and_no_backend_is_loaded(folder):
    (folder / "trap.py").write_text("raise SystemExit('imported')")
    (folder / "code.grad.yaml").write_text(
        GOOD.split("  - id")[0]
        + "  - id: code\n    title: A\n    source: {document: d}\n    script: |\n      import trap\n"
        + "    expect: {values: {'__import__(\"trap\")': 1}}\n"
    )
    program = (
        "import sys\n"
        "from gradcheck.commands.validate import validate\n"
        "validate(['.'], standalone_mode=False)\n"
        "print(sorted({'numpy', 'pylayer', 'paddle', 'cupy', 'rich', 'trap', 'ml_dtypes'} & set(sys.modules)))\n"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([root, "."])},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("2 files, 2 scenarios: all valid\n[]\n")


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ((), "spec"),
        (("--report",), "report"),
        (("--matrix",), "matrix"),
        (("--release",), "release"),
    ],
)
def test_the_schemas_that_are_printed_are_the_models_own(option, name):
    result = CliRunner().invoke(schema, option)
    assert result.exit_code == 0
    assert result.output == texts()[name], "a model has changed: python tests/commands/schemas.py"
