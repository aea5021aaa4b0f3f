"""Tracing with values: each call of an operation becomes a node with a real array.

With real arrays, shapes, dtypes and promotion are those of any run, and gradients that cancel show.
The tracer is a recorder like that of static mode, so nothing is intercepted by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gradcheck.deriving.graph import Node, NotDerived, Traced, nodes_in
from gradcheck.deriving.numbers import is_number, number_key, plain_number
from gradcheck.deriving.ranks import Parts
from gradcheck.deriving.rewrites import simplify
from pylayer.tape.grad_mode import grad_mode
from pylayer.tape.op import compute, unwrap
from pylayer.tape.symbol import recording
from pylayer.tensor.array import XP, as_array
from pylayer.tensor.nested import mapped
from pylayer.tensor.tensor import Tensor
from pylayer.watch import watchers

COPYING_FUNCTIONS = ("assign", "to_tensor")
"""Functions that return a Tensor of the trace unchanged."""


@contextmanager
def traced_by(tracer: Tracer | None) -> Iterator[None]:
    """A block in which a tracer records operations; without a tracer they compute as usual."""
    token = recording.set(tracer)
    try:
        yield
    finally:
        recording.reset(token)


class Tracer:
    """Records the calls of operations on the Tensors of a trace."""

    def __init__(self, is_layer: bool) -> None:
        self.is_layer = is_layer
        """Whether a PyLayer's forward is being traced, in which nothing stops a gradient."""
        self.nodes: list[Node] = []
        self.known: dict[Any, tuple[list[Node], type | None]] = {}
        """The outputs of calls, by operation and arguments, so that equal calls share them. The
        type is the container of several outputs.
        """
        self.constants: dict[int, Node] = {}
        self.takes_arrays = False
        """Whether forward made a Tensor from an array that it computed."""
        self.in_backward = False
        self.named: set[Node] = set()
        """The values to which forward gives names."""

    # --------------------------------------------------------- methods that the engine calls
    def operation(self, op: Any, arguments: Sequence[Any]) -> Any:
        """The result of an operation: a known value, a simpler one, or a new node."""
        if not self.in_backward and not grad_mode.get():
            self.refuse_stopped()
        canonical = mapped(list(arguments), self.canonical)
        plain = mapped(canonical, plain_number)
        _, values, kind = op.checked(list(plain))
        # Promotion may replace Tensors; numbers keep their sources.
        values = [
            argument if value is number else mapped(value, self.canonical)
            for argument, number, value in zip(canonical, plain, values, strict=True)
        ]
        simpler = simplify(op.name, values, self.in_backward, self.may_open)
        if simpler is not None:
            return simpler if self.in_backward else Traced(simpler.traced)
        key = (op.name, argument_key(values))
        if key not in self.known:
            self.known[key] = self.compute_nodes(op, values, kind)
        nodes, container = self.known[key]
        if container is None:
            return nodes[0].tensor if self.in_backward else Traced(nodes[0])
        return (Parts if container is list else container)(Traced(node) for node in nodes)

    def compute_nodes(
        self, op: Any, values: Sequence[Any], kind: type
    ) -> tuple[list[Node], type | None]:
        """The nodes of a new call, and the container type of several outputs."""
        with traced_by(None):
            raw = [unwrap(mapped(value, without_trace)) for value in values]
            result = compute(op, op.kernels[kind], raw)
        is_several = isinstance(result, (list, tuple))
        arrays = [as_array(array, kind) for array in (result if is_several else [result])]
        read = nodes_in(values)
        nodes = [
            self.add_node(
                Node(
                    op.name,
                    tuple(values),
                    array,
                    call=op,
                    output=number if is_several else None,
                    in_backward=self.in_backward,
                    needs_gradient=op.differentiable
                    and array.dtype.kind in "fc"
                    and any(node.needs_gradient for node in read),
                    depends_on_input=any(node.depends_on_input for node in read),
                    flows=any(node.flows for node in read),
                )
            )
            for number, array in enumerate(arrays)
        ]
        if is_several:
            for node in nodes:
                node.siblings = nodes
        return nodes, type(result) if is_several else None

    def call(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        repeatable: bool = True,
    ) -> Any:
        """The Tensor that a function creates, through which no gradient flows."""
        name = function.__name__
        if not repeatable:
            raise NotDerived(f"{name} draws random numbers, which differ in each call")
        arguments = tuple(mapped(list(args), self.canonical))
        keywords = {key: mapped(value, self.canonical) for key, value in kwargs.items()}
        if name in COPYING_FUNCTIONS and arguments:
            session = watchers.get().numpy
            if session is not None and not isinstance(arguments[0], Traced):
                self.takes_arrays = True
                arguments = (session.from_numpy_hook(arguments[0], True), *arguments[1:])
            if isinstance(arguments[0], Traced):
                return Traced(arguments[0].traced)
        key = (name, argument_key((arguments, sorted(keywords.items()))))
        if key not in self.known:
            with traced_by(None):
                plain = mapped(mapped([*arguments], without_trace), plain_number)
                plain_keywords = mapped(mapped(keywords, without_trace), plain_number)
                tensor = function(*plain, **plain_keywords)
            node = Node(name, arguments, tensor.array, call=function, keywords=keywords)
            node.in_backward = self.in_backward
            node.depends_on_input = False  # its values depend only on sizes
            self.known[key] = [self.add_node(node)], None
        return Traced(self.known[key][0][0])

    def detach(self, value: Any) -> Any:
        """A detached value; in a PyLayer's forward, the value itself."""
        self.refuse_stopped()
        return value

    def refuse_stopped(self) -> None:
        """Raise NotDerived if a function stops a gradient, so that its gradient is not a
        derivative.
        """
        if not self.is_layer:
            raise NotDerived("it stops a gradient, by detach or no_grad")

    def replace(self, old: Any, new: Any) -> Any:
        """Let a Tensor represent the result of an in-place operation."""
        old.__dict__["traced"], old.array = new.traced, new.array
        return old

    # ----------------------------------------------------------------- nodes
    def may_open(self, node: Node) -> bool:
        """Whether a rule may look at how a value was computed: not if forward has a name for it."""
        return node not in self.named

    def add_node(self, node: Node) -> Node:
        """A node, listed."""
        self.nodes.append(node)
        return node

    def canonical(self, value: Any) -> Any:
        """The unique Tensor of a value of the trace; a Tensor from elsewhere becomes a constant."""
        if isinstance(value, Traced):
            return value.traced.tensor
        if not isinstance(value, Tensor):
            return value
        if id(value) not in self.constants:
            node = Node("constant", (), value.array, call=value)
            self.constants[id(value)] = self.add_node(node)
        return self.constants[id(value)].tensor


def without_trace(value: Any) -> Any:
    """A Tensor of the trace as an ordinary Tensor; anything else unchanged."""
    return Tensor(value.traced.array) if isinstance(value, Traced) else value


def argument_key(value: Any) -> Any:
    """A key that is equal for equal arguments of a call. A number's source belongs to its
    identity.
    """
    if isinstance(value, Traced):
        return "node", id(value.traced)
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *map(argument_key, value))
    if isinstance(value, slice):
        return "slice", argument_key((value.start, value.stop, value.step))
    if is_number(value):
        return number_key(value)
    if type(value) in XP:
        return "array", id(value)
    try:
        hash(value)
    except TypeError:
        return "object", id(value)
    return type(value).__name__, value
