"""Tracing a forward, and computing its gradients by the vjps of its operations."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import numpy as np

from gradcheck.deriving.call import (
    CallWorld,
    LayerCall,
    NoRank,
    as_input,
    grad_mode_as,
    is_recorded,
    on_rank,
    recorded_tensor,
    values_in,
)
from gradcheck.deriving.graph import (
    REDUCTIONS,
    Node,
    NotDerived,
    Traced,
    nodes_in,
    sourced_sizes,
    traced_shape,
)
from gradcheck.deriving.numbers import Argument, SourcedInt, is_number, with_source
from gradcheck.deriving.ranks import TracedRank, summed_over_ranks, varies
from gradcheck.deriving.tracer import Tracer, traced_by
from pylayer.layer.py_layer import PyLayerContext
from pylayer.ops.creation import zeros_like
from pylayer.tape.node import apply_rule, unbroadcast
from pylayer.tape.op import Op
from pylayer.tape.vjp import OPS, recorded_ops
from pylayer.tensor.nested import mapped
from pylayer.tensor.tensor import Tensor
from pylayer.watch.numpy_recording import Code, recording_numpy

COTANGENT_SEED = 48
"""Part of the seed of cotangents, so that they differ from inputs that a user draws with the same
seed.
"""
CANCELLED = 1e-13
"""A sum of gradients below this share of its terms counts as zero: rounding of float64 leaves 2⁻⁵²
of a term, a few hundred times over in a long sum.
"""


@dataclass
class Trace:
    """The operations of a call of forward, and its gradients."""

    call: LayerCall
    arguments: dict[str, Any]
    """The arguments that forward was called with, by name: Tensors of the trace, and plain numbers
    with their source.
    """
    returned: list[Any]
    """The Tensors that forward returned."""
    locals: dict[str, Any]
    """The local variables when forward returned, with Tensors of the trace in place of NumPy
    arrays.
    """
    attributes: dict[str, Any]
    """The attributes that forward set on ctx, in the same form."""
    arrays: set[str]
    """The names of the variables, and of the attributes as ``ctx.name``, that are arrays."""
    saved: tuple[Any, ...]
    """The values that forward saved for backward."""
    in_numpy: bool
    """Whether forward computes with arrays."""
    cotangents: list[Node | None]
    """One cotangent per returned Tensor; None if it takes none."""
    gradients: dict[str, Node | None]
    """One gradient per Tensor among the arguments; None if it has none."""
    gradient_of: dict[Node, Node]
    """The gradients of the values of forward."""
    nodes: list[Node]
    """All values, in the order in which they were computed."""

    @property
    def inputs(self) -> dict[str, Node]:
        """The Tensors among the arguments."""
        return traced_inputs(self.arguments)

    @property
    def gradient_slots(self) -> Sequence[str]:
        """The arguments for which backward returns a gradient, in order: only the Tensors, or all
        arguments in a framework whose layers are replayed, or the inputs of a static layer.
        """
        if self.call.static is not None:
            return self.call.static.inputs
        return [*(self.gradients if self.call.played is None else self.arguments)]


def traced_inputs(arguments: Mapping[str, Any]) -> dict[str, Node]:
    """The values of the Tensors among arguments."""
    return {name: v.traced for name, v in arguments.items() if is_in_trace(v)}


def is_in_trace(value: Any) -> bool:
    """Whether a value is a Tensor of the trace."""
    return isinstance(value, Traced)


def trace(call: LayerCall, seed: int = 0) -> Trace:
    """Trace the forward of a call, and take its gradients.

    Args:
        seed: of the cotangents.

    Raises:
        NotDerived: no backward can be written that is right for other values too.
        Exception: whatever forward raises.
    """
    if not hasattr(call.function, "__code__") or inspect.ismethod(call.function):
        raise NotDerived("forward is not a plain function")
    is_layer = call.is_layer or call.static is not None
    tracer, context, frame = Tracer(is_layer), call.context(), Return()
    arguments = {name: traced_argument(tracer, name, value) for name, value in call.named.items()}
    if call.world is not None:
        for name, node in traced_inputs(arguments).items():
            node.varies = call.world.placements[name] != "replicated"
    rank = NoRank() if call.world is None else TracedRank(call.world.size)
    with traced_by(tracer), on_rank(rank):
        with (
            grad_mode_as(not is_layer),
            frame.of(call.written_forward.__code__),
            recording_numpy(Code(call.numpy_sources)),
        ):
            values = mapped(arguments, recorded_array) if call.takes_arrays else arguments
            args, count = list(values.values()), len(call.args)
            kwargs = dict(list(values.items())[count:])
            returned = call.function(*context, *args[:count], **kwargs)
            attributes = {f"ctx.{name}": v for c in context for name, v in attributes_of(c).items()}
            is_array = {n: v for n, v in (frame.locals | attributes).items() if is_recorded(v)}
            # a constant that has a name is read by that name
            local, attributes = mapped(
                (frame.locals, attributes), lambda v: tracer.canonical(call.engine_value(v))
            )
            outputs = traced_outputs(tracer, returned)
        if not frame.line:
            raise NotDerived("forward is wrapped by a decorator, which hides its variables")
        names = cotangent_names(call, outputs, local)
        tracer.in_backward = True
        tracer.named = set(nodes_in(list(local.values())))
        gradients = TracedGradients(tracer, outputs, names, seed, call.world)
    return Trace(
        call,
        arguments,
        outputs,
        local,
        {name.removeprefix("ctx."): value for name, value in attributes.items()},
        set(is_array),
        context[0]._saved or () if context else (),
        tracer.takes_arrays,
        gradients.cotangents,
        {name: gradients.node_of(node) for name, node in traced_inputs(arguments).items()},
        {node: tensor.traced for node, tensor in gradients.of.items()},
        tracer.nodes,
    )


def attributes_of(context: PyLayerContext) -> dict[str, Any]:
    """The attributes that forward set on its context."""
    usual = vars(PyLayerContext(""))
    return {name: value for name, value in vars(context).items() if name not in usual}


class Return:
    """The local variables of a function when it returned, and the line."""

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
            if before is not None and not callable(before):  # set by cProfile
                before.enable()


def traced_argument(tracer: Tracer, name: str, value: Any) -> Any:
    """The trace's form of an argument."""
    if isinstance(value, np.ndarray):
        value = as_input(value)
    if isinstance(value, Tensor):
        kind = value.array.dtype.kind
        if kind == "c":
            raise NotDerived(f"{name} is complex")
        needs_gradient = kind == "f" and not value.stop_gradient
        node = Node("input", (), value.array, name=name, needs_gradient=needs_gradient)
        node.depends_on_input = True
        return Traced(tracer.add_node(node))
    if isinstance(value, (list, tuple, dict)):
        inner = value.values() if isinstance(value, dict) else value
        if any(isinstance(item, (Tensor, np.ndarray)) for item in inner):
            raise NotDerived(f"{name} holds Tensors in a {type(value).__name__}")
    return with_source(value, Argument(name)) if is_number(value) else value


