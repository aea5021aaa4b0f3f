"""A world: ranks in one process that run in turn, each until it has to wait for another; and the
message of a deadlock.

The ranks are greenlets, separate stacks in one thread, so the state of this thread (grad mode,
observers, recorded NumPy code) applies to all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, NoReturn

from greenlet import GreenletExit, getcurrent, greenlet

from pylayer.distributed.call import Call, CommunicationError, DeadlockError
from pylayer.distributed.rank import Rank, current_rank
from pylayer.distributed.rendezvous import Rendezvous
from pylayer.ops.random import Generator, current


class World:
    """Ranks that persist from run to run, with their groups, topology and random numbers.

    Args:
        size: how many there are.
        same_random: whether all draw the same random numbers.
    """

    def __init__(self, size: int, same_random: bool = False) -> None:
        self.rendezvous = Rendezvous()
        self.ranks = [Rank(number, size, self.rendezvous, self) for number in range(size)]
        seed = current.get().initial_seed()
        self.generators = [
            Generator(seed if same_random else seed + number) for number in range(size)
        ]
        self.idle: list[greenlet] = []
        """Stacks of finished runs, for reuse: making a new one takes as long as thirty switches."""
        self.ready: deque[Rank] = deque()
        self.waiting: dict[Rank, Call] = {}
        self.stacks: dict[Rank, greenlet] = {}
        self.hub: Any = None

    def run(self, function: Callable[[int], Any]) -> list[Any]:
        """Run the function on each rank, given its number, and return the results.

        Raises:
            Exception: the first exception of a rank, with a note that names the ranks that raised
                the same exception.
        """
        results: list[Any] = [None] * len(self.ranks)
        errors: dict[int, BaseException] = {}

        def serve(rank: Rank) -> None:
            current_rank.set(rank)
            current.set(self.generators[rank.number])
            try:
                results[rank.number] = function(rank.number)
            except GreenletExit:  # the run was aborted, and this stack with it
                raise
            except BaseException as error:
                errors[rank.number] = error

        before, self.hub = (self.ready, self.waiting, self.stacks, self.hub), getcurrent()
        self.ready, self.waiting, self.stacks = deque(self.ranks), {}, {}
        try:
            for rank in self.ranks:
                stack = self.stacks[rank] = self.idle.pop() if self.idle else new_stack()
                stack.parent, stack.gr_context = self.hub, copy_context()
            jobs = {rank: [partial(serve, rank)] for rank in self.ranks}
            while self.ready or self.waiting:
                if not self.ready:
                    self.stop(errors)
                rank = self.ready.popleft()
                self.stacks[rank].switch(*jobs.pop(rank, []))
            for stack in self.stacks.values():
                stack.gr_context = None  # it refers to the world, and would keep it alive
                self.idle.append(stack)
        finally:
            self.ready, self.waiting, self.stacks, self.hub = before
        if errors:
            self.rendezvous.clear()
            raise first_error(errors, len(self.ranks))
        return results

    def wait(self, rank: Rank, call: Call) -> None:
        """Run other ranks until a call of this rank is answered."""
        self.waiting[rank] = call
        self.hub.switch()

    def wake(self, calls: Iterable[Call]) -> None:
        """Resume the ranks that wait for these calls."""
        for call in calls:
            rank = self.ranks[call.rank]
            if self.waiting.get(rank) is call:
                del self.waiting[rank]
                self.ready.append(rank)

    def stop(self, errors: Mapping[int, BaseException]) -> None:
        """Make every waiting rank raise: no other rank can answer any more."""
        calls = {rank.number: call for rank, call in self.waiting.items()}
        for number, error in deadlock_errors(calls, errors, len(self.ranks)).items():
            calls[number].error, calls[number].done = error, True
        self.wake([calls[number] for number in sorted(calls)])


def new_stack() -> greenlet:
    """Make a greenlet that runs jobs: each switch to it passes one job, and it switches back to its
    parent when the job is done.
    """

    def run_jobs() -> NoReturn:
        while True:
            parent: Any = getcurrent().parent
            job = parent.switch()
            job()
            del job  # otherwise the objects in it would live as long as the stack

    stack = greenlet(run_jobs)
    stack.switch()  # not with a job: a greenlet keeps the arguments of its first switch
    return stack


MOST_STATES = 8
"""The most lines in the message of a deadlock; each line says what some ranks wait for."""


class LeftError(CommunicationError):
    """Raised on a rank because another rank raised; carries that error."""


def deadlock_errors(
    waiting: Mapping[int, Call], errors: Mapping[int, BaseException], size: int
) -> dict[int, CommunicationError]:
    """Errors for the waiting ranks when no other rank can answer any more."""

    def state(number: int) -> tuple[str, str, str]:
        if number in waiting:
            return "waits", "wait", f"in {waiting[number]}"
        return (
            "has",
            "have",
            f"raised {type(errors[number]).__name__}" if number in errors else "returned",
        )

    alike: dict[tuple[str, str, str], list[int]] = {}
    for number in range(size):
        alike.setdefault(state(number), []).append(number)
    rows = [
        f"{describe_ranks(numbers)} {verbs[len(numbers) > 1]} {action}"
        for (*verbs, action), numbers in alike.items()
    ]
    states = "; ".join(rows[:MOST_STATES]) + "; …" * (len(rows) > MOST_STATES)
    if errors:
        return {
            k: LeftError(f"a rank has raised, and others wait for it: {states}", sorted(errors))
            for k in waiting
        }
    return {k: DeadlockError(f"no rank can go on: {states}", sorted(waiting)) for k in waiting}


def run_separately(function: Callable[[], Any]) -> Any:
    """Run a function on a separate stack, in this context, and return its result. A search for the
    user's line of an operation then stops at this stack.
    """
    stack = greenlet(function)
    stack.gr_context = copy_context()
    return stack.switch()


def first_error(errors: Mapping[int, BaseException], size: int) -> BaseException:
    """The error to report for the whole world, with its rank: the lowest rank's among the errors
    that are not consequences of others.
    """
    original_errors = {
        number: error for number, error in errors.items() if not isinstance(error, LeftError)
    } or dict(errors)
    number = min(original_errors)
    error = original_errors[number]
    alike = sorted(
        k
        for k, other in original_errors.items()
        if type(other) is type(error) and str(other) == str(error)
    )
    if size > 1 and not isinstance(error, CommunicationError):
        error.add_note(f"on {ranks_text(alike, size)}")
    return error


def ranks_text(numbers: Sequence[int], size: int) -> str:
    """Describe some of a world's ranks: ``rank 2 of 4``, ``ranks 0 to 2 of 4``, ``all 4 ranks``."""
    if len(numbers) == size:
        return f"all {size} ranks" if size > 1 else "rank 0"
    return f"{describe_ranks(numbers)} of {size}"


def describe_ranks(numbers: Sequence[int]) -> str:
    """Describe ranks: ``rank 2``, ``ranks 0 to 2``, ``ranks 0, 2 and 5``."""
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    first, last = numbers[0], numbers[-1]
    if len(numbers) > 2 and list(numbers) == list(range(first, last + 1)):
        return f"ranks {first} to {last}"
    return f"ranks {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
