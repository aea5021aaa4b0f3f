"""The command line as its users call it: in this process where possible, else as ``python cli.py``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from passing import Passing
from warm import python

from gradcheck.backends.base import missing
from gradcheck.commands import main, shared_options

ROOT = Path(__file__).parents[2]


class Done(NamedTuple):
    """What a command gave."""

    code: int
    out: str
    err: str


def script(id: str, code: str, extra: str = "") -> str:
    """A scenario with a script and further keys, to follow ``scenarios:``."""
    head = f"  - id: {id}\n    title: {id} at work\n    source: {{document: d}}\n"
    return head + "    script: |\n" + indent(dedent(code), "      ") + "\n" + indent(dedent(extra), "    ")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and nothing in the environment that changes colours."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def spec(folder: Path) -> Callable[..., Path]:
    """Writes a spec file of the given scenarios."""

    def write(*scenarios: str, name: str = "a.grad.yaml", head: str = "") -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"schema: gradcheck/v1\n{head}scenarios:\n{''.join(scenarios)}", encoding="utf-8")
        return path

    return write


@pytest.fixture
def gradcheck(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Calls the command line in this process, as on one core: a worker takes longer to start than cases of tests."""
    monkeypatch.setattr(shared_options, "cores", lambda: 1)

    def call(*arguments: str) -> Done:
        missing.cache_clear()  # a process of its own would look anew
        result = CliRunner().invoke(main, arguments, prog_name="gradcheck", color=True)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every case of `gradcheck run` passes; none is really run."""
    monkeypatch.setattr("gradcheck.commands.run.make_executor", Passing)


@pytest.fixture
def cli(folder: Path) -> Callable[..., Done]:
    """Calls ``python cli.py`` as a process of its own, with an environment and perhaps a text on its stdin."""

    def call(*arguments: str, input: str = "", **environment: str) -> Done:
        done = python(ROOT / "cli.py", *arguments, env={**os.environ, **environment}, input=input)
        return Done(done.returncode, done.stdout, done.stderr)

    return call
