"""Checks of the contracts of layers while a function runs: arguments, cotangents and returned
gradients.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from gradcheck.backends.base import (
    Array,
    Backend,
    Cotangents,
    Tensor,
    flat_tensors,
    is_differentiable,
)
from gradcheck.case.layer_calls import Wrap, wrapped_methods
from gradcheck.checking.precision import identical

GAVE_LESS = "the documents ask for one gradient per Tensor input"
"""Marks a verdict on a backward that left gradients out, or returned None for one: it was
interpreted as Paddle's releases do.
"""
GAVE_OTHER_SHAPES = "a gradient between two layers has another shape than the input"
"""Marks a verdict on layers that pass on a gradient of another shape, which releases ignore."""
ELSEWHERE = (7 / 8, 1.0)
"""Factors by which inputs are scaled to run forward at other values. The first is below 1, so that
values stay in (−1, 1), and changes them by far more than rounding; a forward that requires sums of
1 or orthogonal columns accepts the second.
"""


def tensors_in(backend: Backend, value: Any) -> list[Tensor]:
    """The Tensors among the arguments or results of a layer, at any depth of lists, tuples and
    dicts.
    """
    tensor_type = backend.tensor_type
    if isinstance(value, tensor_type):
        return [value]
    return flat_tensors(value, lambda item: isinstance(item, tensor_type))


def starts_for(
    backend: Backend, outputs: Sequence[Array], cotangents: Cotangents
) -> list[Tensor | None]:
    """Cotangents as Tensors of the dtypes of the outputs."""
    return [
        None if c is None else backend.tensor(c.astype(output.dtype), None, stop_gradient=True)
        for output, c in zip(outputs, cotangents, strict=True)
    ]


def values_elsewhere(array: Array, scale: float) -> Array:
    """The elements of `array`, rolled by one position along every axis, times `scale`.

    Signs, ranges, and symmetric positive-definite matrices are preserved, so that forward accepts
    these values too; masks, sums and norms change.
    """
    if not is_differentiable(array):
        return array
    rolled = np.roll(array, 1, axis=tuple(range(array.ndim))) if array.ndim else array
    other = rolled * array.dtype.type(scale)
    return array + array.dtype.type(1 / 8) if identical(other, array) else other


@dataclass(frozen=True)
class TensorArgument:
    """An argument of a forward that is a Tensor or a list that contains Tensors."""

    is_list: bool
    needed: list[bool]
    """Whether each Tensor needs a gradient."""


@dataclass(frozen=True)
class ForwardCall:
    """A call of a layer's forward, which a backward belongs to."""

    context: Any
    """The context, kept so that no other context gets its id."""
    arguments: list[TensorArgument]
    shapes: list[tuple[int, ...]]
    """The shapes of all Tensors among the arguments."""


