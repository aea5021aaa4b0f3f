"""Every collective in every spelling gives what NumPy makes of the values of all ranks."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import pylayer.paddle as paddle
from pylayer.distributed.call import DeadlockError, MismatchError

dist: Any = paddle.distributed
N = 3
X = np.random.default_rng(0).standard_normal((N, 2 * N, 2))
"""What each rank has: twice as many rows as there are ranks."""
OPS = {"SUM": np.sum, "MAX": np.max, "MIN": np.min, "PROD": np.prod, "AVG": np.mean}


def own() -> Any:
    return paddle.to_tensor(X[dist.get_rank()])


def group() -> Any:
    return dist.get_group(0)


def made(of: int = 2 * N) -> Any:
    return paddle.zeros([of, 2], "float64")


def in_parts(x: Any) -> list[Any]:
    return paddle.split(x, N, 0)


def waited(task: Any, result: Any) -> Any:
    """A result once its task, if there is one, has ended."""
    if task is not None:
        task.wait()
    return result


def in_place(call: Callable[[Any], Any]) -> Any:
    x = own()
    return waited(call(x), x)


def into_list(call: Callable[[list[Any]], Any]) -> Any:
    found: list[Any] = []
    task = call(found)
    if task is not None:
        task.wait()
    return paddle.concat(found, 0)


def into(of: int, call: Callable[[Any], Any]) -> Any:
    out = made(of)
    return waited(call(out), out)


def filled_list(call: Callable[[list[Any]], Any]) -> Any:
    found = [made() for _ in range(N)]
    call(found)
    return paddle.concat(found, 0)


ALL_REDUCE = {
    "all_reduce": lambda: in_place(lambda x: dist.all_reduce(x)),
    "all_reduce, later": lambda: in_place(lambda x: dist.all_reduce(x, sync_op=False)),
    "all_reduce of a group": lambda: in_place(lambda x: dist.all_reduce(x, group=group())),
    "stream.all_reduce": lambda: in_place(lambda x: dist.stream.all_reduce(x)),
    "stream.all_reduce, calc stream": lambda: in_place(
        lambda x: dist.stream.all_reduce(x, sync_op=False, use_calc_stream=True)
    ),
    "communication.all_reduce": lambda: in_place(lambda x: dist.communication.all_reduce(x)),
    "process_group.all_reduce": lambda: in_place(lambda x: group().process_group.all_reduce(x)),
    "process_group.allreduce": lambda: in_place(lambda x: group().process_group.allreduce(x)),
    "process_group.all_reduce_on_calc_stream": lambda: in_place(
        lambda x: group().process_group.all_reduce_on_calc_stream(x)
    ),
}
ALL_GATHER = {
    "all_gather": lambda: into_list(lambda found: dist.all_gather(found, own())),
    "all_gather, later": lambda: into_list(lambda found: dist.all_gather(found, own(), sync_op=False)),
    "all_gather into Tensors": lambda: filled_list(lambda found: dist.all_gather(found, own())),
    "stream.all_gather": lambda: into_list(lambda found: dist.stream.all_gather(found, own())),
    "stream.all_gather into one": lambda: into(2 * N * N, lambda out: dist.stream.all_gather(out, own())),
    "process_group.all_gather": lambda: into_list(lambda found: group().process_group.all_gather(found, own())),
    "process_group.all_gather into one": lambda: into(
        2 * N * N, lambda out: group().process_group.all_gather(own(), out)
    ),
    "process_group.all_gather_into_tensor": lambda: into(
        2 * N * N, lambda out: group().process_group.all_gather_into_tensor(out, own())
    ),
    "process_group.all_gather_on_calc_stream": lambda: into_list(
        lambda found: group().process_group.all_gather_on_calc_stream(found, own())
    ),
}
REDUCE_SCATTER = {
    "reduce_scatter": lambda: into(2, lambda out: dist.reduce_scatter(out, own())),
    "reduce_scatter of parts": lambda: into(2, lambda out: dist.reduce_scatter(out, in_parts(own()))),
    "reduce_scatter, later": lambda: into(2, lambda out: dist.reduce_scatter(out, own(), sync_op=False)),
    "stream.reduce_scatter": lambda: into(2, lambda out: dist.stream.reduce_scatter(out, own())),
    "process_group.reduce_scatter": lambda: into(
        2, lambda out: group().process_group.reduce_scatter(out, in_parts(own()))
    ),
    "process_group.reduce_scatter_tensor": lambda: into(
        2, lambda out: group().process_group.reduce_scatter_tensor(out, own())
    ),
    "process_group._reduce_scatter_base": lambda: into(
        2, lambda out: group().process_group._reduce_scatter_base(out, own())
    ),
}
ALL_TO_ALL = {
    "alltoall": lambda: into_list(lambda found: dist.alltoall(found, in_parts(own()))),
    "alltoall of one": lambda: into(2 * N, lambda out: dist.alltoall(out, own())),
    "alltoall_single": lambda: into(2 * N, lambda out: dist.alltoall_single(out, own())),
    "alltoall_single, sizes": lambda: into(
        2 * N, lambda out: dist.alltoall_single(out, own(), [2] * N, [2] * N, sync_op=False)
    ),
    "stream.alltoall": lambda: into_list(lambda found: dist.stream.alltoall(found, in_parts(own()))),
    "stream.alltoall_single": lambda: into(2 * N, lambda out: dist.stream.alltoall_single(out, own())),
    "process_group.all_to_all": lambda: into_list(
        lambda found: group().process_group.all_to_all(found, in_parts(own()))
    ),
    "process_group.all_to_all_tensor": lambda: into(
        2 * N, lambda out: group().process_group.all_to_all_tensor(out, own())
    ),
    "process_group.all_to_all_single": lambda: into(
        2 * N, lambda out: group().process_group.all_to_all_single(out, own(), [2] * N, [2] * N)
    ),
}
BROADCAST = {
    "broadcast": lambda: in_place(lambda x: dist.broadcast(x, src=1)),
    "broadcast, later": lambda: in_place(lambda x: dist.broadcast(x, 1, sync_op=False)),
    "stream.broadcast": lambda: in_place(lambda x: dist.stream.broadcast(x, src=1)),
    "process_group.broadcast": lambda: in_place(lambda x: group().process_group.broadcast(x, 1)),
    "process_group.broadcast_on_calc_stream": lambda: in_place(
        lambda x: group().process_group.broadcast_on_calc_stream(x, 1)
    ),
}
REDUCE = {
    "reduce": lambda: in_place(lambda x: dist.reduce(x, dst=1)),
    "reduce, later": lambda: in_place(lambda x: dist.reduce(x, dst=1, sync_op=False)),
    "stream.reduce": lambda: in_place(lambda x: dist.stream.reduce(x, dst=1)),
    "process_group.reduce": lambda: in_place(lambda x: group().process_group.reduce(x, 1)),
}
SCATTER = {
    "scatter": lambda: into(2, lambda out: dist.scatter(out, in_parts(own()) if dist.get_rank() == 1 else None, src=1)),
    "scatter of all ranks' parts": lambda: into(2, lambda out: dist.scatter(out, in_parts(own()), src=1)),
    "stream.scatter": lambda: into(
        2, lambda out: dist.stream.scatter(out, in_parts(own()) if dist.get_rank() == 1 else None, src=1)
    ),
}
WHOLE = X.reshape(-1, 2)
EXPECTED = [
    (ALL_REDUCE, [X.sum(0)] * N),
    (ALL_GATHER, [WHOLE] * N),
    (REDUCE_SCATTER, list(np.split(X.sum(0), N))),
    (ALL_TO_ALL, [np.concatenate([np.split(X[k], N)[r] for k in range(N)]) for r in range(N)]),
    (BROADCAST, [X[1]] * N),
    (REDUCE, [X[0], X.sum(0), X[2]]),
    (SCATTER, list(np.split(X[1], N))),
]
CASES = [(name, call, wanted) for calls, wanted in EXPECTED for name, call in calls.items()]


@pytest.mark.parametrize(("call", "wanted"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_call_gives_what_numpy_gives(on_ranks: Any, call: Any, wanted: list[Any]) -> None:
    for found, right in zip(on_ranks(N, lambda rank: call()), wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-15)


@pytest.mark.parametrize("name", OPS)
def test_reductions(on_ranks: Any, name: str) -> None:
    op, right = getattr(dist.ReduceOp, name), OPS[name](X, axis=0)
    for found in on_ranks(N, lambda rank: in_place(lambda x: dist.all_reduce(x, op=op))):
        np.testing.assert_allclose(found, right, rtol=1e-15)
    for rank, found in enumerate(on_ranks(N, lambda rank: in_place(lambda x: dist.reduce(x, dst=2, op=op)))):
        np.testing.assert_allclose(found, right if rank == 2 else X[rank], rtol=1e-15)
    for rank, found in enumerate(on_ranks(N, lambda rank: into(2, lambda y: dist.reduce_scatter(y, own(), op=op)))):
        np.testing.assert_allclose(found, right[2 * rank : 2 * rank + 2], rtol=1e-15)


@pytest.mark.parametrize("spelling", ["gather", "stream.gather"])
def test_gather_fills_the_list_of_its_rank(on_ranks: Any, spelling: str) -> None:
    gather = dist.gather if spelling == "gather" else dist.stream.gather

    def call(rank: int) -> Any:
        found: list[Any] = []
        gather(own(), found if rank == 1 else None, dst=1)
        return found

    found = on_ranks(N, call)
    assert [len(one) for one in found] == [0, N, 0]
    assert (np.stack(found[1]) == X).all()


@pytest.mark.parametrize("kind", [list, np.array])
def test_all_to_all_takes_parts_of_different_sizes(on_ranks: Any, kind: Any) -> None:
    """Rank r sends k + 1 rows to rank k."""
    sizes = [1, 2, 3]

    def call(rank: int) -> Any:
        out = made(N * sizes[rank])
        dist.alltoall_single(out, own(), in_split_sizes=kind(sizes), out_split_sizes=kind([sizes[rank]] * N))
        return out

    starts = np.cumsum([0, *sizes])
    for rank, found in enumerate(on_ranks(N, call)):
        assert (found == np.concatenate([x[starts[rank] : starts[rank + 1]] for x in X])).all()


def test_all_to_all_makes_a_list_of_parts_of_different_sizes(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        outs: list[Any] = []
        dist.alltoall(outs, [own()[: k + 1] for k in range(N)])
        return outs

    for rank, found in enumerate(on_ranks(N, call)):
        assert all((part == X[k][: rank + 1]).all() for k, part in enumerate(found))


def test_rows_go_to_experts_and_back_as_paddle_s_documents_say(on_ranks: Any) -> None:
    """Two ranks of two experts each: the example of ``global_scatter``."""
    counts = [[2, 1, 1, 1], [1, 1, 2, 1]]
    moe = dist.utils.moe_utils

    def call(rank: int) -> Any:
        local = own_counts = paddle.to_tensor(counts[rank])
        there = moe.global_scatter(paddle.arange(1, 11).reshape([5, 2]), local, own_counts)
        return there, moe.global_gather(there, local, own_counts)

    (first, back), (second, _) = on_ranks(2, call)
    assert first.tolist() == [[1, 2], [3, 4], [1, 2], [5, 6], [3, 4]]
    assert second.tolist() == [[7, 8], [5, 6], [7, 8], [9, 10], [9, 10]]
    assert back.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]
    with pytest.raises(MismatchError, match="counts 5 rows of 4"):
        on_ranks(2, lambda rank: moe.global_scatter(paddle.ones([4, 2]), *[paddle.to_tensor(counts[rank])] * 2))


def test_whole_numbers_and_truths_are_exchanged_too(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        x = paddle.to_tensor([rank, 2 * rank])
        dist.all_reduce(x)
        truths: list[Any] = []
        dist.all_gather(truths, paddle.to_tensor([rank == 1]))
        return x, truths

    for x, truths in on_ranks(N, call):
        assert x.tolist() == [3, 6]
        assert np.concatenate(truths).tolist() == [False, True, False]


# --------------------------------------------------------------------------- objects
def test_objects(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        everybody: list[Any] = []
        dist.all_gather_object(everybody, {"rank": rank})
        of_one = [f"of {rank}", rank]
        dist.broadcast_object_list(of_one, src=2)
        own_one: list[Any] = []
        dist.scatter_object_list(own_one, ["a", "b", "c"] if rank == 0 else None, src=0)
        return everybody, of_one, own_one

    found = on_ranks(N, call)
    assert all(one[0] == [{"rank": 0}, {"rank": 1}, {"rank": 2}] for one in found)
    assert all(one[1] == ["of 2", 2] for one in found)
    assert [one[2] for one in found] == [["a"], ["b"], ["c"]]


# --------------------------------------------------------------------------- messages
def test_send_and_receive(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        x = own()
        if rank == 0:
            dist.send(x, dst=2)
        elif rank == 2:
            dist.recv(x, src=0)
        return x

    assert (np.stack(on_ranks(N, call)) == X[[0, 1, 0]]).all()


@pytest.mark.parametrize("spelling", ["stream", "process_group"])
def test_other_spellings_of_messages(on_ranks: Any, spelling: str) -> None:
    def call(rank: int) -> Any:
        where, x = dist.stream if spelling == "stream" else group().process_group, own()
        if rank == 0:
            task = where.send(x, 2, sync_op=False)
        elif rank == 2:
            task = where.recv(x, 0, sync_op=False)
        else:
            return x
        task.wait()
        return x

    assert (np.stack(on_ranks(N, call)) == X[[0, 1, 0]]).all()


@pytest.mark.parametrize("spelling", ["manager", "process_group"])
def test_messages_that_are_to_be_sent_together_are_sent(on_ranks: Any, spelling: str) -> None:
    """As packages write it: a block around isend and irecv, and each task waited for behind it."""
    manager = import_module("pylayer.paddle.distributed.communication.batch_isend_irecv")._coalescing_manager

    def call(rank: int) -> Any:
        received, tasks = made(), []
        if spelling == "process_group":
            group().process_group._start_coalescing()
        with manager(group(), tasks):
            tasks += [dist.isend(own(), (rank + 1) % N), dist.irecv(received, (rank - 1) % N)]
        if spelling == "process_group":
            group().process_group._end_coalescing(tasks)
        for task in tasks:
            task.wait()
        return received

    assert (np.stack(on_ranks(N, call)) == np.roll(X, 1, 0)).all()


def test_messages_of_a_pair_come_in_the_order_in_which_they_are_sent(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        if rank == 0:
            for k in range(3):
                dist.isend(paddle.to_tensor([float(k)]), 1)
            return []
        found = [paddle.zeros([1], "float32") for _ in range(3)]
        for one in found:
            dist.recv(one, src=0)
        return found

    assert np.concatenate(on_ranks(2, call)[1]).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_step_around_a_ring(on_ranks: Any, size: int) -> None:
    def call(rank: int) -> Any:
        x, y = paddle.to_tensor([float(rank)]), paddle.zeros([1], "float32")
        sends, receives = (
            dist.P2POp(dist.isend, x, (rank + 1) % size),
            dist.P2POp(dist.irecv, y, (rank - 1) % size),
        )
        for task in dist.batch_isend_irecv([sends, receives]):
            task.wait()
        return y

    assert np.concatenate(on_ranks(size, call)).tolist() == [float((r - 1) % size) for r in range(size)]


def test_what_is_sent_is_as_it_was_when_it_was_sent(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        x = own()
        if rank == 0:
            task = dist.isend(x, 1)
            x.zero_()
            task.wait()
        elif rank == 1:
            dist.recv(x, src=0)
        return x

    assert (on_ranks(N, call)[1] == X[0]).all()


# --------------------------------------------------------------------------- tasks
def test_before_a_task_has_ended_its_tensor_holds_no_numbers(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        x = own()
        task = dist.all_reduce(x, sync_op=False)
        before = x.clone()
        task.wait()
        return before, x, task.is_completed()

    for before, after_, ended in on_ranks(N, call):
        assert np.isnan(before).all()
        np.testing.assert_allclose(after_, X.sum(0), rtol=1e-15)
        assert ended


def test_who_gets_no_result_has_the_numbers_again_that_were_there(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        x, y = own(), own()
        for task in (dist.broadcast(x, src=0, sync_op=False), dist.reduce(y, dst=0, sync_op=False)):
            task.wait()
        return x, y

    found = on_ranks(N, call)
    assert all((x == X[0]).all() for x, _ in found)
    assert (found[1][1] == X[1]).all()


def test_a_number_is_sent_without_waiting(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        x = paddle.to_tensor(float(rank))
        task = dist.isend(x, 1) if rank == 0 else dist.irecv(x, 0)
        task.wait()
        return x

    assert on_ranks(2, call)[1] == 0


def test_a_task_that_is_asked_until_it_has_ended_ends(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        x = own()
        task = dist.all_reduce(x, sync_op=False)
        while not task.is_completed():
            pass
        return x

    np.testing.assert_allclose(on_ranks(N, call)[1], X.sum(0), rtol=1e-15)


def test_tasks_are_waited_for_in_any_order_and_by_their_tensors(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        x, y = own(), own() * 2
        first, _ = dist.all_reduce(x, sync_op=False), dist.all_reduce(y, sync_op=False)
        dist.wait(y)
        first.wait()
        return x, y

    for x, y in on_ranks(N, call):
        np.testing.assert_allclose(x, X.sum(0), rtol=1e-15)
        np.testing.assert_allclose(y, 2 * X.sum(0), rtol=1e-15)


# --------------------------------------------------------------------------- groups
def test_a_group_knows_its_members_and_places(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        one = dist.new_group([2, 0])
        return [one.ranks, one.rank, one.nranks, one.world_size, one.get_group_rank(2), one.is_member(), one.id]

    assert on_ranks(N, call) == [
        [[0, 2], 0, 2, 2, 1, True, 1],
        [[0, 2], -1, 2, -1, 1, False, 1],
        [[0, 2], 1, 2, 2, 1, True, 1],
    ]


def test_groups_sum_apart_and_nested_ones_within_them(on_ranks: Any) -> None:
    """Pairs of four ranks, then all, then the first of each pair."""

    def call(rank: int) -> Any:
        pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        firsts = dist.new_group([0, 2])
        x = paddle.to_tensor([10.0**rank])
        dist.all_reduce(x, group=pairs[rank // 2])
        pair = x.clone()
        dist.all_reduce(x)
        whole = x.clone()
        if firsts.is_member():
            dist.all_reduce(x, group=firsts)
        return pair, whole, x

    found = np.array(on_ranks(4, call))[..., 0]
    assert found[:, 0].tolist() == [11, 11, 1100, 1100]
    assert (found[:, 1] == 2222).all()
    assert found[:, 2].tolist() == [4444, 2222, 4444, 2222]


def test_a_rank_that_is_no_member_is_told_and_goes_on(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        one, x = dist.new_group([0, 1]), own()
        if rank < 2:
            dist.all_reduce(x, group=one)
        else:
            with pytest.warns(UserWarning, match="rank 2 is not in group"):
                assert dist.all_reduce(x, group=one) is None
        return x

    found = on_ranks(N, call)
    np.testing.assert_allclose(found[0], X[:2].sum(0), rtol=1e-15)
    assert (found[2] == X[2]).all()


def test_a_root_is_counted_in_the_world_and_in_process_groups_in_the_group(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        one, x, y = dist.new_group([1, 2]), own(), own()
        if rank:
            dist.broadcast(x, src=2, group=one)
            one.process_group.broadcast(y, 1).wait()
        return x, y

    for x, y in on_ranks(N, call)[1:]:
        assert (x == X[2]).all()
        assert (y == X[2]).all()


# --------------------------------------------------------------------------- gradients and one rank
def test_without_grad_mode_a_collective_in_place_keeps_a_leaf_a_leaf(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        x = own()
        dist.all_reduce(x)
        return x.is_leaf, x.stop_gradient

    assert on_ranks(N, call) == [[True, True]] * N


def test_outside_of_a_world_there_is_one_rank() -> None:
    assert (dist.get_rank(), dist.get_world_size(), dist.is_initialized()) == (0, 1, False)
    x = paddle.ones([2])
    dist.all_reduce(x)
    parts: list[Any] = []
    dist.all_gather(parts, x)
    assert [one.tolist() for one in [x, *parts]] == [[1.0, 1.0]] * 2
    with pytest.raises(DeadlockError, match="one rank"):
        dist.recv(x, src=0)


def test_a_result_of_another_size_than_its_tensor_is_an_error(on_ranks: Any) -> None:
    with pytest.raises(ValueError, match="float64 of shape \\[3, 2\\]"):
        on_ranks(N, lambda rank: into(3, lambda out: dist.reduce_scatter(out, own())))


def test_calls_that_do_not_fit_are_an_error_on_all_ranks_that_may_be_caught(on_ranks: Any) -> None:
    def call(rank: int) -> Any:
        try:
            dist.all_reduce(paddle.ones([rank + 1]))
        except MismatchError as error:
            return error.ranks
        return None

    assert on_ranks(2, call) == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: dist.broadcast(x, src=2),
        lambda x: dist.reduce(x, 2),
        lambda x: dist.scatter(x, src=2),
        lambda x: dist.send(x, 2),
        lambda x: dist.recv(x, 2),
    ],
)
def test_a_root_or_peer_outside_of_the_group_is_an_error(on_ranks: Any, call: Any) -> None:
    with pytest.raises(AssertionError, match="The input rank 2 can not be found inside the group"):
        on_ranks(2, lambda rank: call(paddle.ones([2])))
