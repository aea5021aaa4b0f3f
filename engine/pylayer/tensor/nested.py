"""Walks through lists, tuples, dicts and slices that hold Tensors and other values."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def leaves_in(value: Any) -> Iterator[Any]:
    """Values in lists, tuples, sets, dicts and slices, at any depth; any other value itself."""
    if isinstance(value, dict):
        value = list(value.values())
    elif type(value) is slice:
        value = (value.start, value.stop, value.step)
    if not isinstance(value, (list, tuple, set, frozenset, deque)):
        yield value
        return
    for item in value:
        yield from leaves_in(item)


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """`value` with the results of `function` in place of what its lists, tuples, dicts and slices
    hold, at any depth.

    Containers in which nothing changes are themselves in the result.
    """
    if type(value) is slice:
        return slice(*mapped((value.start, value.stop, value.step), function))
    is_dict = isinstance(value, dict)
    if not is_dict and not isinstance(value, (list, tuple)):
        return function(value)
    before = list(value.values()) if is_dict else value
    items = [mapped(item, function) for item in before]
    if all(map(operator.is_, items, before)):
        return value
    return dict(zip(value, items, strict=True)) if is_dict else like(value, items)


def like(value: Any, items: Sequence[Any]) -> Any:
    """Items in the same kind of list or tuple as `value`; a namedtuple stays one."""
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
