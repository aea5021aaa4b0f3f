"""PyLayer: operations whose forward and backward are written in Python by the user.

The rules are those of the documents (paddle.autograd.PyLayer and PyLayerContext, English and
Chinese, and the guide to custom dynamic-graph operators); where they are silent, the observed
behaviour of Paddle 3.3.1.
"""

from __future__ import annotations

import inspect
import sys
import warnings
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter
from typing import Any

from pylayer.tape.grad_mode import grad_mode, grad_mode_set
from pylayer.tape.graph import Cotangent, Gradients, Node, Output, Target
from pylayer.tape.node import Packed, packed, parent_of
from pylayer.tape.symbol import is_of_a_program, named, recording
from pylayer.tape.versions import changed_since, changes, check_unchanged, clock, mark_changed
from pylayer.tape.vjp import OPS
from pylayer.tensor.array import XP, Array, duplicate
from pylayer.tensor.dtype import BY_NUMPY
from pylayer.tensor.invalid import check_supported
from pylayer.tensor.nested import leaves_in, mapped
from pylayer.tensor.tensor import Tensor
from pylayer.watch import layer_observers, watchers

reads_as_releases: ContextVar[bool] = ContextVar("reads_as_releases", default=False)
"""How strictly the rule "one gradient per Tensor input" is applied: as documented, or as every
release does.

According to the documents, a backward that returns too few gradients, or None for an input that
needs one, is an error. Releases treat missing trailing gradients of inputs that need none as None,
and None as a gradient of zeros; packages rely on it.
"""


@contextmanager
def as_releases() -> Iterator[None]:
    """A block in which the rule is applied as in every release."""
    token = reads_as_releases.set(True)
    try:
        yield
    finally:
        reads_as_releases.reset(token)


# ---------------------------------------------------------------------------- owners of gradients
# Each evaluation of a check goes through what follows, so it is written in loops: up to Python 3.11
# every comprehension is a call.
class Slot:
    """One slot in backward's arguments or results: a Tensor, or a list or tuple that directly holds
    at least one. For any other value, `tensors` is empty.
    """

    __slots__ = ("is_list", "name", "tensors")

    def __init__(self, name: int | str, value: Any) -> None:
        self.name, self.is_list = name, isinstance(value, (list, tuple))
        """The name of an argument, or its position."""
        self.tensors: list[Any] = []
        for item in value if self.is_list else [value]:
            if isinstance(item, Tensor):
                self.tensors.append(item)


