"""Signals that the command's starter ignores or blocks do not change a result."""

from __future__ import annotations

import signal

IGNORED_BY_PYTHON = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""Signals that every Python ignores, from its start: writing to a closed pipe is an exception."""


def use_default_signals() -> None:
    """Restore the system's default action of every signal in this process, and block none.

    A signal that is ignored, or blocked, stays so in the programs that a process starts: nohup
    ignores SIGHUP, a shell SIGINT in the background, a supervisor SIGCHLD, which takes the exit
    statuses of all children away. Where SIGINT is not ignored, Python has a handler for it, which
    would make it an exception in a case.
    """
    for number in signal.valid_signals() - IGNORED_BY_PYTHON:
        if signal.getsignal(number) in (signal.SIG_IGN, signal.default_int_handler):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
