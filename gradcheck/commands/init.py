"""``gradcheck init``: what a project needs to be checked."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gradcheck.commands.specs import fail
from gradcheck.support.bounded import read_bounded
from gradcheck.support.pyproject import MOST_PYPROJECT_BYTES, ConfigError, content_of, parse_toml
from gradcheck.support.resources import schema_text
from gradcheck.support.whole_file import replace

SCHEMA_FILE = "gradcheck.schema.json"
MODELINE = f"# yaml-language-server: $schema=./{SCHEMA_FILE}\n"
"""Tells editors what a spec file may hold."""
EXAMPLE = """\
schema: gradcheck/v1
scenarios:
  - id: example-square
    title: An example; `gradcheck new mypkg.layers:Layer -o specs/mine.grad.yaml` writes one of yours
    source: {document: "d x^2 = 2 x dx"}
    layer: |
      class Square(PyLayer):
          @staticmethod
          def forward(ctx, x):
              ctx.save_for_backward(x)
              return x * x

          @staticmethod
          def backward(ctx, dy):
              x, = ctx.saved_tensor()
              return 2 * x * dy
    inputs:
      x: {shape: [2, 3]}
"""
SETTINGS = """\
[tool.gradcheck]
paths = ["specs"]
allow-code = true  # for those who have run `gradcheck trust` here
"""
WORKFLOW = """\
name: gradcheck
on: [push, pull_request]
jobs:
  gradcheck:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install gradcheck
      - run: gradcheck run
        env: {GRADCHECK_ALLOW_CODE: "1"}
"""


@click.command()
@click.option("--github/--no-github", default=True, help="Whether to write a workflow for GitHub Actions.")
def init(github: bool) -> None:
    """Lay out a project: a folder of specs with an example, its schema for editors, settings, a workflow.

    Files that are there already stay as they are. Links are not followed.
    """
    files = {
        Path("specs/example.grad.yaml"): MODELINE + EXAMPLE,
        Path("specs", SCHEMA_FILE): schema_text("spec"),
        **({Path(".github/workflows/gradcheck.yml"): WORKFLOW} if github else {}),
    }
    project = Path("pyproject.toml")
    try:
        for path in (*files, project):
            refuse_links(path)
        with_settings = settings(project)
        for path, text in files.items():
            write(path, text)
        if with_settings is None:
            click.echo(f"kept    {project}")
        elif project.exists():
            replace(project, with_settings.encode())
            click.echo(f"added to {project}")
        else:
            write(project, with_settings)
    except OSError as error:
        raise fail(f"{error.filename}: {error.strerror or error}") from None
    click.echo("next: gradcheck trust (the code of this project may run, for you), then gradcheck run")


def refuse_links(path: Path) -> None:
    """See that no link leads from the current folder to a file elsewhere. Raises SystemExit: one does."""
    for one in (path, *path.parents):
        if one.is_symlink():
            raise fail(f"{one} is a link, which is not followed: remove it; nothing was written")


def write(path: Path, text: str) -> None:
    """Write a file that is not there yet, and say what was done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        click.echo(f"kept    {path}")
    else:
        click.echo(f"wrote   {path}")


def settings(path: Path) -> str | None:
    """What a pyproject.toml becomes with ``[tool.gradcheck]``; None if it has that.

    Raises:
        SystemExit: the file is no TOML, or cannot have that.
    """
    if not os.path.lexists(path):
        return SETTINGS
    try:
        tool = content_of(path).get("tool", {})
        if isinstance(tool, dict) and "gradcheck" in tool:
            return None
        text = read_bounded(path, MOST_PYPROJECT_BYTES).decode()
        with_settings = text.rstrip("\n") + "\n\n" * bool(text) + SETTINGS
        if "gradcheck" not in parse_toml(with_settings)["tool"]:
            raise ConfigError(f"{path}: tool must be a table")
    except ConfigError as error:
        raise fail(f"{error}; it stays as it is") from None
    return with_settings
