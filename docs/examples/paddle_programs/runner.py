"""Runs programs on the Paddle of this interpreter, and prints what each of them prints as JSON.

python docs/examples/paddle_programs/runner.py PROGRAM…

Of a program it is the last line, the type of the exception that ends it, or the name of the signal that does. Paddle is
imported once, and each program has a fork of this process. `run.py` starts it with the interpreter of each release.
"""

import json
import os
import re
import runpy
import signal
import sys
import tempfile
import time
from pathlib import Path

import paddle  # noqa: F401 - the forks have it

LIMIT = 120.0
"""Seconds that a program has. The slowest, with two ranks that import Paddle each, took 30 on a busy machine."""


def output_of(path: str) -> str:
    """Run a program in a fork, and return what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        process = os.fork()
        if process == 0:
            run_redirected(path, Path(folder))
        status = wait_for(process)
        if status is None:
            return "no end"
        if os.WIFSIGNALED(status):
            return signal.Signals(os.WTERMSIG(status)).name
        if status == 0:
            return Path(folder, "stdout").read_text().strip().splitlines()[-1]
        errors = Path(folder, "stderr").read_text(errors="replace")
        return re.findall(r"(?m)^(?:\w+\.)*(\w+Error)\b", errors)[-1]


def run_redirected(path: str, folder: Path) -> None:
    """Run a program in this process, which ends with it; streams go to files in a folder."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_CREAT | os.O_WRONLY), number)
    sys.argv = [path]
    try:
        runpy.run_path(path, run_name="__main__")
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)


def wait_for(process: int) -> "int | None":
    """Return the wait status of a process; None, with the process killed, if it does not end in time."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.05)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


if __name__ == "__main__":
    outputs = {os.path.basename(path): output_of(path) for path in sys.argv[1:]}
    print(json.dumps(outputs))
