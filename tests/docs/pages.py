"""The pages of the documentation as programs: files that they show, code that they run, screens that they print.

What the first line of a block says decides what is done with it:

- ``python``: executed, all blocks of a page in one namespace, and the tests that it defines called; with
  ``title="file"`` written to that file instead, and with ``replaces="line"`` put in the place of that line of it
- ``yaml``: run; keys of a scenario alone are those of one that is complete otherwise. With a title written as well, and
  run by a command of the page, or else at its end
- ``toml``, ``json``: read; with a title written as well
- ``console``: the commands behind ``$`` are run, and print what the block shows on a terminal, where ``…`` stands for
  anything
- ``sh``: for another place (an installation, a cluster): the options of each gradcheck command are looked up
- ``diff``: how something came about: the files that it names have what it adds or keeps, and no more what it takes away
- none, or ``text``: quoted from elsewhere

What cannot be done here has ``skip="why"`` behind these.
"""

from __future__ import annotations

import inspect
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import click
import yaml
from click.testing import CliRunner, Result

import gradcheck
from gradcheck.commands import main

ROOT = Path(__file__).parents[2]
WRITTEN_ELSEWHERE = {"derive.md", "observed.md", "findings.md", "matrix.md", "paddle.md"}
"""Pages that a program writes; tests of their own hold them."""
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
NEEDS = {"torch.md": "torch", "jax.md": "jax", "autograd.md": "autograd"}
"""Pages that are followed only where a package is installed."""
PAGES = [page for page in PAGES if Path(page).name not in WRITTEN_ELSEWHERE]
PAGES = [page for page in PAGES if (needed := NEEDS.get(Path(page).name)) is None or find_spec(needed)]
LANGUAGES = {"python", "yaml", "toml", "json", "console", "sh", "diff", "text", ""}


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    options: dict[str, str]
    text: str


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in re.finditer(r"^( *)```(\w*)([^\n]*)\n(.*?)^\1```$", text, re.M | re.S):
        indent, language, options, body = found.groups()
        line = text.count("\n", 0, found.start()) + 1
        body = re.sub(f"^{indent}", "", body, flags=re.M)
        yield Block(page, line, language, dict(re.findall(r'(\w+)="([^"]*)"', options)), body)


