"""An executor for tests of what a command reads and shows."""

from __future__ import annotations

from concurrent.futures import Future

from gradcheck.case.case import Case
from gradcheck.result import Result, Status
from gradcheck.run.ordering import Executor


class Passing(Executor):
    """Runs nothing: every case passes."""

    def __init__(self, *_: object) -> None:
        super().__init__(1)

    def __enter__(self) -> Passing:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, case: Case) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_result(case.result(Status.PASS, ""))
        return future
