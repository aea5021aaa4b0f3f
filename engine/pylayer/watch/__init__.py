"""Observers of a computation: the current observer, and the protocol by which it is notified.

Under an observer that `records`, everything computed from the inputs is one graph, even under
`no_grad`, after `detach`, and inside the forward of a PyLayer, whose backward is not used. So the
graph is that of the actual computation, to be compared with the hand-written backward.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from pylayer.tape.graph import Node, Output
from pylayer.tape.vjp import OpDef
from pylayer.tensor.array import Array

Tensor = Any
"""A Tensor. As Tensors notify the observer, their module imports this file, not the other way
round.
"""


class LayerObserver(Protocol):
    """An observer of layers only: PyLayer classes, and the `backward_fn` of a `static_pylayer`."""

    def applied(self, layer: Any, context: Any) -> None:
        """The forward of a layer is about to run, with this context, so that its backward may run
        later.
        """

    def pulled_back(self, layer: Any) -> None:
        """The backward of a layer is about to run."""


class Observer:
    """An observer of operations, and of the layers whose forward is recorded. It may change the
    values of an `out` in place before anything else reads them.
    """

    records: bool = False
    """Whether everything is recorded (see above); otherwise calls run as if unobserved."""
    backwards: bool = False
    """Whether PyLayers keep their backward nevertheless, so that the call can take gradients, which
    are recorded too: the graph is then that of the actual computation of the gradient.
    """

    def made(self, node: Node, arguments: Sequence[Any], out: Any) -> None:
        """An operation was recorded: its node, the arguments of its kernel, arrays and others, and
        its output, or outputs as a list.
        """

    def computed(self, op: OpDef, inputs: Sequence[Any], out: Any) -> None:
        """An operation on these arguments, Tensors and others, was not recorded, because it has no
        derivative or none is needed. If an argument is a list, the Tensors are in it.
        """

    def left(self, tensor: Tensor, how: str) -> None:
        """Values of `tensor` were passed to code outside the graph, by the method or function
        `how`.
        """

    def leaked(self, how: str) -> None:
        """Values that `how` brought in from outside the graph may depend on its Tensors."""

    def decided(self, tensor: Tensor) -> None:
        """`bool(tensor)` was computed."""

    def applied(self, layer: Any, context: Any) -> None:
        """A layer was applied, as for a `LayerObserver`; its forward is recorded."""

    def stands_for(self, output: Output, made_by: Any) -> None:
        """An output of a PyLayer that keeps its backward has the value of `made_by`, a node inside
        its forward.
        """


SavedValue = tuple[Tensor, Array, Any, bool]
"""A Tensor, and the array, node and stop_gradient that it had."""


class Watchers(NamedTuple):
    """The observers of a thread; operations use the shortcuts of `pylayer.fast` if it is
    `NOBODY`.
    """

    observer: Observer = Observer()
    """The innermost observer; one that does nothing if there is none."""
    moved: Any = ()
    """For an observer that records, a list of the Tensors that in-place operations changed, each
    with its previous state, a `SavedValue`.
    """
    numpy: Any = None
    """The `pylayer.watch.numpy_array.Session`, if any, which records NumPy code between Tensors."""
    hooks: Any = None
    """The `saved_tensors_hooks`, if any."""


NOBODY = Watchers()
watchers: ContextVar[Watchers] = ContextVar("watchers", default=NOBODY)
layer_observers: list[LayerObserver] = []
"""The observers of layers, for all threads and all ranks of a world."""


@contextmanager
def observe(observer: Observer) -> Iterator[list[SavedValue]]:
    """Use `observer` in the ``with`` block, in this thread. If everything is recorded, Tensors that
    were changed in place are restored afterwards: their memory was not written.
    """
    saved_values: list[SavedValue] = []
    token = watchers.set(watchers.get()._replace(observer=observer, moved=saved_values))
    try:
        yield saved_values
    finally:
        watchers.reset(token)
        for tensor, array, node, stop_gradient in reversed(saved_values):
            tensor.array, tensor.node, tensor._stop_gradient = array, node, stop_gradient


def recording_all() -> bool:
    """Whether everything is recorded at present, in this thread."""
    return watchers.get().observer.records


def takes_place(tensor: Tensor, array: Array, node: Any, stop_gradient: bool) -> bool:
    """While everything is recorded, give `tensor` another value; its memory, which nodes may have
    saved, stays unchanged. Return whether everything is recorded.
    """
    current = watchers.get()
    if current.observer.records:
        current.moved.append((tensor, tensor.array, tensor.node, tensor._stop_gradient))
        tensor.array, tensor.node, tensor._stop_gradient = array, node, stop_gradient
    return current.observer.records


def from_numpy_hook(value: Any, with_lists: bool = False) -> Any:
    """The Tensor that a value of recorded NumPy code represents; also for lists of such values if
    `with_lists`; tuples are converted item by item; anything else is unchanged.
    """
    session = watchers.get().numpy
    return value if session is None else session.from_numpy_hook(value, with_lists)
