"""The functions of `paddle.distributed` for collectives and messages, each implemented once for all
its aliases.

A function takes the Tensors of one rank, waits until all members of the group have called it, and
writes the results in place, as Paddle does; with ``sync_op=False`` it returns a `Task`, and the
results are available after its ``wait()``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

from pylayer.distributed.call import SUM, Call, MismatchError, users_line
from pylayer.distributed.group import Group, make_group, world_group
from pylayer.distributed.rank import current

TensorOrList = Any
"""A Tensor or a list of Tensors."""


class Task:
    """A call in progress. A pending call: until it is waited for, its result Tensors may hold
    anything, and its input Tensors must not change.
    """

    def __init__(self, rank: Any, call: Call, plan: Plan) -> None:
        self.rank, self.call, self.plan, self.targets = rank, call, plan, plan.targets
        self.waited = False
        self.sent: list[tuple[Any, Any]] = []
        """The Tensors that are sent, with their values at the call."""
        self.before: list[tuple[Any, Any]] = []
        """The Tensors whose values are undefined until the wait, with their values at the call."""
        rank.unwaited.append(self)

    def spoil_targets(self) -> None:
        """Make the result Tensors hold undefined numbers until the call is waited for."""
        pairs = zip(self.plan.inputs, self.call.inputs, strict=True)
        self.sent = [
            pair for pair in pairs if not any(pair[0] is target for target in self.targets)
        ]
        if self.targets and self.rank.spoils(self.call):
            self.before = [(target, self.rank.copy_values(target)) for target in self.targets]
            for target, values in self.before:
                self.rank.write_result(target, self.rank.undefined_like(values))

    def wait(self, timeout: Any = None) -> bool:
        """Write the results into the result Tensors.

        Raises:
            CommunicationError: the ranks' calls do not match, or no rank answers.
        """
        if not self.waited:
            self.waited = True
            if self in self.rank.unwaited:
                self.rank.unwaited.remove(self)
            if not all(self.rank.is_unchanged(tensor, values) for tensor, values in self.sent):
                self.rank.overwritten.append(self.call)
            for target, values in self.before:
                self.rank.write_result(target, values)
            self.plan.fill(self.rank.wait(self.call))
        return True

    synchronize = wait

    is_completed = wait
    """Polled until it returns True."""


class Plan(NamedTuple):
    """A collective call's contribution, the Tensors that it fills, and the properties that must be
    equal on all members.
    """

    inputs: Sequence[Any] = ()
    fill: Callable[[list[Any]], None] = lambda results: None
    targets: Sequence[Any] = ()
    agreed: Mapping[str, Any] = MappingProxyType({})
    takes: Sequence[Any] | None = None
    """The Tensors whose shape and dtype all members must share; the contribution's by default."""


def call_collective(
    kind: str, plan: Plan, group: Group | None, sync_op: bool, use_calc_stream: bool = False
) -> Task | None:
    """Make a call, and wait for it if it is synchronous. Warn and return None if this rank is not a
    member.
    """
    members, rank = group or world_group(), current()
    if members.rank < 0:
        warn_of_no_member(members)
        return None
    for root in ("src", "dst"):
        check_membership(plan.agreed.get(root, rank.number), members)
    key = (members.id, *members.ranks)
    call = build_call(kind, tuple(members.ranks), members.rank, key, plan)
    return issue_call(call, plan, sync_op or use_calc_stream)


def build_call(
    kind: str, members: tuple[int, ...], place: int, key: tuple[Any, ...], plan: Plan
) -> Call:
    """Build this rank's call from its Tensors with their current values."""
    rank = current()
    takes = plan.inputs if plan.takes is None else plan.takes
    return Call(
        kind,
        rank.number,
        members,
        place,
        key,
        [
            rank.copy_values(value) if isinstance(value, rank.tensor_type) else value
            for value in plan.inputs
        ],
        [rank.like(value) for value in takes if isinstance(value, rank.tensor_type)],
        dict(plan.agreed),
        users_line(),
    )


def warn_of_no_member(members: Group) -> None:
    """Warn that this rank does not take part."""
    text = f"Current global rank {current().number} is not in group {members.name}"
    warnings.warn(text, stacklevel=4)


