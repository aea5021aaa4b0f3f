"""A forked process that runs cases: it has its own session, and all that a case can break is in it."""

from __future__ import annotations

import builtins
import ctypes
import faulthandler
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TextIO

from pydantic import BaseModel, ConfigDict

from gradcheck.case.case import Case
from gradcheck.case.namespace import line_in, raised_by_scenario
from gradcheck.result import Result, Status
from gradcheck.run.limits import children, data_size, descendants, limit_data, resident, shown_size
from gradcheck.run.share import Snapshot

OUTPUT_KEPT = 16_000
"""Bytes of what a case prints that are kept, from the end."""
MOST_ANSWER = 32 << 20
"""Bytes that an answer may have."""
RECURSION = sys.getrecursionlimit()
MOST_TEXT = 4_000
"""Characters of a message that are kept: a layer may raise an error of any length."""
POLL = 0.2
"""Seconds between looks at whether a silent process is still alive, and at its memory."""
ENDING = 0.005
"""The same once its pipe is closed, which happens just before it ends."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

_exit = os._exit  # what a case does to the name must not keep its process from ending

Execute = Callable[[Case], Result]


class Answer(BaseModel):
    """What a process sends when a case is done."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    result: Result
    clean: bool
    """Whether the modules that gradcheck computes with are as they were; if not, no further case may run there."""


class MemoryExceededError(Exception):
    """A case and its processes occupy more than they may."""


class Child:
    """The parent's side: hands cases over, reads answers and the end of what is printed, and ends the process."""

    def __init__(self, execute: Execute, snapshots: Snapshots, private: tuple[int, ...]) -> None:
        case_read, self.case_fd = os.pipe()
        self.answer_fd, answer_write = os.pipe()
        self.printed_fd, printed_write = os.pipe()
        self.answer, self.answered, self.printed = bytearray(), False, b""
        self.cases_run = 0
        self.exit_code: int | None = None
        """As subprocess has it: negative for a signal; None while it runs."""
        self.own_memory = resident("self")
        self.pid = os.fork()
        if self.pid == 0:
            for fd in (*private, self.case_fd, self.answer_fd, self.printed_fd):
                os.close(fd)
            be_child(execute, snapshots, case_read, printed_write, answer_write)
        for fd in (case_read, answer_write, printed_write):
            os.close(fd)
        self.open = [self.answer_fd, self.printed_fd]

    def start(self, line: str) -> None:
        """Hand over a case, as a line of JSON."""
        self.answer, self.answered, self.printed = bytearray(), False, b""
        self.cases_run += 1
        with suppress(BrokenPipeError):  # it has died; `watch` sees that
            write_all(self.case_fd, line.encode())

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
                if memory is not None and self.memory() > memory:
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

    def memory(self) -> int:
        """Bytes that it and all processes below this one occupy beyond what this one does."""
        return sum(max(0, resident(pid) - self.own_memory) for pid in descendants("self"))

    def is_alone(self) -> bool:
        """Whether no process is left that a case has started and let go: it is this one's child then."""
        return children("self") in ([], [self.pid])

    def read(self, ready: list[int]) -> None:
        """Read once from each of the pipes that are ready."""
        for fd in ready:
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                self.open.remove(fd)
            elif fd == self.answer_fd:
                self.answer += chunk
                self.answered |= b"\n" in chunk or len(self.answer) > MOST_ANSWER
            else:
                self.printed = (self.printed + chunk)[-OUTPUT_KEPT:]

    def drain(self) -> None:
        """Read what is left in the pipes."""
        while ready := select.select(self.open, [], [], 0)[0]:
            self.read(ready)

    def end(self) -> None:
        """Kill what is left of it and of what it started, and read what is left in the pipes."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if self.exit_code is None:
            os.kill(self.pid, signal.SIGKILL)  # it may not have made its session yet
            self.exit_code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        kill_adopted()
        self.drain()
        for fd in (self.case_fd, self.answer_fd, self.printed_fd):
            os.close(fd)


class Snapshots:
    """How the modules were before any case: those that gradcheck computes with, and those that only cases share."""

    def __init__(self, judges: Snapshot, engine: Snapshot | None) -> None:
        self.judges, self.engine = judges, engine


def kill_adopted() -> None:
    """Kill the processes that a case left outside its own session: on Linux they are this process's children then."""
    while pids := children("self"):
        for pid in pids:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, on Linux; elsewhere nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


