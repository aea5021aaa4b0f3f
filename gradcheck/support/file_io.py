"""Reading files up to a size limit, and writing them atomically: a concurrent reader gets the old
content or the new.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from gradcheck.support.user_error import UserError


def read_limited(path: Path, most: int) -> bytes:
    """Return the content of a file of at most `most` bytes. Raises OSError: it cannot be read, or
    is larger; see `user_error.refusals_of`.
    """
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(f"it is larger than {most / 1e6:g} MB")
    return content


def write_whole(path: Path, text: str) -> None:
    """Write `text` in UTF-8 to the file that `path` leads to, through links.

    A plain file is written to a temporary file next to it, which is then moved; if that is not
    possible, the existing file is overwritten. Anything that is not a plain file, such as
    ``/dev/stdout``, is written directly.

    Raises:
        OSError: the system refuses it; an existing file is unchanged, unless it could only be
            overwritten.
    """
    content = text.encode("utf-8", "backslashreplace")
    place = Path(os.path.realpath(path))
    mode = 0o666 & ~current_umask()
    with suppress(FileNotFoundError):
        status = path.stat()
        if (stream := standard_stream(status)) is not None:
            stream.flush()
            stream.buffer.write(content)
            stream.flush()
            return
        if not stat.S_ISREG(status.st_mode):
            path.write_bytes(content)
            return
        mode = stat.S_IMODE(status.st_mode)
    try:
        descriptor, new = tempfile.mkstemp(prefix=".gradcheck-", dir=place.parent)
    except PermissionError:
        path.write_bytes(content)
        return
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.chmod(new, mode)
        os.replace(new, place)
    except BaseException:
        os.unlink(new)
        raise


def standard_stream(status: os.stat_result) -> TextIO | None:
    """Return stdout or stderr if a file is its target, such as ``/dev/stdout``; the two share a
    file position.
    """
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        if stream is not None and os.path.samestat(status, os.fstat(descriptor)):
            return stream
    return None


def current_umask() -> int:
    """Return the umask, which can be read only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def require_folder(folder: Path, subject: str) -> None:
    """Raise UserError if the folder for a new file does not exist; the message begins with
    `subject`.
    """
    if folder.absolute().is_dir():
        return
    if folder.parts[:1] == ("~",):
        home = Path("~").expanduser()
        raise UserError(f"{subject}: the shell has not replaced ~: write {home} in its place")
    if folder.exists():
        raise UserError(f"{subject}: {folder} is not a folder: name another one")
    raise UserError(f"{subject}: there is no folder {folder.absolute()}: make it first")