class Reader:
    """Somebody who follows a page from top to bottom, in a folder of their own, which is the current one."""

    def __init__(self, folder: Path, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        command = folder / "bin" / "gradcheck"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT / "cli.py"}" "$@"\n')
        command.chmod(0o755)
        self.environment = {
            "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80", "NO_COLOR": "1",
            "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        self.place = folder / "project"
        self.place.mkdir()
        self.not_run: list[str] = []
        """Specs and tests that were written and that no command of the page has run."""

    def follow(self, block: Block) -> None:
        """Do what the block says."""
        if "skip" in block.options:
            return
        if title := block.options.get("title"):
            self.write(self.place / title, block.text, block.options.get("replaces"))
            if title.endswith(".grad.yaml") or Path(title).name.startswith("test_"):
                self.not_run.append(title)
        elif block.language == "python":
            code = compile("\n" * block.line + block.text, block.page, "exec", dont_inherit=True)
            exec(code, self.namespace)
            for name in re.findall(r"^def (test_\w+)", block.text, re.M):
                self.namespace[name]()
        elif block.language == "yaml":
            self.not_run.append(self.spec(block))
        elif block.language == "json":
            yaml.safe_load(block.text)
        if block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "console":
            screen = self.screen(block.text)
            assert alike(block.text, screen), screen
            named = re.findall(r"^\$ .*gradcheck run ?(\S*)", block.text, re.M)
            self.not_run = [file for file in self.not_run if not any(file.startswith(path) for path in named)]
        elif block.language == "sh":
            for command in re.findall(r"(?:^|&& )\S*gradcheck ([^\n#&]*)", block.text, re.M):
                options_exist(shlex.split(command))
        elif block.language == "diff":
            still_there(block.text)

    def finish(self) -> None:
        """Run the specs and the tests that nothing has run: all of them pass."""
        if specs := [file for file in self.not_run if file.endswith(".grad.yaml")]:
            done = self.gradcheck(["run", "--allow-code", "--format", "rich", *specs])
            assert done.exit_code == 0, done.output
        with gradcheck.engine():  # as the plugin does; it has tests of its own
            for file in {*self.not_run} - {*specs}:
                for name, test in runpy.run_path(str(self.place / file)).items():
                    if name.startswith("test_"):
                        test(**dict.fromkeys(inspect.signature(test).parameters, gradcheck.assert_gradients))

    def write(self, file: Path, text: str, replaces: str | None = None) -> None:
        """A file that the page shows, or what it puts in the place of a line of it."""
        if replaces is not None:
            before = file.read_text(encoding="utf-8")
            assert before.count(replaces + "\n") == 1, f"{file} has no line {replaces!r}"
            text = before.replace(replaces + "\n", text)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def spec(self, block: Block) -> str:
        """The name of a spec file of what a block shows of one."""
        file = self.place / f"shown-{block.line}.grad.yaml"
        data = yaml.safe_load(block.text)
        assert isinstance(data, dict), "no spec, and no keys of a scenario: it needs a skip"
        if "schema" not in data:
            data = {"schema": "gradcheck/v1", "scenarios": [SCENARIO | data]}
        file.write_text(block.text if "schema" in block.text else yaml.safe_dump(data), encoding="utf-8")
        return file.name

    def screen(self, text: str) -> str:
        """What the commands of a block print, each below its own line."""
        commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
        return "".join(f"$ {command}\n{self.run(command)}" for command in commands)

    def run(self, command: str) -> str:
        """What a command prints; results are drawn as on a terminal."""
        drawn = re.sub(r"\bgradcheck (run|check)\b", r"gradcheck \1 --format rich", command)
        if re.fullmatch(r"gradcheck [^&|;<>]*", drawn):
            with mock.patch.object(sys, "argv", shlex.split(command)):  # what it says to run again
                return self.gradcheck(shlex.split(drawn)[1:]).output
        done = subprocess.run(
            ["bash", "-c", drawn], cwd=self.place, env=os.environ | self.environment, text=True, check=False,
            timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.stdout

    def gradcheck(self, words: list[str]) -> Result:
        """What the command does, in this process; the project's modules end with it."""
        try:
            return CliRunner().invoke(main, words, env=self.environment)
        finally:
            forget_modules(self.place)


def forget_modules(folder: Path) -> None:
    """Drop imported modules and packages below a folder: in another process, or project, they are others."""
    for name, module in [*sys.modules.items()]:
        known = vars(module) if isinstance(module, ModuleType) else {}
        files = [known.get("__file__") or "", *(known.get("__path__") or [])]
        if any(str(file).startswith(str(folder)) for file in files):
            del sys.modules[name]


SCENARIO = {"id": "shown", "layer": {"op": "tanh"}, "inputs": {"x": {"shape": [2]}}}
"""What keys of a scenario are shown of."""


def alike(shown: str, printed: str) -> bool:
    """Whether a block shows what was printed; ``…`` stands for anything, and on a line of its own for any lines."""
    pattern = "".join(
        "(.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + "\n" for line in plain(shown).splitlines()
    )
    return bool(re.fullmatch(pattern, plain(printed)))


def plain(text: str) -> str:
    """Text without what differs between machines: how wide columns are, and how large rounding is (1e-10 and less)."""
    return re.sub(r"\d(\.\d)?e-1\d", "#", re.sub(r" +(?=\n)", "", re.sub(r"(?<=\S)[ \xa0]+", " ", text)))


def options_exist(words: list[str]) -> None:
    """The options of a command line are those that the command has. Nothing is run."""
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            assert command is not main, f"there is no command {words[0]!r}"
            break
        command, words = found, words[1:]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [
        word for word in words if word.startswith("-") and word.partition("=")[0] not in known | {"-h", "--help", "-"}
    ]
    assert not unknown, f"{command.name} has no option {unknown}"


def still_there(diff: str) -> None:
    """What a diff keeps or takes away stands in its file."""
    text = ""
    for line in diff.splitlines():
        if line.startswith("--- a/"):
            text = (ROOT / line.removeprefix("--- a/")).read_text(encoding="utf-8")
        elif line[:1] in (" ", "+") and not line.startswith("+++ "):
            assert line[1:] in text, f"not there any more: {line[1:]}"
        elif line[:1] == "-":
            assert line[1:] not in text, f"still there: {line[1:]}"
