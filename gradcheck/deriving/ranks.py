"""Collectives in a trace: a forward that runs in a world is traced on a single rank.

During the trace all ranks have the same values, so that one rank can compute every collective. A
value of the trace *varies* if it may differ between ranks in an actual run. The gradient of a
varying value is each rank's own. The gradient of any other value is the sum of all ranks'
gradients, and the same on all ranks. Therefore a collective has a vjp like any other operation,
and the gradient is summed over the ranks where a value that does not vary is used to compute one
that does (JAX's ``shard_map`` has such types: "varying manual axes").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from gradcheck.deriving.graph import Node, NotDerived, Traced, nodes_in
from gradcheck.deriving.numbers import Called, has_source, source_of, with_source
from pylayer.distributed.call import AVG, MAX, NAMES, SUM, Call
from pylayer.distributed.rank import Rank, current
from pylayer.distributed.rendezvous import Rendezvous
from pylayer.ops.joining import stack, unbind
from pylayer.ops.shape import reshape
from pylayer.tape.op import op
from pylayer.tape.symbol import recording
from pylayer.tape.vjp import OPS, OpDef
from pylayer.tensor.array import Array
from pylayer.tensor.tensor import Tensor

THIS_RANK = Called("paddle.distributed.get_rank()")
RANK_COUNT = Called("paddle.distributed.get_world_size()")


RANK_OPS: dict[str, OpDef] = {}
"""The operations of a rank, by name."""


# --------------------------------------------------------------------------- operations of a rank
def rank_operation(**vjps: Any) -> Callable[[Callable[..., Array]], Callable[..., Any]]:
    """Make an operation of a rank. It is not in the op table: its vjp holds for all ranks of a
    world, but its forward computes the result of a single rank.
    """

    def make(forward: Callable[..., Array]) -> Callable[..., Any]:
        function = op(**vjps)(forward)
        RANK_OPS[forward.__name__] = OPS.pop(forward.__name__)
        return function

    return make


@rank_operation(x=lambda g: g)
def rank_sum(xp: ModuleType, x: Array, count: int) -> Array:
    """The sum over the ranks."""
    return x * count


@rank_operation()
def rank_max(xp: ModuleType, x: Array) -> Array:
    """The maximum over the ranks, without a gradient. That is right if the maximum is subtracted
    only to avoid overflow; the check shows whether it is.
    """
    return x.copy()


@rank_operation(x=lambda g, rank: g[rank])
def rank_gather(xp: ModuleType, x: Array, count: int, rank: int) -> Array:
    """The Tensors of all ranks, stacked along a new first axis."""
    return xp.stack([x] * count)


@rank_operation(x=lambda g, count, rank: rank_gather(g, count, rank))
def rank_scatter(xp: ModuleType, x: Array, count: int, rank: int) -> Array:
    """This rank's part, along the first axis, of the sum over the ranks."""
    return x[rank] * count


@rank_operation(x=lambda g, rank: rank_exchange(g, rank))
def rank_exchange(xp: ModuleType, x: Array, rank: int) -> Array:
    """This rank's parts, along the first axis, of the Tensors of all ranks."""
    return xp.stack([x[rank]] * len(x))


@rank_operation(x=lambda g, root, rank: rank_kept(g, root, rank))
def rank_broadcast(xp: ModuleType, x: Array, root: int, rank: int) -> Array:
    """The Tensor of the root."""
    return x.copy()


@rank_operation()
def rank_kept(xp: ModuleType, x: Array, root: int, rank: int) -> Array:
    """The Tensor on the root, and zeros on the other ranks."""
    return x.copy() if root == rank else xp.zeros_like(x)


SAME_ON_ALL = ("rank_sum", "rank_max", "rank_gather", "rank_broadcast")
"""Operations whose result is the same on all ranks."""
OWN_RESULT = ("rank_scatter", "rank_exchange", "rank_kept")
"""Operations whose result is each rank's own."""


def varies(node: Node) -> bool:
    """Whether a value of the trace may differ between ranks."""
    if node.varies is None:
        numbers = (has_source(value, THIS_RANK) for value in node.arguments)
        node.varies = node.operation not in SAME_ON_ALL and (
            node.operation in OWN_RESULT or any(numbers) or any(map(varies, node.read()))
        )
    return node.varies


def summed_over_ranks(gradient: Any) -> Any:
    """Sum a Tensor of the trace over the ranks."""
    return rank_sum(gradient, current().size)


# --------------------------------------------------------------------------- the traced rank
class Parts(list[Any]):
    """Equal parts of a Tensor. Indexing by this rank's number is traced as such."""

    def __getitem__(self, index: Any) -> Any:
        if source_of(index) == THIS_RANK and (whole := split_value(self)) is not None:
            return by_rank(current(), whole)[index]
        return super().__getitem__(index)


