"""The recorded call of a PyLayer: what its backward gets, and the rules for what it returns."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeGuard

from pylayer.dtype import BY_NUMPY
from pylayer.grad_mode import grad_mode_set
from pylayer.graph import Cotangent, Gradients, Held, Node, Output, Target
from pylayer.op_node import parent_of
from pylayer.py_layer_context import PyLayerContext
from pylayer.reading import reads_as_releases
from pylayer.slots import Like, Slot, likes
from pylayer.tensor import Tensor
from pylayer.vjp import OPS


class PyLayerNode(Node):
    """A recorded `apply`. Its pullback calls the user's backward and holds what that returns to the rules."""

    __slots__ = ("inputs", "layer", "names", "output_likes", "output_lists", "outputs", "slotless", "where")

    def __init__(
        self,
        layer: type[Any],
        ctx: PyLayerContext,
        inputs: Sequence[Slot],
        outputs: Sequence[Slot],
        slotless: Sequence[str],
        where: str,
    ) -> None:
        super().__init__([parent_of(tensor) for slot in inputs for tensor in slot.tensors], saved=ctx)
        self.layer = layer
        self.names = [(slot.name, slot.is_list) for slot in inputs]
        self.inputs = likes(inputs)
        self.output_lists = [slot.is_list for slot in outputs]
        self.output_likes = likes(outputs)
        self.outputs = sum(len(slot.tensors) for slot in outputs)
        self.slotless = slotless
        """The arguments that own no slot, for the error of a layer that returns None for them."""
        self.where = where
        """File and line of the call of `apply`."""

    @property
    def label(self) -> str:
        return f"GradNodePyLayer_{self.layer.__name__}"

    def pullback(
        self, held: Held, create_graph: bool, found: Gradients | None = None
    ) -> Iterable[tuple[Target, Cotangent]]:
        """Call backward.

        Raises:
            ValueError: wrong number, type or shape of gradients; the message names layer, slot and input.
            Exception: whatever backward raised, with a note that names the layer and where it was applied.
        """
        ctx: PyLayerContext = self.saved
        arguments = self.cotangent_arguments(held[0], ctx)
        try:
            returned = self.layer.backward(ctx, *arguments)
        except Exception as error:
            error.add_note(f"in backward of {self.label}, applied at {self.where}")
            raise
        pairs = zip(self.parents, self.checked(returned, found.barred if found else ()), strict=True)
        given = [(parent, gradient) for parent, gradient in pairs if parent is not None and gradient is not None]
        return given if create_graph else [(parent, gradient.array) for parent, gradient in given]

    # ----------------------------------------------------------------- what backward gets
    def cotangent_arguments(self, cotangents: Sequence[Cotangent | None], ctx: PyLayerContext) -> list[Any]:
        """One Tensor, or list of Tensors, per output slot."""
        remaining = iter(cotangents)
        arguments: list[Any] = []
        for is_list, slot in zip(self.output_lists, self.output_likes, strict=True):
            tensors = [self.cotangent_tensor(next(remaining), like, ctx) for like in slot]
            arguments.append(tensors if is_list else tensors[0])
        return arguments

    def cotangent_tensor(self, cotangent: Cotangent | None, like: Like, ctx: PyLayerContext) -> Tensor | None:
        """One cotangent as backward sees it: a copy, since backward may change it in place (observed rule 43)."""
        if cotangent is None:
            return like.zeros() if ctx._materialize_grads else None
        tensor = cotangent if isinstance(cotangent, Tensor) else Tensor(cotangent.copy(), None, False)
        return as_dtype_of(tensor, like) if ctx._grad_in_dtype_consistent else tensor

    # ----------------------------------------------------------------- what backward returns
    def checked(self, returned: Any, barred: Collection[Target] = ()) -> list[Tensor | None]:
        """The gradients of all input Tensors, in order, by the reading in force (see `pylayer.reading`).

        Integers and booleans are never asked for one. An input among `barred`, those of which ``paddle.grad`` wants no
        gradient, is one that needs none.
        """
        parents = iter(self.parents)
        targets = [[None if (parent := next(parents)) in barred else parent for _ in slot] for slot in self.inputs]
        values = self.per_slot(returned)
        if len(values) != len(self.names):
            values = self.completed(values, targets)
        gradients: list[Tensor | None] = []
        rows = zip(self.names, self.inputs, targets, values, strict=True)
        for k, ((name, is_list), slot, wanted, value) in enumerate(rows):
            if not is_list:
                gradients.append(self.checked_gradient(k, name, value, slot[0], wanted[0]))
                continue
            if value is None:
                value = [None] * len(slot)
            if not isinstance(value, (list, tuple)):
                raise self.error(k, name, f"argument must be list or tuple, but got {type(value).__name__}")
            if len(value) != len(slot):
                raise self.error(
                    k, name, f"the list has {len(slot)} Tensors, but backward returned {len(value)} gradients"
                )
            gradients += [
                self.checked_gradient(k, f"{name}[{j}]", item, like, parent)
                for j, (item, like, parent) in enumerate(zip(value, slot, wanted, strict=True))
            ]
        return gradients

    def per_slot(self, returned: Any) -> list[Any]:
        """One value per slot. The documents allow a Tensor, a tuple and a list; with a single list slot, a list of
        gradients is that slot's value."""
        if not isinstance(returned, (list, tuple)):
            return [returned]
        single_list = len(self.names) == 1 and self.names[0][1]
        if single_list and isinstance(returned, list) and not any(isinstance(v, (list, tuple)) for v in returned):
            return [returned]
        return list(returned)

    def completed(self, values: list[Any], targets: Sequence[Sequence[Target | None]]) -> list[Any]:
        """As releases read it: those left out at the end are None, if there are others and these need no gradient.

        Raises:
            ValueError: there are too many, or too few; by the documents always.
        """
        count = len(values)
        left_out = zip(self.inputs[count:], targets[count:], strict=True)
        missed = any(needs(like, to) for slot, parents in left_out for like, to in zip(slot, parents, strict=True))
        if not 0 < count < len(targets) or missed or not reads_as_releases.get():
            raise self.wrong_count(values)
        return values + [None] * (len(targets) - count)

    def checked_gradient(self, k: int, name: str, value: Any, like: Like, parent: Target | None) -> Tensor | None:
        """One gradient, cast to its input's dtype unless the PyLayer that it goes to takes any (observed rule 34)."""
        if parent is None:
            if value is None:
                return None
            raise self.error(
                k, name, f"should return None at {k} position, because it's forward Tensor's stopgradient is true, or "
                f"paddle.grad is asked for no gradient of it (backward() asks for all)"
            )  # fmt: skip
        if value is None:
            if reads_as_releases.get() or not needs(like, parent):
                return None
            raise self.error(
                k, name, f"should not return empty at {k} position: the input needs a gradient, so return a Tensor "
                f"(zeros if the gradient is zero)"
            )  # fmt: skip
        if not made(value):
            raise self.error(
                k, name, f"We can only support Tensor or None for backward output, , but got {type(value).__name__}"
            )
        if value.array.shape != like.shape:
            raise self.error(
                k, name, f"the gradient has shape {list(value.array.shape)}, but the input has shape {list(like.shape)}"
            )
        return value if takes_any_dtype(parent) else as_dtype_of(value, like)

    def wrong_count(self, values: Sequence[Any]) -> ValueError:
        """The error for a wrong number of gradients, saying which inputs own the slots."""
        expected, received = len(self.names), len(values)
        owners = ", ".join(f"`{self.argument(name)}`" for name, _ in self.names)
        text = (
            f"{self.label} : The number of outputs of `PyLayer.backward` should be {expected}, but received "
            f"{received}. One gradient per Tensor argument of apply: {owners}"
        )
        extra_nones = sum(value is None for value in values)
        if self.slotless and expected < received <= expected + extra_nones:
            names = ", ".join(f"`{self.argument(name)}`" for name in self.slotless)
            text += f"; non-Tensor arguments take no slot; drop the None for {names}"
        return ValueError(f"{text}. (applied at {self.where})")

    def error(self, k: int, name: str, text: str) -> ValueError:
        """The error for one slot: layer, slot, input, and where the layer was applied."""
        return ValueError(
            f"{self.label}'s backward function, gradient {k} (input `{self.argument(name)}`): {text}. "
            f"(applied at {self.where})"
        )

    def argument(self, name: str) -> str:
        """The name of an argument: forward's own name for a positional one, which slots know by its number."""
        if not name.startswith("#"):
            return name
        position, bracket, index = name[1:].partition("[")
        try:
            parameters = list(inspect.signature(self.layer.forward).parameters.values())[1:]
        except (TypeError, ValueError):
            return name
        k = int(position)
        for parameter in parameters[: k + 1]:
            if parameter.kind is parameter.VAR_POSITIONAL:
                return f"*{parameter.name}[{k - parameters.index(parameter)}]{bracket}{index}"
        return f"{parameters[k].name}{bracket}{index}" if k < len(parameters) else name


