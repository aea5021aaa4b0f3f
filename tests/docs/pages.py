"""The pages of the documentation as programs: files that they show, code that they run, screens that they print.

What the first line of a block says decides what is done with it:

- ``python``: executed, all blocks of a page in one namespace; with ``title="file"`` written to that file instead, and
  with ``replaces="line"`` put in the place of that line of it
- ``yaml``, ``toml``, ``json``: read; a scenario file is validated, its format too; with a title written as well
- ``console``: the commands behind ``$`` are run, and print what the block shows, where ``…`` stands for anything
- ``sh``: for another place (an installation, a cluster): the options of each gradcheck command are looked up
- ``diff``: how something came about: the files that it names have what it adds or keeps, and no more what it takes away
- none, or ``text``: quoted from elsewhere
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import yaml

from gradcheck.commands import main
from gradcheck.spec.formatter import formatted

ROOT = Path(__file__).parents[2]
WRITTEN_ELSEWHERE = {"observed.md", "findings.md", "matrix.md"}
"""Pages that a program writes; tests of their own hold them."""
PAGES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
PAGES = [page for page in PAGES if Path(page).name not in WRITTEN_ELSEWHERE]
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
    """Somebody who follows a page from top to bottom, in a folder of their own."""

    def __init__(self, folder: Path, namespace: dict[str, Any]) -> None:
        self.folder, self.namespace = folder, namespace
        command = folder / "bin" / "gradcheck"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT / "cli.py"}" "$@"\n')
        command.chmod(0o755)
        self.environment = os.environ | {
            "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100", "NO_COLOR": "1",
            "XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        self.place = folder / "project"
        self.place.mkdir()

    def follow(self, block: Block) -> None:
        """Do what the block says."""
        if title := block.options.get("title"):
            self.write(self.place / title, block)
        if block.language == "python" and not title:
            code = compile("\n" * block.line + block.text, block.page, "exec", dont_inherit=True)
            exec(code, self.namespace)
        elif block.language in ("yaml", "json"):
            self.read(block)
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "console":
            screen = self.screen(block.text)
            assert alike(block.text, screen), screen
        elif block.language == "sh":
            for command in re.findall(r"(?:^|&& )\S*gradcheck ([^\n#&]*)", block.text, re.M):
                options_exist(shlex.split(command))
        elif block.language == "diff":
            still_there(block.text)

    def write(self, file: Path, block: Block) -> None:
        """A file that the page shows, or a line of it."""
        text = block.text
        if line := block.options.get("replaces"):
            before = file.read_text(encoding="utf-8")
            assert before.count(line + "\n") == 1, f"{file} has no line {line!r}"
            text = before.replace(line + "\n", block.text)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def read(self, block: Block) -> None:
        """YAML is read, and what is a spec file validated."""
        data = yaml.safe_load(block.text)
        if isinstance(data, dict) and "schema" in data and "…" not in block.text:
            file = self.folder / "shown.grad.yaml"
            file.write_text(block.text, encoding="utf-8")
            done = self.run(f"gradcheck validate {shlex.quote(str(file))}")
            assert "all valid" in done or ": ok" in done, done
            assert formatted(file.read_bytes(), block.page) == block.text.encode(), "gradcheck fmt would change it"

    def screen(self, text: str) -> str:
        """What the commands of a block print, each below its own line."""
        commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
        return "".join(f"$ {command}\n{self.run(command)}" for command in commands)

    def run(self, command: str) -> str:
        """What a command prints; `gradcheck run` draws as on a terminal."""
        drawn = re.sub(r"\bgradcheck run\b", "gradcheck run --format rich", command)
        done = subprocess.run(
            ["bash", "-c", drawn], cwd=self.place, env=self.environment, text=True, check=False, timeout=60,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.stdout


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
        word for word in words if word.startswith("-") and word.partition("=")[0] not in known | {"-h", "--help"}
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
