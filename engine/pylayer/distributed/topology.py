"""``fleet``: a world laid out along axes (data, pipeline, sharding, sep, model), and the groups
along each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pylayer.distributed.communication import new_group
from pylayer.distributed.group import Group, get_rank, get_world_size, world_group
from pylayer.distributed.rank import current

AXES = {"dp": "data", "pp": "pipe", "sharding": "sharding", "sep": "sep", "mp": "model"}
"""The axes in Paddle's default order, the slowest first, with their names in strategies and in
topologies.
"""


class DistributedStrategy:
    """The degrees of parallelism, in the form of ``hybrid_configs``: ``{"dp_degree": 2,
    "mp_degree": 4}``.
    """

    def __init__(self) -> None:
        self._hybrid: dict[str, Any] = {
            f"{axis}_degree": -1 if axis == "dp" else 1 for axis in AXES
        }

    @property
    def hybrid_configs(self) -> dict[str, Any]:
        """The degrees; assignment updates them."""
        return self._hybrid

    @hybrid_configs.setter
    def hybrid_configs(self, configs: dict[str, Any]) -> None:
        self._hybrid = {**self._hybrid, **configs}


class CommunicateTopology:
    """The grid of ranks.

    Args:
        hybrid_group_names: names of the axes, the slowest first.
        dims: the number of ranks along each axis.
    """

    def __init__(
        self,
        hybrid_group_names: Sequence[str] = tuple(AXES.values()),
        dims: Sequence[int] = (1, 1, 1, 1, 1),
    ) -> None:
        self.names, self.dims = list(hybrid_group_names), list(dims)
        self.coordinates = list(itertools.product(*map(range, dims)))

    def get_dim(self, axis_name: str) -> int:
        """The number of ranks along an axis."""
        return self.dims[self.names.index(axis_name)]

    get_dim_size = get_dim

    def world_size(self) -> int:
        """The number of ranks."""
        return len(self.coordinates)

    def get_coord(self, rank: int) -> tuple[int, ...]:
        """The coordinates of a rank."""
        return self.coordinates[rank]

    def get_rank(self, **coordinates: int) -> int:
        """The rank at some coordinates."""
        return self.coordinates.index(tuple(coordinates[name] for name in self.names))

    def get_comm_list(self, axis_name: str) -> list[list[int]]:
        """The groups along an axis: ranks that differ only in that coordinate."""
        k = self.names.index(axis_name)
        groups: dict[tuple[int, ...], list[int]] = {}
        for rank, coordinates in enumerate(self.coordinates):
            groups.setdefault(coordinates[:k] + coordinates[k + 1 :], []).append(rank)
        return list(groups.values())


class HybridCommunicateGroup:
    """The groups that contain a rank, one for each axis: ``get_model_parallel_group()`` and so
    on.
    """

    def __init__(self, topology: CommunicateTopology) -> None:
        self._topo = topology
        self.global_rank = get_rank()
        self.groups: dict[str, Group] = {}
        for axis in topology.names:
            for ranks in topology.get_comm_list(axis):
                group = new_group(ranks)
                if group.rank >= 0:
                    self.groups[axis] = group

    def topology(self) -> CommunicateTopology:
        """The grid of ranks."""
        return self._topo

    def get_global_rank(self) -> int:
        """This rank's number in the world."""
        return self.global_rank

    def get_stage_id(self) -> int:
        """This rank's pipeline stage."""
        return self.groups["pipe"].rank

    @property
    def is_first_stage(self) -> bool:
        """Whether this is the first pipeline stage."""
        return self.get_stage_id() == 0

    @property
    def is_last_stage(self) -> bool:
        """Whether this is the last pipeline stage."""
        return self.get_stage_id() == self.groups["pipe"].nranks - 1

    def get_check_parallel_group(self, sharding: bool = False) -> Group:
        """The group of all ranks."""
        return world_group()

    def get_expert_parallel_group(self) -> Group:
        """The group over which experts are spread: the data or the sharding axis, whichever is
        used.
        """
        return (
            self.groups["sharding"] if self.groups["sharding"].nranks > 1 else self.groups["data"]
        )

    def get_expert_parallel_world_size(self) -> int:
        """The size of the group of `get_expert_parallel_group`."""
        return self.get_expert_parallel_group().nranks

    def get_expert_parallel_rank(self) -> int:
        """This rank's number in that group."""
        return self.get_expert_parallel_group().rank


