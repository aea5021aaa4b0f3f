"""The operations that join ranks: an input and an output for each, in their order. None of them
rounds but the sums."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import ModuleType

from pylayer.tape.op import op
from pylayer.tensor.array import Array


@op(many=True, x=lambda g, F: F.add_n(list(g)))
def all_reduce(xp: ModuleType, x: Sequence[Array]) -> tuple[Array, ...]:
    """The sum, once for each."""
    total = functools.reduce(xp.add, x) if len(x) > 1 else x[0].copy()
    return (total, *(total.copy() for _ in x[1:]))


@op(many=True, x=lambda g, F, i: F.add_n([F.getitem(one, i) for one in g]))
def all_gather(xp: ModuleType, x: Sequence[Array]) -> tuple[Array, ...]:
    """All of them along a new first axis, once for each."""
    whole = xp.stack(x)
    return (whole, *(whole.copy() for _ in x[1:]))


@op(many=True, x=lambda g, F: F.stack(list(g)))
def reduce_scatter(xp: ModuleType, x: Sequence[Array]) -> tuple[Array, ...]:
    """Part k of the sum, along the first axis, for the k-th."""
    total = functools.reduce(xp.add, x) if len(x) > 1 else x[0]
    return tuple(total[k].copy() for k in range(len(x)))


@op(many=True, x=lambda g, F, i: F.stack([F.getitem(one, i) for one in g]))
def all_to_all(xp: ModuleType, x: Sequence[Array]) -> tuple[Array, ...]:
    """For the k-th the parts k of all, along the first axis."""
    return tuple(xp.stack([one[k] for one in x]) for k in range(len(x)))


@op(x=lambda g, F: F.add_n(list(g)))
def broadcast_ranks(xp: ModuleType, x: Array, count: int) -> tuple[Array, ...]:
    """A copy for each of `count` ranks."""
    return tuple(x.copy() for _ in range(count))
