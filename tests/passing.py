"""An executor for tests of what a command reads and shows."""

from __future__ import annotations

from concurrent.futures import Future

from gradcheck.case.case import Case
from gradcheck.result import Result, Status


class Passing:
    """Runs nothing: every case passes."""

    slots = 1

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Passing:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def stop(self) -> None:
        pass

    def submit(self, case: Case) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_result(case.result(Status.PASS, ""))
        return future
