"""The collectives as methods of ``group.process_group``, with the names and argument order that
Paddle gives them.
"""

from __future__ import annotations

from functools import partialmethod
from typing import Any

from pylayer.distributed import communication
from pylayer.distributed.call import SUM
from pylayer.distributed.communication import Task
from pylayer.distributed.group import Group


class ProcessGroup:
    """The object ``group.process_group``: each method is a function of `communication`."""

    def __init__(self, group: Group) -> None:
        self.group = group

    def name(self) -> str:
        """The name of the communication library."""
        return "GLOO"

    def rank(self) -> int:
        """This rank's number in the group."""
        return self.group.rank

    def size(self) -> int:
        """The number of members."""
        return self.group.nranks

    def all_reduce(self, tensor: Any, op: int = SUM, sync_op: bool = False) -> Task | None:
        """In place."""
        return communication.all_reduce(tensor, op, self.group, sync_op)

    allreduce = all_reduce

    all_reduce_on_calc_stream = partialmethod(all_reduce, sync_op=True)

    def all_gather(self, first: Any, second: Any, sync_op: bool = False) -> Task | None:
        """Takes ``(list, tensor)`` or ``(tensor, whole)``."""
        target, tensor = (first, second) if isinstance(first, list) else (second, first)
        return communication.all_gather(target, tensor, self.group, sync_op)

    def all_gather_into_tensor(
        self, out_tensor: Any, tensor: Any, sync_op: bool = False
    ) -> Task | None:
        """Joins along the first axis."""
        return communication.all_gather(out_tensor, tensor, self.group, sync_op)

    all_gather_on_calc_stream = partialmethod(all_gather_into_tensor, sync_op=True)
    all_gather_into_tensor_on_calc_stream = all_gather_on_calc_stream

    def broadcast(self, tensor: Any, src: int, sync_op: bool = False) -> Task | None:
        """Receives from a rank of the group."""
        return communication.broadcast(tensor, self.group.ranks[src], self.group, sync_op)

    broadcast_on_calc_stream = partialmethod(broadcast, sync_op=True)

    def reduce(self, tensor: Any, dst: int, op: int = SUM, sync_op: bool = False) -> Task | None:
        """Sends to a rank of the group."""
        return communication.reduce(tensor, self.group.ranks[dst], op, self.group, sync_op)

    def reduce_scatter_tensor(
        self, out: Any, tensor: Any, op: int = SUM, sync_op: bool = False
    ) -> Task | None:
        """Takes one Tensor or a list."""
        return communication.reduce_scatter(out, tensor, op, self.group, sync_op)

    _reduce_scatter_base = reduce_scatter = reduce_scatter_tensor

    def all_to_all(self, outs: Any, ins: Any, sync_op: bool = False) -> Task | None:
        """Takes lists."""
        return communication.alltoall(outs, ins, self.group, sync_op)

    def all_to_all_tensor(self, out: Any, tensor: Any, sync_op: bool = False) -> Task | None:
        """Takes one Tensor on each side."""
        return communication.alltoall_single(out, tensor, None, None, self.group, sync_op)

    def all_to_all_single(
        self,
        out: Any,
        tensor: Any,
        out_sizes: Any = None,
        in_sizes: Any = None,
        sync_op: bool = False,
    ) -> Task | None:
        """Takes one Tensor on each side, in parts."""
        return communication.alltoall_single(out, tensor, in_sizes, out_sizes, self.group, sync_op)

    def send(self, tensor: Any, dst: int, sync_op: bool = False) -> Task | None:
        """Sends to a rank of the group."""
        return communication.send(tensor, self.group.ranks[dst], self.group, sync_op)

    def recv(self, tensor: Any, src: int, sync_op: bool = False) -> Task | None:
        """Receives from a rank of the group."""
        return communication.recv(tensor, self.group.ranks[src], self.group, sync_op)

    def barrier(self) -> None:
        """Waits for all members."""
        communication.barrier(self.group)

    def _start_coalescing(self) -> None:
        """Paddle may send the following messages together; here each is sent separately."""

    def _end_coalescing(self, tasks: Any = None) -> None:
        """Does nothing: no message is pending."""


Group.collectives = ProcessGroup
