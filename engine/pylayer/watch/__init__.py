"""Observation of a computation: an observer is called for every operation, and may have everything
recorded.

While a watch that `records` is in force, all that is computed from the inputs is one graph,
whatever the code says: under `no_grad`, behind `detach`, and inside the forward of a PyLayer, whose
backward takes no part. So the graph is that of the function as it is computed, to be held against
the backward that somebody wrote for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from pylayer.tape.graph import Node, Output
from pylayer.tape.vjp import OpDef
from pylayer.tensor.array import Array

Tensor = Any
"""A Tensor, which itself tells its watch; so it stands above this file."""


class Watch:
    """An observer of operations. It may change the values of an `out` in place before anything else
    reads them."""

    records: bool = False
    """Whether everything is to be recorded, as above; else calls run as they would unwatched."""
    backwards: bool = False
    """Whether PyLayers keep their backward all the same, so that a gradient can be taken, of which
    everything is
    recorded as well: the graph is then that of the gradient as it is computed."""

    def made(self, node: Node, arguments: Sequence[Any], out: Any) -> None:
        """An operation was recorded: its node, the arguments of its kernel, arrays and others, and
        its output, or outputs as a list."""

    def computed(self, op: OpDef, inputs: Sequence[Any], out: Any) -> None:
        """An operation on these arguments, Tensors and others, was not recorded: nothing to
        differentiate, or no need. Of arguments that are lists, the Tensors are in them."""

    def left(self, tensor: Tensor, how: str) -> None:
        """Values of `tensor` were handed to code outside the graph, by the method or function
        `how`."""

    def decided(self, tensor: Tensor) -> None:
        """`bool(tensor)` was read."""

    def applied(self, layer: type) -> None:
        """The forward of a PyLayer is about to run, recorded."""

    def stands_for(self, output: Output, made_by: Any) -> None:
        """An output of a PyLayer that keeps its backward is the value that came from `made_by`
        inside its forward."""


observers: list[object] = []
"""Watches and hooks of saved Tensors that are active in any thread: one truth test rules out the
look-up in the usual case, none."""

NO_OBSERVER = Watch()
"""The watch where none is: it does nothing."""
current_observer: ContextVar[Watch] = ContextVar("watch", default=NO_OBSERVER)

SavedValue = tuple[Tensor, Array, Any, bool]
"""A Tensor, and the array, node and stop_gradient that it had."""
moved: ContextVar[list[SavedValue]] = ContextVar("moved")
"""The Tensors that in-place operations changed while everything is recorded, as they were; set
while there is an observer."""


@contextmanager
def watched(watch: Watch) -> Iterator[list[SavedValue]]:
    """Have `watch` in force in the ``with`` block, in this thread. Tensors changed in place are as
    before afterwards,
    if everything is recorded: their memory was left alone.
    """
    places: list[SavedValue] = []
    observers.append(watch)
    tokens = current_observer.set(watch), moved.set(places)
    try:
        yield places
    finally:
        current_observer.reset(tokens[0])
        moved.reset(tokens[1])
        observers.remove(watch)
        for tensor, array, node, stop_gradient in reversed(places):
            tensor.array, tensor.node, tensor._stop_gradient = array, node, stop_gradient


def recording_all() -> bool:
    """Whether everything is recorded here and now."""
    return bool(observers) and current_observer.get().records


def take_place(tensor: Tensor, array: Array, node: Any, stop_gradient: bool) -> None:
    """Have `tensor` stand for another value from here on; its memory, which others may have saved,
    stays as it was."""
    before = tensor.array, tensor.node, tensor._stop_gradient
    moved.get().append((tensor, *before))
    tensor.array, tensor.node, tensor._stop_gradient = array, node, stop_gradient


exchange: ContextVar[Any] = ContextVar("exchange", default=None)
"""The `pylayer.watch.numpy_array.Session` of this thread, if any, which records NumPy code that
takes values of Tensors and gives them back."""


def to_numpy_hook(tensor: Tensor) -> Any:
    """The result of `Tensor.numpy`: a copy of its values, or a recorded array where NumPy code is
    recorded."""
    through = exchange.get()
    return (
        np.array(tensor._values(".numpy()")) if through is None else through.to_numpy_hook(tensor)
    )


def from_numpy_hook(value: Any, whole: bool = False) -> Any:
    """The Tensor that a value of recorded NumPy code stands for, or lists of such values if
    `whole`; tuples with Tensors in place of such values; anything else unchanged."""
    through = exchange.get() if observers else None
    return value if through is None else through.from_numpy_hook(value, whole)
