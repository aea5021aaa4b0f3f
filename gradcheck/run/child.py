"""A forked process for one case, seen from the process that forked it: its answer, its output, its end."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple, NoReturn

from gradcheck.run.limits import Used, kill_children, used_below
from gradcheck.run.namespaces import Namespaces
from gradcheck.support.linux import PR_SET_PDEATHSIG, prctl

OUTPUT_KEPT = 16_000
"""Bytes of what a case prints that are kept, from the end."""
MOST_ANSWER = 32 << 20
"""Bytes that an answer may have."""
POLL = 0.2
"""Seconds between looks at whether a silent process is still alive, and at its memory."""
ENDING = 0.005
"""The same once its pipe is closed, which happens just before it ends, where the system does not tell of the end."""
TWO_ANSWERS = "more than one line"
"""Stands for the answer of a process that sent something after its first line."""

ABORT_GRACE = 1.0
"""Seconds that a process whose time is up has to print where it is."""


class MemoryExceededError(Exception):
    """A case and its processes occupy more than they may."""


class Outcome(NamedTuple):
    """What became of a process that ran a case."""

    answer: str
    """The line that it sent, a Result as JSON unless the case forged it; empty if it sent no whole line."""
    printed: str
    """The end of what it printed."""
    exit_code: int | None
    """As subprocess has it: negative for a signal; None if it still ran when its answer was there."""
    stopped: str
    """Why it was stopped: ``time``, ``memory``, or empty if it was not."""
    seconds: float


class Child:
    """A new process with a session of its own, which does `work` and ends; `work` is given the socket for its answer.

    `private` are files of this process that the new one must not have, `before` is what this process occupies.
    """

    def __init__(
        self, work: Callable[[int], NoReturn], private: Iterable[int], before: Used, namespaces: Namespaces
    ) -> None:
        ours, theirs = socket.socketpair()  # which another process cannot open, as it could a pipe
        self.answer_fd, answer_write = ours.detach(), theirs.detach()
        self.printed_fd, printed_write = os.pipe()
        self.answer, self.printed = bytearray(), b""
        self.exit_code: int | None = None
        """As subprocess has it: negative for a signal; None while it runs."""
        self.before, self.own_files = before, namespaces.own
        self.pid = os.fork()
        if self.pid == 0:
            try:
                enter(printed_write, (*private, self.answer_fd, self.printed_fd), namespaces)
                work(answer_write)
            except BaseException:  # it must not go on as its parent does
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(answer_write)
        os.close(printed_write)
        self.open = [self.answer_fd, self.printed_fd]
        self.end_fd = end_of(self.pid)
        if self.end_fd is not None:
            self.open.append(self.end_fd)

    def watch(self, seconds: float, parent_fd: int, memory: int | None = None) -> bool:
        """Read what it sends until it has ended; False if it has not after `seconds`.

        Raises:
            SystemExit: the other end of `parent_fd` was closed.
            MemoryExceededError: it and its processes occupy more than `memory` bytes.
        """
        now = time.perf_counter()
        deadline, look = now + seconds, now + POLL
        while (now := time.perf_counter()) < deadline:
            if now >= look:
                look = now + POLL
                if memory is not None and used_below(self.before, self.own_files) > memory:
                    raise MemoryExceededError
            pause = POLL if self.end_fd is not None or self.answer_fd in self.open else ENDING
            ready = self.ready(min(deadline - now, pause), parent_fd)
            if parent_fd in ready:
                raise SystemExit
            self.read(ready)
            if len(self.answer) > MOST_ANSWER:
                return True
            if (self.end_fd is None or self.end_fd in ready) and self.has_ended():
                return True  # a process that it started may still hold its pipes open
        return False

    def ready(self, seconds: float, parent_fd: int | None = None) -> list[int]:
        """What can be read, or has ended, within `seconds`; `parent_fd` is among it if its other end is closed."""
        poll = select.poll()
        for fd in self.open:
            poll.register(fd, select.POLLIN)
        if parent_fd is not None:
            poll.register(parent_fd, 0)  # what is sent stays there; that it was closed is told all the same
        return [fd for fd, _ in poll.poll(1000 * seconds)]

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
            if fd == self.end_fd:
                continue
            chunk = b""
            with suppress(ConnectionResetError):  # an end, too
                chunk = os.read(fd, 1 << 16)
            if not chunk:
                self.open.remove(fd)
            elif fd == self.answer_fd:
                self.answer += chunk
            else:
                before = self.printed if len(chunk) < OUTPUT_KEPT else b""
                self.printed = (before + chunk)[-OUTPUT_KEPT:]

    def outcome(self, stopped: str, seconds: float) -> Outcome:
        """What became of it. What is left of it and of what it started is killed, so that what it sends has an end."""
        self.has_ended()
        exit_code = self.exit_code
        self.kill()
        if self.end_fd is not None:
            self.open.remove(self.end_fd)
            os.close(self.end_fd)
        while ready := self.ready(0):
            self.read(ready)
        line, whole, more = self.answer.partition(b"\n")
        os.close(self.answer_fd)
        os.close(self.printed_fd)
        answer = TWO_ANSWERS if more else line.decode("utf-8", "replace") if whole else ""
        return Outcome(
            answer="" if stopped else answer,
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


def enter(printed_fd: int, private: Iterable[int], namespaces: Namespaces) -> None:
    """In the new process: a session of its own, its output into a pipe, an end when its parent ends, and no rights."""
    parent = os.getppid()
    os.setsid()
    os.dup2(printed_fd, 1)
    os.dup2(printed_fd, 2)
    os.close(printed_fd)
    for fd in private:
        os.close(fd)
    namespaces.give_up_rights()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which the worker ignores


def end_of(pid: int) -> int | None:
    """A file that is ready once a child of this process has ended; None where there are none (before Linux 5.3)."""
    if hasattr(os, "pidfd_open"):
        with suppress(OSError):
            return os.pidfd_open(pid)
    return None


def how_it_ended(exit_code: int | None) -> str:
    """What became of a process: `exit_code` is negative for a signal."""
    name = signal_of(exit_code)
    if not name:
        return f"the process exited with status {exit_code} before the case was done"
    cause = " (the system does that when memory runs out)" if name == "SIGKILL" else ""
    return f"the process was killed by {name}{cause}"


def signal_of(exit_code: int | None) -> str:
    """The name of the signal that killed a process; empty if it ended otherwise."""
    if exit_code is None or exit_code >= 0:
        return ""
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"
