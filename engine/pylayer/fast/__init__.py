"""Faster, equivalent versions of the core: calls and nodes of common operations here, their
backward in `walk`.

``PYLAYER_PLAIN=1`` in the environment leaves them out. Their results equal those of the definition,
bit by bit: tests/engine/test_plain.py compares both on random programs. This module handles calls
of elementwise operations on Tensors of one dtype, or on a Tensor and a number. Any other call uses
the general implementation.

A chain of 1000 small operations (`tests/bench/engines.py`) takes 2.0 times as long, forward and
backward, as in hand-written NumPy (NumPy 2.4, Python 3.11; the least CPU time of 60 runs).
Besides the savings noted below, slots for two parents in place of a tuple save 1 %, not conjugating
a real derivative 3 %, and making node and Tensor here rather than by their constructors or one
shared function 2 to 8 %.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from pylayer.tape.grad_mode import grad_mode
from pylayer.tape.graph import Target
from pylayer.tape.node import OpNode, parent_of
from pylayer.tape.versions import clock
from pylayer.tape.vjp import Function, OpDef, raw_ops
from pylayer.tensor.array import in_order, run_alone
from pylayer.tensor.tensor import Tensor
from pylayer.watch import NOBODY, watchers

ON = os.environ.get("PYLAYER_PLAIN") != "1"
"""Whether the faster versions are used."""

IDENTITY = (lambda value: value).__code__.co_code
"""The bytecode of a vjp that returns its first argument, as in sums and products."""

SAVED = ("x", "y", "out")
"""The values that nodes of an operation with two operands save, None for values that no vjp reads;
nodes with one operand save one. The garbage collector then has fewer objects to visit than if each
node made a tuple.
"""

new = object.__new__
watchers_here = watchers.get

FLOAT64, FLOAT32 = np.dtype("float64"), np.dtype("float32")
"""The usual dtypes. Comparing with these objects takes a third of the time that reading the kind of
a dtype takes.
"""


def fast_unary(op: OpDef, general: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make the call of an operation of one Tensor: the usual case is handled here, any other by
    `general`.
    """
    kernels, grad_enabled, differentiable = op.kernels, grad_mode.get, op.differentiable
    op.pull = puller(op)
    keeps_x, keeps_out = "x" in op.reads, "out" in op.reads

    def call(x: Tensor, name: str | None = None) -> Tensor:
        if type(x) is not Tensor or watchers_here() is not NOBODY:
            return general(x)
        array = x.array
        dtype = array.dtype
        if not array.ndim or (dtype is not FLOAT64 and dtype is not FLOAT32):
            return general(x)
        try:
            out = run_alone(kernels[type(array)], array)
        except RuntimeError:
            return general(x)
        if out.ndim > 1:  # a 1-D result is always in order
            out = in_order(out)
        if x._stop_gradient or not differentiable or not grad_enabled():
            return Tensor(out)
        node = ElementwiseNode()
        node.age = next(clock)
        node.parent_x = x if x.node is None else x.node
        node.parent_y = None
        node._hooks = None
        node.op = op
        node.saved = out if keeps_out else array if keeps_x else ()
        tensor = new(Tensor)
        tensor.array = out
        tensor.node = node
        tensor._stop_gradient = False
        return tensor

    return call