class LayerContracts:
    """Records how layers treat their arguments, cotangents and gradients.

    Args:
        backend: of the layers.
        inputs: of the function that contains the layers.
    """

    def __init__(self, backend: Backend, inputs: dict[str, Tensor]) -> None:
        self.tensors_in, self.inputs = functools.partial(tensors_in, backend), inputs
        self.array, self.overlap = backend.array, backend.overlap
        self.backend = backend
        self.forward_calls: dict[int, ForwardCall] = {}
        """The calls of forward, by the id of their context."""
        self.changed_by_forward: list[str] = []
        """The arguments that a forward changed without returning them."""
        self.changed_by_backward: list[str] = []
        self.aliased: list[str] = []
        """The inputs whose memory a gradient shares."""
        self.dtype_without_derivatives: Any = None
        """The dtype of the first gradient of integers or booleans, if any was returned."""
        self.gave_less = False
        """Whether a backward returned fewer gradients than the documents ask for."""
        self.gave_other_shapes = False
        """Whether a backward returned a gradient of another shape than its input."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A block in which layers are watched: those that are applied, if the backend reports them
        before their forward runs; otherwise all.
        """
        wraps: dict[str, Wrap] = {"forward": self.watch_forward, "backward": self.watch_backward}
        backend = self.backend
        with wrapped_methods(backend, wraps, backend.records) as self.wrap, backend.observing(self):
            yield

    def applied(self, layer: Any, context: Any) -> None:
        """Watch a layer whose forward is about to run."""
        self.wrap(layer)

    def pulled_back(self, layer: Any) -> None:
        """Do nothing before a backward."""

    def marks(self) -> list[str]:
        """The marks for contracts that were broken and that Paddle's releases ignore."""
        if not self.backend.documents:
            return []
        flags = {GAVE_LESS: self.gave_less, GAVE_OTHER_SHAPES: self.gave_other_shapes}
        return [*compress(flags, flags.values())]

    def watch_forward(
        self, owner: type, forward: Callable[..., Any], position: int
    ) -> Callable[..., Any]:
        """Wrap the forward of a layer to watch it; its context is the argument at `position`."""

        @functools.wraps(forward)
        def call_forward(*args: Any, **kwargs: Any) -> Any:
            if len(args) <= position:
                return forward(*args, **kwargs)
            values = [*args[position + 1 :], *kwargs.values()]
            tensors = self.tensors_in(values)
            context = next(iter(args[position : position + 1]), None)
            self.forward_calls[id(context)] = ForwardCall(
                context,
                [*filter(None, map(self.tensor_argument, values))],
                [tuple(t.shape) for t in tensors],
            )
            before = [(t, self.array(t).copy()) for t in tensors if self.needs_gradient(t)]
            returned = forward(*args, **kwargs)
            may_change = self.backend.may_change(context, self.tensors_in(returned))
            allowed = set(map(id, [*may_change, *self.inputs.values()]))
            changed = {id(t) for t, copy in before if not identical(self.array(t), copy)} - allowed
            if changed:  # only if needed: reading a signature takes longer than a small forward
                self.changed_by_forward += [
                    f"argument {name} of {owner.__name__}"
                    for name, value in argument_names(forward, args[position + 1 :], kwargs)
                    if not changed.isdisjoint(map(id, self.tensors_in(value)))
                ]
            return returned

        return call_forward

    def watch_backward(
        self, owner: type, backward: Callable[..., Any], position: int
    ) -> Callable[..., Any]:
        """Wrap the backward of a layer to watch it; its context is the argument at `position`."""

        @functools.wraps(backward)
        def call_backward(*args: Any) -> Any:
            cotangents = self.tensors_in(args[position + 1 :])
            before = [(t, self.array(t).copy()) for t in cotangents]
            returned = backward(*args)
            if not all(identical(self.array(t), copy) for t, copy in before):
                self.changed_by_backward = ["the incoming gradient"]
            self.note_gradients(returned, self.forward_calls.get(id(args[position])))
            return returned

        return call_backward

    def note_gradients(self, returned: Any, call: ForwardCall | None) -> None:
        """Record mistakes in the gradients that a backward returned."""
        gradients = self.tensors_in(returned)
        self.aliased = self.aliased or [
            name
            for name, t in self.inputs.items()
            if any(self.overlap(t, gradient) for gradient in gradients)
        ]
        dtypes = (a.dtype for a in map(self.array, gradients) if not is_differentiable(a))
        self.dtype_without_derivatives = self.dtype_without_derivatives or next(dtypes, None)
        if call is None:  # backward was called directly, with a context of its own
            return
        shapes = [tuple(gradient.shape) for gradient in gradients]
        self.gave_less |= gives_less(returned, call.arguments)
        self.gave_other_shapes |= len(shapes) == len(call.shapes) and shapes != call.shapes

    def needs_gradient(self, tensor: Tensor) -> bool:
        """Whether a Tensor takes a gradient."""
        return self.backend.needs_gradient(tensor) and is_differentiable(self.array(tensor))

    def tensor_argument(self, value: Any) -> TensorArgument | None:
        """The structure in which backward must return a gradient for an argument; None if it holds
        no Tensor.

        Tensors in dicts, or deeper in lists, get no gradient.
        """
        is_list = isinstance(value, (list, tuple))
        items = value if is_list else [value]
        tensors = [
            t for t in items if not isinstance(t, (list, tuple, dict)) and self.tensors_in(t)
        ]
        return TensorArgument(is_list, list(map(self.needs_gradient, tensors))) if tensors else None


def argument_names(
    forward: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """The arguments of a forward after its context, with the names of its parameters."""
    named = {**{f"number {k}": value for k, value in enumerate(args)}, **kwargs}
    with suppress(TypeError, ValueError):
        bound = inspect.signature(forward).bind(None, *args, **kwargs).arguments
        named = dict([*bound.items()][1:])
    yield from named.items()


def gives_less(returned: Any, arguments: Sequence[TensorArgument]) -> bool:
    """Whether a backward returned too few gradients, or None for an input that needs one."""
    values = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    is_flat = isinstance(returned, list) and not any(isinstance(v, (list, tuple)) for v in values)
    if is_flat and len(arguments) == 1 and arguments[0].is_list:
        values = [returned]
    for value, argument in zip(values, arguments, strict=False):
        gradients = value if isinstance(value, (list, tuple)) else [value] * len(argument.needed)
        for gradient, needed in zip(gradients, argument.needed, strict=False):
            if gradient is None and needed:
                return True
    return len(values) < len(arguments)
