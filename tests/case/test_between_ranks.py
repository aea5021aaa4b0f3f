"""Ranks that do not come together: each kind ends at once, with the ranks and the lines of their calls in the message.

Nothing here waits for time to pass: that no rank can go on is a state, which is seen as soon as it is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcheck
from gradcheck.backends.bundled import BundledBackend
from gradcheck.result import Status

paddle: Any = BundledBackend("numpy", "cpu", install=False).paddle
dist = paddle.distributed
PyLayer: Any = paddle.autograd.PyLayer
rank = dist.get_rank
MISMATCH, DEADLOCK = "GC163", "GC164"


def check(forward: Callable[[Any], Any], backward: Callable[[Any], Any] = lambda dy: dy.clone(), size: int = 3) -> Any:
    class Layer(PyLayer):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return forward(x.clone())

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return backward(dy.clone())

    return gradcheck.check(Layer, np.random.default_rng(0).standard_normal((size, 6)), world=size)


# --------------------------------------------------------------------------- different calls, or none
def only_on_rank_0(x: Any) -> Any:
    if rank() == 0:
        dist.all_reduce(x)
    return x


def not_on_rank_2(x: Any) -> Any:
    if rank() != 2:
        dist.barrier()
    return x


def other_orders(x: Any) -> Any:
    parts: list[Any] = []
    if rank() == 1:
        dist.all_gather(parts, x)
        dist.all_reduce(x)
    else:
        dist.all_reduce(x)
        dist.all_gather(parts, x)
    return x


def one_call_too_many(x: Any) -> Any:
    for _ in range(2 if rank() == 1 else 1):
        dist.all_reduce(x)
    return x


def other_operations(x: Any) -> Any:
    dist.all_reduce(x, op=dist.ReduceOp.MAX if rank() == 2 else dist.ReduceOp.SUM)
    return x


def other_roots(x: Any) -> Any:
    dist.broadcast(x, src=rank() % 2)
    return x


def other_targets(x: Any) -> Any:
    dist.reduce(x, dst=rank() % 2)
    return x


def other_shapes(x: Any) -> Any:
    dist.all_reduce(x[: rank() + 1].clone())
    return x


def other_dtypes(x: Any) -> Any:
    dist.all_reduce(x.astype("float32") if rank() == 1 else x)
    return x


def other_groups(x: Any) -> Any:
    dist.new_group([0, 1] if rank() == 0 else [1, 2])
    return x


def groups_made_by_members_alone(x: Any) -> Any:
    if rank() < 2:
        dist.all_reduce(x, group=dist.new_group([0, 1]))
    return x


def parts_that_do_not_fit(x: Any) -> Any:
    dist.reduce_scatter(paddle.empty([2], x.dtype), x[: 3 + 3 * (rank() == 1)])
    return x


# --------------------------------------------------------------------------- messages
def both_send_first(x: Any) -> Any:
    other = 1 - rank()
    if rank() < 2:
        dist.send(x, dst=other)
        dist.recv(x, src=other)
    return x


def both_receive_first(x: Any) -> Any:
    other = 1 - rank()
    if rank() < 2:
        dist.recv(x, src=other)
        dist.send(x, dst=other)
    return x


def around_a_ring(x: Any) -> Any:
    size = dist.get_world_size()
    dist.send(x, dst=(rank() + 1) % size)
    dist.recv(x, src=(rank() - 1) % size)
    return x


def nobody_sends(x: Any) -> Any:
    if rank() == 1:
        dist.recv(x, src=0)
    return x


def nobody_receives(x: Any) -> Any:
    if rank() == 1:
        dist.send(x, dst=2)
    return x


def a_message_of_another_shape(x: Any) -> Any:
    if rank() == 0:
        dist.send(x[:2].clone(), dst=1)
    elif rank() == 1:
        dist.recv(x, src=0)
    return x


def never_answered_tasks(x: Any) -> Any:
    if rank() == 0:
        dist.irecv(x, src=2).wait()
    return x


def crossed_groups(x: Any) -> Any:
    first, second = dist.new_group([0, 1]), dist.new_group([0, 1, 2])
    for group in (first, second) if rank() == 0 else (second, first):
        dist.all_reduce(x, group=group)
    return x


def room_for_other_parts(x: Any) -> Any:
    dist.alltoall_single(paddle.ones([3]), paddle.ones([3]), in_split_sizes=[1, 1, 1], out_split_sizes=[1, 2, 0])
    return x


def sizes_that_do_not_add_up(x: Any) -> Any:
    dist.alltoall_single(paddle.ones([3]), paddle.ones([3]), in_split_sizes=[1, 1, 2], out_split_sizes=[1, 1, 1])
    return x


FORWARD = [
    (only_on_rank_0, DEADLOCK, "rank 0 waits in all_reduce", "ranks 1 and 2 have returned"),
    (not_on_rank_2, DEADLOCK, "ranks 0 and 1 wait in barrier", "rank 2 has returned"),
    (other_orders, MISMATCH, "different calls meet: rank 0: all_reduce", "rank 1: all_gather"),
    (one_call_too_many, DEADLOCK, "ranks 0 and 2 have returned", "rank 1 waits in all_reduce"),
    (other_operations, MISMATCH, "all_reduce with op SUM meets op MAX: rank 0", "rank 2: all_reduce"),
    (other_roots, MISMATCH, "broadcast with src 0 meets src 1: rank 0", "rank 1: broadcast"),
    (other_targets, MISMATCH, "reduce with dst 0 meets dst 1: rank 0", "rank 1: reduce"),
    (other_shapes, MISMATCH, "all_reduce of shape [1] meets shape [2]: rank 0", "rank 1: all_reduce"),
    (other_dtypes, MISMATCH, "all_reduce of float64 meets float32: rank 0", "rank 1: all_reduce"),
    (other_groups, MISMATCH, "new_group with ranks (0, 1) meets ranks (1, 2): rank 0", "rank 1: new_group"),
    (groups_made_by_members_alone, DEADLOCK, "ranks 0 and 1 wait in new_group", "rank 2 has returned"),
    (parts_that_do_not_fit, MISMATCH, "reduce_scatter of shape [3] meets shape [6]: rank 0", "rank 1: reduce_scatter"),
    (both_send_first, DEADLOCK, "rank 0 waits in send to rank 1", "rank 1 waits in send to rank 0"),
    (both_receive_first, DEADLOCK, "rank 0 waits in recv from rank 1", "rank 1 waits in recv from rank 0"),
    (around_a_ring, DEADLOCK, "rank 0 waits in send to rank 1", "rank 2 waits in send to rank 0"),
    (nobody_sends, DEADLOCK, "rank 1 waits in recv from rank 0", "ranks 0 and 2 have returned"),
    (nobody_receives, DEADLOCK, "rank 1 waits in send to rank 2", "ranks 0 and 2 have returned"),
    (a_message_of_another_shape, MISMATCH, "message of shape [2] meets shape [6]: rank 0", "rank 1: recv from rank 0"),
    (never_answered_tasks, DEADLOCK, "rank 0 waits in recv from rank 2", "ranks 1 and 2 have returned"),
    (room_for_other_parts, MISMATCH, "rank 1 sends shape [1] to rank 0, which has room for shape [2]", "alltoall"),
    (sizes_that_do_not_add_up, MISMATCH, "[3] is not divisible by in_split_sizes [1, 1, 2]", "rank 0"),
    (crossed_groups, DEADLOCK, "waits in all_reduce(op=SUM) of group [0, 1]", "of group [0, 1, 2]"),
]
LINE = re.compile(r"test_between_ranks\.py:(\d+)")


def lines_of(function: Any) -> range:
    first = function.__code__.co_firstlineno
    return range(first, max(line for _, _, line in function.__code__.co_lines() if line) + 1)


@pytest.mark.parametrize(("function", "code", *"ab"), FORWARD, ids=lambda one: getattr(one, "__name__", None))
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_ranks_that_do_not_come_together(function: Any, code: str, a: str, b: str, where: str) -> None:
    found = check(function) if where == "forward" else check(lambda x: x, function)
    assert found.verdict is Status.FAIL
    (diagnosis,) = [d for d in found.diagnosis if d.code in (MISMATCH, DEADLOCK)]
    assert diagnosis.code == code
    assert a in diagnosis.text
    assert b in diagnosis.text
    named = [int(line) for line in LINE.findall(diagnosis.text)]
    assert named
    assert set(named) <= set(lines_of(function))


def not_waited_for(x: Any) -> Any:
    dist.all_reduce(x, sync_op=False)
    return x


def read_before(x: Any) -> Any:
    task = dist.all_reduce(x, sync_op=False)
    y = x * 1
    task.wait()
    return y


@pytest.mark.parametrize("function", [not_waited_for, read_before])
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_what_is_read_before_it_is_waited_for_may_be_anything(function: Any, where: str) -> None:
    found = check(function) if where == "forward" else check(lambda x: x, function)
    assert found.verdict is Status.FAIL
    assert found.diagnosis[0].code == "GC165"
    first = function.__code__.co_firstlineno
    assert [int(line) - first for line in LINE.findall(found.diagnosis[0].text)] == [1]
    assert not {"GC108", "GC151", "GC152"} & {d.code for d in found.diagnosis}


def sent(x: Any, by: int = 1, change: bool = False, waits: bool = True) -> Any:
    y = paddle.empty_like(x)
    sending, receiving = dist.isend(x, (rank() + by) % 3), dist.irecv(y, (rank() - by) % 3)
    if change:
        x.add_(paddle.ones_like(x))
    if waits:
        sending.wait()
    receiving.wait()
    return y


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"change": True}, "the input of send in {} is changed before the call is waited for"),
        ({"waits": False}, "send in {} is never waited for: before the wait, its input must not be changed"),
    ],
)
def test_what_is_sent_has_to_stay_as_it_is_until_it_is_waited_for(options: Any, says: str) -> None:
    assert check(sent, lambda dy: sent(dy, -1)).verdict is Status.PASS
    found = check(lambda x: sent(x, **options), lambda dy: sent(dy, -1))
    where = f"{Path(__file__).relative_to(Path.cwd())}:{sent.__code__.co_firstlineno + 2}"
    assert [(d.code, d.text) for d in found.diagnosis] == [("GC165", f"on all 3 ranks, {says.format(where)}")]


def test_of_calls_in_other_orders_both_lines_are_named() -> None:
    (diagnosis,) = check(other_orders).diagnosis
    first = other_orders.__code__.co_firstlineno
    assert {int(line) for line in LINE.findall(diagnosis.text)} == {first + 3, first + 6}


# --------------------------------------------------------------------------- ranks that raise
def raising(*numbers: int) -> Callable[[Any], Any]:
    def forward(x: Any) -> Any:
        if rank() in numbers:
            raise ZeroDivisionError("of its own")
        dist.all_reduce(x)
        return x

    return forward


@pytest.mark.parametrize(
    ("numbers", "note"),
    [((1,), "on rank 1 of 3"), ((0, 2), "on ranks 0 and 2 of 3"), ((0, 1, 2), "on all 3 ranks")],
    ids=str,
)
def test_what_a_rank_raises_is_raised_with_who_raised_it(numbers: tuple[int, ...], note: str) -> None:
    with pytest.raises(ZeroDivisionError, match="of its own") as caught:
        check(raising(*numbers))
    assert note in caught.value.__notes__


def test_the_frames_of_the_rank_that_raised_are_in_its_error() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        check(raising(2))
    assert "forward" in [frame.name for frame in caught.traceback]


def test_a_rank_that_raises_in_backward_is_named_too() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        check(lambda x: x, raising(1))
    assert "on rank 1 of 3" in caught.value.__notes__


def test_an_error_that_a_rank_catches_leaves_the_others_waiting() -> None:
    def forward(x: Any) -> Any:
        try:
            if rank() == 1:
                raise ValueError
            dist.all_reduce(x)
        except ValueError:
            pass
        return x

    (diagnosis,) = check(forward).diagnosis
    assert diagnosis.code == DEADLOCK
    assert "rank 1 has returned" in diagnosis.text


def test_after_a_world_that_came_apart_the_next_one_is_whole() -> None:
    check(only_on_rank_0)

    def forward(x: Any) -> Any:
        dist.all_reduce(x)
        return x

    def backward(dy: Any) -> Any:
        dist.all_reduce(dy)
        return dy

    assert check(forward, backward).verdict is Status.PASS


def test_a_wrong_layer_of_a_world_runs_on_its_ranks_alone() -> None:
    """The search for a fix would run it outside of the world otherwise."""
    sizes = set()

    def forward(x: Any) -> Any:
        sizes.add(dist.get_world_size())
        return x * 1

    assert check(forward, lambda dy: dy * 2).verdict is Status.FAIL
    assert sizes == {3}
