"""Resetting of inherited signal settings, so that they do not change a result."""

from __future__ import annotations

import signal

IGNORED_BY_PYTHON = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""Signals that Python ignores from its start, so that writing to a closed pipe raises an
exception.
"""


def use_default_signals() -> None:
    """Restore the system's default action of every signal in this process, and block none.

    Child processes inherit ignored and blocked signals: nohup ignores SIGHUP, a shell ignores
    SIGINT for background jobs, and a supervisor may ignore SIGCHLD, which loses the exit statuses
    of children. If SIGINT is not ignored, Python installs a handler, which would raise an exception
    in a case.
    """
    for number in signal.valid_signals() - IGNORED_BY_PYTHON:
        if signal.getsignal(number) in (signal.SIG_IGN, signal.default_int_handler):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
