"""Fleet's topology against layouts worked out by hand: who stands where, and which ranks form a group."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import greenlet
import numpy as np
import pytest

import pylayer.paddle as paddle
from pylayer.distributed.topology import CommunicateTopology
from pylayer.tensor.tensor import Tensor

dist: Any = paddle.distributed
fleet = dist.fleet


def laid_out(**degrees: int) -> Any:
    """The topology of this rank, once the world is laid out by degrees."""
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {f"{axis}_degree": degree for axis, degree in degrees.items()}
    fleet.init(is_collective=True, strategy=strategy)
    return fleet.get_hybrid_communicate_group()


def test_the_model_axis_is_the_fastest(on_ranks: Any) -> None:
    """dp 2 × mp 4: ranks 0 to 3 share a model, 0 and 4 have the same part of it."""

    def call(rank: int) -> Any:
        hcg = laid_out(dp=2, mp=4)
        model, data = hcg.get_model_parallel_group(), hcg.get_data_parallel_group()
        return [model.ranks, hcg.get_model_parallel_rank(), data.ranks, hcg.get_data_parallel_rank()]

    found = on_ranks(8, call)
    assert [one[0] for one in found] == [[0, 1, 2, 3]] * 4 + [[4, 5, 6, 7]] * 4
    assert [one[1] for one in found] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert [one[2] for one in found] == [[0, 4], [1, 5], [2, 6], [3, 7]] * 2
    assert [one[3] for one in found] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_three_axes(on_ranks: Any) -> None:
    """dp 2 × pp 2 × mp 2: rank = 4 dp + 2 pp + mp."""

    def call(rank: int) -> Any:
        hcg = laid_out(dp=2, pp=2, mp=2)
        return [
            hcg.get_data_parallel_group().ranks,
            hcg.get_pipe_parallel_group().ranks,
            hcg.get_model_parallel_group().ranks,
            hcg.get_stage_id(),
            hcg.is_first_stage,
            hcg.is_last_stage,
        ]

    found = on_ranks(8, call)
    assert found[0] == [[0, 4], [0, 2], [0, 1], 0, True, False]
    assert found[3] == [[3, 7], [1, 3], [2, 3], 1, False, True]
    assert found[6] == [[2, 6], [4, 6], [6, 7], 1, False, True]


def test_all_five_axes_each_of_two(on_ranks: Any) -> None:
    """Rank = 16 dp + 8 pp + 4 sharding + 2 sep + mp: along each axis the ranks differ by its place value."""
    values = {"data": 16, "pipe": 8, "sharding": 4, "sep": 2, "model": 1}

    def call(rank: int) -> Any:
        hcg = laid_out(dp=2, pp=2, sharding=2, sep=2, mp=2)
        return {name: getattr(hcg, f"get_{name}_parallel_group")().ranks for name in values}

    for rank, groups in enumerate(on_ranks(32, call)):
        for name, value in values.items():
            assert groups[name] == sorted([rank, rank ^ value])


def test_what_is_left_is_data_parallel(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        hcg = laid_out(mp=2)
        return [hcg.get_data_parallel_world_size(), hcg.get_model_parallel_world_size()]

    assert on_ranks(6, call) == [[3, 2]] * 6


def test_of_one_degree_each_group_is_of_one_rank(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        hcg = laid_out(mp=2)
        return [
            hcg.get_pipe_parallel_group().ranks,
            hcg.get_sep_parallel_rank(),
            hcg.get_sharding_parallel_world_size(),
        ]

    assert on_ranks(2, call) == [[[0], 0, 1], [[1], 0, 1]]


def test_the_source_of_a_group_is_its_first_rank(on_ranks: Any) -> None:
    found = on_ranks(4, lambda rank: laid_out(dp=2, mp=2).get_model_parallel_group_src_rank())
    assert found == [0, 0, 2, 2]


def test_sums_along_the_axes(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        hcg, x = laid_out(dp=2, mp=2), paddle.to_tensor([10.0**rank])
        y = x.clone()
        dist.all_reduce(x, group=hcg.get_model_parallel_group())
        dist.all_reduce(y, group=hcg.get_data_parallel_group())
        return x, y

    found = np.array(on_ranks(4, call))[..., 0]
    assert found.tolist() == [[11, 101], [11, 1010], [1100, 101], [1100, 1010]]


def test_degrees_that_do_not_fit_the_world_are_an_error(on_ranks: Any) -> None:
    with pytest.raises(ValueError, match="mp_degree 3: these multiply to 6, but there are 4 ranks"):
        on_ranks(4, lambda rank: laid_out(dp=2, mp=3))


def test_fleet_counts_workers(on_ranks: Any) -> None:
    fleet = paddle.distributed.fleet
    assert on_ranks(2, lambda rank: [fleet.worker_index(), fleet.worker_num(), fleet.fleet.worker_index()]) == [
        [0, 2, 0],
        [1, 2, 1],
    ]


def test_without_init_a_world_of_several_ranks_has_no_topology(on_ranks: Any) -> None:
    with pytest.raises(RuntimeError, match=r"fleet\.init was not called in this world of 2 ranks"):
        on_ranks(2, lambda rank: fleet.get_hybrid_communicate_group())


def test_one_rank_needs_no_init() -> None:
    hcg = fleet.get_hybrid_communicate_group()
    assert (hcg.get_model_parallel_world_size(), hcg.get_data_parallel_rank()) == (1, 0)


def test_coordinates() -> None:
    topology = CommunicateTopology(["data", "pipe", "model"], [2, 2, 3])
    assert topology.world_size() == 12
    assert topology.get_coord(7) == (1, 0, 1)
    assert topology.get_rank(data=1, pipe=0, model=1) == 7
    assert topology.get_comm_list("model") == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    assert topology.get_comm_list("data") == [[k, k + 6] for k in range(6)]
    assert topology.get_dim("model") == 3


def test_random_numbers_are_each_rank_s_own_unless_they_are_the_same(on_ranks: Any) -> None:
    paddle.seed(7)
    a, b = on_ranks(2, lambda rank: paddle.rand([4]))
    assert not (a == b).any()
    a, b = on_ranks(2, lambda rank: paddle.rand([4]), same_random=True)
    assert (a == b).all()


def test_ranks_keep_their_groups_and_random_numbers_from_run_to_run() -> None:
    from pylayer.distributed.world import World

    paddle.seed(7)
    world = World(2)
    made = world.run(lambda rank: dist.new_group([0, 1]))
    first, second = (world.run(lambda rank: paddle.rand([4]).tolist()) for _ in range(2))
    assert first != second

    def total(rank: int) -> Tensor:
        x = paddle.ones([1])
        dist.all_reduce(x, group=made[rank])
        return x

    assert [one.tolist() for one in world.run(total)] == [[2.0], [2.0]]


def test_a_run_that_is_given_up_ends_its_ranks_and_the_next_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    from pylayer.distributed.world import World

    world, ended, stacks = World(2), list[int](), list[weakref.ref[Any]]()
    assert world.run(lambda rank: rank) == [0, 1]

    def wait(rank: int) -> None:
        stacks.append(weakref.ref(greenlet.getcurrent()))
        try:
            if rank == 0:
                dist.barrier()
        finally:
            ended.append(rank)

    def interrupt(errors: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(world, "stop", interrupt)
        with pytest.raises(KeyboardInterrupt):
            world.run(wait)
    gc.collect()
    assert ended == [1, 0]
    assert [stack() for stack in stacks] == [None, None]
    assert world.run(lambda rank: rank) == [0, 1]


def test_a_rank_that_raised_runs_again() -> None:
    from pylayer.distributed.world import World

    world = World(2)
    with pytest.raises(ZeroDivisionError):
        world.run(lambda rank: 1 // rank)
    assert world.run(lambda rank: rank) == [0, 1]


def test_a_world_that_nobody_has_any_more_is_freed() -> None:
    from pylayer.distributed.world import World

    world = World(2)
    world.run(lambda rank: dist.barrier())
    freed = weakref.ref(world)
    del world
    gc.collect()
    assert freed() is None