def fast_binary(op: OpDef, general: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make the call of an operation that `binary` made: the usual case is handled here, any other
    by `general`.
    """
    kernels, grad_enabled, differentiable = op.kernels, grad_mode.get, op.differentiable
    op.pull = puller(op)
    keeps, (keeps_x, keeps_y, keeps_out) = bool(op.reads), [name in op.reads for name in SAVED]

    def call(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
        if type(x) is not Tensor or type(y) is not Tensor or watchers_here() is not NOBODY:
            return general(x, y)
        a, b = x.array, y.array
        dtype, shape = a.dtype, a.shape
        if dtype is not b.dtype or shape != b.shape or not shape:
            return general(x, y)
        if dtype is not FLOAT64 and dtype is not FLOAT32:
            return general(x, y)
        try:
            out = run_alone(kernels[type(a)], a, b)
        except RuntimeError:
            return general(x, y)
        if out.ndim > 1:
            out = in_order(out)
        if (x._stop_gradient and y._stop_gradient) or not differentiable or not grad_enabled():
            return Tensor(out)
        if x._stop_gradient or y._stop_gradient:
            node = op.recorded((parent_of(x), parent_of(y)), (a, b), out)
            return Tensor(out, node, False)
        node = ElementwiseNode()
        node.age = next(clock)
        node.parent_x = x if x.node is None else x.node
        node.parent_y = y if y.node is None else y.node
        node._hooks = None
        node.op = op
        node.saved = (
            (a if keeps_x else None, b if keeps_y else None, out if keeps_out else None)
            if keeps
            else ()
        )
        tensor = new(Tensor)
        tensor.array = out
        tensor.node = node
        tensor._stop_gradient = False
        return tensor

    return call


def beside_number(op: OpDef, general: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A call of an operation of two operands, one of them a number: handled here if the other is an
    ordinary Tensor, otherwise by `general`.
    """
    kernels, grad_enabled, differentiable = op.kernels, grad_mode.get, op.differentiable

    def call(x: Any, y: Any) -> Tensor:
        tensor, number = (y, x) if type(y) is Tensor else (x, y)
        if (
            type(tensor) is not Tensor
            or type(number) not in (float, int)
            or watchers_here() is not NOBODY
        ):
            return general(x, y)
        array = tensor.array
        if array.dtype.kind != "f" or not array.ndim:
            return general(x, y)
        a, b = (array, number) if tensor is x else (number, array)
        try:
            out = in_order(run_alone(kernels[type(array)], a, b))
        except RuntimeError:
            return general(x, y)
        if tensor._stop_gradient or not differentiable or not grad_enabled():
            return Tensor(out)
        return Tensor(out, op.recorded((parent_of(x), parent_of(y)), (a, b), out), False)

    return call


# --------------------------------------------------------------------------- the node
class ElementwiseNode(OpNode):
    """A recorded call on real floating arrays, all of the output's shape, of at least one axis, and
    in need of a gradient. `saved` are the values that all vjps read together, as described at
    `SAVED`; () if they read none.
    """

    __slots__ = ("parent_x", "parent_y")

    parent_x: Target
    parent_y: Target
    shapes = repeat(None)

    __init__ = object.__init__  # calling the class takes 30 % less time than `new`

    @property
    def parents(self) -> Sequence[Target]:  # type: ignore[override]
        return (self.parent_x, self.parent_y)[: len(self.op.inputs)]

    def values(self) -> Sequence[tuple[Any, ...]]:
        kept = self.saved if len(self.op.inputs) > 1 else [self.saved] * len(SAVED)
        by_name = dict(zip(SAVED, kept, strict=False))
        return [tuple(by_name[name] for name in vjp.reads) for vjp in self.op.vjps]


def puller(op: OpDef) -> Function:
    """Make the `pull` of an operation's nodes, a function of the held cotangent and the saved
    values: it replaces the held cotangent by the gradient of the first parent, and returns that of
    the other, None if there is none.

    Compiled once per operation, it saves 11 %, and 2 % by leaving out the calls of identities. The
    last derivative takes the cotangent out of the list. If nothing else refers to the cotangent, it
    is then a temporary value, which NumPy reuses for the result if it is large (NumPy checks the
    reference count, views included). This saves 3 to 6 % in ten operations on 1,000,000 elements.
    """
    vjps, lines = tuple(op.vjps), ["def pull(held, saved):"]
    names: dict[str, Any] = {"raw_ops": raw_ops}
    taken = bool(vjps) and vjps[-1].multiplies
    for k, vjp in enumerate(vjps):
        saved = [f"saved[{SAVED.index(name)}]" if len(vjps) > 1 else "saved" for name in vjp.reads]
        values = ["raw_ops[type(held[0])]"] * vjp.takes_ops + saved
        cotangent = "held.pop()" if taken and vjp is vjps[-1] else "held[0]"
        given = values if vjp.multiplies else [cotangent, *values]
        value = (
            given[0] if vjp.rule.__code__.co_code == IDENTITY else f"rule{k}({', '.join(given)})"
        )
        lines.append(
            f"{SAVED[k]} = {value} * {cotangent}" if vjp.multiplies else f"{SAVED[k]} = {value}"
        )
        names[f"rule{k}"] = vjp.rule
    lines += ["held.append(x)" if taken else "held[0] = x", *["return y"] * (len(vjps) > 1)]
    exec("\n ".join(lines), names)
    return names["pull"]  # type: ignore[no-any-return]
