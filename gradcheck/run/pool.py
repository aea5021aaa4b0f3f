"""Workers side by side, each driven by a thread: the executor of runs on this machine."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Protocol

from gradcheck.case.case import Case
from gradcheck.result import Result
from gradcheck.run.forking import ForkingWorker
from gradcheck.run.interpreter import EXECUTE, START
from gradcheck.run.observed import settled
from gradcheck.run.spawn import SpawningWorker
from gradcheck.run.supervisor import ExecutorError
from gradcheck.run.worker_process import WorkerProcess


class Worker(Protocol):
    """What runs cases one after the other, each in a process of its own."""

    backend: str
    lacking: str
    """What the system does not offer that SECURITY.md promises; empty if nothing, or as long as nothing has started."""

    def run(self, case: Case) -> Result:
        """The result of `case`, whatever it does; a process that it has spoiled is replaced.

        Raises:
            RuntimeError: no process could even start.
        """

    @property
    def pid(self) -> int | None:
        """The process that stays between cases, if there is one."""

    def close(self) -> None:
        """Have what runs end."""

    def end(self) -> object:
        """Wait for the end of everything."""


WORKERS: dict[str, type[ForkingWorker] | type[SpawningWorker]] = {"fork": ForkingWorker, "spawn": SpawningWorker}


class Pool:
    """Up to `jobs` workers. Use it in a ``with`` block: leaving it ends them, also in the middle of a case.

    `start` is ``fork`` or ``spawn``, see `START`. `ahead` is a worker process that has been started already.
    """

    def __init__(
        self, jobs: int, execute: str = EXECUTE, start: str = START, ahead: WorkerProcess | None = None
    ) -> None:
        self.slots, self.execute, self.start, self.ahead = jobs, execute, start, ahead
        Case.model_rebuild()  # before the threads use it: pydantic 2.11 does not keep them from building it at once
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

    @property
    def lacking(self) -> str:
        """What this system does not offer that SECURITY.md promises; empty if nothing."""
        return next((worker.lacking for worker in self.workers if worker.lacking), "")

    def submit(self, case: Case) -> Future[Result]:
        """The result of `case`, as soon as a worker is free and done with it; of one that is not run at all, too."""
        return self.threads.submit(lambda: case.not_run() or settled(case, self.run))

    def run(self, case: Case) -> Result:
        """The result of `case` from an idle worker or a new one.

        Raises:
            ExecutorError: the worker was killed each time it started, or is of another interpreter and does not start.
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
                if isinstance(worker, ForkingWorker) and self.ahead and self.ahead.started_as == worker.started_as:
                    worker.ahead, self.ahead = self.ahead, None
                self.workers.append(worker)
        try:
            result = worker.run(case)
        except (RuntimeError, ExecutorError) as error:
            if not case.interpreter:
                raise
            raise ExecutorError(f"{case.backend} does not run in {case.interpreter}: {error}") from None
        with self.lock:
            self.idle.append(worker)
        return result
