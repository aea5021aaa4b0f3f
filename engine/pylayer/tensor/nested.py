"""Walks through lists, tuples, dicts and slices that hold Tensors and other values."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

# `type(value)` is used: `isinstance` would read `__class__` of a recorded array.


def leaves_in(value: Any) -> list[Any]:
    """The values in lists, tuples, sets, dicts and slices, at any depth; any other value itself."""
    leaves, waiting = [], [value]
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if kind is slice:
            waiting += (item.step, item.stop, item.start)
        elif issubclass(kind, dict):
            waiting += reversed(item.values())
        elif issubclass(kind, (list, tuple, set, frozenset, deque)):
            waiting += reversed(list(item))
        else:
            leaves.append(item)
    return leaves


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """`value` with `function` applied to the items of its lists, tuples, dicts and slices, at any
    depth.

    Containers in which nothing changes are returned unchanged.
    """
    kind = type(value)
    if kind is slice:
        return slice(*mapped((value.start, value.stop, value.step), function))
    is_dict = issubclass(kind, dict)
    if not is_dict and not issubclass(kind, (list, tuple)):
        return function(value)
    before = list(value.values()) if is_dict else value
    items = list(map(mapped, before, repeat(function)))
    if all(map(operator.is_, items, before)):
        return value
    return dict(zip(value, items, strict=True)) if is_dict else like(value, items)


def like(value: Any, items: Sequence[Any]) -> Any:
    """Items in the same kind of list or tuple as `value`, including named tuples."""
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
