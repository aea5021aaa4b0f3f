"""Cases where a process can be forked (Linux): each in a process that is forked from a worker, which stays."""

from __future__ import annotations

import threading

from gradcheck.case.case import Case
from gradcheck.result import Result, Status
from gradcheck.run.child import how_it_ended
from gradcheck.run.outcome import result_of
from gradcheck.run.start import StartError, started
from gradcheck.run.supervisor import ExecutorError
from gradcheck.run.worker_process import ReplyError, WorkerProcess


class ForkingWorker:
    """Runs cases in processes forked from one process, which is replaced whenever a case has spoiled it."""

    def __init__(self, execute: str, backend: str, interpreter: str = "") -> None:
        self.backend, self.started_as = backend, (execute, backend, interpreter)
        self.process: WorkerProcess | None = None
        self.ahead: WorkerProcess | None = None
        """One that was started before anybody knew of this worker (`started_ahead`), and is the first to be used."""
        self.lock = threading.Lock()
        self.closed = False
        self.lacking = ""

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        return self.process.pid if self.process else None

    def run(self, case: Case) -> Result:
        """The result of `case`: CRASH if the process dies of it, or answers as it should not.

        Raises:
            RuntimeError, ExecutorError: no process could be started, see `run.start.started`.
        """
        if self.process is not None and not self.process.channel.quiet():
            self.process.kill()  # something has happened to it since its last case
            self.process = None
        try:
            process = self.process = self.process or started(self.started_as, self.make, "the worker process")
        except (StartError, RuntimeError, ExecutorError) as error:
            self.process = None
            if not isinstance(error, StartError):
                raise
            return case.result(Status.CRASH, str(error))
        self.lacking = process.lacking
        try:
            return result_of(case, process.ask(case))
        except TimeoutError:
            status, message = Status.TIMEOUT, "the worker process had come to a stop, and was ended"
            process.kill()
        except ReplyError:
            status, message = Status.CRASH, "the worker process sent something that is no answer, and was ended"
            process.kill()
        except OSError:
            status, message = Status.CRASH, how_it_ended(process.kill()).replace("the process", "the worker process")
        self.process = None
        return case.result(status, message, output=process.printed)

    def make(self) -> WorkerProcess:
        """A new process.

        Raises:
            StartError: this worker was closed.
        """
        with self.lock:
            if self.closed:
                raise StartError("the worker process was ended")
            self.process, self.ahead = self.ahead or WorkerProcess(*self.started_as), None
            return self.process

    def close(self) -> None:
        """Have the process end, and start no other."""
        with self.lock:
            self.closed = True
            if self.process is not None:
                self.process.close()

    def end(self) -> None:
        """Wait for the end of the process."""
        self.close()
        if self.process is not None:
            self.process.end()
