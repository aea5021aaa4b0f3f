"""Sending rows to experts and back: expert k of rank j has the global number k + j · (experts per
rank).
"""

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


def to_experts(paddle: Any, x: Any, local_count: Sizes, global_count: Sizes, members: Group) -> Any:
    """The rows that the experts of this rank get: expert by expert, from each rank.

    Args:
        paddle: the module with ``concat`` and ``zeros``.
        x: the rows of this rank, in the order of all experts.
        local_count: how many of these rows go to each expert of the world.
        global_count: how many rows come, from each rank, to each expert of this rank.
    """
    count, ranks = len(local_count) // members.nranks, members.nranks
    check_row_count(x, local_count, "local_count")
    rows = exchange_rows(
        paddle, x, sum_runs(count, local_count), sum_runs(count, global_count), members
    ).split(list(global_count), 0)
    return paddle.concat([rows[k + j * count] for k in range(count) for j in range(ranks)], 0)


def from_experts(
    paddle: Any, x: Any, local_count: Sizes, global_count: Sizes, members: Group
) -> Any:
    """Send the experts' results back: this rank's rows, in the order of all experts."""
    count, ranks = len(local_count) // members.nranks, members.nranks
    check_row_count(x, global_count, "global_count")
    results = x.split([global_count[k + j * count] for k in range(count) for j in range(ranks)], 0)
    rows = paddle.concat([results[k * ranks + j] for j in range(ranks) for k in range(count)], 0)
    return exchange_rows(
        paddle, rows, sum_runs(count, global_count), sum_runs(count, local_count), members
    )


def check_row_count(x: Any, sizes: Sizes, name: str) -> None:
    """Check that the number of rows matches the counts. Raises MismatchError."""
    if sum(sizes) != x.shape[0]:
        text = (
            f"{name} {list(sizes)} counts {sum(sizes)} rows of {x.shape[0]}: {users_line()}, rank "
            f"{current().number}"
        )
        raise current().failing(MismatchError(text, [current().number]))


def exchange_rows(
    paddle: Any, x: Any, send_sizes: Sizes, receive_sizes: Sizes, members: Group
) -> Any:
    """Exchange parts of `x` with the given sizes for parts with the received sizes."""
    received = paddle.zeros([sum(receive_sizes), *x.shape[1:]], x.dtype)
    communication.alltoall_single(received, x, send_sizes, receive_sizes, members)
    return received


def sum_runs(count: int, sizes: Sizes) -> list[int]:
    """Sums over consecutive runs of `count` sizes."""
    return [sum(sizes[start : start + count]) for start in range(0, len(sizes), count)]


# --------------------------------------------------------------------------- Paddle's functions
ENGINES_OWN = SimpleNamespace(concat=concat, zeros=zeros)


class RowsToExperts(PyLayer):
    """`to_experts` or its inverse; each is the gradient of the other."""

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
    """The rows that this rank's experts receive."""
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
    """This rank's rows, as the experts returned them."""
    return RowsToExperts.apply(
        x, (local_count.tolist(), global_count.tolist(), group or world_group()), True
    )
