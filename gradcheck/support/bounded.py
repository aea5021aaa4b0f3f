"""Files that a stranger may have written, read within bounds."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gradcheck.support.user_dirs import is_this_users

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # a pipe that nobody writes to would wait for ever
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)


class UnfitFileError(ValueError):
    """A file is none to read, or too large; the message says which, to follow the file's name."""


def read_bounded(path: Path, most: int, *, own: bool = False, plain: bool = True) -> bytes:
    """The content of a plain file of at most `most` bytes, with `own` only of one that belongs to this user.

    A file that the user has named need not be `plain`: a shell's ``<(…)`` is a pipe.

    Raises:
        UnfitFileError: it is no such file.
        OSError: the system refuses it.
    """
    with open(os.open(path, _FLAGS) if plain else path, "rb") as file:
        status = os.fstat(file.fileno())
        if plain and not stat.S_ISREG(status.st_mode):
            raise UnfitFileError("this is no plain file")
        if own and not is_this_users(status):
            raise UnfitFileError("it belongs to another user")
        raw = file.read(most + 1)
    if len(raw) > most:
        raise UnfitFileError(f"it is larger than {most / 1e6:g} MB")
    return raw
