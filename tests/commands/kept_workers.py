"""Worker processes that one command after another uses: to start one takes longer than the cases of most tests.

A worker forks a process for each case, and keeps nothing of it (`tests/run`, `tests/hostile`). So one that is idle at
the end of a command serves the next, unless the environment is another; the current folder alone it is told anew.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, ClassVar

from gradcheck.case.case import Case
from gradcheck.run.child import Outcome
from gradcheck.run.interpreter import EXECUTE
from gradcheck.run.worker_process import WorkerProcess

OF_THIS_TEST = ("PYTEST_CURRENT_TEST", "XDG_CONFIG_HOME")
"""Variables that every test has its own value of, and that no case reads."""

MOST = 4
"""Workers in stock: most tests have one surrounding, and some two workers in it."""


class KeptWorker(WorkerProcess):
    """A worker process that goes into stock in place of its end."""

    stock: ClassVar[list[KeptWorker]] = []

    def __new__(cls, execute: str, backend: str, interpreter: str) -> Any:
        if interpreter or execute != EXECUTE:
            return WorkerProcess(execute, backend, interpreter)
        wanted = surroundings(backend)
        found = next((one for one in cls.stock if one.surroundings == wanted and one.popen.poll() is None), None)
        if found is None:
            return super().__new__(cls)
        cls.stock.remove(found)
        return found

    def __init__(self, execute: str, backend: str, interpreter: str) -> None:
        self.busy = False  # a case runs, or it has been told to end
        if not hasattr(self, "popen"):
            self.ready, self.surroundings = False, surroundings(backend)
            super().__init__("in_folder:execute", backend, interpreter)
            self.started_as = (execute, backend, interpreter)

    @property
    def ended(self) -> bool:
        return self in self.stock or super().ended

    def wait_until_ready(self) -> bool:
        self.ready = self.ready or super().wait_until_ready()
        return self.ready

    def ask(self, case: Case) -> Outcome:
        self.busy = True
        Path(os.environ["GRADCHECK_TESTS_FOLDER"]).write_bytes(os.getcwdb())
        outcome = super().ask(case)
        self.busy = False
        return outcome

    def close(self) -> None:
        if self.busy or not self.ready:
            self.busy = True
            super().close()

    def end(self) -> int:
        alive = self.popen.poll() is None
        if self.busy or not alive or (self.ready and not self.channel.quiet()):
            self.busy = True
            return super().end()
        self.stock.append(self)
        self.end_all(but=MOST)
        return 0

    def kill(self) -> int:
        if self.ended:
            return 0
        return super().kill() if self.busy else self.end()

    @classmethod
    def end_all(cls, but: int = 0) -> None:
        """End what is in stock, but for the latest."""
        while len(cls.stock) > but:
            one = cls.stock.pop(0)
            one.busy = True
            one.kill()


def surroundings(backend: str) -> object:
    """What a worker has from its start on."""
    variables = {name: value for name, value in os.environ.items() if name not in OF_THIS_TEST}
    return backend, variables, list(sys.path)
