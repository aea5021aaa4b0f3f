"""Workers side by side, each driven by a thread: the executor of runs on this machine."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from gradcheck.case.case import Case
from gradcheck.result import Result, Status
from gradcheck.run.answer import result_of, settled
from gradcheck.run.child import how_it_ended
from gradcheck.run.interpreter import EXECUTE, START, START_LIMIT
from gradcheck.run.spawn import Interpreter
from gradcheck.run.supervisor import ExecutorError
from gradcheck.run.worker_process import ReplyError, WorkerProcess

PROCESSES: dict[str, type[WorkerProcess] | type[Interpreter]] = {"fork": WorkerProcess, "spawn": Interpreter}
"""`START` → what a worker runs cases with: a process that forks one for each, or a new interpreter for each."""
STARTS = 3
"""How often a process is started for a case."""
_started: set[tuple[str, ...]] = set()
"""What has been ready before: it starts, unless something ends it."""


class StartError(Exception):
    """A process that has been ready before did not come so far now; the message is that of the case's result."""


class Worker:
    """Runs cases of a backend one by one, each in a process of its own; what a case has spoiled is replaced."""

    def __init__(self, start: str, execute: str, backend: str, interpreter: str = "") -> None:
        self.kind, self.started_as = PROCESSES[start], (execute, backend, interpreter)
        self.process: WorkerProcess | Interpreter | None = None
        self.ahead: WorkerProcess | Interpreter | None = None
        """One that was started before it is needed, and is the next to be used."""
        self.lock = threading.Lock()
        self.closed = False
        self.lacking = ""
        """What the system does not offer that SECURITY.md promises; empty if nothing, or while nothing has started."""
        self.start_ahead()

    @property
    def pid(self) -> int | None:
        """The process that stays between cases, if there is one."""
        return self.process.pid if self.process else None

    def start_ahead(self) -> None:
        """Where a process runs one case alone, start the next one, so that it has imported everything by then."""
        with self.lock:
            if self.kind.for_one_case and not self.closed:
                self.ahead = self.kind(*self.started_as)

    def run(self, case: Case) -> Result:
        """The result of `case`, whatever it does: CRASH if the process dies of it, or answers as it should not.

        Raises RuntimeError, ExecutorError: no process could be started, see `started`.
        """
        if isinstance(self.process, WorkerProcess) and not self.process.channel.quiet():
            self.process.kill()  # something has happened to it since its last case
            self.process = None
        try:
            process = self.process or self.started()
        except StartError as error:
            return case.result(Status.CRASH, str(error))
        self.start_ahead()
        self.lacking = process.lacking
        try:
            outcome = process.ask(case)
            self.process = None if self.kind.for_one_case else process
            return result_of(case, outcome)
        except TimeoutError:
            status, message = Status.TIMEOUT, f"{self.kind.NAME} had come to a stop, and was ended"
            process.kill()
        except ReplyError:
            status, message = Status.CRASH, f"{self.kind.NAME} sent something that is no answer, and was ended"
            process.kill()
        except OSError:
            status, message = Status.CRASH, how_it_ended(process.kill()).replace("the process", self.kind.NAME)
        self.process = None
        return case.result(status, message, output=process.printed)

    def started(self) -> WorkerProcess | Interpreter:
        """A process that is ready; whatever kills processes may end one before that.

        Raises:
            RuntimeError: it ended by itself, and has never been ready.
            ExecutorError: it was killed each time, or did not become ready, and has never been.
            StartError: it did not become ready, but has been before; or this worker was closed.
        """
        name, how = self.kind.NAME, ""
        for _ in range(STARTS):
            with self.lock:
                if self.closed:
                    raise StartError(f"{name} was ended")
                process, self.ahead = self.ahead or self.kind(*self.started_as), None
                self.process = process
            try:
                if process.wait_until_ready():
                    _started.add(self.started_as)
                    return process
            except TimeoutError:
                how = f"{name} was not ready after {START_LIMIT:g} s"
                process.kill()
            else:
                code = process.kill()
                how = how_it_ended(code).replace("the process", name)
                if code >= 0 and self.started_as not in _started:
                    self.process = None
                    raise RuntimeError(f"{how}:\n{process.printed}")
                how += " while it started"
            self.process = None
        how += f", {STARTS} times one after the other"
        raise StartError(how) if self.started_as in _started else ExecutorError(how)

    def close(self) -> None:
        """Have what runs end, and start no other."""
        with self.lock:
            self.closed = True
            there = [one for one in (self.process, self.ahead) if one is not None]
        for process in there:
            process.close()

    def end(self) -> None:
        """Wait for the end of everything."""
        self.close()
        if self.process is not None:
            self.process.end()


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
        """The result of `case`, as soon as a worker is free and done with it."""
        return self.threads.submit(self.result, case)

    def result(self, case: Case) -> Result:
        """The result of `case`; of one that is not run at all, too."""
        return case.not_run() or settled(case, self.run)

    def run(self, case: Case) -> Result:
        """The result of `case` from an idle worker or a new one.

        Raises:
            ExecutorError: the worker was killed each time it started, or is of another interpreter and does not start.
            RuntimeError: the worker could not start, or the pool is closed.
        """
        started_as = (self.execute, case.backend, case.interpreter)
        with self.lock:
            if self.closed:
                raise RuntimeError("the pool is closed")
            worker = next((one for one in self.idle if one.started_as == started_as), None)
            if worker is not None:
                self.idle.remove(worker)
            else:
                worker = Worker(self.start, *started_as)
                if self.start == "fork" and self.ahead and self.ahead.started_as == started_as:
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