def _per_axis(axis: str) -> dict[str, Any]:
    """Add the methods for one axis."""
    name = f"get_{axis}_parallel"
    return {
        f"{name}_group": lambda self, *args, **kwargs: self.groups[axis],
        f"{name}_world_size": lambda self, *args, **kwargs: self.groups[axis].nranks,
        f"{name}_rank": lambda self, *args, **kwargs: self.groups[axis].rank,
        f"{name}_group_src_rank": lambda self, *args, **kwargs: self.groups[axis].ranks[0],
    }


for _axis in AXES.values():
    for _name, _method in _per_axis(_axis).items():
        _method.__name__, _method.__doc__ = _name, f"Along the {_axis} axis."
        setattr(HybridCommunicateGroup, _name, _method)


def init(
    role_maker: Any = None,
    is_collective: bool = False,
    strategy: DistributedStrategy | None = None,
    log_level: Any = None,
) -> None:
    """Lay out the world by the degrees of a strategy; ``dp`` takes the remaining ranks unless it is
    given.

    Raises:
        ValueError: the degrees do not multiply to the number of ranks.
    """
    configs = (strategy or DistributedStrategy()).hybrid_configs
    degrees = {axis: int(configs[f"{axis}_degree"]) for axis in AXES}
    size = get_world_size()
    if degrees["dp"] < 1:
        degrees["dp"] = 1
        degrees["dp"] = max(size // math.prod(degrees.values()), 1)
    count = math.prod(degrees.values())
    if count != size:
        text = ", ".join(f"{axis}_degree {degree}" for axis, degree in degrees.items())
        raise ValueError(f"{text}: these multiply to {count}, but there are {size} ranks")
    rank = current()
    rank.strategy = strategy
    rank.topology = HybridCommunicateGroup(CommunicateTopology(dims=list(degrees.values())))


def lay_out(degrees: Mapping[str, int]) -> None:
    """Call `init` with the ranks along each axis, such as ``{"mp": 4}``; do nothing without any."""
    if degrees:
        strategy = DistributedStrategy()
        strategy.hybrid_configs = {f"{axis}_degree": degree for axis, degree in degrees.items()}
        init(strategy=strategy)


def get_hybrid_communicate_group() -> HybridCommunicateGroup:
    """This rank's groups.

    Raises:
        RuntimeError: there are several ranks, but ``fleet.init`` was not called.
    """
    rank = current()
    if rank.topology is None and rank.size > 1:
        raise RuntimeError(
            f"fleet.init was not called in this world of {rank.size} ranks: call it with the "
            f"degrees of each axis, or "
            f"give them with the world, such as world={{'mp': {rank.size}}}."
        )
    if rank.topology is None:
        init()
    return rank.topology  # type: ignore[no-any-return]


def worker_index() -> int:
    """This rank's number."""
    return get_rank()


def worker_num() -> int:
    """The number of ranks."""
    return get_world_size()


class Fleet:
    """`fleet.fleet`: the functions of ``fleet`` that layers call."""

    @property
    def _hcg(self) -> HybridCommunicateGroup:
        return get_hybrid_communicate_group()

    @property
    def _user_defined_strategy(self) -> Any:
        return getattr(current(), "strategy", None) or DistributedStrategy()

    worker_index = staticmethod(worker_index)
    worker_num = staticmethod(worker_num)
    init = staticmethod(init)
    get_hybrid_communicate_group = staticmethod(get_hybrid_communicate_group)


fleet = Fleet()
