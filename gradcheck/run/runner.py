"""Runs cases side by side, each in a fresh process: time and memory limits, ``--reruns``."""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import IO

import psutil

from gradcheck.case.case import Case
from gradcheck.result import Result, Status
from gradcheck.run.answer import Outcome, Stopped, how_it_ended, result_of
from gradcheck.run.interpreter import EXECUTE, READY, START, START_LIMIT
from gradcheck.run.memory_used import memory_of
from gradcheck.run.ordering import Executor
from gradcheck.run.server_process import ServerKind, take_process
from gradcheck.support.user_error import UserError

OUTPUT_KEPT = 16_000
"""The most bytes of a case's output that are kept, counted from the end."""
MOST_OUTPUT = 64 << 20
"""The most bytes of a case's output on disk; more is discarded whenever its memory is measured."""
MOST_ANSWER = 1 << 30
"""The most bytes of a result, with the values of all outputs and gradients."""
INTERVAL = 0.2
"""Seconds between measurements of the memory and the output of a case."""
ABORT_GRACE = 1.0
"""Seconds that a process has, after its time is up, to print its current position."""
ENDING = 5.0
"""Seconds within which a server must end once its connection is closed."""


class RunnerError(UserError):
    """Cases cannot be run, or can no longer be run; the message says why."""


class ServerLostError(Exception):
    """A server has ended, with its exit status and the end of its output."""

    def __init__(self, exit_code: int, printed: str) -> None:
        super().__init__(how_it_ended(exit_code).replace("the process", "the server process"))
        self.exit_code, self.printed = exit_code, printed


class Server:
    """A server process (`run.server`), which runs one case at a time, or, with ``spawn``, a single
    case.

    It ends when its connection is closed, for example because this process has ended.

    Raises:
        ServerLostError: the server ended before it was ready.
        TimeoutError: the server was not ready after `START_LIMIT` seconds.
    """

    def __init__(self, kind: ServerKind) -> None:
        self.start = kind.start
        self.process, self.connection, self.log = take_process(kind)
        if self.receive(START_LIMIT) != READY:
            self.end(patience=0)
            raise TimeoutError(f"the server process was not ready after {START_LIMIT:g} s")
        self.memory = memory_of(self.process.pid)

    def receive(self, seconds: float) -> bytes:
        """Return the line that the server sends within a time, or nothing. Raises
        ServerLostError.
        """
        poll = select.poll()
        poll.register(self.connection, select.POLLIN)
        if not poll.poll(1000 * max(0.0, seconds)) and self.process.poll() is None:
            return b""
        line = b""
        with suppress(ConnectionResetError):
            line = self.connection.recv(100)
        if not line:
            raise ServerLostError(self.end(), self.printed)
        return line

    def run(self, case: Case) -> Outcome:
        """Run a case in a fresh process, within its limits; no process of its group survives.

        Raises ServerLostError: the server ended meanwhile.
        """
        started = time.perf_counter()
        temporary = tempfile.TemporaryFile
        with temporary() as request, temporary() as answer, temporary() as output:
            request.write(case.model_dump_json().encode())
            request.seek(0)
            files = [request.fileno(), answer.fileno(), output.fileno()]
            with suppress(BrokenPipeError, ConnectionResetError):  # `receive` says how it ended
                socket.send_fds(self.connection, [b"\0"], files)
            exit_code, stopped = self.watch(started + case.timeout, case.memory, output)
            return Outcome(
                answer=last_bytes(answer, MOST_ANSWER),
                printed=last_bytes(output, OUTPUT_KEPT).decode("utf-8", "replace"),
                exit_code=exit_code,
                stopped=stopped,
                seconds=time.perf_counter() - started,
            )

    def watch(self, deadline: float, memory: int, output: IO[bytes]) -> tuple[int, Stopped]:
        """Wait until a case has ended, and stop it if it takes too much time or memory.

        Returns its exit status, and the limit that it exceeded.
        """
        stopped: Stopped = ""
        while True:
            try:
                line = self.receive(min(INTERVAL, deadline - time.perf_counter()))
            except ServerLostError as lost:
                if self.start == "fork":
                    raise
                return lost.exit_code, stopped  # the case has ended, and the server with it
            if line:
                return int(line), stopped
            if time.perf_counter() >= deadline:
                # Its time is up: faulthandler prints where it is; the next time, it is killed.
                self.signal(signal.SIGKILL if stopped else signal.SIGABRT)
                deadline = math.inf if stopped else deadline + ABORT_GRACE
                stopped = "time"
            elif not stopped and memory_of(self.process.pid) - self.memory > memory:
                self.signal(signal.SIGKILL)
                deadline, stopped = math.inf, "memory"
            if os.fstat(output.fileno()).st_blocks * 512 > MOST_OUTPUT:
                os.ftruncate(output.fileno(), 0)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process group of the case, if it still exists."""
        with suppress(OSError):
            if self.start == "fork":
                self.connection.send(bytes([number]))
            else:
                os.killpg(self.process.pid, number)

    def close(self) -> None:
        """Ask the server to end and to kill the case that it runs."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def end(self, patience: float = ENDING) -> int:
        """Wait for the server's end, and return its exit status; after the time limit it is
        killed.
        """
        if self.log.closed:  # it has ended before, and another process may have its number
            return self.process.wait()
        self.close()
        try:
            exit_code = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            exit_code = self.process.wait()
        if exit_code or self.start == "spawn":
            kill_session(self.process.pid)  # the case that it ran, and processes left by that
        self.connection.close()
        self.printed = last_bytes(self.log, OUTPUT_KEPT).decode("utf-8", "replace")
        self.log.close()
        return exit_code


