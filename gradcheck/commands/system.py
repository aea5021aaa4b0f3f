"""What the system may refuse to a command: a stream that is full, a folder that is gone. None of it is a bug."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import IO, Any

import click

from gradcheck.support.ascii_fallback import HANDLER

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
    """The system refused something that a command cannot do without."""

    exit_code = 2

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
    if error.errno == errno.ENOENT and error.filename is None:  # no usable folder for temporary files
        return Refused(reason)
    if error.errno not in REFUSALS:
        return None
    if error.filename is not None:
        return Refused(f"{ascii(error.filename)[:LONGEST_FILE_NAME]}: {reason}")
    return Refused(f"the output could not be written: {reason}" if error.errno in NO_ROOM else reason)


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
        raise Refused("stdout is closed, so nothing can be shown: write >/dev/null if that is meant")
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
