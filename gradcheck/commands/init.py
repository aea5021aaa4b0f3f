"""``gradcheck init`` and ``schema``: set up a project for checks, and print the schema of its files
for editors.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import click

from gradcheck.commands.shared_options import framework_option
from gradcheck.support.file_io import write_whole
from gradcheck.support.pyproject import ConfigError, content_of, root_of
from gradcheck.support.resources import read_packaged
from gradcheck.support.user_error import refusals_of

SCHEMA_FILE = "gradcheck.schema.json"
MODELINE = f"# yaml-language-server: $schema=./{SCHEMA_FILE}\n"
"""Tells editors the schema of the file."""


@click.command()
@click.option(
    "--github/--no-github", default=True, help="Whether to write a workflow for GitHub Actions."
)
@framework_option("The framework of the project's layers (default: paddle).")
def init(github: bool, framework: str | None) -> None:
    """Set up a project: a folder of specs with an example, its schema for editors, settings, a
    workflow.

    Existing files stay as they are.
    """
    framework = framework or "paddle"
    if (around := root_of(Path.cwd())) != Path.cwd():
        click.echo(
            f"gradcheck: this folder is inside the project {around}, and becomes one of its own; "
            f"to set up that project, run gradcheck init there",
            err=True,
        )
    files = {
        Path("specs/example.grad.yaml"): MODELINE + read_packaged(f"project/{framework}.grad.yaml"),
        Path("specs", SCHEMA_FILE): read_packaged("schemas/spec.json"),
    }
    source, workflow = source_of_gradcheck(), read_packaged("project/workflow.yml")
    if github:
        requirement = source if framework == "paddle" else with_extra(source, framework)
        files[Path(".github/workflows/gradcheck.yml")] = workflow.replace(
            "{{ gradcheck }}", PIP_FIRST.get(framework, "") + requirement
        )
    project = Path("pyproject.toml")
    with_settings = settings(project)
    for path, text in files.items():
        write(path, text)
    if with_settings is None:
        click.echo(f"kept    {project}")
    elif project.exists():
        with refusals_of(project):
            write_whole(project, with_settings)
        click.echo(f"added to {project}")
    else:
        write(project, with_settings)
    if github and source == WHEEL:
        click.echo(
            "commit the wheel that the workflow installs: pip wheel --no-deps path/to/gradcheck"
        )
    click.echo("next: gradcheck run")


WHEEL = "./gradcheck-*.whl"
"""A wheel that the project holds."""
PIP_FIRST = {"torch": "torch --index-url https://download.pytorch.org/whl/cpu && pip install "}
"""PyTorch's index has builds for a CPU; the builds on PyPI, pip's default, need gigabytes of
CUDA.
"""


def with_extra(source: str, extra: str) -> str:
    """Return a source of gradcheck with an extra, as a shell word for pip."""
    if source == WHEEL:
        return f'"$(ls {WHEEL})[{extra}]"'
    return f'"gradcheck[{extra}] @ {source}"'


def source_of_gradcheck() -> str:
    """Return the source from which pip can install gradcheck on another machine.

    It is the git address from which it was installed here (PEP 610), otherwise a wheel in the
    project. It is never a name on the package index: nobody owns that name before the first
    release, and whoever registers it could run code in users' CI.
    """
    from importlib.metadata import distribution  # takes as long as all else here

    with suppress(ImportError, ValueError, KeyError):
        origin = json.loads(distribution("gradcheck").read_text("direct_url.json") or "{}")
        if origin["vcs_info"]["vcs"] == "git":
            return f"git+{origin['url']}@{origin['vcs_info']['commit_id']}"
    return WHEEL


def write(path: Path, text: str) -> None:
    """Write a file unless it exists, and report which."""
    if path.exists():
        click.echo(f"kept    {path}")
        return
    with refusals_of(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    click.echo(f"wrote   {path}")


def settings(path: Path) -> str | None:
    """Return the text of a pyproject.toml with ``[tool.gradcheck]`` added; None if it has that
    table.
    """
    table = read_packaged("project/settings.toml")
    if not os.path.lexists(path):
        return table
    tool = content_of(path).get("tool", {})
    if not isinstance(tool, dict):
        raise ConfigError(f"{path}: tool must be a table")
    if "gradcheck" in tool:
        return None
    text = path.read_text(encoding="utf-8").rstrip("\n")
    return f"{text}\n\n{table}".lstrip("\n")


@click.command()
@click.option(
    "--report",
    "name",
    flag_value="report",
    help="Print the schema of the reports that `run --report json:PATH` writes.",
)
@click.option(
    "--matrix", "name", flag_value="matrix", help="Print the schema of `matrix --format json`."
)
@click.option(
    "--release",
    "name",
    flag_value="release",
    help="Print the schema of the files in specs/releases.",
)
def schema(name: str | None) -> None:
    """Print the JSON Schema of *.grad.yaml files."""
    click.echo(read_packaged(f"schemas/{name or 'spec'}.json"), nl=False)
