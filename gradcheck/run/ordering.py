"""One run: cases on an executor, and their results in the order of the cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from typing import Protocol

from gradcheck.case.case import Case
from gradcheck.result import Result


class Executor(Protocol):
    """What runs cases: `run.runner.Runner` here, `run.dask.DaskExecutor` on a cluster."""

    slots: int
    """How many cases run at a time."""

    def submit(self, case: Case) -> Future[Result]:
        """Return a future that will hold the result of `case`."""

    def stop(self) -> None:
        """Run no further cases, and end those that run."""


class OrderedRun:
    """One run of cases on an executor.

    `on_done` is called with each result as it comes, in any order, and with whether it was known.
    """

    def __init__(
        self,
        executor: Executor,
        on_done: Callable[[Case, Result, bool], None] = lambda case, result, known: None,
    ) -> None:
        self.executor, self.on_done = executor, on_done
        self.waiting: dict[Future[Result], tuple[int, Case]] = {}
        """The cases that have no result yet, with their positions, in the order in which they run."""
        self.stopped = False

    def stop(self) -> None:
        """End the run; what has finished is still handed out. A signal handler may call it."""
        self.stopped = True
        self.executor.stop()

    def results(self, cases: Sequence[Case], known: Mapping[str, Result] = {}) -> Iterator[Result]:
        """Yield the results in the order of `cases`, each once it and all before it are there.

        Results that are `known` by name are taken over. After `stop`: those that had finished.

        Raises RunnerError: the executor cannot run cases.
        """
        finished: dict[int, Result] = {}
        for position, case in enumerate(cases):
            if case.name in known:
                finished[position] = known[case.name]
                self.on_done(case, known[case.name], True)
            else:
                self.waiting[self.executor.submit(case)] = position, case
        following = 0
        for future in as_completed(list(self.waiting)):
            if self.stopped:
                break
            position, case = self.waiting.pop(future)
            finished[position] = future.result()
            self.on_done(case, finished[position], False)
            while following in finished:
                yield finished.pop(following)
                following += 1
        for position in sorted(finished):
            yield finished[position]

    def at_work(self) -> list[str]:
        """Return the names of the cases that run now; from any thread."""
        running = list(self.waiting.values())[: self.executor.slots]
        return [case.name for _, case in running]
