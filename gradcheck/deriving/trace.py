"""A forward, traced, and the gradients that the vjps of its operations give."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import numpy as np

from gradcheck.deriving.graph import (
    REDUCTIONS,
    Node,
    NotDerived,
    Traced,
    nodes_in,
    sizes_of,
    traced_shape,
)
from gradcheck.deriving.numbers import Argument, SourcedInt, is_number, with_source
from gradcheck.deriving.tracer import Tracer
from pylayer.layer.py_layer import PyLayer, PyLayerContext
from pylayer.ops.creation import to_tensor, zeros_like
from pylayer.tape.grad_mode import grad_mode
from pylayer.tape.node import apply_rule, unbroadcast
from pylayer.tape.op import Op
from pylayer.tape.symbol import recording
from pylayer.tape.vjp import OPS, recorded_ops
from pylayer.tensor.nested import mapped
from pylayer.tensor.tensor import Tensor
from pylayer.watch import exchange
from pylayer.watch.numpy_array import RecordedArray
from pylayer.watch.numpy_recording import Code, recording_numpy

COTANGENTS = 48
"""Part of the seed of cotangents, so that they are not a user's inputs of the same seed."""
CANCELLED = 1e-13
"""A sum of gradients below this share of its terms is zero: rounding of float64 leaves 2⁻⁵² of a
term, some hundred times over in a long sum."""


@dataclass
class Trace:
    """What a call of forward computes, and its gradients."""

    function: Any
    """The function of forward."""
    is_layer: bool
    arguments: dict[str, Any]
    """By name, what forward got: Tensors of the trace, and plain numbers with their source."""
    returned: list[Any]
    """The Tensors that forward returned."""
    locals: dict[str, Any]
    """The local variables where forward returned."""
    arrays: dict[str, Any]
    """The Tensors that the arrays among them stand for."""
    in_numpy: bool
    """Whether forward computes with arrays."""
    takes_arrays: bool
    """Whether it is a function of arrays."""
    attributes: dict[str, Any]
    """What forward set on ctx."""
    arrays_on_context: set[str]
    """The names of those that are arrays."""
    cotangents: list[Node | None]
    """One per returned Tensor; None for one that takes none."""
    gradients: dict[str, Node | None]
    """One per Tensor among the arguments; None for one without a gradient."""
    gradient_of: dict[Node, Node]
    """The gradients of the values of forward."""
    nodes: list[Node]
    """All values, in the order in which they were computed."""
    saved: tuple[Any, ...]
    """What forward saved for backward."""

    @property
    def inputs(self) -> dict[str, Node]:
        """The Tensors among the arguments."""
        values = self.arguments.items()
        return {name: value.traced for name, value in values if isinstance(value, Traced)}


def is_layer_class(subject: Any) -> bool:
    """Whether a subject is a PyLayer class of the engine."""
    return isinstance(subject, type) and issubclass(subject, PyLayer)


def trace(
    subject: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    seed: int = 0,
    takes_arrays: bool = False,
) -> Trace:
    """Trace a PyLayer's forward, or a function, at some arguments, and take its gradients.

    Args:
        subject: a PyLayer class of the engine, or a function of its Tensors.
        args, kwargs: as `apply` takes them; arrays become Tensors that need a gradient.
        seed: of the cotangents.
        takes_arrays: whether it is a function of NumPy arrays.

    Raises:
        NotDerived: no backward can be written that holds for other values as well.
        Exception: whatever forward raises.
    """
    is_layer = is_layer_class(subject)
    function = subject.forward if is_layer else subject
    if not hasattr(function, "__code__") or inspect.ismethod(function):
        raise NotDerived("forward is not a plain function")
    tracer, context = Tracer(is_layer), PyLayerContext(getattr(subject, "__name__", "Layer"))
    given, bound = bound_arguments(tracer, function, [context] if is_layer else [], args, kwargs)
    seen = Return()
    token = recording.set(tracer)
    try:
        mode = grad_mode_as(not is_layer)
        with mode, seen.of(function.__code__), recording_numpy(Code((function,))):
            if takes_arrays:
                bound.arguments.update(mapped(dict(bound.arguments), array_of))
            returned = traced_outputs(tracer, function(*bound.args, **bound.kwargs))
            arrays = {n: tensor_of(v) for n, v in seen.locals.items() if type(v) is RecordedArray}
            attributes = attributes_of(context)
            on_context = {
                n: tensor_of(v) for n, v in attributes.items() if type(v) is RecordedArray
            }
        if not seen.line:
            raise NotDerived("forward is wrapped by a decorator: its own variables are not seen")
        names = cotangent_names(subject if is_layer else None, returned, seen.locals)
        tracer.in_backward = True
        tracer.named = set(nodes_in([*seen.locals.values(), *arrays.values()]))
        gradients = TracedGradients(tracer, returned, names, seed)
    finally:
        recording.reset(token)
    inputs = {name: value.traced for name, value in given.items() if isinstance(value, Traced)}
    return Trace(
        function,
        is_layer,
        given,
        returned,
        seen.locals,
        arrays,
        tracer.takes_arrays,
        takes_arrays,
        attributes | on_context,
        set(on_context),
        gradients.cotangents,
        {name: gradients.node_of(node) for name, node in inputs.items()},
        {node: tensor.traced for node, tensor in gradients.of.items()},
        tracer.nodes,
        context._saved or (),
    )


