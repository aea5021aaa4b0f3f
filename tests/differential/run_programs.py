"""``python run_programs.py FILE…``: run each program in a process of its own, Paddle imported once for all.

Prints, for each file, how it ended: an exit status, or a signal as a negative number. The Paddle is that of the
interpreter. It needs nothing but Paddle and NumPy.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings

TIME = 60
"""Seconds that a program may take."""


def end_of(path: str) -> int:
    """How the program in a file ends in a process forked from this one."""
    pid = os.fork()
    if pid == 0:
        import signal

        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(TIME)
        status = 1
        try:
            with open(path, encoding="utf-8") as file:
                exec(compile(file.read(), path, "exec"), {"__name__": "__main__"})
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import paddle

    paddle.set_device("cpu")
    for path in sys.argv[1:]:
        print(end_of(path), path, flush=True)