def check_membership(number: int, members: Group) -> None:
    """Whether a rank of the world is in a group. Raises AssertionError, like Paddle."""
    assert number in members.ranks, (
        f"The input rank {number} can not be found inside the group {members.name}"
    )


def issue_call(call: Call, plan: Plan, waits: bool) -> Task:
    """Make a call, and wait for it if `sync_op`."""
    rank = current()
    task = Task(rank, call, plan)
    rank.issue(call)
    if waits:
        task.wait()
    else:
        task.spoil_targets()
    return task


# --------------------------------------------------------------------------- writing results
def into(*targets: Any) -> Callable[[list[Any]], None]:
    """Write the results into the same number of Tensors."""
    rank = current()

    def fill(results: list[Any]) -> None:
        for target, result in zip(targets, results, strict=False):
            check_room(target, [result])
            rank.write_result(target, result)

    return fill


def into_list(targets: list[Any]) -> Callable[[list[Any]], None]:
    """Write the results into a list: into its Tensors, or as its elements if it is empty."""
    rank = current()

    def fill(results: list[Any]) -> None:
        if not targets and results:
            targets.extend(rank.new_tensor(result) for result in results)
            return
        if results and len(targets) != len(results):
            raise ValueError(
                f"(InvalidArgument) the list for the results has {len(targets)} Tensors, not "
                f"{len(results)}"
            )
        into(*targets)(results)

    return fill


def joined_into(target: Any) -> Callable[[list[Any]], None]:
    """Write the results into one Tensor, one after another."""
    rank = current()

    def fill(results: list[Any]) -> None:
        check_room(target, results)
        rank.write_result(target, rank.join_results(results))

    return fill


def check_room(target: Any, results: Sequence[Any]) -> None:
    """Check that a Tensor has the results' dtype and number of elements. Raises ValueError."""
    first, count = results[0], len(results)
    shape, dtype = current().like(target)
    if math.prod(shape) != sum(result.size for result in results) or dtype != first.dtype.name:
        raise ValueError(
            f"(InvalidArgument) the Tensor for the result is {dtype} of shape {list(shape)}, but "
            f"the result is {first.dtype.name}, {count} of {list(first.shape)}"
        )


