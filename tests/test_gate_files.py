"""What gates read: the GitHub action and workflows, pre-commit hooks, the lock file, the snippets of the documents."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from packaging.requirements import Requirement

from gradcheck.commands import COMMANDS, main

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
GOOD = """\
schema: gradcheck/v1
scenarios:
  - {id: one, title: t, source: {document: d}, layer: {op: tanh}, inputs: {x: {shape: [2]}}}
"""


def test_every_input_of_the_action_reaches_a_step_through_the_environment() -> None:
    steps = ACTION["runs"]["steps"]
    text = yaml.safe_dump(steps)
    for name in ACTION["inputs"]:
        assert f"${{{{ inputs.{name} }}}}" in text, name
    for step in steps:  # what stands in a script itself would be code that an input may end
        assert "${{" not in step.get("run", "")


def last_step_of_the_action(folder: Path, specs: str, arguments: str) -> subprocess.CompletedProcess[str]:
    """The step that runs gradcheck, as a runner starts it in a checkout at `folder`."""
    (folder / "gradcheck").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT / "cli.py"}" "$@"\n')
    (folder / "gradcheck").chmod(0o755)
    step = next(step for step in ACTION["runs"]["steps"] if step.get("name") == "Run")
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "SPECS": specs}
    environment |= {"ARGUMENTS": arguments, "REPORT": "r.html", "GRADCHECK_ALLOW_CODE": "1"}
    return subprocess.run(
        ["bash", "-e", "-c", step["run"]], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("specs", ["a.grad.yaml", ""])
def test_the_last_step_of_the_action_runs_what_its_inputs_say(tmp_path: Path, specs: str) -> None:
    (tmp_path / "a.grad.yaml").write_text(GOOD)
    done = last_step_of_the_action(tmp_path, specs, "-q --seed 3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 PASS")
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_the_action_fails_where_there_is_nothing_to_run(tmp_path: Path) -> None:
    done = last_step_of_the_action(tmp_path, "", "")
    assert (done.returncode, done.stdout) == (5, "")
    assert f"no *.grad.yaml below {tmp_path}" in done.stderr


def test_the_action_fails_where_the_projects_own_specs_fail(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "own.grad.yaml").write_text(GOOD.replace("inputs:", "expect: {gradient: differs}, inputs:"))
    assert last_step_of_the_action(tmp_path, "", "-q").returncode == 1


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_takes_the_files_that_pre_commit_gives_it(
    hook: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.grad.yaml").write_text(GOOD)
    assert re.search(hook["files"], "specs/a.grad.yaml")
    assert not re.search(hook["files"], "specs/a.yaml")
    program, *arguments = shlex.split(hook["entry"])
    assert program == "gradcheck"
    assert CliRunner().invoke(main, [*arguments, "a.grad.yaml"]).exit_code == 0


def test_the_snippets_of_the_documents_are_yaml_and_call_commands_that_there_are() -> None:
    text = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    snippets = re.findall(r"^```yaml[^\n]*\n(.*?)^```", text, re.M | re.S)
    assert snippets
    for snippet in snippets:
        assert isinstance(yaml.safe_load(snippet), dict | list), snippet
        for line in re.findall(r"\bgradcheck ([a-z]+)", snippet):
            assert line in COMMANDS, snippet


def test_the_lock_file_is_of_the_dependencies_that_the_project_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {(Requirement(text).name, str(Requirement(text).specifier), "") for text in project["dependencies"]}
    for extra, texts in project["optional-dependencies"].items():
        wanted |= {(Requirement(text).name, str(Requirement(text).specifier), extra) for text in texts}
    packages = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    locked = next(package for package in packages if package["name"] == "gradcheck")["metadata"]["requires-dist"]
    found = {
        (one["name"], one.get("specifier", ""), "".join(re.findall(r"'(\w+)'", one.get("marker", ""))))
        for one in locked
    }
    assert {(name.lower(), *rest) for name, *rest in wanted} == found, "uv lock"


@pytest.mark.parametrize("file", ["action.yml", ".github/workflows/ci.yml", ".github/workflows/release.yml"])
def test_an_action_of_others_is_named_by_its_commit(file: str) -> None:
    used = re.findall(r"uses: (\S+)", (ROOT / file).read_text(encoding="utf-8"))
    assert used
    assert [name for name in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []
