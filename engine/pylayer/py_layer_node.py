"""The recorded call of a PyLayer: which arguments own gradient slots, and the rules for what backward returns."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from pylayer.array import XP
from pylayer.autograd import grad_mode_set
from pylayer.dtype import BY_NUMPY
from pylayer.graph import Cotangent, Node
from pylayer.op_node import parent_of
from pylayer.op_table import OPS
from pylayer.tensor import Tensor

if TYPE_CHECKING:
    from pylayer.py_layer import PyLayer, PyLayerContext


class Slot(NamedTuple):
    """One place in backward's arguments or results: a Tensor, or a list or tuple that directly holds at least one."""

    name: str
    tensors: list[Tensor]
    is_list: bool


def input_slots(layer: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Slot], list[str]]:
    """The arguments that own a gradient slot, in call order, and the names of the others (observed rules 9 and 10).

    Warns:
        UserWarning: a dict, or a list in a list, holds Tensors: their gradients are not tracked.
    """
    slots: list[Slot] = []
    slotless: list[str] = []
    for name, value in [*((f"#{k}", value) for k, value in enumerate(args)), *kwargs.items()]:
        slot = as_slot(name, value)
        if slot:
            slots.append(slot)
        else:
            slotless.append(name)
        if isinstance(value, (dict, list, tuple)) and any(isinstance(v, Tensor) for v in deeper(value)):
            kind = "a dict" if isinstance(value, dict) else "a list inside a list"
            warnings.warn(
                f"{layer}: Tensors in {kind} (argument {name}) are not tracked and get no gradient. "
                f"Pass them as arguments of their own, or in one flat list.",
                UserWarning,
                stacklevel=3,
            )
    return slots, slotless


def output_slots(layer: str, returned: Any) -> list[Slot]:
    """What forward returned as the slots of backward's arguments (observed rules 13 to 16).

    Raises:
        ValueError: there is no Tensor in it.
    """
    values = returned if isinstance(returned, (list, tuple)) else [returned]
    slots = [slot for k, value in enumerate(values) if (slot := as_slot(f"output {k}", value))]
    if not slots:
        found = ", ".join(type(v).__name__ for v in values) or "nothing"
        raise ValueError(
            f"{layer} : At least one output of `PyLayer.forward` is a `Tensor`. But forward returned {found}: return "
            f"the Tensor, alone or in a list or tuple."
        )
    return slots


def as_slot(name: str, value: Any) -> Slot | None:
    """The slot that `value` owns, if any."""
    if isinstance(value, Tensor):
        return Slot(name, [value], False)
    if isinstance(value, (list, tuple)):
        tensors = [v for v in value if isinstance(v, Tensor)]
        if tensors:
            return Slot(name, tensors, True)
    return None


def deeper(value: Any) -> Iterator[Any]:
    """What lies in a dict, or below the first level of a list."""
    if isinstance(value, dict):
        for item in value.values():
            yield item
            yield from deeper(item)
    else:
        for item in value:
            if isinstance(item, dict):
                yield from deeper(item)
            elif isinstance(item, (list, tuple)):
                yield from item
                yield from deeper(item)


class Like(NamedTuple):
    """What the gradient of one Tensor must look like."""

    shape: tuple[int, ...]
    dtype: Any
    xp: ModuleType

    def zeros(self) -> Tensor:
        """A gradient of zeros."""
        return Tensor(self.xp.zeros(self.shape, self.dtype))


def likes(slots: Sequence[Slot]) -> list[list[Like]]:
    """The shape and dtype of every Tensor, slot by slot, without holding the Tensors."""
    return [[Like(t.array.shape, t.array.dtype, XP[type(t.array)]) for t in slot.tensors] for slot in slots]


class PyLayerNode(Node):
    """A recorded `apply`. Its pullback calls the user's backward and holds what that returns to the rules."""

    __slots__ = ("inputs", "layer", "names", "output_likes", "output_lists", "outputs", "slotless", "where")

    def __init__(
        self,
        layer: type[PyLayer],
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

    def pullback(self, cotangent: Cotangent, create_graph: bool) -> Iterable[tuple[Node | Tensor, Cotangent]]:
        """Call backward.

        Raises:
            ValueError: wrong number, type or shape of gradients; the message names layer, slot and input.
            Exception: whatever backward raised, with a note that names the layer and where it was applied.
        """
        ctx: PyLayerContext = self.saved
        arguments = self.cotangent_arguments(cotangent, ctx)
        try:
            returned = self.layer.backward(ctx, *arguments)
        except Exception as error:
            error.add_note(f"in backward of {self.label}, applied at {self.where}")
            raise
        return [
            (parent, gradient if create_graph else gradient.array)
            for parent, gradient in zip(self.parents, self.checked(returned), strict=True)
            if parent is not None and gradient is not None
        ]

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
        tensor = cotangent if isinstance(cotangent, Tensor) else Tensor(cotangent.copy())
        return as_dtype_of(tensor, like) if ctx._grad_in_dtype_consistent else tensor

    # ----------------------------------------------------------------- what backward returns
    def checked(self, returned: Any) -> list[Tensor | None]:
        """The gradients of all input Tensors, in order, as the documents demand them."""
        values = self.per_slot(returned)
        if len(values) != len(self.names):
            raise self.wrong_count(values)
        needed = iter(self.parents)
        gradients: list[Tensor | None] = []
        for k, ((name, is_list), slot, value) in enumerate(zip(self.names, self.inputs, values, strict=True)):
            wanted = [next(needed) is not None for _ in slot]
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
                self.checked_gradient(k, f"{name}[{j}]", item, like, want)
                for j, (item, like, want) in enumerate(zip(value, slot, wanted, strict=True))
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

    def checked_gradient(self, k: int, name: str, value: Any, like: Like, needed: bool) -> Tensor | None:
        """One gradient, cast to its input's dtype."""
        if not needed:
            if value is None:
                return None
            raise self.error(
                k, name, f"should return None at {k} position, because it's forward Tensor's stopgradient is true"
            )
        if value is None:
            raise self.error(
                k, name, f"should not return empty at {k} position: the input needs a gradient, so return a Tensor "
                f"(zeros if the gradient is zero)"
            )  # fmt: skip
        if not isinstance(value, Tensor):
            raise self.error(
                k, name, f"We can only support Tensor or None for backward output, , but got {type(value).__name__}"
            )
        if value.array.shape != like.shape:
            raise self.error(
                k, name, f"the gradient has shape {list(value.array.shape)}, but the input has shape {list(like.shape)}"
            )
        return as_dtype_of(value, like)

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
