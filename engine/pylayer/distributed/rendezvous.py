"""Matching of the ranks' calls: a call is answered once every member has made its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from pylayer.distributed.call import Call, CommunicationError, MismatchError
from pylayer.distributed.collectives import COLLECTIVES, OF_ONE_SHAPE


class Rendezvous:
    """Waiting calls by key: one queue per member, because a group's calls are answered in order."""

    def __init__(self) -> None:
        self.queues: dict[tuple[Any, ...], list[deque[Call]]] = {}

    def add(self, call: Call) -> list[Call]:
        """Add a call, and return the calls that can now be answered."""
        queues = self.queues.setdefault(call.key, [deque() for _ in call.members])
        queues[call.place].append(call)
        answered: list[Call] = []
        while all(queues):
            together = [queue.popleft() for queue in queues]
            answer(together)
            answered += together
        return answered

    def clear(self) -> None:
        """Drop the waiting calls, because the ranks have ended."""
        self.queues.clear()


def answer(calls: Sequence[Call]) -> None:
    """Answer matched calls with their results, or with the error that they do not match."""
    try:
        check(calls)
        for call, results in zip(calls, COLLECTIVES[calls[0].kind](calls), strict=True):
            call.results = list(results)
    except CommunicationError as error:
        for call in calls:
            call.error = error.anew()
    for call in calls:
        call.done = True


def check(calls: Sequence[Call]) -> None:
    """Check that matched calls are the same operation with matching Tensors. Raises
    MismatchError.
    """
    first = calls[0]
    for call in calls[1:]:
        if call.kind != first.kind:
            raise mismatch(first, call, "different calls meet")
        differing = [name for name, value in first.agreed.items() if call.agreed.get(name) != value]
        if differing:
            name = differing[0]
            value, other = first.agreed_value(name), call.agreed_value(name)
            raise mismatch(first, call, f"{first.kind} with {name} {value} meets {name} {other}")
        value, other = first.dtypes(), call.dtypes()
        if value and other and value != other:
            raise mismatch(first, call, f"{first.kind} of {value} meets {other}")
        value, other = first.shapes(), call.shapes()
        if first.kind in OF_ONE_SHAPE and value != other:
            raise mismatch(first, call, f"{first.kind} of shape {value} meets shape {other}")


def mismatch(first: Call, other: Call, text: str) -> MismatchError:
    """The error for two calls that do not match."""
    pair = f"rank {first.rank}: {first}; rank {other.rank}: {other}"
    return MismatchError(f"{text}: {pair}", [first.rank, other.rank])