def kill_session(session: int) -> None:
    """Kill the processes of a session: a case would survive its server."""
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == session:
                os.kill(pid, signal.SIGKILL)


def last_bytes(file: IO[bytes], most: int) -> bytes:
    """Return the end of a file without moving the file position, which other processes share."""
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), most, max(0, size - most))


class Runner(Executor):
    """Runs cases in processes on this machine. Leaving the ``with`` block ends them in any state.

    `execute` is the function that runs a case, as ``module:function``; `start` is ``fork`` or
    ``spawn``, see `run.interpreter.START`.
    """

    def __init__(self, slots: int, execute: str = EXECUTE, start: str = START) -> None:
        super().__init__(slots)
        self.execute, self.start = execute, start
        Case.model_rebuild()  # before threads use it: pydantic 2.11 lets several build it at once
        self.threads = ThreadPoolExecutor(slots, thread_name_prefix="gradcheck")
        self.servers: list[Server] = []
        self.idle: dict[ServerKind, list[Server]] = {}
        """Idle servers. Threads take and return them; both operations are atomic."""

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        self.threads.shutdown(cancel_futures=True)
        for server in self.servers:
            server.end()

    def stop(self) -> None:
        super().stop()
        for server in self.servers[:]:
            server.close()

    def submit(self, case: Case) -> Future[Result]:
        return self.threads.submit(self.result, case)

    def result(self, case: Case) -> Result:
        """Return the result of `case`: SKIP if it is not run; after reruns, the passing result if
        there is any.
        """
        if skipped := case.not_run():
            return skipped
        first = result = self.result_once(case)
        number = 0
        while not result.status.green and number < case.reruns and not self.stopped:
            number += 1
            result = self.result_once(case)
        if not number or not result.status.green:
            return result
        before = f"{first.status} before: {first.message}"
        message = f"flaky: {result.status} at rerun {number} of {case.reruns}, {before}"
        return result.model_copy(update={"message": message})

    def result_once(self, case: Case) -> Result:
        """Return the result of one run, as documented, or as recorded for the backend."""
        if case.entry.observed is None:
            return self.run(case)
        from gradcheck.conformance.pins import run_with_pin  # a user's own layers have no pins

        return run_with_pin(case, self.run)

    def run(self, case: Case) -> Result:
        """Return the result of `case`, whatever happens in it.

        Raises RunnerError: no server starts, or the run is over.
        """
        kind = ServerKind(self.execute, case.backend, case.interpreter, self.start)
        idle = self.idle.setdefault(kind, [])
        try:
            server = idle.pop()
        except IndexError:
            server = self.start_server(kind)
        try:
            result = result_of(case, server.run(case))
        except ServerLostError as lost:
            return case.result(Status.CRASH, str(lost), output=lost.printed)
        if self.start == "fork":
            idle.append(server)
        return result

    def start_server(self, kind: ServerKind) -> Server:
        """Start a server. Raises RunnerError: the server does not start, or the run is over."""
        if self.stopped:
            raise RunnerError("the run is over")
        interpreter = kind.interpreter
        where = f"{kind.backend} does not run in {interpreter}: " if interpreter else ""
        try:
            server = Server(kind)
        except TimeoutError as late:
            raise RunnerError(f"{where}{late}") from None
        except ServerLostError as lost:
            why = f"{lost}:\n{lost.printed}".replace("the case was done", "it was ready")
            raise RunnerError(f"{where}{why}".rstrip(":\n")) from None
        self.servers.append(server)
        if self.stopped:
            server.close()
        return server
