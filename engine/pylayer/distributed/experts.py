"""Rows to experts and back: expert k of rank j is number k + j · (experts of a rank) of all."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from pylayer.distributed import communication
from pylayer.distributed.call import MismatchError, users_line
from pylayer.distributed.group import Group, world_group
from pylayer.distributed.rank import current
from pylayer.layer.py_layer import PyLayer
from pylayer.ops.creation import zeros
from pylayer.ops.joining import concat
from pylayer.tensor.tensor import Tensor

Sizes = Sequence[int]


def to_experts(paddle: Any, x: Any, local: Sizes, own: Sizes, members: Group) -> Any:
    """The rows that the experts of this rank get: expert by expert, from each rank.

    Args:
        paddle: has ``concat`` and ``zeros``.
        x: the rows of this rank, in the order of all experts.
        local: how many of these go to each of all experts.
        own: how many come, from each rank, to each expert of this one.
    """
    count, ranks = len(local) // members.nranks, members.nranks
    fits(x, local, "local_count")
    rows = exchanged_rows(paddle, x, summed_by(count, local), summed_by(count, own), members).split(
        list(own), 0
    )
    return paddle.concat([rows[k + j * count] for k in range(count) for j in range(ranks)], 0)


def from_experts(paddle: Any, x: Any, local: Sizes, own: Sizes, members: Group) -> Any:
    """Back again: the rows of this rank, in the order of all experts, of what these made of
    them."""
    count, ranks = len(local) // members.nranks, members.nranks
    fits(x, own, "global_count")
    made = x.split([own[k + j * count] for k in range(count) for j in range(ranks)], 0)
    rows = paddle.concat([made[k * ranks + j] for j in range(ranks) for k in range(count)], 0)
    return exchanged_rows(paddle, rows, summed_by(count, own), summed_by(count, local), members)


def fits(x: Any, sizes: Sizes, name: str) -> None:
    """Whether rows are as many as counts say. Raises MismatchError."""
    if sum(sizes) != x.shape[0]:
        text = (
            f"{name} {list(sizes)} counts {sum(sizes)} rows of {x.shape[0]}: {users_line()}, rank "
            f"{current().number}"
        )
        raise current().failing(MismatchError(text, [current().number]))


def exchanged_rows(paddle: Any, x: Any, given: Sizes, come: Sizes, members: Group) -> Any:
    """Exchange `x`, sent in parts of some sizes, for parts of the received sizes."""
    out = paddle.zeros([sum(come), *x.shape[1:]], x.dtype)
    communication.alltoall_single(out, x, given, come, members)
    return out


def summed_by(count: int, sizes: Sizes) -> list[int]:
    """Sums of `count` sizes in turn."""
    return [sum(sizes[start : start + count]) for start in range(0, len(sizes), count)]


# --------------------------------------------------------------------------- as Paddle has them
ENGINES_OWN = SimpleNamespace(concat=concat, zeros=zeros)


class RowsToExperts(PyLayer):
    """`to_experts`, or back, with the other for its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, sizes: tuple[Sizes, Sizes, Group], back: bool) -> Tensor:
        ctx.sizes, ctx.back = sizes, back
        return (from_experts if back else to_experts)(ENGINES_OWN, x, *sizes)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        return (to_experts if ctx.back else from_experts)(ENGINES_OWN, dy, *ctx.sizes)  # type: ignore[no-any-return]


def global_scatter(
    x: Tensor,
    local_count: Tensor,
    global_count: Tensor,
    group: Group | None = None,
    use_calc_stream: bool = True,
) -> Any:
    """The rows that the experts of this rank get."""
    return RowsToExperts.apply(
        x, (local_count.tolist(), global_count.tolist(), group or world_group()), False
    )


def global_gather(
    x: Tensor,
    local_count: Tensor,
    global_count: Tensor,
    group: Group | None = None,
    use_calc_stream: bool = True,
) -> Any:
    """The rows of this rank, of what experts have made of them."""
    return RowsToExperts.apply(
        x, (local_count.tolist(), global_count.tolist(), group or world_group()), True
    )
