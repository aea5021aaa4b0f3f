"""A run: results in the order of the cases, each case once, nothing finished lost."""

from __future__ import annotations

import random
from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcheck.case.case import Case
from gradcheck.result import Result, Status
from gradcheck.run.ordering import Executor
from gradcheck.run.runner import RunnerError


class Shuffled(Executor):
    """An executor that finishes the cases of a run in any order, as soon as it has all of them."""

    def __init__(self, count: int, seed: int) -> None:
        super().__init__(3)
        self.count, self.random = count, random.Random(seed)
        self.submitted: list[tuple[Case, Future[Result]]] = []

    def submit(self, case: Case) -> Future[Result]:
        future: Future[Result] = Future()
        self.submitted.append((case, future))
        if len(self.submitted) == self.count:
            for one, done in self.random.sample(self.submitted, self.count):
                done.set_result(one.result(Status.PASS, "done"))
        return future


@pytest.fixture(scope="module")
def some() -> list[Case]:
    from tests.run.conftest import make_case

    return [make_case("pass", f"c{k}") for k in range(30)]


@given(st.integers(0, 30), st.integers(0, 10**6), st.sets(st.integers(0, 29)))
def test_results_are_in_order_and_each_case_runs_once(some, count, seed, before):
    cases = some[:count]
    known = {cases[k].name: cases[k].result(Status.FAIL, "known") for k in before if k < count}
    executor = Shuffled(count - len(known), seed)
    done: list[tuple[str, bool]] = []
    on_done = lambda case, result, was_known: done.append((case.name, was_known))  # noqa: E731
    results = list(executor.results(cases, known, on_done))
    assert [result.name for result in results] == [case.name for case in cases]
    assert all(result.message == ("known" if result.name in known else "done") for result in results)
    assert sorted(done) == sorted((case.name, case.name in known) for case in cases)
    assert not executor.stopped


class Stopped(Executor):
    """An executor of which the first `count` cases have finished when it is stopped; that ends the others."""

    def __init__(self, count: int) -> None:
        super().__init__(3)
        self.count = count
        self.submitted: list[tuple[Case, Future[Result]]] = []

    def submit(self, case: Case) -> Future[Result]:
        future: Future[Result] = Future()
        if len(self.submitted) < self.count:
            future.set_result(case.result(Status.PASS, "done"))
        self.submitted.append((case, future))
        return future

    def stop(self) -> None:
        super().stop()
        for case, future in self.submitted[self.count :]:
            future.set_result(case.result(Status.CRASH, "ended"))


@given(st.integers(1, 30))
def test_after_stop_what_had_finished_is_handed_out_and_no_more(some, count):
    executor = Stopped(count)
    finished: list[str] = []

    def on_done(case, result, known):
        finished.append(case.name)
        if len(finished) == 1:
            executor.stop()

    results = [result.name for result in executor.results(some, {}, on_done)]
    assert executor.stopped
    assert results == [case.name for case in some[:count]]
    assert sorted(finished) == sorted(results)


def test_what_an_executor_raises_ends_the_run(some):
    class Broken(Shuffled):
        def submit(self, case):
            future = Future()
            future.set_exception(RunnerError("no workers"))
            return future

    with pytest.raises(RunnerError, match="no workers"):
        list(Broken(0, 0).results(some, {}, lambda case, result, known: None))
