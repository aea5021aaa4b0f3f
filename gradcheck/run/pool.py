"""Workers side by side: each driven by a thread, results handed out in the order of the cases."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import gradcheck
from gradcheck.result import Result, Status
from gradcheck.run.plan import Case
from gradcheck.run.worker import failed

EXECUTE = "gradcheck.run.execute:execute"


class Worker:
    """One worker process and the pipes to it. It ends when its pipe closes, so it never outlives this process."""

    def __init__(self, execute: str) -> None:
        case_read, case_write = os.pipe()
        result_read, result_write = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gradcheck.run.worker", str(case_read), str(result_write), execute],
            pass_fds=(case_read, result_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
        )
        os.close(case_read)
        os.close(result_write)
        self.cases = os.fdopen(case_write, "w")
        self.results = os.fdopen(result_read, "r")

    def run(self, case: Case) -> Result | None:
        """The result of `case`; None if the worker itself died."""
        try:
            self.cases.write(case.model_dump_json() + "\n")
            self.cases.flush()
            line = self.results.readline()
        except (OSError, ValueError):
            return None
        return Result.model_validate_json(line) if line else None

    def close(self) -> None:
        """End the process and the case that it runs: it watches its pipe."""
        with suppress(OSError):
            self.cases.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def environment() -> dict[str, str]:
    """The environment of a worker: it finds this very gradcheck, in a checkout also the engine, and uses one thread."""
    package = Path(gradcheck.__file__).resolve().parent.parent
    paths = [str(package), str(package / "engine"), *filter(None, [os.environ.get("PYTHONPATH")])]
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    return {**threads, **os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}


class Pool:
    """Up to `jobs` workers. Use it in a ``with`` block: leaving it ends them, also in the middle of a case."""

    def __init__(self, jobs: int, execute: str = EXECUTE) -> None:
        self.execute = execute
        self.threads = ThreadPoolExecutor(jobs, thread_name_prefix="gradcheck")
        self.local = threading.local()
        self.workers: list[Worker] = []
        self.lock = threading.Lock()
        self.closed = False

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self.lock:
            self.closed = True
            workers = list(self.workers)
        for worker in workers:
            worker.close()
        self.threads.shutdown(cancel_futures=True)
        for worker in workers:
            worker.results.close()

    def map(self, cases: Iterable[Case], on_done: Callable[[Result], None] = lambda result: None) -> Iterator[Result]:
        """The results in the order of `cases`, each as soon as it and all before it are there.

        `on_done` is called for each in the order in which they finish, from one thread at a time.
        """

        def one(case: Case) -> Result:
            result = self.run(case)
            with self.lock:
                if not self.closed:
                    on_done(result)
            return result

        futures: list[Future[Result]] = [self.threads.submit(one, case) for case in cases]
        for future in futures:
            yield future.result()

    def run(self, case: Case) -> Result:
        """The result of `case` from this thread's worker; a worker that died is replaced for the next case."""
        worker = getattr(self.local, "worker", None)
        if worker is None:
            worker = self.local.worker = Worker(self.execute)
            with self.lock:
                self.workers.append(worker)
        result = worker.run(case)
        if result is None:
            code = worker.process.poll()
            self.local.worker = None
            message = f"the worker process died{'' if code is None else f' with status {code}'}"
            return failed(case, Status.CRASH, message, "", 0.0)
        return result
