"""Which scenarios a command is about: spec files, folders and ids on the command line, narrowed by -k and -t."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gradcheck import garbage
from gradcheck.case.naming import REFERENCE
from gradcheck.commands.exits import USAGE
from gradcheck.escape import safe
from gradcheck.resources import bundled_specs
from gradcheck.shown import count
from gradcheck.spec.diagnostic import SpecError

if TYPE_CHECKING:
    from gradcheck.spec.model import SpecFile


def read_specs(names: Sequence[str], paths: Sequence[str] = ()) -> tuple[list[SpecFile], list[str]]:
    """The spec files that `names` mean, and the names that are ids instead.

    A name is a path if it exists or looks like one. Without paths among the names, those of the configuration are
    read, or else the bundled specs. ``specs/…`` means the bundled specs where the current folder has none.

    Raises:
        SystemExit: a file has mistakes; all are shown, exit status 2.
    """
    for name in names:
        if REFERENCE.fullmatch(name):
            raise fail(f"{name} is no spec file or id; `gradcheck check {name}` checks that layer")
        if name.endswith(".py") and Path(name).is_file():
            module = ".".join(Path(name).with_suffix("").parts)
            raise fail(f"{name} is no spec file; `gradcheck check {module}:LAYER` checks a layer of it")
    files = [name for name in names if is_path(name)]
    ids = [name for name in names if not is_path(name)]
    try:
        with garbage.kept():
            from gradcheck.spec.read import load  # here: it loads the model, which `list` has no need of

            return load([located(f) for f in files] or list(paths) or [bundled_specs()]), ids
    except SpecError as error:
        for diagnostic in error.diagnostics:
            click.echo(diagnostic.render(), err=True)
        click.echo(f"{count(len(error.diagnostics), 'mistake')} in spec files; nothing was run", err=True)
        raise SystemExit(USAGE) from None


def is_path(name: str) -> bool:
    """Whether a word of the command line is a path rather than an id."""
    return Path(name).exists() or name.endswith((".yaml", ".yml", "/"))


def located(name: str) -> Path:
    """The file that a path means: bundled specs can be named as reports show them, from any folder."""
    path = Path(name)
    if not path.exists() and path.parts[:1] == ("specs",):
        bundled = bundled_specs().joinpath(*path.parts[1:])
        return bundled if bundled.exists() else path
    return path


def fail(message: str, status: int = USAGE) -> SystemExit:
    """Say what is wrong and leave with `status`."""
    click.echo(f"gradcheck: {safe(message)}", err=True)
    return SystemExit(status)


def selection_options(function: Any) -> Any:
    """The options -k and -t."""
    for option in (
        click.option(
            "-t", "--tag", "tags", metavar="EXPR", help="Only scenarios whose tags fit, as in 'apply and not slow'."
        ),
        click.option(
            "-k", "keywords", metavar="EXPR", help="Only cases whose names fit, as in 'tanh and not float32'."
        ),
    ):
        function = option(function)
    return function
