"""A rank: its number, its groups, its random numbers, and how it waits for others. Code outside of
a world runs as rank 0 of 1.
"""

from __future__ import annotations

from collections.abc import Collection
from contextvars import ContextVar
from math import nan
from typing import Any

from pylayer.distributed.call import Call, CommunicationError, DeadlockError, snapshot
from pylayer.distributed.rendezvous import Rendezvous
from pylayer.ops.inplace import set_value
from pylayer.ops.joining import concat, stack
from pylayer.tensor.array import Array, to_numpy
from pylayer.tensor.tensor import Tensor


class Rank:
    """A rank, one of `size`, with its `World` if there is one.

    When it waits, it may raise: CommunicationError: the calls do not match, or no rank answers.
    """

    tensor_type: type = Tensor
    """The number of calls that this rank has made to other ranks."""

    def __init__(self, number: int, size: int, rendezvous: Rendezvous, world: Any = None) -> None:
        self.number, self.size, self.rendezvous, self.world = number, size, rendezvous, world
        self.groups: list[Any] = []
        """The groups made so far, by id; the first is the group of all ranks."""
        self.topology: Any = None
        """The topology made by ``fleet.init``."""
        self.unwaited: list[Any] = []
        """Tasks whose results nothing has waited for yet."""
        self.overwritten: list[Call] = []
        """Calls whose input Tensor was changed before they were waited for."""
        self.begun: set[str] = set()
        """Descriptions of the calls made without waiting for their results."""
        self.spared: Collection[str] = ()
        """Calls in `begun` whose result Tensors keep their values until the wait (not set to
        NaN).
        """

    def issue(self, call: Call) -> None:
        """Make a call, without waiting for the other ranks."""
        answered = self.rendezvous.add(call)
        if self.world is not None:
            self.world.wake(answered)

    def wait(self, call: Call) -> list[Any]:
        """Wait until every member has made its call, and return the results."""
        if not call.done and self.world is None:
            raise DeadlockError(f"there is only one rank, and it waits for others: {call}", [0])
        while not call.done:
            self.world.wait(self, call)
        if call.error is not None:
            raise self.failing(call.error)
        return call.results

    def failing(self, error: CommunicationError) -> CommunicationError:
        """Prepare the error of a call just before it is raised."""
        return error

    # ----------------------------------------------------------------- Tensors
    def like(self, tensor: Any) -> tuple[tuple[int, ...], str]:
        """The shape and the dtype of a Tensor."""
        return tuple(int(n) for n in tensor.shape), str(tensor.dtype).rpartition(".")[2]

    def spoils(self, call: Call) -> bool:
        """Whether result Tensors are filled with NaN until their call is waited for."""
        self.begun.add(call.describe(False))
        return call.describe(False) not in self.spared

    def is_unchanged(self, tensor: Any, values: Any) -> bool:
        """Whether a Tensor still holds the values that it had at the call."""
        return equal(tensor.array, values.array)

    def undefined_like(self, values: Any) -> Any:
        """Stand-ins for undefined values: NaN if the dtype has it."""
        return (
            values.detach() * nan
            if values.dtype.name.startswith(("float", "bfloat", "complex"))
            else values
        )

    def copy_values(self, tensor: Any) -> Any:
        """A copy of a sent Tensor's values."""
        return snapshot(tensor)

    def write_result(self, tensor: Any, result: Tensor) -> None:
        """Write a result into a Tensor with the same number of elements."""
        if tuple(result.shape) != tuple(tensor.shape):
            result = result.reshape(list(tensor.shape))
        set_value(tensor, result)

    def new_tensor(self, result: Tensor) -> Any:
        """Make a new Tensor of a result."""
        return result

    def join_results(self, results: list[Tensor]) -> Any:
        """Join results along the first axis."""
        return concat(results, 0) if results[0].ndim else stack(results)


def equal(first: Array, second: Array) -> bool:
    """Whether two arrays are equal, NaN included."""
    first, second = first.reshape(-1), second.reshape(-1)
    return bool(to_numpy((first == second) | (second != second)).all())


sole_rank = Rank(0, 1, Rendezvous())
"""The only rank of a program outside of a world."""
current_rank: ContextVar[Any] = ContextVar("rank", default=sole_rank)


def current() -> Any:
    """The rank that runs this code."""
    return current_rank.get()
