"""The recorded call of an operation: its saved values, and the run of its vjps, on arrays or
(recorded) on Tensors.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from contextvars import Token
from dataclasses import dataclass
from itertools import chain
from types import NoneType
from typing import Any

from pylayer.tape.grad_mode import grad_mode
from pylayer.tape.graph import Cotangent, Gradients, Node, Output, Target
from pylayer.tape.versions import changes, check_unchanged
from pylayer.tape.vjp import OpDef, Vjp, raw_ops, recorded_ops
from pylayer.tensor.array import XP, Array, as_array, gradient_in_order, in_order, is_broadcast
from pylayer.tensor.dtype import bfloat16
from pylayer.tensor.nested import mapped
from pylayer.tensor.tensor import Tensor
from pylayer.watch import Watchers, watchers

Parents = Sequence[Target | None]
Saved = Sequence[tuple[Any, ...]]
"""The values that each input's vjp reads."""
Shapes = Iterable[tuple[int, ...] | None]
"""The inputs' shapes; None for an input that cannot have been broadcast."""


# ---------------------------------------------------------------------------- saved values
class saved_tensors_hooks:  # noqa: N801 - Paddle's name
    """A block in which each Tensor saved for backward goes through `pack_hook`, and the packed
    value through `unpack_hook` each time it is read (``paddle.autograd.saved_tensors_hooks``;
    observed rule 53).

    Raises, when entered:
        ValueError: other hooks are active, as in Paddle.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack, self.unpack = pack_hook, unpack_hook
        self._tokens: list[Token[Watchers]] = []

    def __enter__(self) -> None:
        watching = watchers.get()
        if watching.hooks is not None:
            raise ValueError(
                "(InvalidArgument) paddle.autograd.saved_tensors_hooks only one pair of hooks is "
                "allowed at a time."
            )
        self._tokens.append(watchers.set(watching._replace(hooks=self)))

    def __exit__(self, *raised: object) -> None:
        watchers.reset(self._tokens.pop())


@dataclass(frozen=True, slots=True)
class Packed:
    """One saved Tensor, packed by its pack hook."""

    value: Any
    unpack: Callable[[Any], Tensor]

    def restored(self) -> Tensor | None:
        """Unpack the Tensor, or None. Raises TypeError if the hook returned any other value."""
        tensor = self.unpack(self.value)
        if not isinstance(tensor, (Tensor, NoneType)):
            raise self.wrong_type(tensor)
        return tensor

    def unpacked(self) -> Tensor:
        """Unpack the Tensor. Unpack the Tensor. Raises TypeError if the unpack hook did not return
        a Tensor.
        """
        tensor = self.restored()
        if tensor is None:
            raise self.wrong_type(tensor)
        return tensor

    @staticmethod
    def wrong_type(value: Any) -> TypeError:
        """The error of an unpack hook that returned `value`."""
        return TypeError(
            "The unpack hook of saved_tensors_hooks must return a Tensor, but got "
            f"{type(value).__name__}."
        )


def packed(tensor: Any) -> Packed:
    """Apply the current pack hook to `tensor`; the hook records nothing."""
    hooks = watchers.get().hooks
    token = grad_mode.set(False)
    try:
        return Packed(hooks.pack(tensor), hooks.unpack)
    finally:
        grad_mode.reset(token)


class PackedSaved(list[tuple[Any, ...]]):
    """Pack the values that an operation's vjps read with the current pack hook: each array once, in
    the order of the arguments, with its stop_gradient. They are unpacked in the same order.
    """

    def __init__(self, op: OpDef, parents: Parents, saved: Saved) -> None:
        read = {
            name: v
            # a list of Tensors has one vjp for all; inputs that need no gradient save nothing
            for vjp, values in zip(op.vjps, saved, strict=False)
            for name, v in zip(vjp.reads, values, strict=False)
            if type(v) in XP
        }
        needed = {
            "out",
            *(name for name, parent in zip(op.inputs, parents, strict=False) if parent is not None),
        }
        self.packs = {
            id(read[name]): packed(Tensor(read[name], None, name not in needed))
            for name in (*op.arguments, "out")
            if name in read
        }
        super().__init__(mapped(list(saved), lambda v: self.packs.get(id(v), v)))

    def unpacked(self) -> list[tuple[Any, ...]]:
        """The values that the vjps read."""
        found = {id(pack): pack.unpacked().array for pack in self.packs.values()}
        return mapped(list(self), lambda v: found.get(id(v), v))  # type: ignore[no-any-return]


# --------------------------------------------------------------------------- the call
def parent_of(value: Any) -> Node | Tensor | None:
    """The target of an input's gradient: its node, the leaf itself, or None."""
    if not isinstance(value, Tensor) or value._stop_gradient:
        return None
    return value if value.node is None else value.node


PADDLES_NAMES = {
    "broadcast_to": "expand",
    "clone": "assign",
    "einsum_explicit": "einsum",
    "getitem": "slice",
    "neg": "scale",
    "setitem": "set_value",
}
"""Paddle's names of operations, if they differ from the engine's."""


