"""Paddle's own layers for model and sequence parallelism, along the model axis of `fleet` or in a
group.
"""

from __future__ import annotations

from typing import Any

from pylayer.distributed import communication
from pylayer.distributed.group import Group, world_group
from pylayer.distributed.topology import get_hybrid_communicate_group
from pylayer.layer.py_layer import PyLayer
from pylayer.ops.creation import empty
from pylayer.ops.joining import concat, split
from pylayer.ops.shape import clone
from pylayer.tensor.tensor import Tensor


# -------------------------------------------------------------------------- operations on a Tensor
def sum_over_group(x: Tensor, group: Group) -> Tensor:
    """The sum over the group."""
    total: Tensor = clone(x)
    communication.all_reduce(total, group=group)
    return total


def take_part(x: Tensor, group: Group, axis: int = 0) -> Tensor:
    """This rank's part along an axis."""
    return split(x, group.nranks, axis)[group.rank]


def gather_parts(x: Tensor, group: Group, axis: int = 0) -> Tensor:
    """The Tensors of all ranks, joined along an axis."""
    parts: list[Tensor] = []
    communication.all_gather(parts, x, group)
    return concat(parts, axis)


def sum_and_take_part(x: Tensor, group: Group) -> Tensor:
    """This rank's part, along the first axis, of the sum over the group."""
    result: Tensor = empty([x.shape[0] // group.nranks, *x.shape[1:]], x.dtype)
    communication.reduce_scatter(result, x, group=group)
    return result


def model_group() -> Group:
    """The group along the model axis."""
    return get_hybrid_communicate_group().groups["model"]


# --------------------------------------------------------------------------- tensor parallelism
class c_identity_eager(PyLayer):  # noqa: N801 - Paddle's name
    """Return the Tensor; backward sums its gradient over the group."""

    @staticmethod
    def forward(
        ctx: Any, tensor: Tensor, group: Group, skip_c_identity_dynamic: bool = False
    ) -> Tensor:
        ctx.group = group
        return clone(tensor)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        return sum_over_group(dy, ctx.group)


class mp_allreduce_eager(PyLayer):  # noqa: N801 - Paddle's name
    """Sum over the group; backward returns the cotangent, which is the same on every rank."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Group, *rest: Any) -> Tensor:
        return sum_over_group(tensor, group)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        return clone(dy)


class c_split_eager(PyLayer):  # noqa: N801 - Paddle's name
    """Take this rank's part along the last axis; backward gathers the gradients of all ranks."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Group, rank: int = 0, nranks: int = 0) -> Tensor:
        ctx.group = group
        return take_part(tensor, group, -1)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        return gather_parts(dy, ctx.group, -1)


class _Concat(PyLayer):
    """Join the parts of all ranks along the last axis; backward takes this rank's part of the
    gradient.
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return gather_parts(tensor, group, -1)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        return take_part(dy, ctx.group, -1)


def _c_identity(
    tensor: Tensor, group: Group | None = None, skip_c_identity_dynamic: bool = False
) -> Any:
    return c_identity_eager.apply(tensor, group or world_group())


def _mp_allreduce(
    tensor: Tensor, op: int = 0, group: Group | None = None, *args: Any, **kwargs: Any
) -> Any:
    return mp_allreduce_eager.apply(tensor, group or world_group())


def _c_split(tensor: Tensor, group: Group | None = None) -> Any:
    return c_split_eager.apply(tensor, group or world_group())


def _c_concat(tensor: Tensor, group: Group | None = None) -> Any:
    return _Concat.apply(tensor, group or world_group())


# --------------------------------------------------------------------------- sequence parallelism
def scatter(input: Tensor) -> Tensor:
    """This rank's part along the first axis."""
    return take_part(input, model_group())


def all_gather(input: Tensor) -> Tensor:
    """The parts of all ranks."""
    return gather_parts(input, model_group())


def reduce_scatter(input: Tensor) -> Tensor:
    """This rank's part of the sum."""
    return sum_and_take_part(input, model_group())


class ScatterOp(PyLayer):
    """Take this rank's part along the first axis; backward gathers the gradients of all ranks."""

    @staticmethod
    def forward(ctx: Any, input: Tensor) -> Tensor:
        return scatter(input)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return all_gather(grad)


class GatherOp(PyLayer):
    """Gather the parts of all ranks; backward takes this rank's part of the gradient."""

    @staticmethod
    def forward(ctx: Any, input: Tensor) -> Tensor:
        return all_gather(input)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return scatter(grad)


class AllGatherOp(PyLayer):
    """Gather the parts of all ranks; backward sums the gradients over the ranks and takes this
    rank's part.
    """

    @staticmethod
    def forward(ctx: Any, input: Tensor) -> Tensor:
        return all_gather(input)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return reduce_scatter(grad)


class ReduceScatterOp(PyLayer):
    """Take this rank's part of the sum; backward gathers the gradients of all ranks."""

    @staticmethod
    def forward(ctx: Any, input: Tensor) -> Tensor:
        return reduce_scatter(input)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return all_gather(grad)