def attributes_of(context: PyLayerContext) -> dict[str, Any]:
    """What forward set on its context."""
    usual = vars(PyLayerContext(""))
    return {name: value for name, value in vars(context).items() if name not in usual}


@contextmanager
def grad_mode_as(is_on: bool) -> Iterator[None]:
    """A block with grad mode on or off."""
    token = grad_mode.set(is_on)
    try:
        yield
    finally:
        grad_mode.reset(token)


class Return:
    """The local variables and the line where a function returned."""

    def __init__(self) -> None:
        self.locals: dict[str, Any] = {}
        self.line = 0

    @contextmanager
    def of(self, code: CodeType) -> Iterator[None]:
        """A block in which a function with this code is called."""

        def profile(frame: FrameType, event: str, argument: Any) -> None:
            if frame.f_code is code and event == "return":
                self.locals, self.line = dict(frame.f_locals), frame.f_lineno

        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            yield
        finally:
            sys.setprofile(before if callable(before) else None)
            if before is not None and not callable(before):  # that of cProfile
                before.enable()


def bound_arguments(
    tracer: Tracer,
    function: Any,
    context: list[Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> tuple[dict[str, Any], inspect.BoundArguments]:
    """The arguments as the trace has them, by name, and bound for the call."""
    signature = inspect.signature(function)
    bound = signature.bind(*context, *args, **kwargs)
    bound.apply_defaults()
    names = list(bound.arguments)[len(context) :]
    given = {name: traced_argument(tracer, name, bound.arguments[name]) for name in names}
    bound.arguments.update(given)
    return given, bound


def traced_argument(tracer: Tracer, name: str, value: Any) -> Any:
    """An argument as the trace has it."""
    if isinstance(value, np.ndarray):
        value = as_input(value)
    if isinstance(value, Tensor):
        kind = value.array.dtype.kind
        if kind == "c":
            raise NotDerived(f"{name} is complex")
        needs_gradient = kind == "f" and not value.stop_gradient
        node = Node("input", (), value.array, name=name, needs_gradient=needs_gradient)
        node.depends_on_input = True
        return Traced(tracer.added(node))
    if isinstance(value, (list, tuple, dict)):
        inner = value.values() if isinstance(value, dict) else value
        if any(isinstance(item, (Tensor, np.ndarray)) for item in inner):
            raise NotDerived(f"{name} holds Tensors in a {type(value).__name__}")
    return with_source(value, Argument(name)) if is_number(value) else value


def as_input(array: np.ndarray[Any, Any]) -> Any:
    """A Tensor of an array, which needs a gradient if it is of floats."""
    tensor = to_tensor(array)
    tensor.stop_gradient = array.dtype.kind not in "fc"
    return tensor


def array_of(value: Any) -> Any:
    """A Tensor as an array of NumPy that is recorded; anything else unchanged."""
    return value.numpy() if isinstance(value, Tensor) else value


def tensor_of(value: Any) -> Any:
    """A recorded array as the Tensor that it stands for; anything else unchanged."""
    return exchange.get().from_numpy_hook(value, True) if type(value) is RecordedArray else value


def traced_outputs(tracer: Tracer, returned: Any) -> list[Any]:
    """The Tensors among what forward returned."""
    outputs = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    tracer.takes_arrays |= any(type(output) is RecordedArray for output in outputs)
    outputs = list(map(tensor_of, outputs))
    if any(isinstance(output, (list, tuple)) for output in outputs):
        raise NotDerived("forward returns Tensors in a list")
    tensors = [tracer.canonical(output) for output in outputs if isinstance(output, Tensor)]
    if not tensors:
        raise NotDerived("forward returns no Tensor")
    return tensors


def cotangent_names(layer: Any, outputs: Sequence[Any], local: Mapping[str, Any]) -> list[str]:
    """The names of the cotangents: those in the user's backward, else ``d`` and the output's."""
    if layer is not None and "backward" in vars(layer):
        parameters = inspect.signature(layer.backward).parameters.values()
        names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
        if len(names) == len(outputs):
            return names
    names = []
    for number, output in enumerate(outputs):
        named = [name for name, value in local.items() if nodes_in(value) == [output.traced]]
        unnamed = "dy" if len(outputs) == 1 else f"dy{number}"
        names.append(f"d{named[0]}" if named else unnamed)
    return names


def drawn_cotangents(outputs: Sequence[Any], seed: int) -> list[Any]:
    """Random cotangents of some outputs; None for one that is not of floats."""
    random = np.random.default_rng((seed, COTANGENTS))
    return [
        np.asarray(random.standard_normal(output.array.shape), output.array.dtype)
        if output.array.dtype.kind == "f"
        else None
        for output in outputs
    ]


class TracedGradients:
    """The gradients of the values of a trace, by the vjps of its operations, from the last on."""

    def __init__(
        self,
        tracer: Tracer,
        outputs: Sequence[Any],
        names: Sequence[str],
        seed: int,
    ) -> None:
        self.tracer = tracer
        self.of: dict[Node, Any] = {}
        self.sizes: dict[Node, float] = {}
        """The largest term of each gradient, which shows whether the terms cancel."""
        forward = list(tracer.nodes)
        drawn = zip(outputs, names, drawn_cotangents(outputs, seed), strict=True)
        self.cotangents = [self.start(output, name, values) for output, name, values in drawn]
        for node in reversed(forward):
            self.walk(node)

    def start(self, output: Any, name: str, values: Any) -> Node | None:
        """The cotangent of an output; None if it is not of floats."""
        if values is None:
            return None
        node = Node("cotangent", (), values, name=name, in_backward=True, flows=True)
        node.sizes = sizes_of(output.traced)
        self.tracer.added(node)
        if output.traced.needs_gradient:
            self.arrive(output.traced, node.tensor, float(abs(values).max(initial=0)))
        return node

    def node_of(self, node: Node) -> Node | None:
        """The gradient of a value; None if it has none."""
        gradient = self.of.get(node)
        return None if gradient is None else gradient.traced

    def arrive(self, node: Node, term: Any, size: float) -> None:
        """Add a term to the gradient of a value."""
        self.sizes[node] = max(self.sizes.get(node, 0.0), size)
        self.of[node] = OPS["add"].apply(self.of[node], term) if node in self.of else term

    def drop_cancelled(self, node: Node) -> None:
        """Forget a gradient whose terms cancel, such as that of a maximum that is subtracted."""
        size = self.sizes.get(node, 0.0)
        gradient = self.of.get(node)
        if gradient is None or node.operation == "input" or not size > 0:
            return
        if abs(gradient.array).max(initial=0) <= CANCELLED * size:
            del self.of[node]

    def walk(self, node: Node) -> None:
        """Send the gradient of a value on to what it was computed from."""
        group = node.siblings or [node]
        if node is not group[-1] or not isinstance(node.call, Op):
            return
        for output in group:
            self.drop_cancelled(output)
        if not any(output in self.of for output in group):
            return
        cotangents = [self.of[o] if o in self.of else zeros_like(o.tensor) for o in group]
        tensors = [output.tensor for output in group]
        row = node.call
        cotangent, out = (cotangents, tensors) if node.siblings else (cotangents[0], tensors[0])
        inputs = row.inputs_in(node.arguments)
        for number, (vjp, x) in enumerate(zip(row.vjps, inputs, strict=False)):
            if isinstance(x, Traced) and x.traced.needs_gradient:
                values = vjp.pick(*node.arguments, out, number)
                gradient = apply_rule(vjp, cotangent, recorded_ops, values)
                if not isinstance(gradient, Traced):
                    raise NotDerived(f"the gradient of {row.name} is not traced")
                size = float(abs(gradient.array).sum()) / max(1, x.array.size)
                self.arrive(x.traced, summed_to(x, gradient), size)


def summed_to(x: Traced, gradient: Traced) -> Any:
    """A gradient summed to the shape of a value that was broadcast; over the axis that the value
    itself was reduced over, if that has a name."""
    if traced_shape(gradient) == traced_shape(x):
        return gradient
    axes = [v for v in x.traced.arguments[1:] if isinstance(v, SourcedInt)]
    if x.traced.operation in REDUCTIONS and axes and gradient.ndim == x.ndim:
        sizes = zip(traced_shape(gradient), traced_shape(x), strict=True)
        stretched = [axis for axis, (size, own) in enumerate(sizes) if size != own]
        if stretched == [axes[0] % x.ndim]:
            return recorded_ops.sum(gradient, axes[0], None, True)
    return unbroadcast(recorded_ops, gradient, traced_shape(x))