class OpNode(Node):
    """A recorded call of an operation. `saved` holds, per input, the values that its vjp reads;
    None once released.
    """

    __slots__ = ("op", "shapes")

    def __init__(self, op: OpDef, parents: Parents, saved: Saved, shapes: Shapes) -> None:
        super().__init__(parents, saved)
        self.op = op
        self.shapes = shapes
        if watchers.get().hooks is not None:
            self.saved = PackedSaved(op, parents, saved)

    @property
    def label(self) -> str:
        return self.op.name

    def name(self) -> str:
        """Paddle's name for the operation's node."""
        words = PADDLES_NAMES.get(self.op.name, self.op.name).strip("_").split("_")
        return f"{''.join(word.capitalize() for word in words)}GradNode"

    def values(self) -> Saved:
        """The values that each input's vjp reads."""
        saved: Saved = self.saved
        return saved.unpacked() if type(saved) is PackedSaved else saved

    def pullback(
        self, cotangent: Cotangent, create_graph: bool, found: Gradients
    ) -> Iterable[tuple[Target, Cotangent]]:
        if changes and type(self.saved) is not PackedSaved:
            check_unchanged(chain.from_iterable(self.values()), self.age, self.label)
        first = cotangent[0] if type(cotangent) is list else cotangent
        kind, dtype = type(first), first.dtype
        # the view is of memory that a later operation of Paddle filled
        if self.op.view_gradient and not create_graph and is_broadcast(cotangent):
            cotangent = in_order(cotangent)
        F = recorded_ops if create_graph else raw_ops[kind]
        gradients = []
        # the repeated entries (a list's vjp, shapes without a check) are endless
        rows = zip(self.op.vjps, self.parents, self.values(), self.shapes, strict=False)
        for vjp, parent, values, shape in rows:
            if parent is None:
                continue
            if create_graph:
                values = tuple(self.as_recorded(vjp, values))
            gradient = as_array(apply_rule(vjp, cotangent, F, values), kind)
            # next to bfloat16, NumPy treats a Python float as float32
            if dtype == bfloat16.numpy != gradient.dtype and self.op.name != "cast":
                gradient = gradient.astype(dtype)
            if shape is not None and tuple(gradient.shape) != shape:
                gradient = unbroadcast(F, gradient, shape)
            if not self.op.view_gradient:
                gradient = (
                    with_array_in_order(gradient) if create_graph else gradient_in_order(gradient)
                )
            gradients.append((parent, gradient))
        return gradients

    def as_recorded(self, vjp: Vjp, values: Sequence[Any]) -> list[Any]:
        """Saved arrays as Tensors at their place in the graph, for a vjp that is itself
        recorded.
        """
        recorded = []
        for name, value in zip(vjp.reads, values, strict=True):
            if name == "out" and isinstance(self, SeveralOutputs):
                value = [Tensor(o, Output(self, k), False) for k, o in enumerate(value)]
            elif name == "out":
                value = Tensor(value, self, False)
            elif self.op.many and name == self.op.arguments[0]:
                value = [Tensor(v, p, p is None) for v, p in zip(value, self.parents, strict=True)]
            elif name in self.op.inputs and type(value) in XP:
                parent = self.parents[self.op.inputs.index(name)]
                value = Tensor(value, parent, parent is None)
            recorded.append(value)
        return recorded


class SeveralOutputs(OpNode):
    """A recorded call with several outputs; undefined cotangents reach the vjps as zeros.

    Hooks of an output in a list, such as that of `split`, get these zeros, and `grad` returns them;
    hooks of outputs in a tuple are not called.
    """

    __slots__ = ("like", "listed", "outputs")

    def __init__(
        self, op: OpDef, parents: Parents, saved: Saved, shapes: Shapes, out: Sequence[Array]
    ) -> None:
        super().__init__(op, parents, saved, shapes)
        self.outputs = len(out)
        self.like = [(o.shape, o.dtype, XP[type(o)]) for o in out]
        self.listed: Sequence[weakref.ref[Output]] = ()
        """The nodes of outputs in a list."""

    def pullback(
        self, cotangent: Sequence[Cotangent | None], create_graph: bool, found: Gradients
    ) -> Iterable[tuple[Target, Cotangent]]:
        filled = list(cotangent)
        for k, (shape, dtype, xp) in enumerate(self.like):
            if filled[k] is None:
                zeros = xp.zeros(shape, dtype)
                filled[k] = Tensor(zeros) if create_graph else zeros
                if self.listed and (output := self.listed[k]()):
                    filled[k] = found.settle(output, filled[k])
        return super().pullback(filled, create_graph, found)


def apply_rule(vjp: Vjp, cotangent: Cotangent, F: Any, values: Sequence[Any]) -> Any:
    """Call a vjp with a cotangent and the `values` that it reads; `F` provides the other
    operations.
    """
    read = (F, *values) if vjp.takes_ops else values
    return vjp.rule(*read).conjugate() * cotangent if vjp.multiplies else vjp.rule(cotangent, *read)


def with_array_in_order(gradient: Tensor) -> Tensor:
    """A recorded gradient with its elements `in_order`: the same Tensor if they already are,
    otherwise a new one at the same place in the graph.
    """
    array = in_order(gradient.array)
    return (
        gradient
        if array is gradient.array
        else Tensor(array, gradient.node, gradient._stop_gradient)
    )


def unbroadcast(F: Any, gradient: Cotangent, shape: tuple[int, ...]) -> Cotangent:
    """Sum `gradient` over the axes along which an input of `shape` was broadcast.

    A gradient with fewer axes comes from a hook; it is broadcast to all elements, as in NumPy.
    """
    extra = gradient.ndim - len(shape)
    if extra < 0:
        return F.broadcast_to(gradient, shape)
    stretched = [
        k + extra for k, n in enumerate(shape) if n == 1 and gradient.shape[k + extra] != 1
    ]
    if extra or stretched:
        keep = bool(stretched) or not shape  # NumPy turns 0-d results into scalars
        gradient = F.sum(gradient, [*range(extra), *stretched], None, keep)
    return gradient if tuple(gradient.shape) == shape else F.reshape(gradient, shape)
