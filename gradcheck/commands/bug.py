"""After an exception that nothing foresaw: a report in a file, or the name of a package that is missing."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from contextlib import suppress
from typing import NoReturn

import click

from gradcheck import __version__
from gradcheck.commands.exits import BUG, USAGE
from gradcheck.run.folder import Folder, FolderError


def stop_for(error: Exception) -> NoReturn:
    """Leave after an exception: it is a bug of ours, unless another's package is missing. Raises SystemExit: always."""
    if isinstance(error, ModuleNotFoundError) and not is_own_module(error.name):
        click.echo(f"gradcheck: the package {error.name} is missing: pip install {error.name}", err=True)
        sys.exit(USAGE)
    stop_for_bug("".join(traceback.format_exception(error)))


def is_own_module(module: str | None) -> bool:
    """Whether a module belongs to gradcheck, so that its absence is a bug."""
    return (module or "gradcheck").partition(".")[0] in ("gradcheck", "pylayer")


def stop_for_bug(report: str) -> NoReturn:
    """Keep the report of a bug of ours in a file, name it, and leave with exit code 3. Raises SystemExit: always."""
    text = (
        f"gradcheck {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"arguments: {sys.argv[1:]}\n\n{report}"
    )
    with suppress(OSError):
        click.echo(f"gradcheck: this is a bug in gradcheck. Please report it {keep(text)}", err=True)
    sys.exit(BUG)


def keep(report: str) -> str:
    """Keep a report in ``.gradcheck``, else among the temporary files, under a name that nobody can foresee.

    Returns:
        Where it is; where no file can be had, the report itself.
    """
    try:
        with Folder(create=True) as folder:
            folder.keep_out_of_git()
            name = f"bug-{os.urandom(8).hex()}.txt"
            fd, path = folder.create(name), str(folder.path / name)
    except (FolderError, OSError):
        try:
            fd, path = tempfile.mkstemp(prefix="gradcheck-bug-", suffix=".txt")
        except OSError:
            return f"with these lines:\n{report}"
    try:
        with open(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(report)
    except OSError:
        return f"with these lines:\n{report}"
    return f"with the file {path}"
