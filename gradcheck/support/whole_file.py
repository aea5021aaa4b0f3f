"""Writes a file whole: whoever reads it meanwhile finds the old content or the new one, never a part."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

NOT_BESIDE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY)
"""Errors where no file may be made in a folder, or none put in the place of one that is mounted there by itself."""
OPEN_FILES = ("/dev/fd/", "/proc/")
"""Folders in which files are named that somebody has open, and goes on with."""


def write_whole(path: Path, text: str) -> None:
    """Write `text` in UTF-8 to the file that `path` leads to, through links; what is no plain file is written as it is.

    A plain file is made beside its place and then put there. Where that cannot be, because it has a second name, say,
    or no file may be made in its folder, the one that is there is written.

    Raises:
        OSError: the system refuses it; a file that was there is as it was, unless it could not be replaced.
    """
    content = text.encode("utf-8", "backslashreplace")
    if (stream := standard_stream(path)) is not None:
        with suppress(AttributeError):  # there is no such stream
            (sys.stdout if stream == 1 else sys.stderr).flush()
        write_all(stream, content)
    elif os.path.abspath(path).startswith(OPEN_FILES) or not replaced(Path(os.path.realpath(path)), content):
        path.write_bytes(content)


def standard_stream(path: Path) -> int | None:
    """Which of stdout and stderr a path leads to, as ``/dev/stdout`` does, if to one."""
    for fd in (1, 2):
        with suppress(OSError, ValueError):
            if os.path.samestat(path.stat(), os.fstat(fd)):
                return fd
    return None


def write_all(fd: int, content: bytes) -> None:
    """Write all of `content` to an open file."""
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]


def replaced(place: Path, content: bytes) -> bool:
    """Put a new file at `place`; False if that cannot be, and nothing has been done."""
    with suppress(FileNotFoundError):
        status = place.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or not os.access(place, os.W_OK):
            return False  # and what may not be written is refused where it is opened
    try:
        replace(place, content)
    except OSError as error:
        if error.errno in NOT_BESIDE:
            return False
        raise
    return True


def replace(place: Path, content: bytes, mode: int | None = None) -> None:
    """Put a new file at `place`, where no link is followed.

    It has the permissions `mode`, or else those of the file that was there, or the usual ones.

    Raises:
        OSError: the system refuses it, and what was there is as it was.
    """
    if mode is None:
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(place.stat().st_mode)
    new = place.with_name(f".gradcheck-{os.urandom(8).hex()}")
    try:
        first = 0o666 if mode is None else 0o600
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), first)
        with open(fd, "wb") as file:
            file.write(content)
        if mode is not None:
            os.chmod(new, mode)
        os.replace(new, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise
