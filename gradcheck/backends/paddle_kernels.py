"""Paddle's operators that communicate, which have no kernel for the CPU, by the engine's ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from gradcheck.backends.base import Tensor
from pylayer.distributed import communication, group
from pylayer.distributed.call import MAX

Kernels = dict[str, Callable[..., Any]]
"""By the name of the operator."""


def kernels(paddle: ModuleType) -> Kernels:
    """Those of ``paddle._C_ops``."""

    def gathered(tensor: Tensor, of: group.Group | None) -> Tensor:
        parts: list[Tensor] = []
        communication.all_gather(parts, tensor, of)
        return paddle.concat(parts, -1)

    def summed(tensor: Tensor, of: group.Group | None) -> Tensor:
        total = paddle.assign(tensor)
        communication.all_reduce(total, group=of)
        return total

    def reduced(tensor: Tensor, ring: int, op: int, *rest: Any) -> Tensor:
        communication.all_reduce(tensor, op, group.get_group(ring))
        return tensor

    return {
        "c_identity": lambda tensor, *rest: paddle.assign(tensor),
        "c_split": lambda tensor, rank, count, *rest: paddle.assign(paddle.split(tensor, count, -1)[rank]),
        "c_concat": lambda tensor, rank, count, ring, *rest: gathered(tensor, group.get_group(ring)),
        "mp_allreduce_sum": lambda tensor, ring, *rest: summed(tensor, group.get_group(ring)),
        "all_reduce_": reduced,
        "c_softmax_with_cross_entropy": cross_entropy_over_ranks(paddle).apply,
    }


LEGACY = {
    "c_identity": (),
    "c_split": ("rank", "nranks"),
    "c_concat": ("rank", "nranks", "ring_id"),
    "c_softmax_with_cross_entropy": ("ignore_index", "ring_id", "rank", "nranks"),
}
"""Those of ``paddle._legacy_C_ops``: the attributes in the order in which those of ``paddle._C_ops`` take them."""


def legacy_kernels(paddle: ModuleType) -> Kernels:
    """Those of ``paddle._legacy_C_ops``."""
    newer = kernels(paddle)
    return {name: by_names(newer[name], attributes) for name, attributes in LEGACY.items()}


def by_names(kernel: Callable[..., Any], attributes: Sequence[str]) -> Callable[..., Any]:
    """A kernel that takes Tensors, and then the name of each attribute in front of its value."""

    def called(*given: Any) -> Any:
        count = next((k for k, one in enumerate(given) if isinstance(one, str)), len(given))
        values = dict(zip(given[count::2], given[count + 1 :: 2], strict=True))
        return kernel(*given[:count], *(values[name] for name in attributes))

    return called


def cross_entropy_over_ranks(paddle: ModuleType) -> Any:
    """A layer that gives the softmax of logits whose classes are spread over ranks, and the loss of each row.

    The rank at place k of the group has the classes from k times its number of them on; a row whose label is to be
    ignored has the loss 0. The softmax has no gradient, as in Paddle.
    """

    class CrossEntropyOverRanks(paddle.autograd.PyLayer):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(
            ctx: Any, logits: Tensor, label: Tensor, ignore_index: int, ring: int, rank: int, count: int
        ) -> tuple[Tensor, Tensor]:
            members, classes = group.get_group(ring), logits.shape[-1]
            largest = logits.max(-1, keepdim=True)
            communication.all_reduce(largest, MAX, members)
            exponentials = paddle.exp(logits - largest)
            total = exponentials.sum(-1, keepdim=True)
            communication.all_reduce(total, group=members)
            ctx.own = (label == paddle.arange(rank * classes, (rank + 1) * classes, dtype=label.dtype)).astype(
                logits.dtype
            )
            of_label = ((logits - largest) * ctx.own).sum(-1, keepdim=True)
            communication.all_reduce(of_label, group=members)
            ctx.counts = (label != ignore_index).astype(logits.dtype)
            ctx.softmax = exponentials / total
            ctx.mark_non_differentiable(softmax := paddle.assign(ctx.softmax))
            return softmax, (paddle.log(total) - of_label) * ctx.counts

        @staticmethod
        def backward(ctx: Any, of_softmax: Tensor, of_loss: Tensor) -> tuple[Tensor, None]:
            return (ctx.softmax - ctx.own) * of_loss * ctx.counts, None

    return CrossEntropyOverRanks
