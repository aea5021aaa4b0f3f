"""PyLayerContext: what the forward of a PyLayer hands to its backward."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from pylayer.array import Array
from pylayer.graph import Node, Output
from pylayer.saved import Packed, active_hooks, packed
from pylayer.tensor import Tensor
from pylayer.versions import check_unchanged, clock


class PyLayerContext:
    """What forward hands to backward: the first argument of both, one per `apply`. Any attribute may be set on it."""

    def __init__(self, layer: str) -> None:
        self._layer = layer
        self._in_forward = True
        self._called: set[str] = set()
        self._saved: tuple[Any, ...] | None = None
        self.age = 0
        """Minus the stamp at which tensors were saved, as of a node."""
        self._not_inplace: tuple[Any, ...] = ()
        self._non_differentiable: tuple[Any, ...] = ()
        self._materialize_grads = True
        self._grad_in_dtype_consistent = True

    @property
    def label(self) -> str:
        """What messages call the layer's node."""
        return f"GradNodePyLayer_{self._layer}"

    def name(self) -> str:
        """The name of the layer's node."""
        return self.label

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep `tensors` for backward (PyLayerContext.save_for_backward).

        Raises:
            RuntimeError: called twice, or outside forward: "at most once, and only inside forward".
            ValueError: with saved_tensors_hooks in force, something is not a Tensor or a list of Tensors.
        """
        self._allow("save_for_backward", once=True)
        hooks = active_hooks.get()
        self._saved = tensors if hooks is None else tuple(_packed_argument(t, hooks) for t in tensors)
        self.age = next(clock)

    def saved_tensor(self) -> tuple[Any, ...] | None:
        """What `save_for_backward` kept, or None if it was not called (PyLayerContext.saved_tensor).

        Raises:
            RuntimeError: a saved Tensor was changed in place since.
        """
        if self._saved is None:
            return None
        check_unchanged(_arrays(self._saved), self)
        return tuple(_restored(value) for value in self._saved)

    def mark_not_inplace(self, *args: Any) -> None:
        """Have an input that forward returns unchanged returned as a new Tensor (PyLayerContext.mark_not_inplace).

        Raises:
            RuntimeError: called twice, or outside forward.
        """
        self._allow("mark_not_inplace", once=True)
        self._not_inplace = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Give the outputs `args` stop_gradient True (PyLayerContext.mark_non_differentiable).

        Raises:
            RuntimeError: called twice, or outside forward.
        """
        self._allow("mark_non_differentiable", once=True)
        self._non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether undefined cotangents reach backward as zeros (the default) or as None.

        Raises:
            RuntimeError: called outside forward.
            TypeError: `value` is not a bool.
        """
        self._allow("set_materialize_grads")
        self._materialize_grads = _bool("set_materialize_grads", value)

    def set_grad_in_dtype_consistent(self, value: bool) -> None:
        """Whether cotangents are cast to the dtype of forward's outputs (the default) before backward sees them.

        Raises:
            RuntimeError: called outside forward.
            TypeError: `value` is not a bool.
        """
        self._allow("set_grad_in_dtype_consistent")
        self._grad_in_dtype_consistent = _bool("set_grad_in_dtype_consistent", value)

    @property
    def container(self) -> Any:
        """What was saved, as one object; may be set as well (observed rule 48)."""
        return self.saved_tensor()

    @container.setter
    def container(self, value: Any) -> None:
        self._saved = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        self.age = next(clock)

    def _allow(self, method: str, once: bool = False) -> None:
        if not self._in_forward:
            raise RuntimeError(f"{self._layer}: ctx.{method} must be called inside forward, but forward has returned.")
        if once and method in self._called:
            raise RuntimeError(
                f"{self._layer}: ctx.{method} must be called at most once. Pass all Tensors to one call."
            )
        self._called.add(method)


def _bool(method: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"(InvalidType) {method}: argument (position 1) must be bool, but got {type(value).__name__}")
    return value


class _SavedOutput(NamedTuple):
    """An output of forward kept for backward: not the Tensor itself, whose node holds what is saved."""

    tensor: weakref.ref[Tensor]
    array: Array
    node: weakref.ref[Node]
    slot: int

    def restored(self) -> Tensor:
        """The Tensor that forward returned, or one like it if that is gone."""
        tensor, node = self.tensor(), self.node()
        if tensor is not None:
            return tensor
        return Tensor(self.array, Output(node, self.slot) if node else None, node is None)


def _packed_argument(value: Any, hooks: Any) -> Any:
    if isinstance(value, (list, tuple)) and all(isinstance(v, Tensor) for v in value):
        return type(value)(packed(v, hooks) for v in value)
    if value is not None and not isinstance(value, Tensor):
        raise ValueError("save_for_backward only support Tensor, list of Tensor, tuple of Tensor.")
    return packed(value, hooks)  # None goes to the hook too (observed rule 53)


def _restored(value: Any) -> Any:
    if type(value) is _SavedOutput:
        return value.restored()
    if type(value) is Packed:
        return value.unpack(value.value)
    if type(value) in (list, tuple) and any(type(v) is Packed for v in value):
        return type(value)(_restored(v) for v in value)
    return value


def _arrays(values: Iterable[Any]) -> Iterator[Array]:
    """The arrays of the Tensors among saved values, in containers too; what a hook packed is the hook's business."""
    for value in values:
        if isinstance(value, (Tensor, _SavedOutput)):
            yield value.array
        elif isinstance(value, Mapping):
            yield from _arrays(value.values())
        elif isinstance(value, (list, tuple, Set, deque)) and not isinstance(value, Packed):
            yield from _arrays(value)


def release_outputs(ctx: PyLayerContext, outputs: Sequence[Tensor], node: Node) -> None:
    """Keep saved outputs by reference only, so that no cycle holds the graph: node, ctx, output, node."""
    positions = {id(t): k for k, t in enumerate(outputs)}
    if ctx._saved:
        this = weakref.ref(node)
        ctx._saved = tuple(
            _SavedOutput(weakref.ref(v), v.array, this, positions[id(v)]) if id(v) in positions else v
            for v in ctx._saved
        )


def saved_changed(ctx: PyLayerContext) -> bool:
    """Whether a saved Tensor was changed in place since."""
    try:
        check_unchanged(_arrays(ctx._saved or ()), ctx)
    except RuntimeError:
        return True
    return False
