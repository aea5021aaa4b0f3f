"""Marks the lines of the journal as our own: a digest of each under a key that only this user can read.

The key is made once, and lies outside every project. It tells our lines from those that came with a folder, and from
those that a case appends. It is no secret from code that runs as this user and goes to read it: no file can be.
"""

from __future__ import annotations

import hmac
import os
from pathlib import Path

from gradcheck.run.folder import NO_LINK
from gradcheck.support.user_dirs import is_this_users, state_folder

SIZE = 32
"""Bytes of the key: as many as SHA-256 gives; RFC 2104 advises against fewer."""


class SealError(Exception):
    """There is no usable key; the message says why."""


class Seal:
    """This user's key, made if there is none yet.

    Raises:
        SealError: it cannot be read or made, or others could read it.
    """

    def __init__(self) -> None:
        try:
            folder = state_folder()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.key = read_key(folder / "journal.key")
        except OSError as error:
            raise SealError(f"{error.filename or 'the key of the record'}: {error.strerror or error}") from None

    def digest(self, line: bytes) -> bytes:
        """The 64 hexadecimal digits that only this key gives for `line` (HMAC-SHA-256)."""
        return hmac.digest(self.key, line, "sha256").hex().encode()

    def fits(self, line: bytes, digest: bytes) -> bool:
        """Whether `digest` is that of `line`."""
        return hmac.compare_digest(self.digest(line), digest)


def read_key(path: Path) -> bytes:
    """The key in the file, made if there is none.

    Raises:
        OSError: the system refuses it.
        SealError: the file is not this user's alone.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | NO_LINK, 0o600)
    try:
        status = os.fstat(fd)
        if not is_this_users(status) or (os.name == "posix" and status.st_mode & 0o077):
            raise SealError(f"{path} is open to other users: remove it, and a new one is made")
        if status.st_size < SIZE:  # of several runs that append at the same time, all read what the first one wrote
            os.write(fd, os.urandom(SIZE))
        os.lseek(fd, 0, os.SEEK_SET)
        return os.read(fd, SIZE)
    finally:
        os.close(fd)
