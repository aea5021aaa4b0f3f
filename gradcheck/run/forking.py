"""Cases where a process can be forked (Linux): each in a process that is forked from a worker, which stays."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import uuid

from pydantic import TypeAdapter

from gradcheck.case.case import Case
from gradcheck.result import Result, Status
from gradcheck.run.channel import pair
from gradcheck.run.child import MOST_ANSWER, Outcome
from gradcheck.run.limits import kill_marked
from gradcheck.run.outcome import how_it_ended, result_of
from gradcheck.run.reaper import PATIENCE
from gradcheck.run.spawn import environment, python
from gradcheck.run.start import START_LIMIT, StartError, started
from gradcheck.run.supervisor import ExecutorError
from gradcheck.support.linux import PR_SET_DUMPABLE

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


GREETING = TypeAdapter(tuple[int, bool])
"""What a worker sends first: its process, and whether its cases have namespaces of their own."""
ANSWER = TypeAdapter(tuple[str, Outcome])
"""What it sends for a request: the word of that, and what became of the case."""


class ReplyError(Exception):
    """What came from a worker is no answer to the request."""


def hidden(command: list[str]) -> list[str]:
    """A command for a Python program into which no other process looks, from before its imports, which take a while."""
    *interpreter, program = command
    if sys.platform != "linux":
        return command
    return [*interpreter, f"import ctypes; ctypes.CDLL(None).prctl({PR_SET_DUMPABLE}, 0, 0, 0, 0)\n{program}"]


class Process:
    """A worker process, below a process that ends what cases leave (`run.reaper`), and the channel to it.

    It ends when the channel is closed, so it never outlives us. It finds modules where this process does, so that a
    checkout runs its own code; with another `interpreter`, see `gradcheck.run.spawn.python`.
    """

    def __init__(self, execute: str, backend: str, interpreter: str) -> None:
        self.mark = uuid.uuid4().hex
        self.pid: int | None = None
        self.lacking, self.printed = "", ""
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        self.channel, theirs = pair()
        self.popen = subprocess.Popen(
            [*hidden(python("gradcheck.run.worker", interpreter)), execute, backend, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            pass_fds=[theirs.fileno()],
            env={**environment(interpreter), MARK: self.mark},
            start_new_session=True,
        )
        theirs.close()

    def wait_until_ready(self) -> bool:
        """Wait for its first message; False if it ended before.

        Raises:
            TimeoutError: it neither came nor did the process end.
        """
        try:
            self.pid, own = GREETING.validate_json(self.channel.receive(MOST_MESSAGE, START_LIMIT))
        except (ConnectionError, ValueError):
            return False
        self.lacking = "" if own else LACKING
        return True

    def ask(self, case: Case) -> Outcome:
        """What became of `case`.

        Raises:
            TimeoutError: there is no answer in time.
            OSError: the process is no more.
            AnswerError: what came is no answer to this, or more than one.
        """
        word = secrets.token_hex(16)
        request = json.dumps([case.model_dump_json(), case.timeout, case.memory])
        seconds = case.timeout + GRACE
        self.channel.send(request.encode(), word.encode(), seconds=seconds)
        try:
            said, outcome = ANSWER.validate_json(self.channel.receive(MOST_MESSAGE, seconds))
        except ValueError as error:
            raise ReplyError from error
        if said != word or not self.channel.quiet():
            raise ReplyError
        return outcome

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


class ForkingWorker:
    """Runs cases in processes forked from one process, which is replaced whenever a case has spoiled it."""

    def __init__(self, execute: str, backend: str, interpreter: str = "") -> None:
        self.backend, self.started_as = backend, (execute, backend, interpreter)
        self.process: Process | None = None
        self.lock = threading.Lock()
        self.closed = False
        self.lacking = ""

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        return self.process.pid if self.process else None

    def run(self, case: Case) -> Result:
        """The result of `case`: CRASH if the process dies of it, or answers as it should not.

        Raises:
            RuntimeError, ExecutorError: no process could be started, see `run.start.started`.
        """
        if self.process is not None and not self.process.channel.quiet():
            self.process.kill()  # something has happened to it since its last case
            self.process = None
        try:
            process = self.process = self.process or started(self.started_as, self.make, "the worker process")
        except (StartError, RuntimeError, ExecutorError) as error:
            self.process = None
            if not isinstance(error, StartError):
                raise
            return case.result(Status.CRASH, str(error))
        self.lacking = process.lacking
        try:
            return result_of(case, process.ask(case))
        except TimeoutError:
            status, message = Status.TIMEOUT, "the worker process had come to a stop, and was ended"
            process.kill()
        except ReplyError:
            status, message = Status.CRASH, "the worker process sent something that is no answer, and was ended"
            process.kill()
        except OSError:
            status, message = Status.CRASH, how_it_ended(process.kill()).replace("the process", "the worker process")
        self.process = None
        return case.result(status, message, output=process.printed)

    def make(self) -> Process:
        """A new process.

        Raises:
            StartError: this worker was closed.
        """
        with self.lock:
            if self.closed:
                raise StartError("the worker process was ended")
            self.process = Process(*self.started_as)
            return self.process

    def close(self) -> None:
        """Have the process end, and start no other."""
        with self.lock:
            self.closed = True
            if self.process is not None:
                self.process.close()

    def end(self) -> None:
        """Wait for the end of the process."""
        self.close()
        if self.process is not None:
            self.process.end()