def needs(like: Like, parent: Target | None) -> bool:
    """Whether a gradient is asked for: one goes on from this input, and it holds no integers or booleans."""
    return parent is not None and BY_NUMPY[like.dtype].is_differentiable


def made(value: Any) -> TypeGuard[Tensor]:
    """Whether it is a Tensor, and not one of a subclass that left ``Tensor.__init__`` out."""
    return isinstance(value, Tensor) and hasattr(value, "array")


def takes_any_dtype(target: Target) -> bool:
    """Whether a cotangent goes to a PyLayer that asked for cotangents as they are."""
    node = target.parents[0] if isinstance(target, Output) else None
    return isinstance(node, PyLayerNode) and node.saved is not None and not node.saved._grad_in_dtype_consistent


def as_dtype_of(tensor: Tensor, like: Like) -> Tensor:
    """`tensor` in the dtype of `like`: recorded where grad mode is on."""
    if tensor.array.dtype == like.dtype:
        return tensor
    return OPS["cast"].apply(tensor, BY_NUMPY[like.dtype])  # type: ignore[no-any-return]


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward that cannot be differentiated again.

    It runs unrecorded, so that a second gradient does not find the input in the graph (observed rule 40).
    """

    @functools.wraps(backward)
    def wrapper(ctx: PyLayerContext, *cotangents: Any) -> Any:
        with grad_mode_set(False):
            return backward(ctx, *cotangents)

    return wrapper
