"""Arguments as data, from which a call can be made on either library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Library = Any
"""The module `paddle`: the engine's facade, or the real one."""


@dataclass(frozen=True)
class T:
    """A Tensor to be made: its values, and what it is in the graph.

    `dtype` is its own so that bfloat16 can be described by float32 values.
    """

    values: np.ndarray[Any, Any]
    dtype: str
    kind: str = "constant"
    """``constant`` has stop_gradient True; a ``leaf`` needs a gradient; a ``result`` is the copy of one."""
    transposed: bool = False
    """Whether it is a transposed view, which is not contiguous, of a Tensor that holds the values."""

    def made(self, paddle: Library, leaves: list[Any]) -> Any:
        """The Tensor; a leaf, or the leaf behind a result, is added to `leaves`."""
        values = self.values.T if self.transposed else self.values
        leaf = paddle.to_tensor(np.ascontiguousarray(values).reshape(values.shape))
        if self.dtype == "bfloat16":
            leaf = leaf.astype("bfloat16")
        leaf.stop_gradient = self.kind == "constant"
        if self.kind != "constant":
            leaves.append(leaf)
        if self.transposed:
            return leaf.transpose(list(range(values.ndim))[::-1])
        return leaf.clone() if self.kind == "result" else leaf

    def __repr__(self) -> str:
        kind = f"{self.kind}, transposed" if self.transposed else self.kind
        return f"T({self.values.tolist()}, {self.dtype!r}, {list(self.values.shape)}, {kind})"


@dataclass(frozen=True)
class DTypeNamed:
    """A dtype object to be looked up in the library."""

    name: str


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def tensors(self) -> list[T]:
        """The described Tensors in it, also inside lists."""
        return list(_tensors_in([*self.args, *self.kwargs.values()]))

    def __repr__(self) -> str:
        return ", ".join([*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())])


def _tensors_in(values: Sequence[Any]) -> Any:
    for value in values:
        if isinstance(value, T):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors_in(value)


def made(value: Any, paddle: Library, leaves: list[Any]) -> Any:
    """A described value made on a library."""
    if isinstance(value, T):
        return value.made(paddle, leaves)
    if isinstance(value, DTypeNamed):
        return getattr(paddle, value.name)
    if type(value) in (list, tuple):
        return type(value)(made(v, paddle, leaves) for v in value)
    if type(value) is slice:
        return slice(*(made(v, paddle, leaves) for v in (value.start, value.stop, value.step)))
    return value


def args(*values: Any, **named: Any) -> Arguments:
    """The arguments of one call, as they would be written."""
    return Arguments(values, named)


Script = Callable[..., Any]
"""A function of a library and of arguments: what no single call of a name shows."""
