"""Handling of a bug in gradcheck: the report is written to a file, and the command ends."""

from __future__ import annotations

import platform
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

from gradcheck import __version__
from gradcheck.commands.errors import BUG, USAGE
from gradcheck.support.work_folder import make_folder

OUR_PACKAGES = ("gradcheck", "pylayer")
"""The packages whose absence is a bug."""


def stop_for(error: Exception) -> NoReturn:
    """Leave after an exception: a bug in gradcheck, unless a package is missing.

    Raises SystemExit: always.
    """
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        package = error.name.partition(".")[0]
        if package not in OUR_PACKAGES:
            text = f"the package {error.name} is missing: pip install {error.name}"
            click.echo(f"gradcheck: {text}", err=True)
            sys.exit(USAGE)
    stop_for_bug("".join(traceback.format_exception(error)))


def stop_for_bug(report: str) -> NoReturn:
    """Keep the report of a bug in gradcheck in a file, name it, and leave with exit code 3.

    Raises SystemExit: always.
    """
    text = (
        f"gradcheck {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"arguments: {sys.argv[1:]}\n\n{report}"
    )
    with suppress(OSError):
        message = f"this is a bug in gradcheck. Please report it {keep(text)}"
        click.echo(f"gradcheck: {message}", err=True)
    sys.exit(BUG)


def keep(report: str) -> str:
    """Keep a report in ``.gradcheck``, otherwise among the temporary files.

    Returns:
        Return its path, or the report itself if no file can be written.
    """
    try:
        folder = make_folder()
    except OSError:
        folder = Path(tempfile.gettempdir())
    try:
        descriptor, path = tempfile.mkstemp(prefix="bug-", suffix=".txt", dir=folder)
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(report)
    except OSError:
        return f"with these lines:\n{report}"
    return f"with the file {folder / Path(path).name}"
