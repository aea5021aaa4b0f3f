"""Files and folders whose names are no text, or would steer a terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from warm import python

ROOT = Path(__file__).parents[2]
SPEC = """\
schema: gradcheck/v1
defaults: {source: {document: d}}
scenarios:
  - {id: op, title: t, layer: {op: tanh}, inputs: {x: {shape: [1]}}}
"""
OF_A_MODULE = SPEC + '  - {id: ref, title: t, layer: {ref: "doubled:Doubled"}, inputs: {x: {shape: [2]}}}\n'
MODULE = """\
import paddle

class Doubled(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * paddle.exp(x)

    @staticmethod
    def backward(ctx, dy):
        x, = ctx.saved_tensor()
        return dy * paddle.exp(x)
"""


@pytest.fixture
def not_utf8(folder: Path) -> Path:
    """A folder whose name has a byte that is not UTF-8; macOS allows none."""
    path = Path(os.fsdecode(os.fsencode(folder) + b"/d\xfe"))
    try:
        path.mkdir()
    except OSError:
        pytest.skip("this file system takes names in UTF-8 only")
    return path


def called(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What the command line gives in a folder."""
    return python(ROOT / "cli.py", *arguments, folder=folder, env={**os.environ, **environment})


@pytest.mark.parametrize("command", ["run", "validate", "list", "show"])
def test_a_spec_whose_name_is_not_utf8_is_a_mistake(not_utf8, command):
    (not_utf8 / "a.grad.yaml").write_text(SPEC)
    done = called(command, "d\udcfe/a.grad.yaml", *["op"] * (command == "show"), folder=not_utf8.parent)
    assert done.returncode == 2
    assert "d\\udcfe/a.grad.yaml: error: the name of this file is not UTF-8\n" in done.stdout + done.stderr
    assert "help: rename it" in done.stdout + done.stderr
    assert not (not_utf8.parent / ".gradcheck").exists()


def test_in_a_folder_whose_name_is_not_utf8_all_works_and_reports_are_valid(not_utf8):
    """Also where a finding names a line of a module there."""
    (not_utf8 / "a.grad.yaml").write_text(OF_A_MODULE)
    (not_utf8 / "doubled.py").write_text(MODULE)
    done = called("run", "a.grad.yaml", "--allow-code", "--report", "json:r.json", folder=not_utf8)
    assert done.stderr == ""
    assert [line.split()[:2] for line in done.stdout.splitlines() if "@numpy a.grad" in line] == [
        ["PASS", "op@numpy"], ["FAIL", "ref@numpy"],
    ]  # fmt: skip
    assert "doubled.py:7 │" in done.stdout
    _, result = json.loads((not_utf8 / "r.json").read_text(encoding="utf-8"))["results"]
    assert result["gradient"]["diagnosis"][0]["line"].endswith("/d\\udcfe/doubled.py:7")
    again = called("replay", "--allow-code", folder=not_utf8)
    assert (again.returncode, again.stderr) == (1, "")


@pytest.mark.parametrize("command", ["run", "validate", "list", "show"])
def test_a_name_that_would_steer_a_terminal_is_escaped(folder, command):
    name = "a\n::error::x\x1b[2J\u202e\u3164.grad.yaml"
    (folder / name).write_text(SPEC)
    done = called(command, name, *["op"] * (command == "show"), folder=folder, GITHUB_ACTIONS="true")
    assert done.returncode == 0, done.stderr
    assert "a\\n::error::x\\x1b[2J\\u202e\\u3164.grad.yaml" in done.stdout
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\u3164]|^\\s*::", done.stdout + done.stderr, re.MULTILINE)


def test_on_github_no_name_begins_a_command_on_the_error_stream(folder):
    (folder / "::error::x.grad.yaml").write_text("schema: gradcheck/v2\n")
    done = called("run", "::error::x.grad.yaml", folder=folder, GITHUB_ACTIONS="true")
    assert done.returncode == 2
    assert done.stderr.startswith(":\\x3aerror::x.grad.yaml:")
