"""Workers side by side, each driven by a thread: the executor of runs on this machine."""

from __future__ import annotations

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

from gradcheck.case.case import Case
from gradcheck.result import Result, Status
from gradcheck.run.limits import kill_marked
from gradcheck.run.worker import READY, how_it_ended

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


class Worker:
    """One worker process for a backend, and the pipes to it. It ends when its pipe closes, so it never outlives us.

    It finds modules where this process does, so that a checkout runs its own code.
    """

    def __init__(self, execute: str, backend: str) -> None:
        self.backend = backend
        self.mark = uuid.uuid4().hex
        self.ready = False
        self.printed = ""
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        program = f"import sys; sys.path[:] = {sys.path!r}; from gradcheck.run.worker import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", program, execute, backend],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            encoding="utf-8",
            env={**environment(), MARK: self.mark},
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.cases, self.results = self.process.stdin, self.process.stdout
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.results, selectors.EVENT_READ)

    def run(self, case: Case) -> Result:
        """The result of `case`: CRASH if this process dies of it.

        Raises:
            RuntimeError: the worker could not even start.
        """
        self.wait_until_ready()
        line, status = "", Status.CRASH
        with suppress(OSError, ValueError):  # the process is dead, or its pipes were closed by close()
            self.cases.write(case.model_dump_json() + "\n")
            self.cases.flush()
            if not self.answers(2 * case.timeout + GRACE):  # it may run a case twice
                status = Status.TIMEOUT  # the case has stopped this process, which would have ended it
                self.process.kill()
            line = self.results.readline()
        if line.endswith("\n"):
            return Result.model_validate_json(line)
        message = how_it_ended(self.end()).replace("the process", "the worker process")
        if status is Status.TIMEOUT:
            message = "the worker process had come to a stop, and was ended"
        kill_marked(f"{MARK}={self.mark}")  # it can no longer see to what the case started
        return case.result(status, message, output=self.printed)

    def answers(self, seconds: float) -> bool:
        """Whether there is something to read before the time is up."""
        return bool(self.selector.select(seconds))

    def wait_until_ready(self) -> None:
        """Read over anything that start-up files of this Python may print, to the worker's first own word."""
        while not self.ready:
            line = self.results.readline()
            self.ready = line == READY
            if not line:
                raise RuntimeError(
                    f"{how_it_ended(self.end())}:\n{self.printed}".replace("the process", "a worker process")
                )

    def close(self) -> None:
        """Have the process end, and the case that it runs: it watches its pipe."""
        with suppress(OSError):
            self.cases.close()

    def end(self) -> int:
        """Wait for the end of the process, and close everything; its exit status, negative for a signal."""
        self.close()
        try:
            code = self.process.wait(END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.selector.close()
        self.results.close()
        if not self.log.closed:
            self.log.seek(max(0, self.log.seek(0, os.SEEK_END) - LOG_SHOWN))
            self.printed = self.log.read().decode("utf-8", "replace")
            self.log.close()
        return code


def environment() -> dict[str, str]:
    """The environment of a worker: this one's, with one thread per case and the same hashes in every run."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**threads, "PYTHONHASHSEED": "0", **os.environ}


class Pool:
    """Up to `jobs` workers. Use it in a ``with`` block: leaving it ends them, also in the middle of a case."""

    def __init__(self, jobs: int, execute: str = EXECUTE) -> None:
        self.slots, self.execute = jobs, execute
        self.threads = ThreadPoolExecutor(jobs, thread_name_prefix="gradcheck")
        self.idle: list[Worker] = []
        self.workers: list[Worker] = []
        self.lock = threading.Lock()
        self.closed = False

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

    def submit(self, case: Case) -> Future[Result]:
        """The result of `case`, as soon as a worker is free and done with it; of one that is not run at all, too."""
        return self.threads.submit(lambda: case.not_run() or self.run(case))

    def run(self, case: Case) -> Result:
        """The result of `case` from an idle worker or a new one; one that died is not used again.

        Raises:
            RuntimeError: the worker could not start, or the pool is closed.
        """
        with self.lock:
            if self.closed:
                raise RuntimeError("the pool is closed")
            worker = next((one for one in self.idle if one.backend == case.backend), None)
            if worker is not None:
                self.idle.remove(worker)
            else:
                worker = Worker(self.execute, case.backend)
                self.workers.append(worker)
        result = worker.run(case)
        if worker.process.poll() is None:
            with self.lock:
                self.idle.append(worker)
        return result
