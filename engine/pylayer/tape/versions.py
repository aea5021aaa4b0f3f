"""In-place changes: which memory was changed, how often, and when.

A version belongs to memory, not to a tensor: views and detached tensors share it. Only memory that
was changed in place has an entry, so a program without in-place changes costs one truth test per
node.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable
from itertools import count
from typing import Any, NamedTuple

from pylayer.tensor.array import XP, Array, owner
from pylayer.tensor.nested import leaves_in

clock = count(0, -1)
"""A counter that stamps nodes and in-place changes in the order in which they happen: the newest
has the smallest stamp.
"""

STAMPS = 64
"""The number of changes of one memory whose times are kept for messages: a parameter changes at
every step.
"""


class _Changes(NamedTuple):
    buffer: weakref.ref[Array]
    version: int
    stamps: deque[int]
    uncounted: deque[int]
    """The latest change that does not increment the version: only values that a PyLayer saved are
    compared with it.
    """


changes: dict[int, _Changes] = {}
"""The changes of each array that owns its memory, by the array's id."""


def mark_changed(array: Array, times: int = 1, moment: int | None = None) -> None:
    """Record that the memory of `array` was changed in place, at a `moment` of the `clock` or just
    now.

    A change with `times` 0 is one that operations of Paddle do not register.
    """
    buffer = owner(array)
    key = id(buffer)
    before = changes.get(key)
    if before is None:
        gone = weakref.ref(buffer, lambda _: changes.pop(key, None))
        before = _Changes(gone, 0, deque(maxlen=STAMPS), deque(maxlen=1))
    stamps = before.stamps if times else before.uncounted
    stamps.extend(next(clock) if moment is None else moment for _ in range(times or 1))
    changes[key] = before._replace(version=before.version + times)


def version_of(array: Array) -> int:
    """The number of in-place changes of the memory of `array`."""
    change = changes.get(id(owner(array)))
    return change.version if change else 0


def changed_since(values: Iterable[Any], age: int, uncounted: bool = False) -> Array | None:
    """The first array among `values`, including those in lists and tuples, that was changed since a
    node of that age saved them; None if there is none.

    With `uncounted`, changes that do not increment the version count too.
    """
    for value in leaves_in(list(values)):
        change = changes.get(id(owner(value))) if type(value) in XP else None
        if change is not None:
            stamps = change.stamps + change.uncounted if uncounted else change.stamps
            if any(stamp < age for stamp in stamps):
                return value
    return None


def check_unchanged(values: Iterable[Any], age: int, label: str, uncounted: bool = False) -> None:
    """Raise RuntimeError if `changed_since` finds a changed value. The key phrases are Paddle's
    (observed rules 18 and 47).
    """
    value = changed_since(values, age, uncounted)
    if value is not None:
        change = changes[id(owner(value))]
        # A lower bound if there were more changes than `STAMPS`.
        saved = change.version - sum(stamp < age for stamp in change.stamps)
        raise RuntimeError(
            f"(PermissionDenied) A Tensor of shape {list(value.shape)} used in gradient "
            f"computation of {label} has been modified by an inplace operation since it was saved. "
            "Use the out-of-place form, or clone() the Tensor before changing it. (received "
            f"tensor_version:{change.version} != wrapper_version_snapshot:{saved})"
        )
