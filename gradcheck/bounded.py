"""Files that a stranger may have written, read within bounds: plain files only, and no more than a size of each."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # a pipe that nobody writes to would wait for ever
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)


class UnfitFileError(ValueError):
    """A file is none to read, or too large; the message says which, to follow the file's name."""


def read_bounded(path: Path, most: int, *, owner: int | None = None) -> bytes:
    """The content of a plain file of at most `most` bytes, of the user `owner` if one is given.

    Raises:
        UnfitFileError: it is no such file.
        OSError: the system refuses it.
    """
    with open(os.open(path, _FLAGS), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UnfitFileError("this is no plain file")
        if owner is not None and status.st_uid != owner:
            raise UnfitFileError("it belongs to another user")
        raw = file.read(most + 1)
    if len(raw) > most:
        raise UnfitFileError(f"it is larger than {most / 1e6:g} MB")
    return raw
