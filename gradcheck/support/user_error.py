"""The exception for mistakes that the user can correct: a message and an exit code, no
traceback.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """The message says what is wrong, where, and what to do; the command line shows it, and exits
    with `status`.
    """

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


@contextmanager
def refusals_of(subject: object, error_type: type[UserError] = UserError) -> Iterator[None]:
    """Raise a UserError, which begins with `subject`, for what the system refuses in a block."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.EISDIR:
            reason = "this is a folder: name a file in it"
        elif error.errno == errno.ENOTDIR:
            reason = "a part of this path is a file: name another one"
        elif error.errno == errno.EEXIST:
            reason = f"{error.filename} exists and is not a folder: name another one"
        raise error_type(f"{subject}: {reason}") from None
