"""Workers side by side, each driven by a thread: the executor of runs on this machine."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import threading
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Protocol

from gradcheck.case.case import Case
from gradcheck.result import Result, Status
from gradcheck.run.child import PR_SET_CHILD_SUBREAPER, READY, Outcome, is_subreaper, prctl
from gradcheck.run.limits import children, kill_children, kill_marked
from gradcheck.run.observed import settled
from gradcheck.run.outcome import how_it_ended, result_of
from gradcheck.run.spawn import SpawningWorker, environment, python
from gradcheck.run.supervisor import ExecutorError

EXECUTE = "gradcheck.case.execute:execute"
"""The function that runs a case, as ``module:function``."""

MARK = "GRADCHECK_WORKER"
"""Environment variable that tells which worker a process descends from."""
END = 5.0
"""Seconds that a worker has to end by itself."""
GRACE = 5.0
"""Seconds that a worker may take beyond the limit of its case, before it is ended itself."""
LOG_SHOWN = 4_000
"""Bytes of what a worker printed that an error shows, from the end."""

START = os.environ.get("GRADCHECK_START") or ("fork" if sys.platform == "linux" else "spawn")
"""How the process of a case is made: forked from a worker that has imported everything, or a new interpreter.

Windows cannot fork, and on macOS a process that has used the system's libraries must not go on after a fork.
"""


class Worker(Protocol):
    """What runs cases one after the other, each in a process of its own."""

    backend: str

    def run(self, case: Case) -> Result:
        """The result of `case`.

        Raises:
            RuntimeError: it could not even start.
        """

    @property
    def alive(self) -> bool:
        """Whether it can run a further case."""

    @property
    def pid(self) -> int | None:
        """The process that stays between cases, if there is one."""

    def close(self) -> None:
        """Have what runs end."""

    def end(self) -> object:
        """Wait for the end of everything."""


class ForkingWorker:
    """One worker process for a backend, and the pipes to it. It ends when its pipe closes, so it never outlives us.

    It finds modules where this process does, so that a checkout runs its own code; with another `interpreter`, see
    `gradcheck.run.spawn.python`.
    """

    def __init__(self, execute: str, backend: str, interpreter: str = "") -> None:
        self.backend = backend
        self.mark = uuid.uuid4().hex
        self.ready = False
        self.printed = ""
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        self.process = subprocess.Popen(
            [*python("gradcheck.run.worker", interpreter), execute, backend],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            encoding="utf-8",
            env={**environment(interpreter), MARK: self.mark},
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests, self.answers = self.process.stdin, self.process.stdout
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.answers, selectors.EVENT_READ)

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    @property
    def pid(self) -> int | None:
        """The process."""
        return self.process.pid

    def run(self, case: Case) -> Result:
        """The result of `case`: CRASH if this process dies of it.

        Raises:
            RuntimeError: the worker could not even start.
        """
        self.wait_until_ready()
        line, status = "", Status.CRASH
        with suppress(OSError, ValueError):  # the process is dead, or its pipes were closed by close()
            self.requests.write(json.dumps([case.model_dump_json(), case.timeout, case.memory]) + "\n")
            self.requests.flush()
            if not self.selector.select(case.timeout + GRACE):
                status = Status.TIMEOUT  # the case has stopped this process, which would have ended it
                self.process.kill()
            line = self.answers.readline()
        if line.endswith("\n"):
            return result_of(case, Outcome(*json.loads(line)))
        message = how_it_ended(self.end()).replace("the process", "the worker process")
        if status is Status.TIMEOUT:
            message = "the worker process had come to a stop, and was ended"
        kill_marked(f"{MARK}={self.mark}")  # it can no longer see to what the case started
        return case.result(status, message, output=self.printed)

    def wait_until_ready(self) -> None:
        """Read over anything that start-up files of this Python may print, to the worker's first own word."""
        while not self.ready:
            line = self.answers.readline()
            self.ready = line == READY
            if not line:
                raise RuntimeError(
                    f"{how_it_ended(self.end())}:\n{self.printed}".replace("the process", "a worker process")
                )

    def close(self) -> None:
        """Have the process end, and the case that it runs: it watches its pipe."""
        with suppress(OSError):
            self.requests.close()

    def end(self) -> int:
        """Wait for the end of the process, and close everything; its exit status, negative for a signal."""
        self.close()
        try:
            code = self.process.wait(END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.selector.close()
        self.answers.close()
        if not self.log.closed:
            self.log.seek(max(0, self.log.seek(0, os.SEEK_END) - LOG_SHOWN))
            self.printed = self.log.read().decode("utf-8", "replace")
            self.log.close()
        return code


WORKERS: dict[str, type[ForkingWorker] | type[SpawningWorker]] = {"fork": ForkingWorker, "spawn": SpawningWorker}


class Pool:
    """Up to `jobs` workers. Use it in a ``with`` block: leaving it ends them, also in the middle of a case.

    Meanwhile this process is the one to which the system hands orphans (Linux), so that what a case has started is
    found even after the case has killed its worker; `start` is ``fork`` or ``spawn``, see `START`.
    """

    def __init__(self, jobs: int, execute: str = EXECUTE, start: str = START) -> None:
        self.slots, self.execute, self.start = jobs, execute, start
        Case.model_rebuild()  # before the threads use it: pydantic 2.11 does not keep them from building it at once
        self.threads = ThreadPoolExecutor(jobs, thread_name_prefix="gradcheck")
        self.idle: list[Worker] = []
        self.workers: list[Worker] = []
        self.lock = threading.Lock()
        self.closed = False
        self.not_ours = set(children("self"))
        self.was_reaper = is_subreaper()
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.lock:
            self.closed = True
        self.threads.shutdown(wait=False, cancel_futures=True)
        for worker in self.workers:
            worker.close()
        self.threads.shutdown()
        for worker in self.workers:
            worker.end()
        self.kill_orphans()
        prctl(PR_SET_CHILD_SUBREAPER, self.was_reaper)

    def submit(self, case: Case) -> Future[Result]:
        """The result of `case`, as soon as a worker is free and done with it; of one that is not run at all, too."""
        return self.threads.submit(lambda: case.not_run() or settled(case, self.run))

    def run(self, case: Case) -> Result:
        """The result of `case` from an idle worker or a new one; one that died is not used again.

        Raises:
            ExecutorError: the worker of another interpreter could not start.
            RuntimeError: the worker could not start, or the pool is closed.
        """
        with self.lock:
            if self.closed:
                raise RuntimeError("the pool is closed")
            worker = next((one for one in self.idle if one.backend == case.backend), None)
            if worker is not None:
                self.idle.remove(worker)
            else:
                worker = WORKERS[self.start](self.execute, case.backend, case.interpreter)
                self.workers.append(worker)
        try:
            result = worker.run(case)
        except RuntimeError as error:
            if not case.interpreter:
                raise
            raise ExecutorError(f"{case.backend} does not run in {case.interpreter}: {error}") from None
        if worker.alive:
            with self.lock:
                self.idle.append(worker)
        else:
            self.kill_orphans()
        return result

    def kill_orphans(self) -> None:
        """Kill every process below this one that is no worker and was not there before: a dead worker left it."""
        with self.lock:
            kill_children(but=self.not_ours | {worker.pid for worker in self.workers})
