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


def reduce_tensors(tensors: Sequence[Tensor], op: int) -> Tensor:
    """Reduce several Tensors by a maximum, minimum or product."""
    return functools.reduce({MAX: maximum, MIN: minimum, PROD: multiply}[op], tensors)


def copy_to_all(tensor: Tensor, calls: Sequence[Call]) -> Results:
    """One copy per member."""
    return [[copy] for copy in broadcast_ranks(tensor, len(calls))]


def reduce_to_all(calls: Sequence[Call]) -> Results:
    """The reduction, one copy per member."""
    tensors, op = [call.inputs[0] for call in calls], calls[0].agreed["op"]
    if op not in (SUM, AVG):
        return copy_to_all(reduce_tensors(tensors, op), calls)
    return [[total if op == SUM else total / len(calls)] for total in all_reduce(tensors)]


def keep_for_dst(calls: Sequence[Call], results: Results) -> Results:
    """Give the results to rank `dst` and nothing to the others."""
    pairs = zip(calls, results, strict=True)
    return [result if call.rank == call.agreed["dst"] else [] for call, result in pairs]


def reduce_and_scatter(calls: Sequence[Call]) -> Results:
    """Rank k gets part k of the reduction."""
    count, op = len(calls), calls[0].agreed["op"]
    parts = [split_input(call, count) for call in calls]
    if op not in (SUM, AVG):
        return [[clone(row)] for row in unbind(reduce_tensors(parts, op))]
    return [[total if op == SUM else total / count] for total in reduce_scatter(parts)]


def split_input(call: Call, count: int) -> Tensor:
    """Split a rank's contribution into one part per member along a new first axis. Raises
    MismatchError.
    """
    if len(call.inputs) > 1:
        check_count(call, count, "gives")
        return stack(call.inputs)
    tensor = call.inputs[0]
    if not tensor.ndim or tensor.shape[0] % count:
        text = (
            f"a Tensor of shape {list(tensor.shape)} is not divisible among {count} ranks along "
            f"its first axis"
        )
        raise MismatchError(f"{text}: {call}, rank {call.rank}", [call.rank])
    return reshape(tensor, [count, tensor.shape[0] // count, *tensor.shape[1:]])


def check_count(call: Call, count: int, verb: str) -> None:
    """Check that a rank gives one Tensor per member. Raises MismatchError."""
    if len(call.inputs) != count:
        text = f"rank {call.rank} {verb} {len(call.inputs)} Tensors to {count} ranks: {call}"
        raise MismatchError(text, [call.rank])


def gather_to_all(calls: Sequence[Call]) -> Results:
    """All Tensors, for every member."""
    return [list(unbind(tensors)) for tensors in all_gather([call.inputs[0] for call in calls])]


def gather_to_one(calls: Sequence[Call]) -> Results:
    """All Tensors, for rank `dst` only."""
    return keep_for_dst(calls, [[clone(other.inputs[0]) for other in calls]] * len(calls))


def scatter_from_root(calls: Sequence[Call]) -> Results:
    """One of the root's Tensors per member."""
    root = root_of(calls)
    check_count(root, len(calls), "scatters")
    return [[clone(tensor)] for tensor in root.inputs]


def broadcast(calls: Sequence[Call]) -> Results:
    """The root's Tensor for every other member; the root keeps its own."""
    root = root_of(calls)
    copies = broadcast_ranks(root.inputs[0], len(calls))
    return [[] if call is root else [copy] for call, copy in zip(calls, copies, strict=True)]


def root_of(calls: Sequence[Call]) -> Call:
    """The call of the source rank."""
    return next(call for call in calls if call.rank == calls[0].agreed["src"])


def exchange_parts(calls: Sequence[Call]) -> Results:
    """Rank k gets part k of every contribution. Raises MismatchError."""
    count = len(calls)
    for call in calls:
        check_count(call, count, "gives")
    for sender, receiver in itertools.product(calls, calls):
        sent = list(sender.inputs[receiver.place].shape)
        rooms = [list(shape) for shape, _ in receiver.likes]
        if len(rooms) == count and sent != rooms[sender.place]:
            raise MismatchError(
                f"rank {sender.rank} sends shape {sent} to rank {receiver.rank}, which has room "
                f"for shape {rooms[sender.place]}: {sender}; {receiver}",
                [sender.rank, receiver.rank],
            )
    if len({tuple(tensor.shape) for call in calls for tensor in call.inputs}) == 1:
        return [
            list(unbind(tensors)) for tensors in all_to_all([stack(call.inputs) for call in calls])
        ]
    return [
        [clone(tensor) for tensor in tensors]
        for tensors in zip(*(call.inputs for call in calls), strict=True)
    ]


def deliver_message(calls: Sequence[Call]) -> Results:
    """A message's results: none for the sender."""
    return [[], [clone(calls[0].inputs[0])]]


def objects(calls: Sequence[Call]) -> Results:
    """All objects, for every member."""
    return [[call.inputs[0] for call in calls] for _ in calls]


def objects_of_root(calls: Sequence[Call]) -> Results:
    """The root's objects, for every member."""
    return [list(root_of(calls).inputs) for _ in calls]


def nothing(calls: Sequence[Call]) -> Results:
    """Return nothing: a barrier only waits for all members."""
    return [[] for _ in calls]


COLLECTIVES: dict[str, Callable[[Sequence[Call]], Results]] = {
    "all_reduce": reduce_to_all,
    "reduce": lambda calls: keep_for_dst(calls, reduce_to_all(calls)),
    "broadcast": broadcast,
    "all_gather": gather_to_all,
    "gather": gather_to_one,
    "scatter": scatter_from_root,
    "reduce_scatter": reduce_and_scatter,
    "alltoall": exchange_parts,
    "alltoall_single": exchange_parts,
    "message": deliver_message,
    "barrier": nothing,
    "new_group": nothing,
    "all_gather_object": objects,
    "broadcast_object_list": objects_of_root,
    "scatter_object_list": lambda calls: [[value] for value in root_of(calls).inputs],
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
