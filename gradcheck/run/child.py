"""A forked process for one case, seen from the process that forked it: its answer, its output, its end."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple, NoReturn

from gradcheck.run.limits import Used, kill_children, used_below

READY = "ready\n"
"""What a worker says first: the imports went well."""
OUTPUT_KEPT = 16_000
"""Bytes of what a case prints that are kept, from the end."""
MOST_ANSWER = 32 << 20
"""Bytes that an answer may have."""
POLL = 0.2
"""Seconds between looks at whether a silent process is still alive, and at its memory."""
ENDING = 0.005
"""The same once its pipe is closed, which happens just before it ends."""

ABORT_GRACE = 1.0
"""Seconds that a process whose time is up has to print where it is."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37


class MemoryExceededError(Exception):
    """A case and its processes occupy more than they may."""


class Outcome(NamedTuple):
    """What became of a process that ran a case."""

    answer: str
    """The first line that it sent, a Result as JSON unless the case forged it; empty if it sent no whole line."""
    printed: str
    """The end of what it printed."""
    exit_code: int | None
    """As subprocess has it: negative for a signal; None if it still ran when its answer was there."""
    stopped: str
    """Why it was stopped: ``time``, ``memory``, or empty if it was not."""
    seconds: float


class Child:
    """A new process with a session of its own, which does `work` and ends; `work` is given the pipe for its answer.

    `private` are files of this process that the new one must not have, `before` is what this process occupies.
    """

    def __init__(self, work: Callable[[int], NoReturn], private: Iterable[int], before: Used) -> None:
        self.answer_fd, answer_write = os.pipe()
        self.printed_fd, printed_write = os.pipe()
        self.answer, self.printed = bytearray(), b""
        self.answered = False
        """Whether its answer is there, or more than one could be."""
        self.exit_code: int | None = None
        """As subprocess has it: negative for a signal; None while it runs."""
        self.before = before
        self.pid = os.fork()
        if self.pid == 0:
            enter(printed_write, (*private, self.answer_fd, self.printed_fd))
            work(answer_write)
        os.close(answer_write)
        os.close(printed_write)
        self.open = [self.answer_fd, self.printed_fd]

    def watch(self, seconds: float, parent_fd: int, memory: int | None = None) -> bool:
        """Read what it sends until it has answered or ended; False if it has not after `seconds`.

        Raises:
            SystemExit: the pipe `parent_fd` was closed.
            MemoryExceededError: it and its processes occupy more than `memory` bytes.
        """
        now = time.perf_counter()
        deadline, look = now + seconds, now + POLL
        while (now := time.perf_counter()) < deadline:
            if now >= look:
                look = now + POLL
                if memory is not None and used_below(self.before) > memory:
                    raise MemoryExceededError
            pause = POLL if self.answer_fd in self.open else ENDING
            ready, _, _ = select.select([*self.open, parent_fd], [], [], min(deadline - now, pause))
            if parent_fd in ready:
                raise SystemExit
            self.read(ready)
            if self.answered:
                return True
            if (self.answer_fd not in self.open or not ready) and self.has_ended():
                return True  # a process that it started may still hold its pipes open
        return False

    def has_ended(self) -> bool:
        """Whether the process is no more; its exit code is then known."""
        if self.exit_code is None:
            with suppress(ChildProcessError):
                ended, status = os.waitpid(self.pid, os.WNOHANG)
                if ended:
                    self.exit_code = os.waitstatus_to_exitcode(status)
        return self.exit_code is not None

    def read(self, ready: list[int]) -> None:
        """Read once from each of the pipes that are ready."""
        for fd in ready:
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                self.open.remove(fd)
            elif fd == self.answer_fd:
                self.answer += chunk
                self.answered = self.answered or b"\n" in chunk or len(self.answer) > MOST_ANSWER
            else:
                before = self.printed if len(chunk) < OUTPUT_KEPT else b""
                self.printed = (before + chunk)[-OUTPUT_KEPT:]

    def drain(self) -> None:
        """Read what is left in the pipes."""
        while ready := select.select(self.open, [], [], 0)[0]:
            self.read(ready)

    def outcome(self, stopped: str, seconds: float) -> Outcome:
        """What became of it. What is left of it and of what it started is killed, so that what it sends has an end."""
        self.has_ended()
        exit_code = self.exit_code
        self.kill()
        self.drain()
        line, whole, _ = self.answer.partition(b"\n")
        os.close(self.answer_fd)
        os.close(self.printed_fd)
        return Outcome(
            answer=line.decode("utf-8", "replace") if whole and not stopped else "",
            printed=self.printed.decode("utf-8", "replace"),
            exit_code=exit_code,
            stopped=stopped,
            seconds=seconds,
        )

    def kill(self) -> None:
        """Kill what is left of it and of what it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if self.exit_code is None:
            os.kill(self.pid, signal.SIGKILL)  # it may not have made its session yet
            self.exit_code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        kill_children()  # what the case left outside its own session


def enter(printed_fd: int, private: Iterable[int]) -> None:
    """In the new process: a session of its own, its output into a pipe, an end when its parent ends."""
    parent = os.getppid()
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for fd in private:
        os.close(fd)
    os.dup2(printed_fd, 1)
    os.dup2(printed_fd, 2)
    os.close(printed_fd)


_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, on Linux; elsewhere nothing."""
    if _libc is not None:
        _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def is_subreaper() -> int:
    """Whether the system hands orphans below this process to it, as 0 or 1."""
    value = ctypes.c_int(0)
    prctl(PR_GET_CHILD_SUBREAPER, ctypes.addressof(value))
    return value.value


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data` to `fd`."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
