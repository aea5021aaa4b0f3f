"""The usual call of an elementwise operation, spelled out: of Tensors of one dtype, or of a Tensor and a number.

Any other call goes to the general one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

import numpy as np

from pylayer.array import XP, Array
from pylayer.fast.node import SAVED, ElementwiseNode, new, puller
from pylayer.grad_mode import grad_mode
from pylayer.op_node import OpNode
from pylayer.tensor import Tensor
from pylayer.versions import clock
from pylayer.vjp import Row
from pylayer.watch import tell_computed, watching

_quiet = copy_context()
_quiet.run(np.seterr, all="ignore")
run_alone = _quiet.run
"""Runs a kernel without NumPy's warnings, whose state is a context variable: ``np.errstate``, as in `Row.compute`,
would take 24 % of a chain of small operations. A RuntimeError if another thread is in the context."""

FLOAT64, FLOAT32 = np.dtype("float64"), np.dtype("float32")
"""The usual dtypes. Asking for these objects takes a third of what asking for the kind of a dtype does."""


def fast_unary(row: Row, general: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A call of an operation of one Tensor: the usual case at once, any other through `general`."""
    kernels, differentiable, floating, grad_enabled = row.kernels, row.differentiable, row.floating, grad_mode.get
    pull, keeps_x, keeps_out = puller(row), "x" in row.reads, "out" in row.reads
    (pick,) = [vjp.pick for vjp in row.vjps] or [row.apply]  # which without a vjp is not called

    def call(x: Tensor, name: str | None = None) -> Tensor:
        if type(x) is not Tensor:
            return general(x)
        array = x.array
        dtype = array.dtype
        usual = dtype is FLOAT64 or dtype is FLOAT32
        if floating and not usual and dtype.kind in "iub":
            return general(x)
        try:
            out = run_alone(kernels[type(array)], array)
        except RuntimeError:
            return general(x)
        if x._stop_gradient or not differentiable or not grad_enabled():
            return unrecorded(row, (x,), as_array(out, array))
        parent = x if x.node is None else x.node
        if not (usual and out.ndim) or watching:
            out = as_array(out, array)
            return Tensor(out, OpNode(row, (parent,), (pick(array, out, 0),), (array.shape,), out), False)
        node = ElementwiseNode()  # the constructors are spelled out: to call them takes as long as a small operation
        node.age = next(clock)
        node.parent_x = parent
        node.parent_y = None
        node.hooks = None
        node.op = row
        node.saved = out if keeps_out else array if keeps_x else ()
        node.pull = pull
        tensor = new(Tensor)
        tensor.array = out
        tensor.node = node
        tensor._stop_gradient = False
        return tensor

    call.__code__ = call.__code__.replace()  # its own, which the interpreter specialises: 1 %
    return call


def fast_binary(row: Row, general: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A call of an operation that `binary` made: the usual case at once, any other through `general`."""
    kernels, differentiable, floating, grad_enabled = row.kernels, row.differentiable, row.floating, grad_mode.get
    pull, keeps, (keeps_x, keeps_y, keeps_out) = puller(row), bool(row.reads), [name in row.reads for name in SAVED]
    pick_x, pick_y = [vjp.pick for vjp in row.vjps] or [row.apply] * 2

    def call(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
        if type(x) is not Tensor or type(y) is not Tensor:
            return general(x, y)
        a, b = x.array, y.array
        dtype = a.dtype
        usual = dtype is FLOAT64 or dtype is FLOAT32
        if dtype is not b.dtype or (floating and not usual and dtype.kind in "iub"):
            return general(x, y)
        try:
            out = run_alone(kernels[type(a)], a, b)
        except (RuntimeError, TypeError, ValueError):
            return general(x, y)  # which says what was wrong
        parent_x = None if x._stop_gradient else x if x.node is None else x.node
        parent_y = None if y._stop_gradient else y if y.node is None else y.node
        if (parent_x is None and parent_y is None) or not differentiable or not grad_enabled():
            return unrecorded(row, (x, y), as_array(out, a))
        shape = a.shape
        if not (usual and shape and shape == b.shape) or parent_x is None or parent_y is None or watching:
            out = as_array(out, a)
            saved = () if parent_x is None else pick_x(a, b, out, 0), () if parent_y is None else pick_y(a, b, out, 1)
            return Tensor(out, OpNode(row, (parent_x, parent_y), saved, (shape, b.shape), out), False)
        node = ElementwiseNode()  # see `fast_unary`
        node.age = next(clock)
        node.parent_x = parent_x
        node.parent_y = parent_y
        node.hooks = None
        node.op = row
        node.saved = (a if keeps_x else None, b if keeps_y else None, out if keeps_out else None) if keeps else ()
        node.pull = pull
        tensor = new(Tensor)
        tensor.array = out
        tensor.node = node
        tensor._stop_gradient = False
        return tensor

    call.__code__ = call.__code__.replace()  # see `fast_unary`
    return call


def unrecorded(row: Row, inputs: Sequence[Any], out: Array) -> Tensor:
    """The output of a call that needs no gradient."""
    if watching:
        tell_computed(row, inputs, out)
    return Tensor(out)


def as_array(out: Any, like: Array) -> Array:
    """What a kernel gave for arrays `like`: NumPy turns 0-d results into scalars."""
    return out if type(out) is type(like) else XP[type(like)].asarray(out)


def beside_number(row: Row, general: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A call of an operation of two, one of them a number: beside a real floating Tensor at once, else `general`."""
    kernels, differentiable = row.kernels, row.differentiable
    pick_x, pick_y = [vjp.pick for vjp in row.vjps] or [row.apply] * 2
    grad_enabled = grad_mode.get

    def call(x: Any, y: Any) -> Tensor:
        tensor, number = (y, x) if type(y) is Tensor else (x, y)
        if type(tensor) is not Tensor or type(number) not in (float, int) or tensor.array.dtype.kind != "f":
            return general(x, y)
        array = tensor.array
        a, b = (array, number) if tensor is x else (number, array)
        try:
            out = run_alone(kernels[type(array)], a, b)
        except RuntimeError:
            return general(x, y)
        out = as_array(out, array)
        if tensor._stop_gradient or not differentiable or not grad_enabled():
            return unrecorded(row, (x, y), out)
        parent = tensor if tensor.node is None else tensor.node
        if tensor is x:
            node = OpNode(row, (parent, None), (pick_x(a, b, out, 0), ()), (array.shape, ()), out)
        else:
            node = OpNode(row, (None, parent), ((), pick_y(a, b, out, 1)), ((), array.shape), out)
        return Tensor(out, node, False)

    return call
