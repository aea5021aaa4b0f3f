"""In-place changes: which memory was changed, how often, and when.

A version belongs to memory, not to a tensor: views and detached tensors share it. Only memory that was changed in place
has an entry, so a program without in-place changes pays one truth test per node.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from itertools import count
from typing import Any, NamedTuple, Protocol

from pylayer.array import XP, Array, owner

clock = count(0, -1)
"""Stamps nodes and in-place changes in the order in which they happen: the newest has the smallest."""


class Saver(Protocol):
    """What saves arrays for backward: a node."""

    age: int

    @property
    def label(self) -> str:
        """What messages call it."""


class _Change(NamedTuple):
    buffer: weakref.ref[Array]
    stamp: int
    version: int


changes: dict[int, _Change] = {}
"""By id of the array that owns the memory."""


def mark_changed(array: Array) -> None:
    """Record that the memory of `array` was changed in place just now."""
    buffer = owner(array)
    key = id(buffer)
    forget = weakref.ref(buffer, lambda _: changes.pop(key, None))
    changes[key] = _Change(forget, next(clock), version_of(array) + 1)


def version_of(array: Array) -> int:
    """How often the memory of `array` was changed in place."""
    change = changes.get(id(owner(array)))
    return change.version if change else 0


def check_unchanged(values: Iterable[Any], node: Saver) -> None:
    """Check the arrays among `values`, which `node` has saved.

    Raises:
        RuntimeError: one was changed in place since. The key phrases are Paddle's (observed rules 18 and 47).
    """
    for value in values:
        if type(value) not in XP:
            continue
        change = changes.get(id(owner(value)))
        if change and change.stamp < node.age:
            raise RuntimeError(
                f"A Tensor of shape {list(value.shape)} used in gradient computation of {node.label} has been modified "
                f"by an inplace operation since it was saved (received tensor_version:{change.version}). "
                f"Use the out-of-place form, or clone() the Tensor before changing it."
            )
