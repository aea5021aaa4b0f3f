"""Groups of ranks, and Paddle's names for reductions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

from pylayer.distributed import call
from pylayer.distributed.rank import current


class ReduceOp:
    """How the values of several ranks are combined."""

    SUM, MAX, MIN, PROD, AVG = call.SUM, call.MAX, call.MIN, call.PROD, call.AVG


class Group:
    """Some ranks of a world, in an order.

    Args:
        rank_in_group: the position of the rank that holds this object; -1 if it is not a member.
        id: a number, the same on all ranks that made their groups in the same order.
        ranks: the members, counted in the world.
    """

    collectives: ClassVar[Any]
    """Makes `process_group`. Makes ``process_group``; set by `pylayer.distributed.process_group`,
    which imports this module.
    """

    def __init__(
        self,
        rank_in_group: int,
        id: int,
        ranks: Sequence[int],
        pg: Any = None,
        name: str | None = None,
    ) -> None:
        self.rank, self.id, self.ranks, self.name = (
            rank_in_group,
            id,
            list(ranks),
            name or f"_default_pg{id}",
        )
        self._pg = pg

    @property
    def nranks(self) -> int:
        """The number of members."""
        return len(self.ranks)

    @property
    def world_size(self) -> int:
        """The group's size for members, -1 for other ranks."""
        return self.nranks if self.rank >= 0 else -1

    @property
    def process_group(self) -> Any:
        """The collectives under the method names of process groups in Paddle."""
        if self._pg is None:
            self._pg = self.collectives(self)
        return self._pg

    @property
    def backend(self) -> str:
        """The name of the communication library; the engine uses none."""
        return "GLOO"

    def is_member(self) -> bool:
        """Whether this rank is a member of a group with other members."""
        return self.rank >= 0 and self.nranks > 1

    def get_group_rank(self, rank: int) -> int:
        """Convert a rank of the world to its number in the group; -1 if it is not a member."""
        return self.ranks.index(rank) if rank in self.ranks else -1

    def get_global_rank(self, rank: int) -> int:
        """Convert a number in the group to the rank of the world."""
        return self.ranks[rank] if self.rank >= 0 else -1

    def __repr__(self) -> str:
        listed = ", ".join(map(str, self.ranks))
        return (
            f"rank: {self.rank}, nranks: {self.nranks}, id: {self.id}, ranks: {listed}; name: "
            f"{self.name}"
        )


def world_group() -> Group:
    """The group of all ranks."""
    rank = current()
    if not rank.groups:
        rank.groups.append(Group(rank.number, 0, range(rank.size)))
    return rank.groups[0]  # type: ignore[no-any-return]


def make_group(ranks: Sequence[int] | None) -> Group:
    """Make another group without communication: all ranks must make the same groups in the same
    order.
    """
    everybody, rank = world_group(), current()
    members = sorted(everybody.ranks if ranks is None else ranks)
    if any(k not in everybody.ranks for k in members):
        raise ValueError(f"a group of ranks {members} in a world of {rank.size}")
    place = members.index(rank.number) if rank.number in members else -1
    rank.groups.append(Group(place, len(rank.groups), members))
    return rank.groups[-1]  # type: ignore[no-any-return]


def get_group(id: int = 0) -> Group | None:
    """Return the group with this id. Warn and return None if there is none.

    Warns:
        UserWarning: there is none.
    """
    world_group()
    groups = current().groups
    if id < len(groups):
        return groups[id]  # type: ignore[no-any-return]
    warnings.warn(f"Group {id} is not initialized.", stacklevel=2)
    return None


def get_rank(group: Group | None = None) -> int:
    """This rank's number in the world or in a group; -1 if it is not a member."""
    rank: int = current().number if group is None else group.rank
    return rank


def get_world_size(group: Group | None = None) -> int:
    """The number of ranks in the world or in a group; -1 if this rank is not a member."""
    size: int = current().size if group is None else group.world_size
    return size


def is_initialized() -> bool:
    """Whether this code runs in a world."""
    return current().world is not None


class ParallelEnv:
    """A rank's view of its world."""

    @property
    def rank(self) -> int:
        """The rank's number."""
        return get_rank()

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return get_world_size()

    local_rank = rank
    nranks = world_size

    @property
    def device_id(self) -> int:
        """The device's number; all ranks share one device."""
        return 0


def init_parallel_env() -> Group:
    """Return the group of all ranks; nothing has to be set up."""
    return world_group()


def destroy_process_group(group: Group | None = None) -> None:
    """Do nothing: there is nothing to release."""


def same_reduction(reduce_op: Any, *rest: Any) -> Any:
    """Return the reduction itself."""
    return reduce_op
