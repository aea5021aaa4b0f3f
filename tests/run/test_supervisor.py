"""The supervisor: results in order, nothing finished lost, never more submitted than is of use."""

from __future__ import annotations

import random
from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcheck.case.case import Case
from gradcheck.result import Result, Status
from gradcheck.run.supervisor import Supervisor


class Shuffled:
    """An executor that finishes one of the cases it has, in any order, whenever another one comes."""

    def __init__(self, slots: int, seed: int) -> None:
        self.slots, self.random = slots, random.Random(seed)
        self.waiting: list[tuple[Case, Future[Result]]] = []
        self.most = 0

    def submit(self, case: Case) -> Future[Result]:
        future: Future[Result] = Future()
        self.waiting.append((case, future))
        self.most = max(self.most, len(self.waiting))
        if len(self.waiting) == 2 * self.slots:
            self.finish_one()
        return future

    def finish_one(self) -> None:
        case, future = self.waiting.pop(self.random.randrange(len(self.waiting)))
        future.set_result(case.result(Status.PASS, "done"))


class Patient(Shuffled):
    """Finishes everything that it has as soon as it has been asked for it all."""

    def submit(self, case: Case) -> Future[Result]:
        future = super().submit(case)
        if case.scenario.id == self.last:
            while self.waiting:
                self.finish_one()
        return future

    last = ""


def cases_named(case, count: int) -> list[Case]:
    return [case("pass", f"c{k}") for k in range(count)]


@pytest.fixture(scope="module")
def some(request) -> list[Case]:
    from tests.run.conftest import make_case

    return cases_named(make_case, 30)


@given(st.integers(0, 30), st.integers(1, 5), st.integers(0, 10**6), st.sets(st.integers(0, 29)))
def test_results_are_in_order_and_each_case_runs_once(some, count, slots, seed, before):
    cases = some[:count]
    known = {cases[k].name: cases[k].result(Status.FAIL, "known") for k in before if k < count}
    executor = Patient(slots, seed)
    executor.last = next((case.scenario.id for case in reversed(cases) if case.name not in known), "")
    done: list[tuple[str, bool]] = []
    supervisor = Supervisor(executor, lambda case, result, was_known: done.append((case.name, was_known)))
    results = list(supervisor.run(cases, known))
    assert [result.name for result in results] == [case.name for case in cases]
    assert all(result.message == ("known" if result.name in known else "done") for result in results)
    assert sorted(done) == sorted((case.name, case.name in known) for case in cases)
    assert executor.most <= 2 * slots
    assert not supervisor.stopped


@given(st.integers(0, 29), st.integers(1, 5), st.integers(0, 10**6))
def test_after_stop_what_had_finished_is_handed_out_and_no_more(some, at, slots, seed):
    class Interrupted(Shuffled):
        def submit(self, case):
            future = super().submit(case)
            if case is some[at]:
                supervisor.stop()
            return future

    finished: list[str] = []
    executor = Interrupted(slots, seed)
    supervisor = Supervisor(executor, lambda case, result, known: finished.append(case.name))
    results = [result.name for result in supervisor.run(some)]
    assert supervisor.stopped
    assert sorted(results) == sorted(finished)
    order = {case.name: k for k, case in enumerate(some)}
    assert [order[name] for name in results] == sorted(order[name] for name in results)
    assert len(finished) + len(executor.waiting) <= min(len(some), at + 2 * slots)


def test_what_an_executor_raises_ends_the_run(some):
    class Broken(Shuffled):
        def submit(self, case):
            future = Future()
            future.set_exception(RuntimeError("no workers"))
            return future

    with pytest.raises(RuntimeError, match="no workers"):
        list(Supervisor(Broken(1, 0)).run(some))