def input_slots(
    layer: str, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[list[Slot], list[Tensor], list[int | str]]:
    """The arguments that own a gradient slot, in call order, their Tensors, and the names of the
    others (observed rules 9 and 10).

    Warns:
        UserWarning: a dict, or a list in a list, holds Tensors: their gradients are not tracked.
    """
    slots: list[Slot] = []
    tensors: list[Tensor] = []
    slotless: list[int | str] = []
    arguments: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    for name, value in arguments:
        slot = Slot(name, value)
        tensors += slot.tensors
        if slot.tensors:
            slots.append(slot)
        else:
            slotless.append(name)
        if isinstance(value, Tensor):
            continue
        held = sum([isinstance(v, Tensor) for v in leaves_in(value)])
        if held > len(slot.tensors):
            kind = "a dict" if isinstance(value, dict) else "a list inside a list"
            argument = name if isinstance(name, str) else f"#{name}"
            warnings.warn(
                f"{layer}: Tensors in {kind} (argument {argument}) are not tracked and get no "
                "gradient. Pass them as arguments of their own, or in one flat list.",
                UserWarning,
                stacklevel=3,
            )
    return slots, tensors, slotless


def output_slots(layer: str, returned: Any) -> tuple[list[Slot], list[Tensor]]:
    """Return forward's outputs as the slots of backward's arguments, and their Tensors (observed
    rules 13 to 16).

    Raises:
        ValueError: the outputs contain no Tensor.
    """
    values = returned if isinstance(returned, (list, tuple)) else [returned]
    slots, tensors = [], []
    for k, value in enumerate(values):
        slot = Slot(k, value)
        if slot.tensors:
            slots.append(slot)
            tensors += slot.tensors
    if not slots:
        for value in values:
            check_supported(value)
        found = ", ".join(type(v).__name__ for v in values) or "nothing"
        raise ValueError(
            f"{layer} : At least one output of `PyLayer.forward` is a `Tensor`. But forward "
            f"returned {found}: return the Tensor, alone or in a list or tuple."
        )
    return slots, tensors


array_of, stops_gradient = attrgetter("array"), attrgetter("_stop_gradient")


class Like:
    """Properties of a slot's Tensor, and the target of its gradient, without a reference to the
    Tensor.
    """

    __slots__ = ("array_type", "dtype", "place", "shape", "target")

    def __init__(self, tensor: Tensor, place: int, target: Target | None) -> None:
        array = tensor.array
        self.shape, self.dtype, self.array_type = array.shape, array.dtype, type(array)
        self.place, self.target = place, target
        """Its position in its slot, and the target."""

    @property
    def is_needed(self) -> bool:
        """Whether a gradient is needed: the graph continues from here, and the dtype is not integer
        or boolean.
        """
        return self.target is not None and BY_NUMPY[self.dtype].is_differentiable


# --------------------------------------------------------------------------- the context
class PyLayerContext:
    """Carries values from forward to backward: the first argument of both, one per `apply`. Any
    attribute may be set on it.

    Methods named save, mark or set raise RuntimeError outside forward; the first two also if called
    twice ("at most once, and only inside forward"); the last raises TypeError if the value is not a
    bool.
    """

    def __init__(self, layer: str) -> None:
        self._layer = layer
        self._in_forward = True
        self._called: set[str] = set()
        self._saved: tuple[Any, ...] | None = None
        self.age = 0
        """Minus the stamp at which tensors were saved, as for a node."""
        self.not_inplace_tensors: tuple[Any, ...] = ()
        self._non_differentiable: tuple[Any, ...] = ()
        self._materialize_grads = True
        self._grad_in_dtype_consistent = True

    @property
    def label(self) -> str:
        """The name of the layer's node in messages."""
        return f"GradNodePyLayer_{self._layer}"

    def name(self) -> str:
        """The name of the layer's node."""
        return self.label

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep `tensors` for backward (PyLayerContext.save_for_backward).

        Raises ValueError if saved_tensors_hooks are active and a value is not a Tensor or a list of
        Tensors.
        """
        self._allow("save_for_backward", once=True)
        self._saved = tensors if watchers.get().hooks is None else mapped(tensors, _packed_argument)
        self.age = next(clock)

    def saved_tensor(self) -> tuple[Any, ...] | None:
        """Return the container that `save_for_backward` kept, or None if it was not called
        (PyLayerContext.saved_tensor).

        Raises RuntimeError if a saved Tensor was changed in place since.
        """
        if self._saved is None:
            return None
        if changes:
            check_unchanged(_arrays(self._saved), self.age, self.label, uncounted=True)
        return mapped(self._saved, _restored)  # type: ignore[no-any-return]

    def mark_not_inplace(self, *args: Any) -> None:
        """Return an input that forward returns unchanged as a new Tensor
        (PyLayerContext.mark_not_inplace).
        """
        self._allow("mark_not_inplace", once=True)
        self.not_inplace_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Give the outputs `args` stop_gradient True (PyLayerContext.mark_non_differentiable)."""
        self._allow("mark_non_differentiable", once=True)
        self._non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether undefined cotangents reach backward as zeros (the default) or as None."""
        self._allow("set_materialize_grads")
        self._materialize_grads = _bool("set_materialize_grads", value)

    def set_grad_in_dtype_consistent(self, value: bool) -> None:
        """Whether cotangents are cast to the dtype of forward's outputs (the default) before
        backward sees them.
        """
        self._allow("set_grad_in_dtype_consistent")
        self._grad_in_dtype_consistent = _bool("set_grad_in_dtype_consistent", value)

    @property
    def container(self) -> Any:
        """The saved container, as one object; it may be set too (observed rule 48)."""
        return self.saved_tensor()

    @container.setter
    def container(self, value: Any) -> None:
        self._saved = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        self.age = next(clock)

    def _allow(self, method: str, once: bool = False) -> None:
        if not self._in_forward:
            raise RuntimeError(
                f"{self._layer}: ctx.{method} must be called inside forward, but that has returned."
            )
        if once and method in self._called:
            raise RuntimeError(
                f"{self._layer}: ctx.{method} must be called at most once, with all Tensors."
            )
        self._called.add(method)


def _bool(method: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(
            f"(InvalidType) {method}: argument (position 1) must be bool, but got "
            f"{type(value).__name__}"
        )
    return value


@dataclass(slots=True)  # not frozen: that constructor would take three times as long
class _SavedOutput:
    """A reference for backward to an output of forward: not the Tensor itself, whose node holds the
    saved values.
    """

    tensor: weakref.ref[Tensor]
    array: Array
    node: weakref.ref[Node]
    slot: int

    def restored(self) -> Tensor:
        """The Tensor that forward returned, or a similar one if it no longer exists."""
        tensor, node = self.tensor(), self.node()
        if tensor is not None:
            return tensor
        return Tensor(self.array, Output(node, self.slot) if node else None, node is None)


def _packed_argument(value: Any) -> Packed:
    if value is not None and not isinstance(value, Tensor):
        raise ValueError("save_for_backward only support Tensor, list of Tensor, tuple of Tensor.")
    return packed(value)  # None goes to the hook too (observed rule 53)


def _restored(value: Any) -> Any:
    return value.restored() if isinstance(value, (Packed, _SavedOutput)) else value


def _arrays(values: Any) -> Iterator[Array]:
    """The arrays of the Tensors among saved values, including those in containers, but not in
    values that a hook has packed.
    """
    return (v.array for v in leaves_in(values) if isinstance(v, (Tensor, _SavedOutput)))


def release_outputs(ctx: PyLayerContext, outputs: Sequence[Tensor], node: Node) -> None:
    """Save outputs as weak references, so that no cycle (node, ctx, output, node) keeps the graph
    alive.
    """
    if not ctx._saved:
        return
    saved = list(ctx._saved)
    for slot, output in enumerate(outputs):
        for k, value in enumerate(saved):
            if value is output:
                saved[k] = _SavedOutput(weakref.ref(value), value.array, weakref.ref(node), slot)
    ctx._saved = tuple(saved)


# --------------------------------------------------------------------------- the recorded call
class PyLayerNode(Node):
    """A recorded `apply`. A node whose pullback calls the user's backward and checks the returned
    gradients against the rules.
    """

    __slots__ = ("inputs", "layer", "misfits", "output_slots", "outputs", "slotless", "where")

    def __init__(
        self,
        layer: type[Any],
        ctx: PyLayerContext,
        inputs: Sequence[Slot],
        outputs: Sequence[Slot],
        slotless: Sequence[int | str],
        where: str,
    ) -> None:
        parents: list[Target | None] = []
        for slot in inputs:
            for k, tensor in enumerate(slot.tensors):
                target = parent_of(tensor)
                slot.tensors[k] = Like(tensor, k, target)
                parents.append(target)
        super().__init__(parents, saved=ctx)
        self.layer, self.inputs, self.output_slots, self.outputs = layer, inputs, outputs, 0
        for slot in outputs:
            for k, tensor in enumerate(slot.tensors):
                # If forward made an output a leaf, its target would be the output itself: a cycle.
                slot.tensors[k] = Like(tensor, k, None)
            self.outputs += len(slot.tensors)
        self.slotless = slotless
        """The arguments without a slot, for the error of a layer that returns None for them."""
        self.where = where
        """File and line of the call of `apply`."""
        self.misfits: list[ValueError] = []
        """Errors for cotangents of this backward that other layers returned in a shape that differs
        from the outputs'.
        """

    @property
    def label(self) -> str:
        return f"GradNodePyLayer_{self.layer.__name__}"

    def pullback(
        self, cotangent: Sequence[Cotangent | None], create_graph: bool, found: Gradients
    ) -> Iterable[tuple[Target, Cotangent]]:
        """Call backward.

        Raises:
            ValueError: wrong number, type or shape of gradients; the message names layer, slot and
                input. If backward failed because the shape of a cotangent differs from the
                output's, the error is about the layer that returned that cotangent.
            Exception: whatever backward raised, with a note that names the layer and where it was
                applied.
        """
        ctx: PyLayerContext = self.saved
        misfits, self.misfits = self.misfits, []
        arguments = self.cotangent_arguments(cotangent, ctx)
        for observer in layer_observers:
            observer.pulled_back(self.layer)
        try:
            returned = self.layer.backward(ctx, *arguments)
        except Exception as error:
            error.add_note(f"in backward of {self.label}, applied at {self.where}")
            if misfits:
                raise misfits[0] from error
            raise
        return self.checked(returned, found.no_grad_targets, create_graph)

    # --------------------------------------------------------------- backward's arguments
    def cotangent_arguments(
        self, cotangents: Sequence[Cotangent | None], ctx: PyLayerContext
    ) -> list[Any]:
        """The cotangents: one Tensor, or list of Tensors, per output slot."""
        remaining = iter(cotangents)
        arguments: list[Any] = []
        for slot in self.output_slots:
            tensors = list(map(cotangent_tensor, slot.tensors, remaining, repeat(ctx)))
            arguments.append(tensors if slot.is_list else tensors[0])
        return arguments

    # -------------------------------------------------------------------- backward's results
    def checked(
        self, returned: Any, no_grad_targets: Collection[Target], as_tensors: bool
    ) -> list[tuple[Target, Cotangent]]:
        """The gradients of the input Tensors that have one, in order, by the current interpretation
        (`reads_as_releases`): `as_tensors` or as arrays.

        Integers and booleans never need one. An input among `no_grad_targets`, for which
        ``paddle.grad`` wants no gradient, counts as one that needs none.
        """
        gradients = self.per_slot(returned, no_grad_targets)
        pairs: list[tuple[Target, Cotangent]] = []
        for k, (slot, value) in enumerate(zip(self.inputs, gradients, strict=True)):
            values = self.per_tensor(k, value, slot) if slot.is_list else [value]
            for like, item in zip(slot.tensors, values, strict=True):
                target = None if like.target in no_grad_targets else like.target
                gradient = self.checked_gradient(k, item, like, target)
                if gradient is not None:
                    pairs.append((target, gradient if as_tensors else gradient.array))
        return pairs

    def per_slot(self, returned: Any, no_grad_targets: Collection[Target]) -> list[Any]:
        """The returned gradients: one value per slot. The documents allow a Tensor, a tuple and a
        list; with a single list slot, a list of gradients is that slot's value. As in releases,
        omitted trailing gradients count as None if some are returned and the omitted ones are not
        needed.

        Raises:
            ValueError: there are too many, or too few (by the documents, always; as in releases, if
                a needed one is missing).
        """
        slots = self.inputs
        single_list = (
            len(slots) == 1
            and slots[0].is_list
            and isinstance(returned, list)
            and not any(isinstance(v, (list, tuple)) for v in returned)
        )
        if single_list or not isinstance(returned, (list, tuple)):
            returned = [returned]
        left_out = slots[len(returned) :]
        if len(returned) == len(slots):
            return list(returned)
        likes = [like for slot in left_out for like in slot.tensors]
        missed = any(like.is_needed and like.target not in no_grad_targets for like in likes)
        if not returned or not left_out or missed or not reads_as_releases.get():
            raise self.wrong_count(returned)
        return [*returned, *[None] * len(left_out)]

    def per_tensor(self, k: int, value: Any, slot: Slot) -> Sequence[Any]:
        """The gradients of a list slot: one value per Tensor. Raises ValueError if their number
        differs, or there is no list.
        """
        if value is None:
            return [None] * len(slot.tensors)
        if not isinstance(value, (list, tuple)):
            text = f"argument must be list or tuple, but got {type(value).__name__}"
            raise self.error(k, text)
        if len(value) != len(slot.tensors):
            text = (
                f"the list has {len(slot.tensors)} Tensors, but backward returned {len(value)} "
                f"gradients"
            )
            raise self.error(k, text)
        return value

    def checked_gradient(
        self, k: int, value: Any, like: Like, target: Target | None
    ) -> Tensor | None:
        """One gradient, cast to its input's dtype unless the PyLayer that receives it accepts any
        dtype (observed rule 34).

        A gradient for a PyLayer may have another shape, as in Paddle (observed rule 33), if the two
        layers agree on it.
        """
        if target is None:
            if value is None:
                return None
            raise self.error(
                k,
                f"should return None at {k} position, because it's forward Tensor's stopgradient "
                "is true, or paddle.grad requests no gradient of it (backward() requests all)",
                like,
            )
        if value is None:
            if reads_as_releases.get() or not like.is_needed:
                return None
            raise self.error(
                k,
                f"should not return empty at {k} position: the input needs a gradient, so return "
                "a Tensor (zeros if the gradient is zero)",
                like,
            )
        # a subclass that left out Tensor.__init__ has no array
        if not isinstance(value, Tensor) or not hasattr(value, "array"):
            check_supported(value)
            text = (
                f"We can only support Tensor or None for backward output, , but got "
                f"{type(value).__name__}"
            )
            raise self.error(k, text, like)
        layer = layer_behind(target)
        if value.array.shape != like.shape:
            text = (
                f"the gradient has shape {list(value.array.shape)}, but the input has shape "
                f"{list(like.shape)}"
            )
            misfit = self.error(k, text, like)
            if layer is None:
                raise misfit
            layer.misfits.append(misfit)
        takes_any_dtype = (
            layer is not None
            and layer.saved is not None
            and not layer.saved._grad_in_dtype_consistent
        )
        return value if takes_any_dtype else as_dtype_of(value, like)

    def wrong_count(self, values: Sequence[Any]) -> ValueError:
        """The error for a wrong number of gradients, which names the inputs of the slots."""
        expected, received = len(self.inputs), len(values)
        owners = ", ".join(f"`{self.argument(slot.name)}`" for slot in self.inputs)
        text = (
            f"{self.label} : The number of outputs of `PyLayer.backward` should be {expected}, but "
            f"received {received}. One gradient per Tensor argument of apply: {owners}"
        )
        extra_nones = sum(value is None for value in values)
        if self.slotless and expected < received <= expected + extra_nones:
            names = ", ".join(f"`{self.argument(name)}`" for name in self.slotless)
            text += f"; non-Tensor arguments take no slot; drop the None for {names}"
        return ValueError(f"{text}. (applied at {self.where})")

    def error(self, k: int, text: str, like: Like | None = None) -> ValueError:
        """The error for one slot, or a Tensor in it: layer, slot, input, and where the layer was
        applied.
        """
        name = self.argument(self.inputs[k].name)
        if like is not None and self.inputs[k].is_list:
            name = f"{name}[{like.place}]"
        return ValueError(
            f"{self.label}'s backward function, gradient {k} (input `{name}`): {text}. "
            f"(applied at {self.where})"
        )

    def argument(self, name: int | str) -> str:
        """The name of an argument: for a positional one, forward's own name, as slots only have its
        number.
        """
        if isinstance(name, str):
            return name
        try:
            parameters = list(inspect.signature(self.layer.forward).parameters.values())[1:]
        except (TypeError, ValueError):
            return f"#{name}"
        for parameter in parameters[: name + 1]:
            if parameter.kind is parameter.VAR_POSITIONAL:
                return f"*{parameter.name}[{name - parameters.index(parameter)}]"
        return parameters[name].name if name < len(parameters) else f"#{name}"


def cotangent_tensor(like: Like, cotangent: Cotangent | None, ctx: PyLayerContext) -> Tensor | None:
    """A cotangent for backward: a copy, since backward may change it in place (observed rule
    43).
    """
    if cotangent is None:
        zeros = XP[like.array_type].zeros
        return Tensor(zeros(like.shape, like.dtype)) if ctx._materialize_grads else None
    if not isinstance(cotangent, Tensor):
        cotangent = Tensor(duplicate(cotangent), None, False)
    return as_dtype_of(cotangent, like) if ctx._grad_in_dtype_consistent else cotangent


def layer_behind(target: Target) -> PyLayerNode | None:
    """The PyLayer call that receives a cotangent, if any."""
    node = target.parents[0] if isinstance(target, Output) else None
    return node if isinstance(node, PyLayerNode) else None


def as_dtype_of(tensor: Tensor, like: Like) -> Tensor:
    """`tensor` in the dtype of `like`: recorded if grad mode is on."""
    if tensor.array.dtype == like.dtype:
        return tensor
    return OPS["cast"].apply(tensor, BY_NUMPY[like.dtype])  # type: ignore[no-any-return]


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward that cannot be differentiated again.

    It runs unrecorded, so that a second gradient does not find the input in the graph (observed
    rule 40).
    """
    return grad_mode_set(False)(backward)


# --------------------------------------------------------------------------- the layer
class PyLayer:
    """A custom operation: a subclass with static `forward` and `backward`, run through `apply`.

    forward(ctx, *args, **kwargs) computes with grad mode off and returns a Tensor, or a list or
    tuple with at least one. backward(ctx, *cotangents) gets one cotangent per Tensor output and
    returns one gradient per Tensor input: in the order of the call, one for a whole list or tuple
    of Tensors, None for an input with stop_gradient True.
    """

    @staticmethod
    def forward(ctx: PyLayerContext, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; to be overridden."""
        raise NotImplementedError("You must implement the forward function for PyLayer.")

    @staticmethod
    def backward(ctx: PyLayerContext, *args: Any, **kwargs: Any) -> Any:
        """Compute the gradients of the inputs; to be overridden."""
        raise NotImplementedError("You must implement the backward function for PyLayer.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record backward if a Tensor input needs a gradient.

        Returns:
            The result of forward; its Tensors have stop_gradient False unless marked otherwise.

        Raises:
            ValueError: forward returned no Tensor, or returned an input leaf that needs a gradient;
                or an input is a Variable, or a parameter in static mode.
            NotImplementedError: forward is not overridden.
        """
        if recording.get() is not None and is_of_a_program((args, kwargs)):
            raise ValueError(
                f"{cls.__name__}.apply is for dynamic mode{named((args, kwargs))}. In a program "
                "use paddle.static.nn.static_pylayer."
            )
        ctx = PyLayerContext(cls.__name__)
        for observer in layer_observers:
            observer.applied(cls, ctx)
        watch = watchers.get().observer
        if watch.records:
            watch.applied(cls, ctx)
            if not watch.backwards:
                return cls.forward(ctx, *args, **kwargs)
        slots, inputs, slotless = input_slots(cls.__name__, args, kwargs)
        # before forward can change that
        recorded = grad_mode.get() and False in map(stops_gradient, inputs)
        token = grad_mode.set(watch.records)
        try:
            returned = cls.forward(ctx, *args, **kwargs)
        finally:
            grad_mode.reset(token)
            ctx._in_forward = False
        outputs, flat = output_slots(cls.__name__, returned)
        if not recorded:
            return returned
        frame = sys._getframe(1)
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        replaced = copied_inputs(ctx, flat, inputs)
        node = PyLayerNode(cls, ctx, slots, outputs, slotless, where)
        marked = set(map(id, ctx._non_differentiable))
        release_outputs(ctx, flat, node)
        for index, tensor in enumerate(flat):
            output, place = replaced.get(id(tensor), tensor), Output(node, index)
            if watch.records:
                watch.stands_for(place, parent_of(tensor))
            output.node, output._stop_gradient = place, id(tensor) in marked
        return mapped(returned, lambda v: replaced.get(id(v), v)) if replaced else returned


def copied_inputs(
    ctx: PyLayerContext, outputs: Sequence[Tensor], inputs: Sequence[Tensor]
) -> dict[int, Tensor]:
    """Copies of those outputs that are inputs marked as not in place, by id. Other inputs among the
    outputs count as changed in place.

    Raises:
        ValueError: an input leaf was returned unchanged (observed rule 18).
    """
    copies = {}
    arrays = set(map(id, map(array_of, inputs)))
    for output in outputs:
        if id(output.array) not in arrays:
            continue
        if any(output.array is getattr(t, "array", None) for t in ctx.not_inplace_tensors):
            copies[id(output)] = Tensor(output.array.copy())
            continue
        if output.is_leaf:
            raise ValueError(
                f"{ctx._layer} : Leaf Var ({output.name}) that doesn't stop gradient can't use "
                "inplace strategy. forward returned an input unchanged: call ctx.mark_not_inplace "
                "on it to get a new Tensor, or return a clone()."
            )
        changed_before = changed_since(_arrays(ctx._saved), ctx.age) is not None
        mark_changed(output.array)
        if not changed_before:
            ctx.age = next(clock)
    return copies
