"""In-place forms: ``x.add_(y)`` is ``x.add(y)`` written into the memory of x."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from pylayer.ops.arguments import check_tensor, require
from pylayer.ops.creation import to_tensor
from pylayer.ops.indexing import setitem
from pylayer.ops.shape import clone, densely
from pylayer.tape.grad_mode import grad_mode, grad_mode_set
from pylayer.tape.op import composed, op
from pylayer.tape.symbol import Symbol, at_once, is_of_a_program, recording
from pylayer.tape.versions import clock, mark_changed, version_of
from pylayer.tensor.array import Array, owner
from pylayer.tensor.invalid import UnsupportedError, invalid
from pylayer.tensor.tensor import Tensor
from pylayer.watch import recording_all, takes_place


def check_changeable(x: Tensor, action: str) -> None:
    """Raise UnsupportedError if `action` cannot change the Tensor: each Variable of a program
    is the result of one operator.
    """
    if recording.get() is not None and is_of_a_program(x):
        advice = "Use the operation that gives a new Tensor"
        advice = f"{advice}, such as x = paddle.add(x, y) or paddle.static.setitem."
        raise UnsupportedError(f"{action} in static mode", advice)


def check_not_leaf(x: Tensor, name: str) -> None:
    """Raise for a Tensor that cannot be changed in place: a Variable, or a leaf that needs a
    gradient (observed rule 83).
    """
    check_tensor(name, "x", 0, x)
    check_changeable(x, f"paddle.Tensor.{name}")
    if x.is_leaf and not x._stop_gradient and grad_mode.get() and not recording_all():
        text = f"Leaf Var ({x.name}) that doesn't stop gradient can't use inplace strategy"
        advice = "the form that returns a new Tensor, or change it under paddle.no_grad()"
        raise invalid(f"{text}. Instead of {name} use {advice}")


def in_place(
    function: Callable[..., Tensor],
    name: str = "",
    changes: int = 1,
    anew: bool = False,
    view: bool = False,
) -> Callable[..., Tensor]:
    """The in-place form of an operation on a Tensor, its first argument; its name is the
    operation's with a ``_`` unless given.

    The operation runs on a copy, which its vjps read; its result goes into the memory of the
    Tensor, which views and detached Tensors share. The Tensor then takes the result's place in the
    graph; without grad mode it keeps its own. A result of another dtype replaces the memory, as in
    Paddle. `check_not_leaf` checks that the Tensor may be changed.

    Args:
        changes: by how much the version rises; 0 if the release does not register the change.
        anew: the operation may give another shape or dtype, and so a new array, which the Tensor
            then uses.
        view: the operation gives a view, like a reshape, which the Tensor then uses; Tensors that
            share the memory keep their shape.
    """
    name = name or f"{function.__name__}_"

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        if args:
            x, args = args[0], args[1:]
        else:  # it may be given by its name
            x = kwargs.pop(next(iter(inspect.signature(function).parameters)), None)
        check_not_leaf(x, name)
        begun = next(clock)  # values saved from the old memory do not count as changed
        array = x.array if view else x.array.copy()
        result = function(Tensor(array, x.node, x._stop_gradient), *args, **kwargs)
        fits = result.array.shape == x.array.shape
        if not (fits or view or anew):
            text = f"the result has shape {result.shape}, which does not fit into the Tensor's"
            raise invalid(f"{name}(): {text} {x.shape}")
        return take_values(x, result, begun if view or not fits else None, changes)

    call.__name__ = call.__qualname__ = name
    return call


def take_values(x: Tensor, result: Tensor, begun: int | None = None, changes: int = 1) -> Tensor:
    """Write the values of `result` into the memory of `x`, which then takes the place of `result`
    in the graph.

    With `begun`, the stamp at which the operation began, `x` takes the array of `result`, whatever
    its shape. `changes` is the number by which the version rises.
    """
    array = result.array
    if takes_place(x, array, result.node, result._stop_gradient):
        return x
    if begun is None and array.dtype == x.array.dtype and array.shape == x.array.shape:
        x.array[...] = array
    else:
        move_to(x, array, begun)
    mark_changed(x.array, changes)
    if grad_mode.get():
        x.node, x._stop_gradient = result.node, result._stop_gradient
    return x


def move_to(x: Tensor, array: Array, begun: int | None) -> None:
    """Move `x` to another array; for nodes that saved the old memory, this counts as a change."""
    version = version_of(x.array)
    if owner(array) is not owner(x.array):
        mark_changed(x.array, moment=begun)
        mark_changed(array, version)
    x.array = array


def fills_with(name: str, draw: Callable[..., Tensor], changes: int = 1) -> Callable[..., Tensor]:
    """Make the method that fills a Tensor with the result of `draw`; the previous values get a
    gradient of 0.
    """
    return in_place(
        composed(name, lambda x, *args, **kwargs: fill(x, draw(x, *args, **kwargs))),
        changes=changes,
    )


def copy_(x: Tensor, other: Tensor, blocking: bool = True) -> Tensor:
    """Give `x` the values and shape of `other`, of the same dtype (otherwise a RuntimeError).

    Neither the graph nor the version counter registers it, as in Paddle: a backward that needs the
    old values reads the new ones.
    """
    check_tensor("copy_", "other", 1, other)
    text = "copy_(): needs one data type. Cast with astype()"
    require(other.dtype is x.dtype, text, x, other, error=RuntimeError)
    check_changeable(x, "paddle.Tensor.copy_")
    is_recorded = takes_place(x, other.array, other.node or other, other._stop_gradient)
    if not is_recorded and x.shape == other.shape:
        x.array[...] = other.array
    elif not is_recorded:
        x.array = other.array.copy()
    mark_changed(x.array, times=0)
    return x


def detach_(x: Tensor) -> Tensor:
    """Take `x` out of the graph: it becomes a leaf with stop_gradient True."""
    if not recording_all():
        x.node, x._stop_gradient = None, True
    return x


def set_(x: Tensor, source: Tensor | None = None) -> Tensor:
    """Give `x` the memory, and the place in the graph, of `source`; without a `source`, those of an
    empty Tensor.
    """
    check_not_leaf(x, "set_")
    if source is None:
        source = Tensor(x.array.reshape(-1)[:0].copy())
    check_tensor("set_", "source", 1, source)
    if takes_place(x, source.array, source.node, source._stop_gradient):
        return x
    mark_changed(x.array)
    x.array = source.array
    if grad_mode.get():
        x.node, x._stop_gradient = source.node, source._stop_gradient
    return x


def _clear_dataptr(x: Tensor) -> None:
    """Release the memory of `x`; reading its values afterwards gives NaN."""
    x.array = x.array * math.nan


def set_value(x: Tensor, value: Any) -> None:
    """Write a Tensor or an array into the memory of `x`; an AssertionError for another shape, dtype
    or type.

    The version counter does not register it, as in Paddle: see `copy_`.
    """
    text = f"set_value: the value must be a Tensor or an array, but got {type(value).__name__}"
    require(hasattr(value, "dtype"), text, error=AssertionError)
    tensor = value if isinstance(value, Tensor) else at_once(to_tensor)(value)
    text = f"need tensor with shape {x.shape} but load tensor with shape {tensor.shape}"
    text = f"Variable Shape not match, Variable [ {x.name} ] {text}"
    require(tensor.shape == x.shape, text, error=AssertionError)
    text = f"need tensor with dtype {x.dtype.name} but load tensor with dtype {tensor.dtype.name}"
    text = f"Variable dtype not match, Variable [ {x.name} ] {text}"
    require(tensor.dtype is x.dtype, text, error=AssertionError)
    if takes_place(x, tensor.array, tensor.node, tensor._stop_gradient):
        return
    if tensor is not value:  # an array is written densely, whatever the strides of `x` were
        x.array = densely(x.array)
    x.array[...] = tensor.array
    mark_changed(x.array, times=0)


@op(x=lambda g: g * 0)
def fill(xp: ModuleType, x: Array, value: float) -> Array:
    """A Tensor like `x` with every element `value`; part of the graph, with a gradient of 0."""
    return xp.full_like(x, value)


def fill_(x: Tensor, value: Any) -> Tensor:
    """Set every element to `value`, a number (otherwise a TypeError); the previous values get a
    gradient of 0.
    """
    text = f"The type of 'value' must be int or float, but received {type(value).__name__}"
    require(isinstance(value, (int, float)), text, error=TypeError)
    return filled_(x, value)


filled_ = in_place(fill)
zero_ = composed("zero_", lambda x: fill_(x, 0))


def increment(x: Tensor, value: float = 1.0) -> Tensor:
    """Add `value` to the only element of `x`, in place, even for a leaf, as in Paddle; the gradient
    stays.
    """
    check_changeable(x, "paddle.increment")
    text = f"The number of elements in Input(X) should be 1. Now the number is {x.size}"
    require(x.size == 1, text)
    x.array[...] += x.array.dtype.type(value)
    mark_changed(x.array)
    return x


_change_items = in_place(setitem, "__setitem__")


def set_items(x: Tensor, index: Any, value: Any) -> Tensor:
    """``x[index] = value``: written into the memory of x; in static mode the result replaces x from
    then on.
    """
    recorder = recording.get()
    if recorder is None or not isinstance(x, Symbol):
        return _change_items(x, index, value)
    return recorder.replace(x, setitem(x, index, value))  # type: ignore[no-any-return]


def assign(x: Any, output: Tensor | None = None) -> Tensor:
    """A copy of a Tensor, part of the graph; or a new Tensor from data, of the dtype that NumPy
    gives it, with at least one axis.

    With `output`, that Tensor takes the values, shape and dtype in place; a Tensor that is assigned
    to itself stays unchanged.
    """
    if output is not None and output is x:
        return output
    copy: Tensor = clone(x) if isinstance(x, Tensor) else to_tensor(np.atleast_1d(x))
    if output is None:
        return copy
    check_changeable(output, "paddle.assign with an output")
    stays_leaf = output.is_leaf and copy._stop_gradient  # as a parameter does
    with grad_mode_set(grad_mode.get() and not stays_leaf):
        return take_values(output, copy)
