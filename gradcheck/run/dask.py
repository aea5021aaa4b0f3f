"""The executor of runs on a Dask cluster: the same workers as here, one for each thread of the cluster's workers.

A case runs in a process below a worker process below a Dask worker, so that whatever it breaks is seen there and comes
back as its result. Where a whole Dask worker is lost, the cases that it had are run again, one after the other and
nothing beside them, so that only one that loses its Dask worker again is to blame.
"""

from __future__ import annotations

import atexit
import functools
import logging
import threading
import time
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from types import TracebackType
from typing import Any

from gradcheck import __version__
from gradcheck.case.case import Case
from gradcheck.result import Result, Status
from gradcheck.run.answer import relayed
from gradcheck.run.interpreter import EXECUTE
from gradcheck.run.pool import Pool
from gradcheck.run.supervisor import ExecutorError

CONNECT = 10.0
"""Seconds to wait for the scheduler and for its first worker."""
ALONE = 30.0
"""Seconds that a run goes on without any worker. A nanny, or a job queue with room, has another there within ten."""
BETWEEN_LOOKS = 1.0
"""Seconds between looks at whether there is a worker."""

LOGGERS = (
    "distributed",
    "distributed.client",
    "distributed.comm",
    "distributed.core",
    "tornado.application",
    "asyncio",
)
"""What Dask's client reports to when it loses the scheduler, with tracebacks; we say it ourselves, once."""


def run_case(text: str, version: str, execute: str = EXECUTE) -> str:
    """On the cluster: the result of the case `text`, both as JSON.

    Raises RuntimeError: another version of gradcheck is installed there.
    """
    if version != __version__:
        raise RuntimeError(f"the cluster has gradcheck {__version__}, this machine {version}: install the same version")
    return pool_here(execute).result(Case.model_validate_json(text)).model_dump_json()


@functools.cache
def pool_here(execute: str) -> Pool:
    """What runs the cases of this Dask worker, as many at a time as it has threads."""
    pool = Pool(1, execute)
    atexit.register(pool.__exit__, None, None, None)
    return pool


class DaskPool:
    """Runs cases on the cluster at `address`: as many at a time as it has threads, or at most `jobs`.

    Raises ExecutorError: Dask is not installed, the scheduler does not answer, or it has no workers.
    """

    def __init__(self, address: str, jobs: int | None = None, execute: str = EXECUTE) -> None:
        try:
            from distributed import Client, KilledWorker
        except ImportError:
            raise ExecutorError('--executor dask needs Dask: pip install "gradcheck[dask]"') from None
        self.address, self.execute, self.killed = address, execute, KilledWorker
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            self.client: Any = Client(address, timeout=CONNECT, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ExecutorError(f"--executor dask:{address}: no scheduler answers there ({error})") from None
        try:
            self.client.wait_for_workers(1, timeout=CONNECT)
            threads = sum(self.client.nthreads().values())
        except (OSError, TimeoutError, ValueError) as error:
            raise ExecutorError(f"--executor dask:{address}: its scheduler has no worker ({error})") from None
        self.slots = min(threads, jobs or threads)
        self.cluster = self.client.get_executor(pure=False)
        self.suspects: list[tuple[Case, Future[Result]]] = []
        self.running = 0
        self.waiting: set[Future[Result]] = set()
        """Those that have neither a result nor an error yet."""
        self.lock = threading.Lock()
        self.closed = threading.Event()
        threading.Thread(target=self.watch_workers, name="gradcheck-dask", daemon=True).start()

    def __enter__(self) -> DaskPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closed.set()
        with suppress(Exception):  # the scheduler may be lost
            self.cluster.shutdown(wait=False)
            self.client.close()

    def submit(self, case: Case) -> Future[Result]:
        """The result of `case` from whichever worker of the cluster is free."""
        future: Future[Result] = Future()
        with self.lock:
            self.running += 1
            self.waiting.add(future)
        self.send(case, future, alone=False)
        return future

    def watch_workers(self) -> None:
        """Give up what is waited for once there has been no worker for a while: nothing else ends it."""
        alone_since = None
        while not self.closed.wait(BETWEEN_LOOKS):
            with suppress(Exception):  # the scheduler is lost, which its futures say
                if self.client.nthreads():
                    alone_since = None
                elif alone_since is None:
                    alone_since = time.monotonic()
                elif time.monotonic() - alone_since >= ALONE:
                    reason = f"there has been no worker for {ALONE:g} s"
                    self.give_up(ExecutorError(f"--executor dask:{self.address}: {reason}"))

    def give_up(self, error: ExecutorError) -> None:
        """Let everything that is waited for end with an error."""
        with self.lock:
            waiting, self.waiting = self.waiting, set()
        for future in waiting:
            future.set_exception(error)

    def is_waited_for(self, future: Future[Result]) -> bool:
        """Whether a future has neither a result nor an error; it gets one now."""
        with self.lock:
            known = future in self.waiting
            self.waiting.discard(future)
        return known

    def send(self, case: Case, future: Future[Result], *, alone: bool) -> None:
        """Have the cluster run `case`; `alone` says that nothing else runs meanwhile."""
        try:
            sent = self.cluster.submit(run_case, case.model_dump_json(), __version__, self.execute)
        except Exception as error:  # whatever Dask raises when it has no scheduler any more
            if self.is_waited_for(future):
                future.set_exception(self.failure(error))
            return
        sent.add_done_callback(lambda sent: self.ended(case, future, sent, alone))

    def ended(self, case: Case, future: Future[Result], sent: Future[str], alone: bool) -> None:
        """Pass a result on; a case whose Dask worker was lost waits until nothing else runs, and is run again."""
        with self.lock:
            self.running -= 1
            again = not alone and not sent.cancelled() and isinstance(sent.exception(), self.killed)
            if again:
                self.suspects.append((case, future))
            suspect = self.suspects.pop(0) if self.suspects and not self.running else None
            self.running += suspect is not None
        if not again:
            self.settle(case, future, sent)
        if suspect:
            self.send(*suspect, alone=True)

    def settle(self, case: Case, future: Future[Result], sent: Future[str]) -> None:
        """Give `future` the result that came, or what stands in its place."""
        if not self.is_waited_for(future):
            return
        error = CancelledError() if sent.cancelled() else sent.exception()
        if error is None:
            future.set_result(relayed(case, sent.result()))
        elif isinstance(error, self.killed):
            message = "the Dask worker that ran it was lost, and lost again when nothing else ran"
            future.set_result(case.result(Status.CRASH, message))
        else:
            future.set_exception(self.failure(error))

    def failure(self, error: BaseException) -> ExecutorError:
        """What to say of an error of the cluster's."""
        lost = self.client.status != "running"
        reason = "the scheduler was lost" if lost else f"the cluster failed: {str(error) or type(error).__name__}"
        return ExecutorError(f"--executor dask:{self.address}: {reason}")
