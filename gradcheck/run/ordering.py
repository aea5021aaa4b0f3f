"""The base of executors: cases run side by side, possibly shuffled, and results are returned in the
order of cases.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed

from gradcheck.case.case import Case
from gradcheck.result import Result

OnDone = Callable[[Case, Result, bool], None]
"""A function that is called with each result as it comes, in any order, and whether it was known
before.
"""


class Executor(ABC):
    """Runs up to `slots` cases at a time, each once."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.stopped = False
        self.waiting: dict[Future[Result], tuple[int, Case]] = {}
        """The cases without a result, with their positions, in the order of running."""
        self.kept: set[Future[Result]] = set()
        """The results that were complete when the run was stopped; cases that end later were ended
        by the stop.
        """

    @abstractmethod
    def submit(self, case: Case) -> Future[Result]:
        """Return a future that will hold the result of `case`."""

    def stop(self) -> None:
        """End the running cases, and start no others; may be called from a signal handler."""
        if not self.stopped:
            self.kept = {future for future in list(self.waiting) if future.done()}
        self.stopped = True

    def results(
        self,
        cases: Sequence[Case],
        known: Mapping[str, Result],
        on_done: OnDone,
        shuffle: int | None = None,
    ) -> Iterator[Result]:
        """Yield the results in the order of `cases`, each as soon as it and all earlier ones are
        finished.

        Results in `known`, by name, are used as they are. After `stop`, only finished results are
        yielded. Cases run in their order, or in one drawn with the seed `shuffle`.

        Raises RunnerError: the executor cannot run cases.
        """
        finished: dict[int, Result] = {}
        numbered = list(enumerate(cases))
        if shuffle is not None:
            random.Random(shuffle).shuffle(numbered)
        for position, case in numbered:
            if case.name in known:
                finished[position] = known[case.name]
                on_done(case, known[case.name], True)
            else:
                self.waiting[self.submit(case)] = position, case
        following = 0
        for future in as_completed(list(self.waiting)):
            if self.stopped and future not in self.kept:
                break
            position, case = self.waiting.pop(future)
            finished[position] = future.result()
            on_done(case, finished[position], False)
            while following in finished:
                yield finished.pop(following)
                following += 1
        for position in sorted(finished):
            yield finished[position]

    def at_work(self) -> list[str]:
        """Return the names of the running cases; may be called from any thread."""
        return [case.name for _, case in list(self.waiting.values())[: self.slots]]