# --------------------------------------------------------------------------- collectives
def all_reduce(
    tensor: Any,
    op: int = SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Reduce over the ranks, in place, on every rank."""
    plan = Plan([tensor], into(tensor), [tensor], {"op": op})
    return call_collective("all_reduce", plan, group, sync_op, use_calc_stream)


def reduce(
    tensor: Any,
    dst: int,
    op: int = SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Reduce over the ranks, in place, on rank `dst` of the world."""
    plan = Plan([tensor], into(tensor), [tensor], {"op": op, "dst": dst})
    return call_collective("reduce", plan, group, sync_op, use_calc_stream)


def broadcast(
    tensor: Any,
    src: int,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Copy the values of rank `src` of the world, in place, to every rank."""
    return call_collective(
        "broadcast",
        Plan([tensor], into(tensor), [tensor], {"src": src}),
        group,
        sync_op,
        use_calc_stream,
    )


def all_gather(
    tensor_or_tensor_list: TensorOrList,
    tensor: Any,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Gather the Tensors of all ranks into a list, or joined along the first axis."""
    is_list = isinstance(tensor_or_tensor_list, list)
    fill = (into_list if is_list else joined_into)(tensor_or_tensor_list)
    targets = tensor_or_tensor_list if is_list else [tensor_or_tensor_list]
    return call_collective(
        "all_gather", Plan([tensor], fill, targets), group, sync_op, use_calc_stream
    )


def gather(
    tensor: Any,
    gather_list: list[Any] | None = None,
    dst: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Gather the Tensors of all ranks into a list on rank `dst` of the world."""
    targets = [] if gather_list is None else gather_list
    plan = Plan([tensor], into_list(targets), targets, {"dst": dst})
    return call_collective("gather", plan, group, sync_op, use_calc_stream)


def scatter(
    tensor: Any,
    tensor_or_tensor_list: TensorOrList = None,
    src: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
    tensor_list: TensorOrList = None,
) -> Task | None:
    """Give each rank one Tensor of a list of rank `src` of the world."""
    parts = tensor_or_tensor_list if tensor_list is None else tensor_list
    if current().number != src or parts is None:
        parts = []
    elif not isinstance(parts, (list, tuple)):
        parts = list(parts.split((group or world_group()).nranks, 0))
    plan = Plan(parts, into(tensor), [tensor], {"src": src}, [])
    return call_collective("scatter", plan, group, sync_op, use_calc_stream)


def reduce_scatter(
    tensor: Any,
    tensor_or_tensor_list: TensorOrList = None,
    op: int = SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
    tensor_list: TensorOrList = None,
) -> Task | None:
    """Give rank k part k of the reduction; the parts are a list, or lie along the first axis of one
    Tensor.
    """
    parts = tensor_or_tensor_list if tensor_list is None else tensor_list
    inputs = list(parts) if isinstance(parts, (list, tuple)) else [parts]
    plan = Plan(inputs, into(tensor), [tensor], {"op": op})
    return call_collective("reduce_scatter", plan, group, sync_op, use_calc_stream)


def alltoall(
    out_tensor_or_tensor_list: TensorOrList = None,
    in_tensor_or_tensor_list: TensorOrList = None,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
    **spelled: Any,
) -> Task | None:
    """Give rank k part k of every rank; the parts are lists, or lie along the first axis of one
    Tensor.
    """
    outs: Any = spelled.get("out_tensor_list", out_tensor_or_tensor_list)
    ins: Any = spelled.get("in_tensor_list", in_tensor_or_tensor_list)
    if not isinstance(ins, (list, tuple)):
        return alltoall_single(outs, ins, None, None, group, sync_op, use_calc_stream)
    plan = Plan(list(ins), into_list(outs), outs, takes=outs or ins[:1])
    return call_collective("alltoall", plan, group, sync_op, use_calc_stream)


def alltoall_single(
    out_tensor: Any,
    in_tensor: Any,
    in_split_sizes: Sequence[int] | None = None,
    out_split_sizes: Sequence[int] | None = None,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Give rank k part k of every rank, along the first axis; parts are equal unless sizes are
    given.
    """
    members = group or world_group()
    inputs = parts_for(members, in_tensor, in_split_sizes, "in_split_sizes")
    takes = parts_for(members, out_tensor, out_split_sizes, "out_split_sizes")
    plan = Plan(inputs, joined_into(out_tensor), [out_tensor], takes=takes)
    return call_collective("alltoall_single", plan, group, sync_op, use_calc_stream)


def parts_for(members: Group, tensor: Any, sizes: Sequence[int] | None, name: str) -> list[Any]:
    """Split a Tensor along its first axis into one part per member. Raises MismatchError if it
    cannot be split.
    """
    if members.rank < 0:
        return []
    count, shape = members.nranks, current().like(tensor)[0]
    rows = shape[0] if shape else 0
    split_sizes = [] if sizes is None else [int(size) for size in sizes]
    wanted = split_sizes or [rows // count] * count
    if len(wanted) != count or sum(wanted) != rows or not shape:
        how = f"by {name} {wanted} " if split_sizes else ""
        text = (
            f"a Tensor of shape {list(shape)} is not divisible {how}among {count} ranks along its "
            f"first axis"
        )
        text += f": alltoall_single in {users_line()}, rank {current().number}"
        raise current().failing(MismatchError(text, [current().number]))
    return list(tensor.split(wanted, 0))


def stream_alltoall_single(
    out_tensor: Any,
    in_tensor: Any,
    out_split_sizes: Sequence[int] | None = None,
    in_split_sizes: Sequence[int] | None = None,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """`alltoall_single` with the argument order of ``paddle.distributed.stream``: the sizes are
    swapped.
    """
    return alltoall_single(
        out_tensor, in_tensor, in_split_sizes, out_split_sizes, group, sync_op, use_calc_stream
    )


stream_alltoall_single.__name__ = "alltoall_single"


def barrier(group: Group | None = None) -> None:
    """Wait until every member has called `barrier`."""
    call_collective("barrier", Plan(), group, True)


def wait(tensor: Any, group: Group | None = None, use_calc_stream: bool = True) -> None:
    """Wait for the calls in progress that fill `tensor`."""
    for task in tuple(current().unwaited):
        if any(target is tensor for target in task.targets):
            task.wait()


# --------------------------------------------------------------------------- objects
def all_gather_object(object_list: list[Any], obj: Any, group: Group | None = None) -> None:
    """Gather the objects of all ranks into a list."""
    call_collective("all_gather_object", Plan([obj], object_list.extend, takes=[]), group, True)


def broadcast_object_list(object_list: list[Any], src: int, group: Group | None = None) -> None:
    """Copy the objects of rank `src` of the world, in place, to every rank."""
    plan = Plan(object_list, replacing(object_list), agreed={"src": src}, takes=[])
    call_collective("broadcast_object_list", plan, group, True)


def scatter_object_list(
    out_object_list: list[Any],
    in_object_list: Sequence[Any] | None = None,
    src: int = 0,
    group: Group | None = None,
) -> None:
    """Give each rank one object of rank `src` of the world."""
    objects = list(in_object_list or ())
    plan = Plan(objects, replacing(out_object_list), agreed={"src": src}, takes=[])
    call_collective("scatter_object_list", plan, group, True)


def replacing(objects: list[Any]) -> Callable[[list[Any]], None]:
    """Replace the elements of a list with the results."""

    def fill(results: list[Any]) -> None:
        objects[:] = results

    return fill


# --------------------------------------------------------------------------- messages
def message(tensor: Any, other: int, sends: bool, group: Group | None, waits: bool) -> Task | None:
    """One side of a message between this rank and rank `other` of the world."""
    members, rank = group or world_group(), current()
    if members.rank < 0:
        warn_of_no_member(members)
        return None
    check_membership(other, members)
    if sends:
        plan, src, dst = Plan([tensor], takes=[tensor]), rank.number, other
    else:
        plan, src, dst = Plan([], into(tensor), [tensor], takes=[tensor]), other, rank.number
    plan = plan._replace(agreed={"src": src, "dst": dst})
    call = build_call(
        "message", (src, dst), int(not sends), ("message", members.id, src, dst), plan
    )
    return issue_call(call, plan, waits)


def send(
    tensor: Any,
    dst: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Send to rank `dst` of the world, and wait until it receives."""
    return message(tensor, dst, True, group, sync_op or use_calc_stream)


def recv(
    tensor: Any,
    src: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:
    """Receive from rank `src` of the world, in place."""
    return message(tensor, src, False, group, sync_op or use_calc_stream)


def isend(tensor: Any, dst: int, group: Group | None = None) -> Task | None:
    """`send`, without waiting."""
    return message(tensor, dst, True, group, False)


def irecv(tensor: Any, src: int | None = None, group: Group | None = None) -> Task | None:
    """`recv`, without waiting."""
    return message(tensor, src or 0, False, group, False)


class P2POp:
    """A message to be sent or received, for `batch_isend_irecv`."""

    def __init__(
        self, op: Callable[..., Any], tensor: Any, peer: int, group: Group | None = None
    ) -> None:
        if op not in (isend, irecv):
            raise RuntimeError(
                "Invalid ``op`` function. Expected ``op`` to be of type ``isend`` or ``irecv``."
            )
        self.op, self.tensor, self.peer, self.group = op, tensor, peer, group


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Task]:
    """Start several messages at once."""
    tasks = [message.op(message.tensor, message.peer, message.group) for message in p2p_op_list]
    return [task for task in tasks if task is not None]


@contextmanager
def _coalescing_manager(group: Group | None = None, tasks: Any = None) -> Iterator[None]:
    """A block whose messages Paddle may send together; here each is sent separately."""
    yield


# --------------------------------------------------------------------------- groups
def new_group(
    ranks: Sequence[int] | None = None, backend: str | None = None, **options: Any
) -> Group:
    """Make a group of some ranks; every rank of the world must make it.

    Raises:
        ValueError: a rank is not in the world.
        CommunicationError: other ranks make a different group at this point, or none.
    """
    group = make_group(ranks)
    call_collective("new_group", Plan(agreed={"ranks": tuple(group.ranks)}), None, True)
    return group
