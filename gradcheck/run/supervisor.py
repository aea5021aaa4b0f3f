"""Runs cases on an executor, and hands their results out in the order of the cases.

Everything happens in the thread that asks for the results: no locks, and a signal handler that calls `stop` cannot
come between a result and its being recorded.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from gradcheck.support.user_error import UserError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from gradcheck.case.case import Case
    from gradcheck.result import Result


class ExecutorError(UserError):
    """An executor cannot be used, or not any more; the message says why."""


class Executor(Protocol):
    """What runs cases: `run.pool.Pool` here, `run.dask.DaskPool` on a cluster."""

    @property
    def slots(self) -> int:
        """How many cases it runs at a time."""

    def submit(self, case: Case) -> Future[Result]:
        """A future that will hold the result of `case`."""


OnDone: TypeAlias = "Callable[[Case, Result, bool], None]"
"""Called with each result as it comes, in any order; the flag says whether it was known before."""


class Supervisor:
    """One run. `stop` may be called from a signal handler; what had finished by then is handed out still."""

    def __init__(self, executor: Executor, on_done: OnDone = lambda case, result, known: None) -> None:
        self.executor, self.on_done = executor, on_done
        self.events: queue.SimpleQueue[tuple[int, Future[Result]] | None] = queue.SimpleQueue()
        self.finished: dict[int, Result] = {}
        self.submitted: dict[int, str] = {}
        """Those that have no result yet: the place of a case and its name, in the order in which they were given."""
        self.stopped = False

    def stop(self) -> None:
        """End the run at once."""
        self.events.put(None)

    def at_work(self) -> list[str]:
        """The names of the cases that run now, as far as the executor takes them in turn; from any thread."""
        return list(self.submitted.values())[: self.executor.slots]

    def run(self, cases: Sequence[Case], known: Mapping[str, Result] | None = None) -> Iterator[Result]:
        """The results in the order of `cases`, each as soon as it and all before it are there.

        Those `known` by name are taken over. After `stop`: those that had finished, without the gaps.

        Raises:
            ExecutorError, RuntimeError: the executor cannot run cases at all.
        """
        known = known or {}
        for at, case in enumerate(cases):
            if case.name in known:
                self.finished[at] = known[case.name]
                self.on_done(case, known[case.name], True)
        waiting = iter([at for at in range(len(cases)) if at not in self.finished])
        for at in range(len(cases)):
            while at not in self.finished:
                self.submit(cases, waiting)
                if not self.take(cases, self.events.get()):
                    yield from (self.finished.pop(late) for late in sorted(self.finished))
                    return
            yield self.finished.pop(at)

    def submit(self, cases: Sequence[Case], waiting: Iterator[int]) -> None:
        """Keep twice as many cases submitted as can run, so that none waits for this thread."""
        while len(self.submitted) < 2 * self.executor.slots and (at := next(waiting, None)) is not None:
            self.submitted[at] = cases[at].name
            future = self.executor.submit(cases[at])
            future.add_done_callback(lambda future, at=at: self.events.put((at, future)))  # type: ignore[misc]

    def take(self, cases: Sequence[Case], event: tuple[int, Future[Result]] | None) -> bool:
        """Note a result that is there; False if the event is the end, and then all that are there have been noted."""
        if event is not None:
            at, future = event
            del self.submitted[at]
            self.finished[at] = future.result()
            self.on_done(cases[at], self.finished[at], False)
            return True
        self.stopped = True
        while not self.events.empty():
            if (late := self.events.get()) is not None:
                self.take(cases, late)
        return False
