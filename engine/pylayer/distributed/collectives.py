"""The result of each collective for each member, computed from the contributions of all."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from pylayer.distributed.call import AVG, MAX, MIN, PROD, SUM, Call, MismatchError
from pylayer.distributed.collective_ops import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast_ranks,
    reduce_scatter,
)
from pylayer.ops.elementwise import maximum, minimum, multiply
from pylayer.ops.joining import stack, unbind
from pylayer.ops.shape import clone, reshape
from pylayer.tensor.tensor import Tensor

Results = Sequence[Sequence[Any]]
"""Results, one per member."""


def folded(tensors: Sequence[Tensor], op: int) -> Tensor:
    """Reduce several Tensors by a maximum, minimum or product."""
    return functools.reduce({MAX: maximum, MIN: minimum, PROD: multiply}[op], tensors)


def for_all(tensor: Tensor, calls: Sequence[Call]) -> Results:
    """One copy per member."""
    return [[one] for one in broadcast_ranks(tensor, len(calls))]


def reduced_for_all(calls: Sequence[Call]) -> Results:
    """The reduction, one copy per member."""
    given, op = [call.given[0] for call in calls], calls[0].agreed["op"]
    if op not in (SUM, AVG):
        return for_all(folded(given, op), calls)
    return [[one if op == SUM else one / len(calls)] for one in all_reduce(given)]


def for_one(calls: Sequence[Call], results: Results) -> Results:
    """Give the results to rank `dst` and nothing to the others."""
    pairs = zip(calls, results, strict=True)
    return [one if call.rank == call.agreed["dst"] else [] for call, one in pairs]


def reduced_and_scattered(calls: Sequence[Call]) -> Results:
    """Rank k gets part k of the reduction."""
    count, op = len(calls), calls[0].agreed["op"]
    parts = [in_parts(call, count) for call in calls]
    if op not in (SUM, AVG):
        return [[clone(part)] for part in unbind(folded(parts, op))]
    return [[one if op == SUM else one / count] for one in reduce_scatter(parts)]


def in_parts(call: Call, count: int) -> Tensor:
    """Split a rank's contribution into one part per member along a new first axis. Raises
    MismatchError.
    """
    if len(call.given) > 1:
        check_count(call, count, "gives")
        return stack(call.given)
    whole = call.given[0]
    if not whole.ndim or whole.shape[0] % count:
        text = (
            f"a Tensor of shape {list(whole.shape)} is not divisible among {count} ranks along its "
            f"first axis"
        )
        raise MismatchError(f"{text}: {call}, rank {call.rank}", [call.rank])
    return reshape(whole, [count, whole.shape[0] // count, *whole.shape[1:]])


def check_count(call: Call, count: int, verb: str) -> None:
    """Check that a rank gives one Tensor per member. Raises MismatchError."""
    if len(call.given) != count:
        text = f"rank {call.rank} {verb} {len(call.given)} Tensors to {count} ranks: {call}"
        raise MismatchError(text, [call.rank])


def gathered(calls: Sequence[Call]) -> Results:
    """All Tensors, for every member."""
    return [list(unbind(one)) for one in all_gather([call.given[0] for call in calls])]


def gathered_for_one(calls: Sequence[Call]) -> Results:
    """All Tensors, for rank `dst` only."""
    return for_one(calls, [[clone(other.given[0]) for other in calls]] * len(calls))


def scattered(calls: Sequence[Call]) -> Results:
    """One of the root's Tensors per member."""
    root = root_of(calls)
    check_count(root, len(calls), "scatters")
    return [[clone(part)] for part in root.given]


def broadcast(calls: Sequence[Call]) -> Results:
    """The root's Tensor for every other member; the root keeps its own."""
    root = root_of(calls)
    copies = broadcast_ranks(root.given[0], len(calls))
    return [[] if call is root else [one] for call, one in zip(calls, copies, strict=True)]


def root_of(calls: Sequence[Call]) -> Call:
    """The call of the source rank."""
    return next(call for call in calls if call.rank == calls[0].agreed["src"])


def exchanged(calls: Sequence[Call]) -> Results:
    """Rank k gets part k of every contribution. Raises MismatchError."""
    count = len(calls)
    for call in calls:
        check_count(call, count, "gives")
    for sender, receiver in itertools.product(calls, calls):
        sent = list(sender.given[receiver.place].shape)
        rooms = [list(shape) for shape, _ in receiver.likes]
        if len(rooms) == count and sent != rooms[sender.place]:
            raise MismatchError(
                f"rank {sender.rank} sends shape {sent} to rank {receiver.rank}, which has room "
                f"for shape {rooms[sender.place]}: {sender}; {receiver}",
                [sender.rank, receiver.rank],
            )
    if len({tuple(part.shape) for call in calls for part in call.given}) == 1:
        return [list(unbind(one)) for one in all_to_all([stack(call.given) for call in calls])]
    return [
        [clone(part) for part in parts]
        for parts in zip(*(call.given for call in calls), strict=True)
    ]


def received(calls: Sequence[Call]) -> Results:
    """A message's results: none for the sender."""
    return [[], [clone(calls[0].given[0])]]


def objects(calls: Sequence[Call]) -> Results:
    """All objects, for every member."""
    return [[call.given[0] for call in calls] for _ in calls]


def objects_of_root(calls: Sequence[Call]) -> Results:
    """The root's objects, for every member."""
    return [list(root_of(calls).given) for _ in calls]


def nothing(calls: Sequence[Call]) -> Results:
    """Return nothing: a barrier only waits for all members."""
    return [[] for _ in calls]


COLLECTIVES: dict[str, Callable[[Sequence[Call]], Results]] = {
    "all_reduce": reduced_for_all,
    "reduce": lambda calls: for_one(calls, reduced_for_all(calls)),
    "broadcast": broadcast,
    "all_gather": gathered,
    "gather": gathered_for_one,
    "scatter": scattered,
    "reduce_scatter": reduced_and_scattered,
    "alltoall": exchanged,
    "alltoall_single": exchanged,
    "message": received,
    "barrier": nothing,
    "new_group": nothing,
    "all_gather_object": objects,
    "broadcast_object_list": objects_of_root,
    "scatter_object_list": lambda calls: [[one] for one in root_of(calls).given],
}
"""The collectives, by the name of the call."""

OF_ONE_SHAPE = {
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather",
    "gather",
    "reduce_scatter",
    "message",
}
"""Collectives for which all members must bring Tensors of one shape."""
