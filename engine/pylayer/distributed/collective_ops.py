"""Differentiable operations between ranks, with one input and one output per rank, in rank order.
Only the sums round.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import ModuleType

from pylayer.tape.op import op
from pylayer.tensor.array import Array


@op(many=True, x=lambda g, F: F.add_n(list(g)))
def all_reduce(xp: ModuleType, x: Sequence[Array]) -> tuple[Array, ...]:
    """The sum, one copy per rank."""
    total = functools.reduce(xp.add, x) if len(x) > 1 else x[0].copy()
    return (total, *(total.copy() for _ in x[1:]))


@op(many=True, x=lambda g, F, i: F.add_n([F.getitem(cotangent, i) for cotangent in g]))
def all_gather(xp: ModuleType, x: Sequence[Array]) -> tuple[Array, ...]:
    """All inputs stacked along a new first axis, one copy per rank."""
    stacked = xp.stack(x)
    return (stacked, *(stacked.copy() for _ in x[1:]))


@op(many=True, x=lambda g, F: F.stack(list(g)))
def reduce_scatter(xp: ModuleType, x: Sequence[Array]) -> tuple[Array, ...]:
    """Rank k gets part k of the sum, split along the first axis."""
    total = functools.reduce(xp.add, x) if len(x) > 1 else x[0]
    return tuple(total[k].copy() for k in range(len(x)))


@op(many=True, x=lambda g, F, i: F.stack([F.getitem(cotangent, i) for cotangent in g]))
def all_to_all(xp: ModuleType, x: Sequence[Array]) -> tuple[Array, ...]:
    """Rank k gets part k of every input, split along the first axis."""
    return tuple(xp.stack([array[k] for array in x]) for k in range(len(x)))


@op(x=lambda g, F: F.add_n(list(g)))
def broadcast_ranks(xp: ModuleType, x: Array, count: int) -> tuple[Array, ...]:
    """A copy for each of `count` ranks."""
    return tuple(x.copy() for _ in range(count))
