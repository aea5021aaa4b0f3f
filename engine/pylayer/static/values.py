"""Arguments of operators: finding the Tensors in them, replacing these by values, and formatting
them as text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pylayer.static.sizes import SymbolicSize
from pylayer.tensor.nested import leaves_in, mapped
from pylayer.tensor.tensor import Tensor


def tensors_in(value: Any) -> list[Tensor]:
    """The Tensors in a value, also inside containers; for a size, the Tensors from which it is
    computed.
    """
    tensors: list[Tensor] = []
    for leaf in leaves_in(value):
        if isinstance(leaf, Tensor):
            tensors.append(leaf)
        elif isinstance(leaf, SymbolicSize):
            tensors.extend(u.variable for u in leaf.unknowns() if u.variable is not None)
    return tensors


def substitute(value: Any, tensor: Callable[[Tensor], Any], size: Callable[..., int]) -> Any:
    """`value` with every Tensor and every unknown size in it replaced by the results of the
    functions.
    """

    def resolve(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return tensor(leaf)
        return leaf.value(size) if isinstance(leaf, SymbolicSize) else leaf

    return mapped(value, resolve)


def show(value: Any) -> str:
    """A value as a printed program shows it."""
    if isinstance(value, Tensor):
        return value.name
    if type(value) is list:
        return f"[{', '.join(map(show, value))}]"
    return repr(value)
