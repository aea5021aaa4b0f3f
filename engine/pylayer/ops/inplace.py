"""In-place forms: ``x.add_(y)`` is ``x.add(y)`` written into the memory of x."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pylayer.dtype import BY_NUMPY
from pylayer.graph import grad_mode
from pylayer.op_table import OPS
from pylayer.tensor import Tensor
from pylayer.versions import mark_changed


def in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The in-place form of an operation on a Tensor.

    The operation runs on a copy, which is what its vjps read; its result goes into the memory of the Tensor, where
    views and detached Tensors see it. The Tensor then stands where the result stood in the graph.
    """

    @functools.wraps(function)
    def call(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """As the operation without the underscore, into the memory of `x`.

        Raises:
            ValueError: x is a leaf that needs a gradient (observed rule 83), or the result has another shape.
        """
        if x.is_leaf and not x._stop_gradient and grad_mode.get():
            raise ValueError(
                f"(InvalidArgument) Leaf Var ({x.name}) that doesn't stop gradient can't use inplace strategy. "
                f"Use {function.__name__} without the underscore, or change it under paddle.no_grad()."
            )
        before = Tensor(x.array.copy(), x.node, x._stop_gradient)
        result = function(before, *args, **kwargs)
        if result.array.shape != x.array.shape:
            raise ValueError(
                f"(InvalidArgument) {function.__name__}_(): the result has shape {result.shape}, which does not "
                f"fit into the Tensor's {x.shape}."
            )
        if result.array.dtype != x.array.dtype:
            result = OPS["cast"].function(result, BY_NUMPY[x.array.dtype])
        x.array[...] = result.array
        mark_changed(x.array)
        x.node, x._stop_gradient = result.node, result._stop_gradient
        return x

    call.__name__ = call.__qualname__ = f"{function.__name__}_"
    return call


def detach_(x: Tensor) -> Tensor:
    """Take `x` out of the graph: it becomes a leaf with stop_gradient True."""
    x.node, x._stop_gradient = None, True
    return x


def set_(x: Tensor, source: Tensor | None = None) -> Tensor:
    """Give `x` the memory of `source`."""
    x.array = x.array[:0].copy() if source is None else source.array
    return x