def recorded_array(value: Any) -> Any:
    """A Tensor as a recorded NumPy array; anything else unchanged."""
    return value.numpy() if isinstance(value, Tensor) else value


def traced_outputs(tracer: Tracer, returned: Any) -> list[Any]:
    """The Tensors among the results of forward."""
    tracer.takes_arrays |= any(map(is_recorded, values_in(returned)))
    outputs = list(map(recorded_tensor, values_in(returned)))
    if any(isinstance(output, (list, tuple)) for output in outputs):
        raise NotDerived("forward returns Tensors in a list")
    tensors = [tracer.canonical(output) for output in outputs if isinstance(output, Tensor)]
    if not tensors:
        raise NotDerived("forward returns no Tensor")
    return tensors


def cotangent_names(call: LayerCall, outputs: Sequence[Any], local: Mapping[str, Any]) -> list[str]:
    """The names of the cotangents: those in the user's backward, otherwise ``d`` and the output's
    name.
    """
    if call.written_backward is not None:
        parameters = inspect.signature(call.written_backward).parameters.values()
        names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD][call.is_layer :]
        if len(names) == len(outputs):
            return names
    known = {value.traced: name for name, value in reversed([*local.items()]) if is_in_trace(value)}
    unnamed = ["y"] if len(outputs) == 1 else [f"y{number}" for number in range(len(outputs))]
    return [f"d{known.get(o.traced, y)}" for o, y in zip(outputs, unnamed, strict=True)]


