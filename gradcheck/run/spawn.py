"""Cases where a process cannot be forked (Windows, macOS): each in a Python interpreter of its own.

The interpreter for the next case is started while the present one runs, so that it has imported everything by then.
What holds for a forked case holds here, but for what those systems do not offer: memory is limited on Linux alone, and
processes that a case starts outside its own group (on Windows: any) may outlive it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from typing import IO

from gradcheck.case.case import Case
from gradcheck.run.child import ABORT_GRACE, MOST_ANSWER, OUTPUT_KEPT, TWO_ANSWERS, Outcome
from gradcheck.run.interpreter import START_LIMIT, environment, python
from gradcheck.support.signals import use_default_signals
from gradcheck.support.whole_file import write_all

READY = "ready\n"
"""What an interpreter says first: the imports went well."""
PIPES = 2.0
"""Seconds to read on after a process has ended: one that it started may hold its pipes open for ever."""


class PipeReader(threading.Thread):
    """Reads a pipe to its end and keeps at most `most` bytes, the first or the last."""

    def __init__(self, pipe: IO[bytes], most: int, *, last: bool) -> None:
        super().__init__(daemon=True)
        self.pipe, self.most, self.last = pipe, most, last
        self.kept = b""
        self.began = threading.Event()
        """Something has been read, or the pipe has ended."""
        self.start()

    def run(self) -> None:
        """Read."""
        with self.pipe:
            while chunk := os.read(self.pipe.fileno(), 1 << 16):
                self.kept = (self.kept + chunk)[-self.most :] if self.last else (self.kept + chunk)[: self.most]
                self.began.set()
        self.began.set()


class Interpreter:
    """A process that runs one case: it reads the case from its stdin and writes the result to its stdout."""

    NAME = "the interpreter for a case"
    for_one_case = True
    pid = None
    lacking = "processes are not forked here: memory and what a case leaves in it have no limit"

    def __init__(self, execute: str, backend: str, interpreter: str = "") -> None:
        self.process = subprocess.Popen(
            [*python("gradcheck.run.spawn", interpreter), execute, backend],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(interpreter),
            start_new_session=True,
        )
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self.case = self.process.stdin
        self.answer = PipeReader(self.process.stdout, MOST_ANSWER, last=False)
        self.output = PipeReader(self.process.stderr, OUTPUT_KEPT, last=True)

    def wait_until_ready(self) -> bool:
        """Wait until it has imported everything; False if it ended before. Raises TimeoutError: it did neither."""
        if not self.answer.began.wait(START_LIMIT):
            raise TimeoutError
        if self.answer.kept.startswith(READY.encode()):
            return True
        self.ends(PIPES)  # by itself, so that its exit status tells why
        return False

    def ask(self, case: Case) -> Outcome:
        """What becomes of it with `case`."""
        started, stopped = time.perf_counter(), ""
        with suppress(OSError):  # it has died, which its exit code says
            self.case.write(case.model_dump_json().encode())
            self.case.close()
        if not self.ends(case.timeout):
            stopped = "time"
            if os.name == "posix":
                self.process.send_signal(signal.SIGABRT)  # faulthandler prints where it is
                self.ends(ABORT_GRACE)
        code = self.kill()
        line, whole, more = self.answer.kept.removeprefix(READY.encode()).partition(b"\n")
        answer = TWO_ANSWERS if more else line.decode("utf-8", "replace") if whole else ""
        return Outcome(
            answer="" if stopped else answer,
            printed=self.printed,
            exit_code=code,
            stopped=stopped,
            seconds=time.perf_counter() - started,
        )

    def ends(self, seconds: float) -> bool:
        """Whether it ends within `seconds`."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode is not None

    def kill(self) -> int:
        """Kill what is left of it and, where the system knows groups of processes, of its own; its exit status."""
        if os.name == "posix":
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()
        code = self.process.wait()
        for reader in (self.answer, self.output):
            reader.join(PIPES)
        with suppress(OSError):
            self.case.close()
        return code

    close = end = kill

    @property
    def printed(self) -> str:
        """The end of what it printed."""
        return self.output.kept.decode("utf-8", "replace")


def take_pipes() -> tuple[IO[str], IO[str]]:
    """Stdin and stdout as private files; in their places nothing to read, and stderr to print to."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def main() -> None:
    """The interpreter's side: import everything, read a case from stdin, write its result to stdout, and leave."""
    import faulthandler

    from gradcheck.backends.base import BACKENDS, kind_of
    from gradcheck.run.in_child import answer_and_leave
    from gradcheck.run.tamper_check import Judges
    from gradcheck.run.worker import function_named

    use_default_signals()
    if os.name == "posix":
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # as in a case that is forked; it has a session of its own
    cases, answers = take_pipes()
    execute = function_named(sys.argv[1])
    for module in BACKENDS[kind_of(sys.argv[2])].preload:
        import_module(module)
    faulthandler.enable(file=2, all_threads=False)
    judges = Judges()
    write_all(answers.fileno(), READY.encode())
    answer_and_leave(Case.model_validate_json(cases.read()), execute, judges, answers.fileno())
