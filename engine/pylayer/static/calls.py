"""What a compiled program calls where a line does not do: gradients that need a node, and gradients of gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pylayer.grad_mode import grad_mode_set
from pylayer.op_node import OpNode, SeveralOutputs
from pylayer.static.operators import Call, Gradient
from pylayer.tensor import Tensor

Slots = list[Any]


def node_of(op: Call, wanted: set[int]) -> Callable[[Sequence[Any], list[Any]], OpNode]:
    """What makes, of the arguments and outputs of a call, the node that dynamic mode would record.

    Its parents are the positions of the inputs whose gradient is `wanted`.
    """
    row, several = op.op, op.several
    parents: Any = [k if k in wanted else None for k in range(len(op.inputs))]

    def make(values: Sequence[Any], outs: list[Any]) -> OpNode:
        out = outs if several else outs[0]
        saved = [
            vjp.pick(*values, out, k) if parent is not None else ()
            for k, (vjp, parent) in enumerate(zip(row.vjps, parents))  # noqa: B905 - `many` repeats its vjp
        ]
        given = values[0] if row.many else [values[position] for position in row.positions]
        shapes = [getattr(a, "shape", ()) for a in given]
        return (SeveralOutputs if several else OpNode)(row, parents, saved, shapes, out)

    return make


def pulled_back(
    node: int, several: bool, cotangents: Sequence[int | None], outs: dict[int, int]
) -> Callable[[Slots], None]:
    """The gradients of a call that left a node in a slot; `outs` are their slots by the position of the input."""

    def run(slots: Slots) -> None:
        given = [None if slot is None else slots[slot] for slot in cotangents]
        found: Any = slots[node].pullback([given if several else given[0]], False)
        for position, gradient in found:
            if position in outs:
                slots[outs[position]] = gradient

    return run


def gradient_of_gradient(
    op: Gradient,
    inputs: Sequence[tuple[int, bool]],
    outs: Sequence[int],
    resolver: Callable[[Any], Callable[[Slots], Any]],
) -> Callable[[Slots], None]:
    """The gradient of a gradient: the vjp on Tensors, differentiated as in dynamic mode.

    Args:
        inputs: slot, and whether a gradient can be taken, of each input.
    """

    def run(slots: Slots) -> None:
        tensors = [Tensor(slots[slot], None, not differentiable) for slot, differentiable in inputs]
        with grad_mode_set(True):
            found = op.on_tensors(tensors, lambda value: resolver(value)(slots))
        for slot, tensor in zip(outs, found, strict=True):
            slots[slot] = tensor.array

    return run
