"""Arguments of operators: the Tensors in them, with values put in their places, and as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pylayer.static.sizes import SymbolicSize
from pylayer.tensor.tensor import Tensor


def tensors_in(value: Any) -> list[Tensor]:
    """The Tensors in a value, also inside lists, tuples, dicts and slices; of a size those that it is read off."""
    found: list[Tensor] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Tensor):
            found.append(item)
        elif isinstance(item, (list, tuple)):
            stack.extend(reversed(item))
        elif isinstance(item, dict):
            stack.extend(reversed(list(item.values())))
        elif type(item) is slice:
            stack.extend((item.step, item.stop, item.start))
        elif isinstance(item, SymbolicSize):
            found.extend(u.variable for u in item.unknowns() if u.variable is not None)
    return found


def resolved(value: Any, tensor: Callable[[Tensor], Any], size: Callable[..., int]) -> Any:
    """`value` with every Tensor and every unknown size in it replaced by what the functions give."""
    if isinstance(value, Tensor):
        return tensor(value)
    if isinstance(value, SymbolicSize):
        return value.value(size)
    if isinstance(value, dict):
        return {key: resolved(item, tensor, size) for key, item in value.items()}
    if type(value) in (list, tuple) or isinstance(value, list):
        items = [resolved(item, tensor, size) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if type(value) is slice:
        return slice(
            *(resolved(item, tensor, size) for item in (value.start, value.stop, value.step))
        )
    return value


def show(value: Any) -> str:
    """A value as a printed program shows it."""
    if isinstance(value, Tensor):
        return value.name
    if type(value) is list:
        return f"[{', '.join(map(show, value))}]"
    return repr(value)