class TracedRank(Rank):
    """The rank of a world on which forward is traced; it answers collectives at once."""

    def __init__(self, size: int) -> None:
        # The last rank, so that an offset computed from its number is not 0.
        super().__init__(size - 1, size, Rendezvous())
        self.number = with_source(size - 1, THIS_RANK)
        self.size = with_source(size, RANK_COUNT)

    def issue(self, call: Call) -> None:
        """Do nothing: no other rank waits for this one."""

    def wait(self, call: Call) -> list[Any]:
        """The results of a collective."""
        if call.kind not in RESULTS:
            name = "send or recv" if call.kind == "message" else call.kind
            raise NotDerived(f"forward calls {name}: its gradient is not derived")
        if call.key[0] != 0:
            raise NotDerived(f"forward calls {call.kind} in a group of some ranks")
        return RESULTS[call.kind](self, call)

    def like(self, tensor: Any) -> tuple[Any, str]:
        """The shape of a Tensor, with sizes that keep their sources, and its dtype."""
        return tuple(tensor.shape), str(tensor.dtype).rpartition(".")[2]

    def spoils(self, call: Call) -> bool:
        """Return False: a derived backward waits for its calls."""
        return False

    def is_unchanged(self, tensor: Any, values: Any) -> bool:
        """Return True: the check of the derived backward finds such a change."""
        return True

    def copy_values(self, tensor: Any) -> Any:
        """The Tensor itself: changing it later does not change its present value in the trace."""
        return Traced(tensor.traced) if isinstance(tensor, Traced) else tensor

    def write_result(self, tensor: Any, result: Tensor) -> None:
        """Make the Tensor represent the result from now on."""
        if not isinstance(tensor, Traced):
            raise NotDerived("forward receives into a Tensor that was made outside of it")
        recorder: Any = recording.get()
        shape = list(tensor.shape)
        recorder.replace(tensor, reshape(result, shape) if list(result.shape) != shape else result)


def reduced(rank: TracedRank, call: Call, total: Callable[[], Any]) -> Any:
    """The result of a reduction, given its sum. Raises NotDerived: it is not a sum or mean."""
    kind = call.agreed["op"]
    if kind not in (SUM, AVG):
        raise NotDerived(f"forward calls {call.kind} with {NAMES[kind]}")
    return total() if kind == SUM else total() / rank.size


def reduced_for_all(rank: TracedRank, call: Call) -> list[Any]:
    """The result of ``all_reduce``."""
    tensor = call.inputs[0]
    if call.agreed["op"] == MAX:
        return [rank_max(tensor)]
    return [reduced(rank, call, lambda: rank_sum(tensor, rank.size))]


def own_part(rank: TracedRank, call: Call) -> list[Any]:
    """The result of ``reduce_scatter``: this rank's part of the sum over the ranks."""
    parts = stacked(rank, call.inputs)
    return [reduced(rank, call, lambda: rank_scatter(parts, rank.size, rank.number))]


def gathered(rank: TracedRank, call: Call) -> list[Any]:
    """The result of ``all_gather``: the Tensors of all ranks."""
    return list(unbind(rank_gather(call.inputs[0], rank.size, rank.number)))


def exchanged(rank: TracedRank, call: Call) -> list[Any]:
    """The result of ``alltoall``: this rank's part of each rank's Tensor."""
    return list(unbind(rank_exchange(stacked(rank, call.inputs), rank.number)))


def of_root(rank: TracedRank, call: Call) -> list[Any]:
    """The result of ``broadcast``: the Tensor of the root."""
    return [rank_broadcast(call.inputs[0], call.agreed["src"], rank.number)]


RESULTS: dict[str, Callable[[TracedRank, Call], list[Any]]] = {
    "all_reduce": reduced_for_all,
    "reduce_scatter": own_part,
    "all_gather": gathered,
    "alltoall": exchanged,
    "alltoall_single": exchanged,
    "broadcast": of_root,
    "barrier": lambda rank, call: [],
}
"""Functions for the results of the collectives, by the name of the call."""


def stacked(rank: TracedRank, tensors: Sequence[Any]) -> Any:
    """The parts for all ranks, stacked along a new first axis. A single Tensor is divided into
    parts along its first axis.
    """
    whole = tensors[0]
    if len(tensors) > 1:
        source = split_value(tensors)
        if source is None:
            return stack(list(tensors))
        whole = source
    return by_rank(rank, whole)


def by_rank(rank: TracedRank, whole: Any) -> Any:
    """A Tensor whose first axis is divided into one part per rank, along a new first axis."""
    return reshape(whole, [rank.size, whole.shape[0] // rank.size, *whole.shape[1:]])


def split_value(tensors: Sequence[Any]) -> Any:
    """The Tensor that was split along its first axis into these equal parts, all of them and in
    order; None if there is none.
    """
    nodes = nodes_in(list(tensors))
    first = nodes[0]
    if first.operation != "split" or nodes != first.siblings or first.arguments[2] != 0:
        return None
    return first.arguments[0] if len({node.shape for node in nodes}) == 1 else None
