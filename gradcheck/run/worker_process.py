"""A worker process, seen from the command: its start, what is asked of it, its end. Loads nothing that takes long."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING

from gradcheck.backends.base import BACKENDS, missing
from gradcheck.run.channel import pair
from gradcheck.run.child import MOST_ANSWER, Outcome
from gradcheck.run.interpreter import START, START_LIMIT, environment, python
from gradcheck.run.limits import kill_marked
from gradcheck.run.reaper import PATIENCE
from gradcheck.support.linux import PR_SET_DUMPABLE

if TYPE_CHECKING:
    from gradcheck.case.case import Case

MARK = "GRADCHECK_WORKER"
"""Environment variable that tells which worker a process descends from."""
GRACE = 5.0
"""Seconds that a worker may take beyond the limit of its case, before it is ended itself."""
MOST_MESSAGE = 7 * MOST_ANSWER
"""Bytes that a message of a worker may have: JSON takes six for a character of an answer at most."""
LOG_SHOWN = 4_000
"""Bytes of what a worker printed that an error shows, from the end."""

LACKING = (
    "this system permits no namespaces, so what a case leaves in /dev/shm and in System V memory stays there, and no "
    "limit counts it"
)


class ReplyError(Exception):
    """What came from a worker is no answer to the request."""


def hidden(command: list[str]) -> list[str]:
    """A command for a Python program into which no other process looks, from before its imports, which take a while.

    It leaves out the search for garbage, of which imports make none, until the program has it begin.
    """
    *interpreter, program = command
    if sys.platform == "linux":
        program = f"import ctypes; ctypes.CDLL(None).prctl({PR_SET_DUMPABLE}, 0, 0, 0, 0)\n{program}"
    return [*interpreter, f"import gc; gc.disable()\n{program}"]


class WorkerProcess:
    """A worker process, below a process that ends what cases leave (`run.reaper`), and the channel to it.

    It ends when the channel is closed, so it never outlives us. It finds modules where this process does, so that a
    checkout runs its own code; with another `interpreter`, see `gradcheck.run.interpreter.python`.
    """

    NAME = "the worker process"
    for_one_case = False

    def __init__(self, execute: str, backend: str, interpreter: str) -> None:
        self.started_as = (execute, backend, interpreter)
        self.mark = os.urandom(16).hex()
        self.pid: int | None = None
        self.lacking, self.printed = "", ""
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        with ExitStack() as opened:
            opened.callback(self.log.close)
            self.channel, theirs = pair()
            opened.callback(self.channel.close)
            with closing(theirs):
                self.popen = subprocess.Popen(
                    [*hidden(python("gradcheck.run.worker", interpreter)), execute, backend, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=self.log,
                    stderr=self.log,
                    pass_fds=[theirs.fileno()],
                    env={**environment(interpreter), MARK: self.mark},
                    start_new_session=True,
                )
            opened.pop_all()  # it has started: `end` closes them

    @property
    def ended(self) -> bool:
        """Whether it has ended, and that has been seen."""
        return self.popen.returncode is not None

    def wait_until_ready(self) -> bool:
        """Wait for its first message; False if it ended before.

        Raises TimeoutError: it neither came nor did the process end.
        """
        try:
            message = json.loads(self.channel.receive(MOST_MESSAGE, START_LIMIT))
        except (ConnectionError, ValueError, RecursionError):
            return False
        match message:
            case [int(pid), bool(own)]:
                self.pid, self.lacking = pid, "" if own else LACKING
                return True
        return False

    def ask(self, case: Case) -> Outcome:
        """What became of `case`.

        Raises:
            TimeoutError: there is no answer in time.
            OSError: the process is no more.
            ReplyError: what came is no answer to this, or more than one.
        """
        word = secrets.token_hex(16)
        request = json.dumps([case.model_dump_json(), case.timeout, case.memory])
        seconds = case.timeout + GRACE
        self.channel.send(request.encode(), word.encode(), seconds=seconds)
        try:
            message = json.loads(self.channel.receive(MOST_MESSAGE, seconds))
        except (ValueError, RecursionError) as error:
            raise ReplyError from error
        match message:
            case [said, [str(), str(), int() | None, str(), int() | float()] as outcome]:
                if said == word and self.channel.quiet():
                    return Outcome(*outcome)
        raise ReplyError

    def close(self) -> None:
        """Have it end, and the case that it runs: it watches its channel."""
        self.channel.shut()

    def end(self) -> int:
        """Wait for its end, and close everything; its exit status, negative for a signal."""
        self.close()
        try:
            code = self.popen.wait(2 * PATIENCE)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            code = self.popen.wait()
        self.channel.close()
        if not self.log.closed:
            self.log.seek(max(0, self.log.seek(0, os.SEEK_END) - LOG_SHOWN))
            self.printed = self.log.read().decode("utf-8", "replace")
            self.log.close()
        return code

    def kill(self) -> int:
        """End it at once, with all that it has started, though it may have been stopped."""
        for number in (signal.SIGTERM, signal.SIGCONT):
            self.popen.send_signal(number)
        code = self.end()
        kill_marked(f"{MARK}={self.mark}")  # what is left where the process above it was killed, too
        return code


@contextmanager
def started_ahead(execute: str, backend: str) -> Iterator[WorkerProcess | None]:
    """A worker that gets ready while the command still reads what it is to run. It ends with the block at the latest.

    None where cases are not forked, the backend is none of this interpreter, or the system refuses it now.
    """
    process = None
    with suppress(OSError):
        if START == "fork" and backend in BACKENDS and not missing(backend):
            process = WorkerProcess(execute, backend, "")
    try:
        yield process
    finally:
        if process is not None and not process.ended:
            process.kill()
