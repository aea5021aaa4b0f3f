"""Collectives in a trace: a forward that runs on a rank of a world is traced on that rank alone.

All ranks have the same values there, so that one of them can compute every collective. A value of
the trace *varies* if the ranks of another world may have different values. The gradient of a value
that varies is the rank's own; that of a value that all ranks have is the sum of all ranks'
gradients, and the same on all of them. So a collective has a vjp as other operations have, and the
gradient is summed over the ranks where a value that all have is used for one that varies (JAX's
``shard_map`` has such types: "varying manual axes").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from gradcheck.deriving.graph import Node, NotDerived, Traced, nodes_in
from gradcheck.deriving.numbers import Called, has_source, source_of, with_source
from pylayer.distributed.call import AVG, MAX, NAMES, SUM, Call
from pylayer.distributed.rank import Rank, current, current_rank
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
    """Make an operation of a rank. It is not in the op table: its vjp is for all ranks of a world,
    its forward for one of them.
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
    """The maximum over the ranks, which takes no gradient: it is right where a maximum is
    subtracted only against overflow, and the check decides whether it is.
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
"""Operations whose result all ranks have."""
OWN_RESULT = ("rank_scatter", "rank_exchange", "rank_kept")
"""Operations whose result is the rank's own."""


def varies(node: Node) -> bool:
    """Whether a value of the trace may differ between ranks."""
    if node.varies is None:
        numbers = (has_source(value, THIS_RANK) for value in node.arguments)
        node.varies = node.operation not in SAME_ON_ALL and (
            node.operation in OWN_RESULT or any(numbers) or any(map(varies, node.read()))
        )
    return node.varies


def summed_over_ranks(gradient: Any) -> Any:
    """The sum over the ranks of a Tensor of the trace."""
    return rank_sum(gradient, current().size)


# --------------------------------------------------------------------------- the traced rank
class Parts(list[Any]):
    """Equal parts of a Tensor; the one at the number of this rank is read by that number."""

    def __getitem__(self, index: Any) -> Any:
        if source_of(index) == THIS_RANK and (whole := split_value(self)) is not None:
            return by_rank(current(), whole)[index]
        return super().__getitem__(index)


class TracedRank(Rank):
    """The rank of a world on which forward is traced; it answers collectives at once."""

    def __init__(self, size: int) -> None:
        # The last: what it reads at an offset by its number is then not at the beginning.
        super().__init__(size - 1, size, Rendezvous())
        self.number = with_source(size - 1, THIS_RANK)
        self.size = with_source(size, RANK_COUNT)

    def issue(self, call: Call) -> None:
        """Note nothing: no other rank waits for this one."""

    def wait(self, call: Call) -> list[Any]:
        """The results of a collective."""
        if call.kind not in RESULTS:
            name = "send or recv" if call.kind == "message" else call.kind
            raise NotDerived(f"forward calls {name}: its gradient is not derived")
        if call.key[0] != 0:
            raise NotDerived(f"forward calls {call.kind} in a group of some ranks")
        return RESULTS[call.kind](self, call)

    def like(self, tensor: Any) -> tuple[Any, str]:
        """The shape, whose sizes keep their sources, and the dtype of a Tensor."""
        return tuple(tensor.shape), str(tensor.dtype).rpartition(".")[2]

    def spoils(self, call: Call) -> bool:
        """No: a derived backward waits for its calls."""
        return False

    def is_unchanged(self, tensor: Any, values: Any) -> bool:
        """Yes: the check finds a change."""
        return True

    def copy_values(self, tensor: Any) -> Any:
        """The Tensor itself; a later change gives it another value of the trace."""
        return Traced(tensor.traced) if isinstance(tensor, Traced) else tensor

    def write_result(self, tensor: Any, result: Tensor) -> None:
        """Let the Tensor represent the result."""
        if not isinstance(tensor, Traced):
            raise NotDerived("forward receives into a Tensor from elsewhere")
        recorder: Any = recording.get()
        shape = list(tensor.shape)
        recorder.replace(tensor, reshape(result, shape) if list(result.shape) != shape else result)


def reduced(rank: TracedRank, call: Call, total: Callable[[], Any]) -> Any:
    """The result of a reduction, given its sum. Raises NotDerived: it is another reduction."""
    kind = call.agreed["op"]
    if kind not in (SUM, AVG):
        raise NotDerived(f"forward calls {call.kind} with {NAMES[kind]}")
    return total() if kind == SUM else total() / rank.size


def reduced_for_all(rank: TracedRank, call: Call) -> list[Any]:
    """The reduction of a Tensor."""
    tensor = call.inputs[0]
    if call.agreed["op"] == MAX:
        return [rank_max(tensor)]
    return [reduced(rank, call, lambda: rank_sum(tensor, rank.size))]


def own_part(rank: TracedRank, call: Call) -> list[Any]:
    """This rank's part of the sum of Tensors."""
    parts = stacked(rank, call.inputs)
    return [reduced(rank, call, lambda: rank_scatter(parts, rank.size, rank.number))]


def gathered(rank: TracedRank, call: Call) -> list[Any]:
    """The Tensors of all ranks."""
    return list(unbind(rank_gather(call.inputs[0], rank.size, rank.number)))


def exchanged(rank: TracedRank, call: Call) -> list[Any]:
    """This rank's part of the Tensors of all ranks."""
    return list(unbind(rank_exchange(stacked(rank, call.inputs), rank.number)))


def of_root(rank: TracedRank, call: Call) -> list[Any]:
    """The Tensor of the root."""
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
"""The results of the collectives, by the name of the call."""


def stacked(rank: TracedRank, tensors: Sequence[Any]) -> Any:
    """The parts for all ranks, stacked along a new first axis; one Tensor is divided along its
    first.
    """
    whole = tensors[0]
    if len(tensors) > 1:
        source = split_value(tensors)
        if source is None:
            return stack(list(tensors))
        whole = source
    return by_rank(rank, whole)


def by_rank(rank: TracedRank, whole: Any) -> Any:
    """A Tensor with its first axis divided into the parts for the ranks, along a new one."""
    return reshape(whole, [rank.size, whole.shape[0] // rank.size, *whole.shape[1:]])


def split_value(tensors: Sequence[Any]) -> Any:
    """The Tensor of which some Tensors are all equal parts along the first axis; None if they are
    not.
    """
    nodes = nodes_in(list(tensors))
    first = nodes[0]
    if first.operation != "split" or nodes != first.siblings or first.arguments[2] != 0:
        return None
    return first.arguments[0] if len({node.shape for node in nodes}) == 1 else None


@contextmanager
def as_rank_of(size: int) -> Iterator[None]:
    """A block in which code is traced as the last rank of a world."""
    token = current_rank.set(TracedRank(size))
    try:
        yield
    finally:
        current_rank.reset(token)