# --------------------------------------------------------------------------------- the process itself
def be_child(execute: Execute, snapshots: Snapshots, case_fd: int, printed_fd: int, answer_fd: int) -> None:
    """Run the cases that come and leave the process: nothing of the worker's runs in it afterwards."""
    import resource

    status, pid, worker = 1, os.getpid(), os.getppid()
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != worker:  # it died before that
            _exit(1)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(printed_fd, 1)
        os.dup2(printed_fd, 2)
        os.close(printed_fd)
        faulthandler.enable(file=2, all_threads=False)
        data: int | None = None
        for line in os.fdopen(case_fd, "rb"):
            case = Case.model_validate_json(line)
            sys.stdout, sys.stderr = line_writer(1), line_writer(2)  # the worker's may take a pipe for a file
            answer = copy_context().run(answer_to, execute, case, snapshots, data)
            if os.getpid() != pid:  # the case forked, and this is the copy
                _exit(0)
            with suppress(Exception):
                sys.stdout.flush()
            write_all(answer_fd, answer.model_dump_json().encode() + b"\n")
            # Looked at while the parent is at work:
            if snapshots.engine is None or snapshots.engine.changed() or has_children():
                break
            data = data_size()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
        _exit(status)


def has_children() -> bool:
    """Whether this process has started others, be they at an end; not known on macOS."""
    if not hasattr(os, "waitid"):
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def answer_to(execute: Execute, case: Case, snapshots: Snapshots, data: int | None) -> Answer:
    """Run `case` within its limits, and look at what it leaves; `data` is the memory there is before it, if known."""
    for snapshot in (snapshots.judges, snapshots.engine):
        if snapshot is not None:
            snapshot.restart_counters()
    seed_everything(case.seed)
    if case.backend != "cupy":  # CUDA reserves far more than it uses; what it uses is looked at all the same
        limit_data(case.memory, data)
    result = bounded(run_here(execute, case))
    sys.setrecursionlimit(RECURSION)
    changed = next((f"builtins.{name}" for name in lost_builtins), "") or snapshots.judges.changed()
    if changed:
        message = f"the case leaves {changed} changed; gradcheck computes with it, so there is no verdict"
        result = case.result(Status.ERROR, message, details=(result.message,), seconds=result.seconds)
    return Answer(result=result, clean=not changed)


_builtins = dict(builtins.__dict__)
lost_builtins: list[str] = []
"""The builtins that the last case had replaced; they are back."""


def restore() -> None:
    """Take back what a case did to all code whatever: builtins, trace functions. It calls no builtin itself."""
    sys.settrace(None)
    sys.setprofile(None)
    lost_builtins[:] = [name for name, value in _builtins.items() if builtins.__dict__.get(name) is not value]
    builtins.__dict__.update(_builtins)


def run_here(execute: Execute, case: Case) -> Result:
    """The result of `case`, run in this process; an exception of `execute` is a bug of ours and says so.

    It is none where memory or the stack ran out, or where an exception of the scenario cannot even be printed.
    """
    try:
        try:
            return execute(case)
        finally:
            restore()
    except MemoryError as error:
        what = f"needs more than {shown_size(case.memory)} of memory: {text_of(error)}"
    except RecursionError as error:
        what = f"recurses too deeply: {text_of(error)}"
    except BaseException as error:
        what = f"{type(error).__name__}: {text_of(error)}"
        if not raised_by_scenario(case.scenario.path, error):
            report = "".join(traceback.format_exception(error))
            return case.result(Status.ERROR, f"bug in gradcheck: {what}", internal_error=report)
        if line := line_in(case.scenario.path, error):
            what += f" (line {line} of the spec)"
    return case.result(Status.ERROR, what)


def text_of(error: BaseException) -> str:
    """The message of an error, also of one that cannot print itself."""
    try:
        return str(error)
    except BaseException:
        return "(its message cannot be printed)"


def bounded(result: Result) -> Result:
    """`result` with texts that can be sent: of limited length, without halves of characters."""

    def cut(text: str) -> str:
        short = (
            text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]} … and {len(text) - MOST_TEXT:,} more characters"
        )
        return short.encode("utf-8", "backslashreplace").decode()

    update = {"message": cut(result.message), "details": tuple(map(cut, result.details[:100]))}
    return result.model_copy(update={**update, "internal_error": cut(result.internal_error[-MOST_TEXT:])})


def seed_everything(seed: int) -> None:
    """Make Python's and NumPy's global random numbers those of the case: a fork seeds Python's anew."""
    import random

    import numpy as np

    random.seed(seed)
    np.random.seed(seed)


def line_writer(fd: int) -> TextIO:
    """A text file on `fd` that writes every line at once, so that a crash loses none."""
    return open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data` to `fd`."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
