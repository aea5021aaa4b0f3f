"""The exception for mistakes that the user can correct: a message and an exit code, no
traceback.
"""


class UserError(Exception):
    """The message says what is wrong, where, and what to do; the command line shows it, and exits
    with `status`.
    """

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status
