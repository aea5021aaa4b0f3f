"""Workers side by side: each driven by a thread, results handed out in the order of the cases."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType

from gradcheck.result import Result, Status
from gradcheck.run.plan import Case
from gradcheck.run.worker import READY, how_it_ended

EXECUTE = "gradcheck.run.execute:execute"
"""The function that runs a case, as ``module:function``."""

END = 5.0
"""Seconds that a worker has to end by itself."""
LOG_SHOWN = 4_000
"""Bytes of what a worker printed that an error shows, from the end."""


class Worker:
    """One worker process and the pipes to it. It ends when its pipe closes, so it never outlives this process.

    It finds modules where this process does, so that a checkout runs its own code.
    """

    def __init__(self, execute: str) -> None:
        self.ready = False
        self.printed = ""
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        program = f"import sys; sys.path[:] = {sys.path!r}; from gradcheck.run.worker import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", program, execute],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            encoding="utf-8",
            env=environment(),
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.cases, self.results = self.process.stdin, self.process.stdout

    def run(self, case: Case) -> Result:
        """The result of `case`: CRASH if this process dies of it.

        Raises:
            RuntimeError: the worker could not even start.
        """
        self.wait_until_ready()
        line = ""
        with suppress(OSError, ValueError):  # the process is dead, or its pipes were closed by close()
            self.cases.write(case.model_dump_json() + "\n")
            self.cases.flush()
            line = self.results.readline()
        if line.endswith("\n"):
            return Result.model_validate_json(line)
        message = f"the worker process {how_it_ended(self.end())}"
        return case.result(Status.CRASH, message, output=self.printed)

    def wait_until_ready(self) -> None:
        """Read over anything that start-up files of this Python may print, to the worker's first own word."""
        while not self.ready:
            line = self.results.readline()
            self.ready = line == READY
            if not line:
                raise RuntimeError(f"a worker process {how_it_ended(self.end())}:\n{self.printed}")

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
        self.execute = execute
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

    def map(self, cases: Iterable[Case], on_done: Callable[[Result], None] = lambda result: None) -> Iterator[Result]:
        """The results in the order of `cases`, each as soon as it and all before it are there.

        `on_done` is called for each in the order in which they finish, from one thread at a time.

        Raises:
            RuntimeError: a worker could not start.
        """

        def one(case: Case) -> Result:
            result = case.not_run() or self.run(case)
            with self.lock:
                if not self.closed:
                    on_done(result)
            return result

        futures = [self.threads.submit(one, case) for case in cases]
        return (future.result() for future in futures)

    def run(self, case: Case) -> Result:
        """The result of `case` from an idle worker or a new one; one that died is not used again.

        Raises:
            RuntimeError: the worker could not start, or the pool is closed.
        """
        with self.lock:
            if self.closed:
                raise RuntimeError("the pool is closed")
            if self.idle:
                worker = self.idle.pop()
            else:
                worker = Worker(self.execute)
                self.workers.append(worker)
        result = worker.run(case)
        if worker.process.poll() is None:
            with self.lock:
                self.idle.append(worker)
        return result
