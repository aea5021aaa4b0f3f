"""A worker: a process that imports the engine once and forks a child for every case.

The child is what a case can break: it has its own session, its output goes through a pipe of which the end is kept,
its modules, seeds and monkeypatches die with it. The worker waits for it, kills it and all that it started when its
time is up, and turns whatever happens into a Result. A fork of the warm worker costs about 2 ms.

Where there is no ``os.fork`` (Windows) cases run in the worker itself: not isolated, and without a time limit.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import gc
import os
import re
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, TextIO

from pydantic import ValidationError

from gradcheck.backends.base import BACKENDS
from gradcheck.result import Result, Status
from gradcheck.run.plan import Case

READY = "ready\n"
"""What a worker answers first: the imports went well."""
OUTPUT_KEPT = 16_000
"""Bytes of what a case prints that are kept, from the end."""
OUTPUT_SHOWN = 4_000
"""Bytes of them that a result carries."""
POLL = 0.2
"""Seconds between looks at whether a silent child is still alive."""
ENDING = 0.005
"""The same once its pipe is closed, which happens just before it ends."""
ABORT_GRACE = 1.0
"""Seconds that a child whose time is up has to print where it is."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

Execute = Callable[[Case], Result]


def main() -> None:
    """Answer ``ready``, then each line of JSON, a Case, with a line of JSON, a Result, until the pipe is closed.

    The pipes are this process's stdin and stdout, taken away at once so that nothing else writes to them.
    ``sys.argv[1]`` names the function that runs a case, as ``module:function``.
    """
    requests, results = take_pipes()
    execute = function_named(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    results.write(READY)
    results.flush()
    for line in requests:
        case = Case.model_validate_json(line)
        preload(case.backend)
        result = run_isolated(execute, case, requests, results) if hasattr(os, "fork") else run_here(execute, case)
        results.write(result.model_dump_json() + "\n")
        results.flush()


def take_pipes() -> tuple[IO[str], IO[str]]:
    """Stdin and stdout as private files; in their places nothing to read, and stderr to print to."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, results


@functools.cache
def preload(backend: str) -> None:
    """Import what every case of a backend needs, once, before any of them is forked."""
    for module in BACKENDS[backend].preload:
        import_module(module)
    gc.collect()
    gc.freeze()  # children that collect garbage need not copy these pages


def function_named(target: str) -> Execute:
    """The function that ``module:name`` names."""
    module, _, name = target.partition(":")
    function: Execute = getattr(import_module(module), name)
    return function


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, on Linux; elsewhere nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def run_isolated(execute: Execute, case: Case, requests: IO[str], results: IO[str]) -> Result:
    """The result of `case`, run in a forked child that has no access to `requests` and `results`.

    Raises:
        SystemExit: `requests` was closed, which the parent does (or its end) to end this process.
    """
    started = time.perf_counter()
    child = Child(execute, case, private=(requests.fileno(), results.fileno()))
    try:
        in_time = child.watch(case.timeout, requests.fileno())
        if not in_time:
            os.kill(child.pid, signal.SIGABRT)  # faulthandler prints where it is
            child.watch(ABORT_GRACE, requests.fileno())
    finally:
        child.end()
    seconds = time.perf_counter() - started
    printed, line = cut_trace(child.printed.decode("utf-8", "replace"), case.scenario.path)
    output = printed[-OUTPUT_SHOWN:]
    where = f", at line {line} of the spec" if line else ""
    if not in_time:
        message = f"ran longer than {case.timeout:g} s and was stopped{where}"
        return case.result(Status.TIMEOUT, message, output=output, seconds=seconds)
    answer, complete, _ = child.answer.partition(b"\n")
    if complete:
        with suppress(ValidationError):  # else the case wrote to the pipe; it is no result then
            return Result.model_validate_json(answer).model_copy(update={"output": output})
    message = f"the process {how_it_ended(child.exit_code)}{where}"
    return case.result(Status.CRASH, message, output=output, seconds=seconds)


class Child:
    """A forked process that runs one case, and what it sends: its answer, and the end of what it prints."""

    def __init__(self, execute: Execute, case: Case, private: tuple[int, ...]) -> None:
        answer_read, answer_write = os.pipe()
        printed_read, printed_write = os.pipe()
        self.answer = self.printed = b""
        self.exit_code: int | None = None
        """As subprocess has it: negative for a signal; None while it runs."""
        self.pid = os.fork()
        if self.pid == 0:
            for fd in (*private, answer_read, printed_read):
                os.close(fd)
            become_child(execute, case, printed_write, answer_write)
        os.close(answer_write)
        os.close(printed_write)
        self.answer_fd, self.printed_fd = answer_read, printed_read
        self.open = [answer_read, printed_read]

    def watch(self, seconds: float, parent_fd: int) -> bool:
        """Read what it sends until it has answered or ended; False if it has not after `seconds`.

        Raises:
            SystemExit: the pipe `parent_fd` was closed.
        """
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            pause = POLL if self.answer_fd in self.open else ENDING
            ready, _, _ = select.select([*self.open, parent_fd], [], [], min(left, pause))
            if parent_fd in ready:
                raise SystemExit
            self.read(ready)
            if b"\n" in self.answer:
                return True
            if self.answer_fd not in self.open or not ready:  # a process that it started may hold its pipes open
                with suppress(ChildProcessError):
                    ended, status = os.waitpid(self.pid, os.WNOHANG)
                    if ended:
                        self.exit_code = os.waitstatus_to_exitcode(status)
                        return True
        return False

    def read(self, ready: list[int]) -> None:
        """Read once from each of the pipes that are ready."""
        for fd in ready:
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                self.open.remove(fd)
            elif fd == self.answer_fd:
                self.answer += chunk
            else:
                self.printed = (self.printed + chunk)[-OUTPUT_KEPT:]

    def end(self) -> None:
        """Kill what is left of it and of what it started, and read what is left in the pipes."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if self.exit_code is None:
            os.kill(self.pid, signal.SIGKILL)  # it may not have made its session yet
            self.exit_code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        kill_adopted()
        while ready := select.select(self.open, [], [], 0)[0]:
            self.read(ready)
        os.close(self.answer_fd)
        os.close(self.printed_fd)


def become_child(execute: Execute, case: Case, printed_fd: int, answer_fd: int) -> None:
    """Run the case and leave the process: nothing of the worker's runs in it afterwards."""
    import resource

    status, pid = 1, os.getpid()
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(printed_fd, 1)
        os.dup2(printed_fd, 2)
        os.close(printed_fd)
        sys.stdout, sys.stderr = line_writer(1), line_writer(2)  # the worker's may take a pipe for a file
        faulthandler.enable(file=2, all_threads=False)
        seed_everything(case.seed)
        result = run_here(execute, case)
        if os.getpid() != pid:  # the case forked, and this is the copy
            os._exit(0)
        write_all(answer_fd, result.model_dump_json().encode() + b"\n")
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
        os._exit(status)


def seed_everything(seed: int) -> None:
    """Make Python's and NumPy's global random numbers those of the case: a fork seeds Python's anew."""
    import random

    import numpy as np

    random.seed(seed)
    np.random.seed(seed)


def line_writer(fd: int) -> TextIO:
    """A text file on `fd` that writes every line at once, so that a crash loses none."""
    return open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def run_here(execute: Execute, case: Case) -> Result:
    """The result of `case`, run in this process; an exception of `execute` is a bug of ours and says so."""
    try:
        return execute(case)
    except Exception as error:
        report = "".join(traceback.format_exception(error))
        message = f"bug in gradcheck: {type(error).__name__}: {error}"
        return case.result(Status.ERROR, message, internal_error=report)


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data` to `fd`."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def kill_adopted() -> None:
    """Kill the processes that a case left outside its own session: on Linux they are this process's children then."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while children.exists() and (pids := children.read_text().split()):
        for pid in map(int, pids):
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def cut_trace(printed: str, path: str) -> tuple[str, int]:
    """`printed` with the trace that faulthandler left in it cut to the user's frames, and the line of `path` in it.

    The innermost line of the spec is what the user can act on; 0 if the trace has none.
    """
    *before, trace = re.split(r"^Fatal Python error: .*\n\n?", printed, flags=re.MULTILINE)
    if not before:
        return printed, 0
    package = re.escape(str(Path(__file__).parent.parent))
    for ours in (rf'  File "(?:{package}/.*|<string>)".*', "Extension modules: .*"):
        trace = re.sub(rf"^{ours}\n?", "", trace, flags=re.MULTILINE)
    shown_path = re.escape(path.encode("ascii", "backslashreplace").decode())  # as faulthandler writes it
    line = re.search(rf'^  File "{shown_path}", line (\d+)', trace, re.MULTILINE)
    return "".join(before) + trace.rstrip("\n"), int(line[1]) if line else 0


def how_it_ended(exit_code: int | None) -> str:
    """What became of a process, after "the process": `exit_code` is negative for a signal."""
    if exit_code is None or exit_code >= 0:
        return f"exited with status {exit_code} before the case was done"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    cause = " (the system does that when memory runs out)" if name == "SIGKILL" else ""
    return f"was killed by {name}{cause}"