def drawn_cotangents(outputs: Sequence[Any], seed: int) -> list[Any]:
    """Random cotangents of some outputs; None for an output that is not floating."""
    random = np.random.default_rng((seed, COTANGENT_SEED))
    return [
        np.asarray(random.standard_normal(output.array.shape), output.array.dtype)
        if output.array.dtype.kind == "f"
        else None
        for output in outputs
    ]


class TracedGradients:
    """The gradients of the values of a trace, by the vjps of its operations, from the last to the
    first.
    """

    def __init__(
        self,
        tracer: Tracer,
        outputs: Sequence[Any],
        names: Sequence[str],
        seed: int,
        world: CallWorld | None,
    ) -> None:
        self.tracer, self.world = tracer, world
        self.of: dict[Node, Any] = {}
        self.sizes: dict[Node, float] = {}
        """The largest term of each gradient, which shows whether the terms cancel."""
        forward = list(tracer.nodes)
        drawn = drawn_cotangents(outputs, seed)
        self.cotangents = [
            self.start(output, name, values, world is None or world.is_same_output(k))
            for k, (output, name, values) in enumerate(zip(outputs, names, drawn, strict=True))
        ]
        for node in reversed(forward):
            self.walk(node)

    def start(self, output: Any, name: str, values: Any, is_same: bool) -> Node | None:
        """The cotangent of an output; None if it is not floating.

        Args:
            is_same: whether the output is the same on all ranks.
        """
        if values is None:
            return None
        node = Node("cotangent", (), values, name=name, in_backward=True, flows=True)
        node.sizes, node.varies = sourced_sizes(output.traced), not is_same
        self.tracer.add_node(node)
        if self.world is not None and is_same and varies(output.traced):
            raise NotDerived("an output is declared replicated, but each rank computes its own")
        if output.traced.needs_gradient:
            size = float(abs(values).max(initial=0))
            self.arrive(output.traced, self.of_all_ranks(node.tensor, output, node), size)
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
        """Drop a gradient whose terms cancel, such as that of a subtracted maximum."""
        size = self.sizes.get(node, 0.0)
        gradient = self.of.get(node)
        if gradient is None or node.operation == "input" or not size > 0:
            return
        if abs(gradient.array).max(initial=0) <= CANCELLED * size:
            del self.of[node]

    def walk(self, node: Node) -> None:
        """Propagate the gradient of a value to its operands."""
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
        cotangent, result = (cotangents, tensors) if node.siblings else (cotangents[0], tensors[0])
        inputs = row.inputs_in(node.arguments)
        for number, (vjp, x) in enumerate(zip(row.vjps, inputs, strict=False)):
            if isinstance(x, Traced) and x.traced.needs_gradient:
                values = vjp.pick(*node.arguments, result, number)
                gradient = apply_rule(vjp, cotangent, recorded_ops, values)
                if not isinstance(gradient, Traced):
                    raise NotDerived(f"the gradient of {row.name} is not traced")
                size = float(abs(gradient.array).sum()) / max(1, x.array.size)
                whole = self.of_all_ranks(summed_to(x, gradient), x, node)
                self.arrive(x.traced, whole, size)

    def of_all_ranks(self, gradient: Any, x: Traced, result: Node) -> Any:
        """The sum over the ranks of a gradient, if `x` is the same on all ranks but the result that
        the gradient comes from varies; otherwise the gradient itself.
        """
        if self.world is None or varies(x.traced) or not varies(result):
            return gradient
        return summed_over_ranks(gradient)


def summed_to(x: Traced, gradient: Traced) -> Any:
    """A gradient summed to the shape of a value that was broadcast. If the value is itself the
    result of a reduction over an axis that has a name, the sum is written with that name.
    """
    if traced_shape(gradient) == traced_shape(x):
        return gradient
    axes = [v for v in x.traced.arguments[1:] if isinstance(v, SourcedInt)]
    if x.traced.operation in REDUCTIONS and axes and gradient.ndim == x.ndim:
        sizes = zip(traced_shape(gradient), traced_shape(x), strict=True)
        stretched = [axis for axis, (size, x_size) in enumerate(sizes) if size != x_size]
        if stretched == [axes[0] % x.ndim]:
            return recorded_ops.sum(gradient, axes[0], None, True)
    return unbroadcast(recorded_ops, gradient, traced_shape(x))
