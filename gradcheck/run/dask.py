"""The executor of runs on a Dask cluster, whose workers run cases in the same way as this machine.

A case runs in a fresh process below a Dask worker, so that even a crash comes back as its result.
A case whose Dask worker is lost is an ERROR that says so.
"""

from __future__ import annotations

import atexit
import functools
import logging
import threading
import time
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from typing import Any

from gradcheck import __version__
from gradcheck.case.case import Case
from gradcheck.result import Result, Status
from gradcheck.run.interpreter import EXECUTE
from gradcheck.run.ordering import Executor
from gradcheck.run.runner import Runner, RunnerError

CONNECT = 10.0
"""Seconds to wait for the scheduler."""
WORKERS = 30.0
"""Seconds to wait for the first worker of the cluster."""
ALONE = 30.0
"""Seconds that a run continues without any worker. A nanny, or a job queue, starts a new one within
ten.
"""
WORKER_INTERVAL = 1.0
"""Seconds between checks for a worker."""

LOGGERS = (
    "distributed",
    "distributed.client",
    "distributed.comm",
    "distributed.core",
    "tornado.application",
    "asyncio",
)
"""Loggers by which Dask's client reports a lost scheduler, with tracebacks; gradcheck reports it
once.
"""


def run_case_here(text: str, version: str, execute: str = EXECUTE) -> str:
    """Run on the cluster: return the result of the case `text`, both as JSON.

    Raises RuntimeError: another version of gradcheck is installed there.
    """
    if version != __version__:
        versions = f"the cluster has gradcheck {__version__}, this machine {version}"
        raise RuntimeError(f"{versions}: install the same version")
    return runner_here(execute).submit(Case.model_validate_json(text)).result().model_dump_json()


@functools.cache
def runner_here(execute: str) -> Runner:
    """Return the executor of the cases of this Dask worker."""
    runner = Runner(1, execute)
    atexit.register(runner.__exit__, None, None, None)
    return runner


class DaskExecutor(Executor):
    """Runs cases on a cluster: as many at a time as the cluster has threads, or at most `jobs`.

    Raises RunnerError: Dask is not installed, the scheduler does not answer, or it has no workers.
    """

    def __init__(self, address: str, jobs: int | None = None, execute: str = EXECUTE) -> None:
        try:
            from distributed import Client, KilledWorker
        except ImportError:
            raise RunnerError("--executor dask needs Dask: pip install distributed") from None
        self.address, self.execute, self.killed = address, execute, KilledWorker
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            client: Any = Client
            self.client: Any = client(address, timeout=CONNECT, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise RunnerError(
                f"--executor dask:{address}: no scheduler answers there ({error})"
            ) from None
        try:
            self.client.wait_for_workers(1, timeout=WORKERS)
        except TimeoutError:
            raise RunnerError(
                f"--executor dask:{address}: no worker has come after {WORKERS:g} s"
            ) from None
        threads = sum(self.client.nthreads().values())
        super().__init__(min(threads, jobs or threads))
        self.cluster = self.client.get_executor(pure=False)
        self.unsettled: set[Future[Result]] = set()
        self.closed = threading.Event()
        threading.Thread(target=self.watch_workers, name="gradcheck-dask", daemon=True).start()

    def __enter__(self) -> DaskExecutor:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        with suppress(Exception):  # the scheduler may be lost
            self.client.close()

    def stop(self) -> None:
        """Run no further cases; running ones end with their Dask worker's task."""
        super().stop()
        self.closed.set()
        with suppress(Exception):
            self.cluster.shutdown(wait=False, cancel_futures=True)

    def watch_workers(self) -> None:
        """Fail the pending cases once there has been no worker for a while; Dask itself would wait
        forever.
        """
        last_seen = time.perf_counter()
        message = f"--executor dask:{self.address}: there has been no worker for {ALONE:g} s"
        while not self.closed.wait(WORKER_INTERVAL):
            with suppress(Exception):  # the scheduler is lost, which its futures report
                if self.client.nthreads():
                    last_seen = time.perf_counter()
            if time.perf_counter() - last_seen >= ALONE:
                for future in list(self.unsettled):
                    settle(future, RunnerError(message))

    def submit(self, case: Case) -> Future[Result]:
        """Return the future result of `case` from any free worker of the cluster."""
        future: Future[Result] = Future()
        self.unsettled.add(future)
        future.add_done_callback(self.unsettled.discard)
        text = case.model_dump_json()
        try:
            sent = self.cluster.submit(run_case_here, text, __version__, self.execute)
        except Exception as error:  # whatever Dask raises when it has no scheduler any more
            settle(future, self.failure(error))
        else:
            sent.add_done_callback(lambda sent: settle(future, self.outcome(case, sent)))
        return future

    def outcome(self, case: Case, sent: Future[str]) -> Result | RunnerError:
        """Return the result that came from the cluster, or the error in its place."""
        error = CancelledError() if sent.cancelled() else sent.exception()
        if error is None:
            return Result.model_validate_json(sent.result())
        if isinstance(error, self.killed):
            return case.result(Status.ERROR, "the Dask worker that ran it was lost")
        return self.failure(error)

    def failure(self, error: BaseException) -> RunnerError:
        """Return how to report an error of the cluster."""
        reason = f"the cluster failed: {str(error) or type(error).__name__}"
        if self.client.status != "running":
            reason = "the scheduler was lost"
        return RunnerError(f"--executor dask:{self.address}: {reason}")


def settle(future: Future[Result], outcome: Result | RunnerError) -> None:
    """Give a future its result or error, unless it has one."""
    with suppress(InvalidStateError):
        if isinstance(outcome, Result):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)
