"""``.gradcheck``, the folder that a run leaves in the current folder, used without following anybody's links.

Where we write, a project or an earlier case may have put a link, a pipe, or a second name of a file elsewhere. So the
folder is opened once, as a folder of this user and no link, and its files by their names in it: a new one must not
exist yet, an old one must be a plain file of this user with no second name.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from gradcheck.support.user_dirs import is_this_users

FOLDER_PATH = Path(".gradcheck")
"""Where it is, below the current folder."""

CAN_HOLD_FOLDER = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Whether the system opens files in an open folder. Where not (Windows), links are looked for before each opening."""
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
"""Opens no link; and on Windows bytes as they are. What ``os.open`` opens is not open in programs that are started."""
NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""A pipe in the place of a file is opened at once, and then refused."""


class FolderError(Exception):
    """The folder or a file in it is not what we would have made; the message says what it is."""


class Folder:
    """The open folder at `path`, for a ``with`` block.

    Raises:
        FolderError: it is a link, no folder, or another user's; or the system refuses it.
        FileNotFoundError: it is not there, and not to be made (`create`).
    """

    def __init__(self, path: Path = FOLDER_PATH, *, create: bool = False) -> None:
        self.path = path
        self.fd: int | None = None
        try:
            if create:
                with suppress(FileExistsError):
                    path.mkdir()
            if path.is_symlink():
                raise FolderError(f"{path} is a link, which is not followed: remove it")
            if CAN_HOLD_FOLDER:
                self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | NO_LINK)
            status = path.lstat() if self.fd is None else os.fstat(self.fd)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise FolderError(f"{path}: {error.strerror or error}") from None
        if not is_this_users(status):
            self.__exit__()
            raise FolderError(f"{path} belongs to another user: remove it")

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def _name(self, name: str) -> str:
        return name if self.fd is not None else str(self.path / name)

    def open(self, name: str, flags: int) -> int:
        """The descriptor of a file that is there.

        Raises:
            FolderError: it is a link, no plain file, another user's, or has a second name elsewhere.
            OSError: the system refuses it; FileNotFoundError: there is none.
        """
        if self.fd is None and Path(self._name(name)).is_symlink():
            raise FolderError(f"{self.path / name} is a link, which is not followed: remove it")
        try:
            fd = os.open(self._name(name), flags | NO_LINK | NO_WAIT, dir_fd=self.fd)
        except FileNotFoundError:
            raise
        except OSError as error:
            is_link = stat.S_ISLNK(os.stat(self._name(name), dir_fd=self.fd, follow_symlinks=False).st_mode)
            what = " is a link, which is not followed: remove it" if is_link else f": {error.strerror or error}"
            raise FolderError(f"{self.path / name}{what}") from None
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or not is_this_users(status) or status.st_nlink > 1:
            os.close(fd)
            raise FolderError(f"{self.path / name} is not a plain file of your own with one name: remove it")
        return fd

    def create(self, name: str, flags: int = os.O_WRONLY) -> int:
        """The descriptor of a new file.

        Raises:
            FileExistsError: there is something of that name, be it a link that leads nowhere.
            OSError: the system refuses it.
        """
        return os.open(self._name(name), flags | os.O_CREAT | os.O_EXCL | NO_LINK, 0o644, dir_fd=self.fd)

    def replace(self, name: str, flags: int = os.O_WRONLY) -> int:
        """The descriptor of a new file in the place of whatever has that name; a link is replaced, not followed.

        Raises OSError: the system refuses it.
        """
        new = f"{name}.{os.urandom(8).hex()}"
        fd = self.create(new, flags)
        try:
            os.replace(self._name(new), self._name(name), src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except OSError:
            os.close(fd)
            os.unlink(self._name(new), dir_fd=self.fd)
            raise
        return fd

    def keep_out_of_git(self) -> None:
        """Have git pass the folder over, unless something already says what git is to do."""
        with suppress(FileExistsError), open(self.create(".gitignore"), "wb") as file:
            file.write(b"*\n")
