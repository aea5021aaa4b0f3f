"""Errors of the operating system, the standard streams, and exit codes."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import IO, Any

import click

from gradcheck.support.ascii_fallback import HANDLER

USAGE, BUG, NOTHING_SELECTED, INTERRUPTED = 2, 3, 5, 130
"""Exit codes for a wrong call or file, a bug in gradcheck, nothing to do, and Ctrl-C. Exit codes of
`gradcheck run` are in its help.
"""


# ------------------------------------------------------------------ errors of the operating system
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of writing to a file or stream on a full disk."""
REFUSALS = NO_ROOM | {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR,
    errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN,
}  # fmt: skip
"""Errors that the operating system causes: permissions, disk space, limits."""
LONGEST_FILE_NAME = 200
"""Characters of a file's name that a message shows; the name may be refused because it is too
long.
"""


class Refused(click.ClickException):
    """The operating system refused something that a command needs, or the user named a wrong
    file.
    """

    def __init__(self, message: str, status: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = status  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: IO[Any] | None = None) -> None:
        """Report the error, unless it is only that the reader of a pipe stopped, as in ``|
        head``.
        """
        if self.message:
            click.echo(f"gradcheck: {self.message}", file=file, err=True)


def refusal(error: OSError) -> Refused | None:
    """Return how to report an error of the system; None if it may be a bug in gradcheck."""
    reason = error.strerror or str(error)
    match error.errno:
        case errno.EPIPE:
            return Refused("")
        case errno.ENOENT if not has_current_folder():
            return Refused("the current folder does not exist any more: go to another one")
        case errno.ENOENT if error.filename is None:  # no usable folder for temporary files
            return Refused(reason)
        case number if number not in REFUSALS:
            return None
    if error.filename is not None:
        return Refused(f"{ascii(error.filename)[:LONGEST_FILE_NAME]}: {reason}")
    if error.errno in NO_ROOM:
        return Refused(f"the output could not be written: {reason}")
    return Refused(reason)


def has_current_folder() -> bool:
    """Whether the current folder still exists."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def prepare_streams() -> None:
    """Make sure that the three standard streams are open, and that stdout can show any character,
    escaped if necessary.

    The next file that is opened would get the number of a closed stream, and output would be
    written into it.

    Raises:
        Refused: stdout is closed.
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it stays open
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        raise Refused(
            "stdout is closed, so nothing can be shown: write >/dev/null if that is intended"
        )
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors=HANDLER)  # type: ignore[union-attr]


def drop_unwritten() -> None:
    """Drop the text that a stream could not write, so that Python does not try again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
