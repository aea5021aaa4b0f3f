"""Values of a trace: nodes with real arrays, and the Tensors that are passed to the engine's
operations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from gradcheck.deriving.numbers import SizeOf, with_source
from pylayer.tape.symbol import Symbol, recording
from pylayer.tensor.nested import leaves_in
from pylayer.tensor.size import Size
from pylayer.tensor.tensor import Tensor
from pylayer.watch import watchers


class NotDerived(Exception):  # noqa: N818 - an answer, not an error: why no backward is derived
    """The reason why no backward can be derived."""


@dataclass(eq=False)
class Node:
    """A value of the trace: an input, a constant, a cotangent, or the result of an operation."""

    operation: str
    """The name of the operation; ``input``, ``constant`` or ``cotangent`` for a leaf."""
    arguments: tuple[Any, ...]
    array: Any
    call: Any = None
    """The row of the op table, the function that makes a Tensor, or a constant's Tensor."""
    keywords: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    """The name of an input or a cotangent."""
    output: int | None = None
    """The position among the outputs of an operation with several."""
    siblings: list[Node] = field(default_factory=list)
    """All outputs of an operation with several."""
    in_backward: bool = False
    needs_gradient: bool = False
    depends_on_input: bool = False
    flows: bool = False
    """Whether the value is computed from a cotangent."""
    varies: bool | None = None
    """Whether the value may differ between the ranks of a world; None before `ranks.varies`."""
    sizes: tuple[Any, ...] | None = None
    """The sizes as numbers with a source, once `sourced_sizes` was called; () for a number."""

    def __post_init__(self) -> None:
        self.tensor = Traced(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape at the traced inputs."""
        return tuple(self.array.shape)

    def read(self) -> Iterator[Node]:
        """The nodes among the arguments, in order, with repetitions."""
        yield from nodes_in((self.arguments, self.keywords))


class Traced(Tensor, Symbol):
    """A Tensor of the trace. The engine's operations pass it to the tracer, as they pass a Variable
    to the recorder of static mode; its array has the values at the traced inputs.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(node.array, None, not (node.needs_gradient or node.flows))
        self.__dict__["traced"] = node

    @property
    def traced(self) -> Node:
        """The Tensor's value in the trace."""
        return self.__dict__["traced"]  # type: ignore[no-any-return]

    def __copy__(self) -> Traced:
        return Traced(self.traced)

    def describe(self) -> str:
        return f"{self.traced.operation} {list(self.array.shape)}"

    @property
    def shape(self) -> Size:
        return Size(sourced_sizes(self.traced))

    @property
    def size(self) -> Any:
        return math.prod(self.shape)

    def numpy(self, force: bool = False) -> Any:
        if watchers.get().numpy is None:
            raise NotDerived("values leave the graph by .numpy()")
        return super().numpy(force)

    def detach(self) -> Tensor:
        recorder: Any = recording.get()
        return recorder.detach(self)  # type: ignore[no-any-return]

    # ---------------------------------------------------------- methods that read values
    def _values(self, how: str) -> Any:
        self.refuse_reading(how)
        return super()._values(how)

    def refuse_reading(self, how: str) -> None:
        """Raise NotDerived for a value that depends on an input and leaves the graph by `how`."""
        if self.traced.depends_on_input or self.traced.flows:
            leave_graph(how)

    def __bool__(self) -> bool:
        self.refuse_reading("a branch")
        return bool(self.array)

    def __float__(self) -> float:
        self.refuse_reading("float()")
        return float(self.array)

    def __int__(self) -> int:
        self.refuse_reading("int()")
        return int(self.array)

    def __index__(self) -> int:
        self.refuse_reading("a Python index")
        return int(self.array)


def leave_graph(how: str) -> NoReturn:
    """Raise Refused for code that reads values of a Tensor by `how`."""
    raise NotDerived(f"forward reads values by {how}: the code would hold only for these values")


def nodes_in(value: Any) -> list[Node]:
    """The nodes of the Tensors in a value, also inside lists, tuples, dicts and slices."""
    return [leaf.traced for leaf in leaves_in(value) if isinstance(leaf, Traced)]


def operation_name(value: Any) -> str:
    """The name of the operation that made a Tensor of the trace; otherwise empty."""
    return value.traced.operation if isinstance(value, Traced) else ""


def traced_shape(value: Any) -> tuple[int, ...]:
    """The shape of a Tensor or a number."""
    return tuple(value.array.shape) if isinstance(value, Tensor) else ()


REDUCTIONS = ("sum", "mean", "max", "min", "norm", "logsumexp")
"""Operations that take an axis, over which they reduce."""
IN_OTHER_SHAPES = (
    *("getitem", "scattered_at", "concat", "stack", "split", "unbind", "einsum_explicit"),
    *("bmm", "fold", "unfold", "pad", "tile", "diagonal", "positions", "one_hot"),
)
"""Operations whose result may have the size of an argument by chance."""


def sourced_sizes(node: Node) -> tuple[Any, ...]:
    """The sizes of a value: the numbers that determine them, or the operands' sizes if the
    operation keeps them.
    """
    if node.sizes is None:
        known = dict(enumerate(kept_sizes(node)))
        node.sizes = tuple(
            known[axis] if known.get(axis) == size else with_source(size, SizeOf(node, axis))
            for axis, size in enumerate(node.shape)
        )
    return node.sizes


def kept_sizes(node: Node) -> list[Any]:
    """The sizes that a value takes from its arguments, by axis; None or a different size for a new
    one.
    """
    name, arguments = node.operation, node.arguments
    inner = [list(sourced_sizes(read)) for read in nodes_in(arguments)]
    if name in ("reshape", "broadcast_to", "broadcast_view", "scatter_sum"):
        return list(arguments[1])
    if name == "matrix_transpose":
        return [*inner[0][:-2], inner[0][-1], inner[0][-2]]
    if name == "transpose":
        return [inner[0][axis] for axis in arguments[1]]
    if name == "matmul":
        return [*inner[0][:-1], inner[1][-1]]
    if name == "rank_gather":
        return [arguments[1], *inner[0]]
    if name == "rank_scatter":
        return inner[0][1:]
    if name in REDUCTIONS:
        axes = listed_axes(arguments[1], len(inner[0]))
        if len(inner[0]) == len(node.shape):
            return [1 if axis in axes else size for axis, size in enumerate(inner[0])]
        return [size for axis, size in enumerate(inner[0]) if axis not in axes]
    if name in IN_OTHER_SHAPES:
        return []
    return broadcast_sizes(inner, len(node.shape))


def broadcast_sizes(shapes: list[list[Any]], ndim: int) -> list[Any]:
    """The sizes to which shapes broadcast, each taken from the first shape that has it."""
    padded = [[1] * (ndim - len(shape)) + shape for shape in shapes if len(shape) <= ndim]
    return [next((size for size in axis if size != 1), 1) for axis in zip(*padded, strict=True)]


def listed_axes(axis: Any, ndim: int) -> list[int]:
    """The axes that an argument `axis` selects."""
    if axis is None:
        return list(range(ndim))
    return [int(k) % ndim for k in ([axis] if isinstance(axis, int) else axis)]
