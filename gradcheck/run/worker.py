"""A worker: a process that imports the engine once and forks a child for every case.

The child is what a case can break: it has its own session, its output goes to a file of limited size, its modules, seeds
and monkeypatches die with it. The worker waits for it, kills its whole process group when its time is up, and turns
whatever happens into a Result. A fork of the warm worker costs about 2 ms.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import IO, Any

from gradcheck.result import Result, Status
from gradcheck.run.plan import Case

OUTPUT_LIMIT = 16 * 2**20
"""Bytes that a case may print."""
OUTPUT_SHOWN = 4000
"""Bytes of it, from the end, that a report shows."""

Execute = Callable[[Case], Result]


def main() -> None:
    """Answer one line of JSON, a Case, with one line of JSON, a Result, until the pipe is closed.

    Called as ``python -m gradcheck.run.worker READ_FD WRITE_FD MODULE:FUNCTION``.
    """
    read_fd, write_fd, target = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    execute = function_named(target)
    preload()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    with os.fdopen(read_fd, "r") as requests, os.fdopen(write_fd, "w") as results:
        for line in requests:
            case = Case.model_validate_json(line)
            result = run_isolated(execute, case, read_fd) if hasattr(os, "fork") else run_here(execute, case)
            results.write(result.model_dump_json() + "\n")
            results.flush()


def function_named(target: str) -> Execute:
    """The function that ``module:name`` names."""
    module, _, name = target.partition(":")
    function: Execute = getattr(import_module(module), name)
    return function


def preload() -> None:
    """Import what most cases need, so that their children have it already."""
    import pylayer.paddle  # noqa: F401

    import gradcheck.run.execute  # noqa: F401


def run_isolated(execute: Execute, case: Case, parent_fd: int) -> Result:
    """The result of `case`, run in a forked child.

    `parent_fd` is the pipe that cases come through: when it closes the parent is gone, and the child is stopped too.
    """
    started = time.perf_counter()
    result_read, result_write = os.pipe()
    with tempfile.TemporaryFile() as output:
        pid = os.fork()
        if pid == 0:
            become_child(execute, case, output, result_write)
        os.close(result_write)
        try:
            data, timed_out = read_until(result_read, started + case.timeout, parent_fd)
        finally:
            kill_group(pid)
            _, wait_status = os.waitpid(pid, 0)
            os.close(result_read)
        printed = end_of(output)
    seconds = time.perf_counter() - started
    if timed_out:
        return failed(case, Status.TIMEOUT, f"ran longer than {case.timeout:g} s and was stopped", printed, seconds)
    if not data:
        return failed(case, Status.CRASH, how_it_ended(wait_status), printed, seconds)
    return Result.model_validate_json(data).model_copy(update={"output": printed})


def become_child(execute: Execute, case: Case, output: IO[bytes], result_fd: int) -> None:
    """Run the case and leave the process: nothing of the worker's runs in it afterwards."""
    import resource

    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_LIMIT, OUTPUT_LIMIT))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # so that a crash loses no line
        result = run_here(execute, case)
        sys.stdout.flush()
        write_all(result_fd, result.model_dump_json().encode() + b"\n")
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def run_here(execute: Execute, case: Case) -> Result:
    """The result of `case`, run in this process; an exception of `execute` is a bug of ours and says so."""
    try:
        return execute(case)
    except Exception as error:
        report = "".join(traceback.format_exception(error))
        result = failed(case, Status.ERROR, f"bug in gradcheck: {type(error).__name__}: {error}", "", 0.0)
        return result.model_copy(update={"internal_error": report})


def read_until(fd: int, deadline: float, parent_fd: int) -> tuple[bytes, bool]:
    """One line from `fd`, or what there is when it is closed, and whether the time ran out first.

    Raises:
        SystemExit: the parent closed its pipe, which it does only to end this process.
    """
    chunks = []
    while True:
        ready, _, _ = select.select([fd, parent_fd], [], [], max(0.0, deadline - time.perf_counter()))
        if parent_fd in ready:
            raise SystemExit
        if not ready:
            return b"", True
        chunk = os.read(fd, 1 << 16)
        if not chunk:
            return b"".join(chunks), False
        chunks.append(chunk)
        if chunk.endswith(b"\n"):  # not the end of file: something that the case started may hold the pipe open
            return b"".join(chunks), False


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data` to `fd`."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def kill_group(pid: int) -> None:
    """Kill the child and whatever it started."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def end_of(output: IO[bytes]) -> str:
    """The end of what a case printed."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - OUTPUT_SHOWN))
    return output.read().decode("utf-8", "replace")


def how_it_ended(wait_status: int) -> str:
    """A process's end in words."""
    code = os.waitstatus_to_exitcode(wait_status)
    if code >= 0:
        return f"the process exited with status {code} before the case was done"
    return f"the process was killed by {signal.Signals(-code).name}"


def failed(case: Case, status: Status, message: str, output: str, seconds: float) -> Result:
    """The result of a case that could not tell itself how it went."""
    scenario = case.scenario
    return Result(
        name=case.name,
        scenario=scenario.id,
        backend=case.backend,
        path=scenario.path,
        line=scenario.line,
        column=scenario.column,
        status=status,
        message=message,
        output=output,
        seconds=seconds,
    )


if __name__ == "__main__":
    main()
