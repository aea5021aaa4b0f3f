"""What ends a command otherwise than well: a wrong call, what the system refuses, a bug of ours; and the exit codes."""

from __future__ import annotations

import errno
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

import click

from gradcheck import __version__
from gradcheck.support.ascii_fallback import HANDLER
from gradcheck.support.escape import one_line
from gradcheck.support.work_folder import make_folder

USAGE, BUG, NOTHING_SELECTED, INTERRUPTED = 2, 3, 5, 130
"""A wrong call or file; a bug of ours; nothing to do; Ctrl-C. Those of `gradcheck run` are in its help."""

# What click says, and what is said in its place: more of what to do, and in fewer terms of a programmer.
ADVICE = (
    (r"is not a valid float range\.", "is not a number."),
    (r"is not a valid integer range\.", "is not a whole number."),
    (
        r"(Got unexpected extra argument \((\w+=[^)]+)\))",
        r"\1: an input stands behind -i, as in -i \2",
    ),
    (
        r"(.*'--format'.* '(json|html)' is not one of '(auto|table)'.*)",
        r"\1 A report is written by --report \2:PATH.",
    ),
)


def advised(error: click.ClickException) -> click.ClickException:
    """An error, with advice where it is one that is often made."""
    if not isinstance(error, click.UsageError):
        return error
    message = one_line(
        error.format_message()
    )  # click shows some of what was given as it is, with what steers
    if isinstance(error, click.NoSuchOption) and error.ctx is not None and error.ctx.parent is None:
        run = (
            error.ctx.command.get_command(error.ctx, "run")
            if isinstance(error.ctx.command, click.Group)
            else None
        )
        if run is not None and any(error.option_name in option.opts for option in run.params):
            message += f" Options stand behind their command: gradcheck run {error.option_name}"
    for said, better in ADVICE:
        message = re.sub(said, better, message, flags=re.DOTALL)
    return click.UsageError(message, error.ctx)


# ----------------------------------------------------------------------------------- what the system refuses
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of writing to a file or stream for which there is no room left."""
REFUSALS = NO_ROOM | {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR,
    errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN,
}  # fmt: skip
"""Errors that do not come of what we ask for, but of what is there: rights, room, limits."""
LONGEST_FILE_NAME = 200
"""Characters of a file's name that a message shows: what the system refuses may be its length."""


class Refused(click.ClickException):
    """Something that a command cannot do without, refused by the system or not there as the user asks for it."""

    def __init__(self, message: str, status: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = status  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: IO[Any] | None = None) -> None:
        """Say so; nothing if it is only that nobody reads on, as in ``| head``."""
        if self.message:
            click.echo(f"gradcheck: {self.message}", file=file, err=True)


def refusal(error: OSError) -> Refused | None:
    """What to say of an error that is not ours; None if it may be."""
    reason = error.strerror or str(error)
    if error.errno == errno.EPIPE:
        return Refused("")
    if error.errno == errno.ENOENT and not has_current_folder():
        return Refused("the current folder does not exist any more: go to another one")
    if (
        error.errno == errno.ENOENT and error.filename is None
    ):  # no usable folder for temporary files
        return Refused(reason)
    if error.errno not in REFUSALS:
        return None
    if error.filename is not None:
        return Refused(f"{ascii(error.filename)[:LONGEST_FILE_NAME]}: {reason}")
    return Refused(
        f"the output could not be written: {reason}" if error.errno in NO_ROOM else reason
    )


def has_current_folder() -> bool:
    """Whether the current folder is still there."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def prepare_streams() -> None:
    """See that all three standard streams are open, and that stdout shows any character, as itself or as its escape.

    The number of one that is closed would go to the next file that is opened, and what is printed would go into it.

    Raises:
        Refused: stdout is closed.
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as this process is there
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        raise Refused(
            "stdout is closed, so nothing can be shown: write >/dev/null if that is meant"
        )
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors=HANDLER)  # type: ignore[union-attr]


def drop_unwritten() -> None:
    """Give up what a stream could not write, so that Python does not try and fail once more at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)


# ------------------------------------------------------------------------------------------- a bug of ours
def stop_for(error: Exception) -> NoReturn:
    """Leave after an exception: it is a bug of ours, unless another's package is missing. Raises SystemExit: always."""
    import traceback

    if (
        isinstance(error, ModuleNotFoundError)
        and (error.name or "gradcheck").split(".")[0] not in OUR_PACKAGES
    ):
        click.echo(
            f"gradcheck: the package {error.name} is missing: pip install {error.name}", err=True
        )
        sys.exit(USAGE)
    stop_for_bug("".join(traceback.format_exception(error)))


OUR_PACKAGES = ("gradcheck", "pylayer")
"""The packages whose absence is a bug."""


def stop_for_bug(report: str) -> NoReturn:
    """Keep the report of a bug of ours in a file, name it, and leave with exit code 3. Raises SystemExit: always."""
    import platform

    text = (
        f"gradcheck {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"arguments: {sys.argv[1:]}\n\n{report}"
    )
    with suppress(OSError):
        click.echo(
            f"gradcheck: this is a bug in gradcheck. Please report it {keep(text)}", err=True
        )
    sys.exit(BUG)


def keep(report: str) -> str:
    """Keep a report in ``.gradcheck``, else among the temporary files.

    Returns:
        Where it is; where no file can be had, the report itself.
    """
    import tempfile

    try:
        try:
            folder: Path | None = make_folder()
        except OSError:
            folder = None
        descriptor, path = tempfile.mkstemp(prefix="bug-", suffix=".txt", dir=folder)
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(report)
    except OSError:
        return f"with these lines:\n{report}"
    shown = path if folder is None else folder / Path(path).name
    return f"with the file {shown}"
