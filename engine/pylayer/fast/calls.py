"""The usual call of an elementwise operation, spelled out: of Tensors of one dtype, or of a Tensor and a number.

Any other call goes to the general one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pylayer.array import XP
from pylayer.fast.node import puller, recorded
from pylayer.grad_mode import grad_mode
from pylayer.op_node import OpNode
from pylayer.quiet import run_alone
from pylayer.tensor import Tensor
from pylayer.vjp import Row
from pylayer.watch import tell_computed, watching

FLOAT64, FLOAT32 = np.dtype("float64"), np.dtype("float32")
"""The usual dtypes. Asking for these objects takes a third of what asking for the kind of a dtype does."""


def fast_unary(row: Row, general: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A call of an operation of one Tensor: the usual case at once, any other through `general`."""
    kernels, differentiable, floating, pick = row.kernels.made, row.differentiable, row.floating, row.pick
    pull, grad_enabled = puller(row), grad_mode.get

    def call(x: Tensor, name: str | None = None) -> Tensor:
        if type(x) is not Tensor:
            return general(x)
        array = x.array
        kind, dtype = type(array), array.dtype
        usual = (dtype is FLOAT64 or dtype is FLOAT32) and not watching
        if floating and not usual and dtype.kind in "iub":
            return general(x)
        try:
            out = run_alone(kernels[kind], array)
        except (KeyError, RuntimeError):
            return general(x)
        if type(out) is not kind:  # NumPy turns 0-d results into scalars
            out, usual = XP[kind].asarray(out), False
        if x._stop_gradient or not differentiable or not grad_enabled():
            if watching:
                tell_computed(row, (x,), out)
            return Tensor(out)
        parent = x if x.node is None else x.node
        if usual and out.ndim:  # a kernel in Python may give an array of no axis
            return recorded(out, row, pull, parent, None, pick(array, out, 0))
        return Tensor(out, OpNode(row, (parent,), (pick(array, out, 0),), (array.shape,), out), False)

    call.__code__ = call.__code__.replace()  # its own, which the interpreter specialises: 1 %
    return call


def fast_binary(row: Row, general: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A call of an operation that `binary` made: the usual case at once, any other through `general`."""
    kernels, differentiable, floating = row.kernels.made, row.differentiable, row.floating
    pick_x, pick_y = [vjp.pick for vjp in row.vjps] if differentiable else [row.pick, row.pick]
    pick, pull, grad_enabled = row.pick, puller(row), grad_mode.get

    def call(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
        if type(x) is not Tensor or type(y) is not Tensor:
            return general(x, y)
        a, b = x.array, y.array
        kind, dtype = type(a), a.dtype
        usual = (dtype is FLOAT64 or dtype is FLOAT32) and not watching
        if dtype is not b.dtype or kind is not type(b) or (floating and not usual and dtype.kind in "iub"):
            return general(x, y)
        try:
            out = run_alone(kernels[kind], a, b)
        except (KeyError, RuntimeError, ValueError):
            return general(x, y)  # which says what was wrong
        if type(out) is not kind:
            out, usual = XP[kind].asarray(out), False
        if differentiable and grad_enabled():
            parent_x = None if x._stop_gradient else x if x.node is None else x.node
            parent_y = None if y._stop_gradient else y if y.node is None else y.node
            if usual and parent_x is not None and parent_y is not None and a.shape == b.shape and out.ndim:
                return recorded(out, row, pull, parent_x, parent_y, pick(a, b, out, 0))
            if parent_x is not None or parent_y is not None:
                saved = (
                    () if parent_x is None else pick_x(a, b, out, 0),
                    () if parent_y is None else pick_y(a, b, out, 1),
                )
                return Tensor(out, OpNode(row, (parent_x, parent_y), saved, (a.shape, b.shape), out), False)
        if watching:
            tell_computed(row, (x, y), out)
        return Tensor(out)

    call.__code__ = call.__code__.replace()  # see `fast_unary`
    return call


def beside_number(row: Row, general: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A call of an operation of two, one of them a number: beside a real floating Tensor at once, else `general`."""
    kernels, differentiable = row.kernels.made, row.differentiable
    pick_x, pick_y = [vjp.pick for vjp in row.vjps] if differentiable else [row.pick, row.pick]
    grad_enabled = grad_mode.get

    def call(x: Any, y: Any) -> Tensor:
        tensor, number = (y, x) if type(y) is Tensor else (x, y)
        if type(tensor) is not Tensor or type(number) not in (float, int) or tensor.array.dtype.kind != "f":
            return general(x, y)
        array = tensor.array
        a, b = (array, number) if tensor is x else (number, array)
        try:
            out = run_alone(kernels[type(array)], a, b)
        except (KeyError, RuntimeError):
            return general(x, y)
        if type(out) is not type(array):
            out = XP[type(array)].asarray(out)
        if tensor._stop_gradient or not differentiable or not grad_enabled():
            if watching:
                tell_computed(row, (x, y), out)
            return Tensor(out)
        parent = tensor if tensor.node is None else tensor.node
        if tensor is x:
            node = OpNode(row, (parent, None), (pick_x(a, b, out, 0), ()), (array.shape, ()), out)
        else:
            node = OpNode(row, (None, parent), ((), pick_y(a, b, out, 1)), ((), array.shape), out)
        return Tensor(out, node, False)

    return call
