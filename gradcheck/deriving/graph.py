"""Values of a trace: nodes with real arrays, and the Tensors that operations of the engine take."""

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
from pylayer.watch import exchange


class NotDerived(Exception):  # noqa: N818 - an answer, not an error: why no backward is derived
    """Why there is no derived backward."""


@dataclass(eq=False)
class Node:
    """A value of the trace: an input, a constant, a cotangent, or the result of an operation."""

    operation: str
    """The name of the operation; ``input``, ``constant`` or ``cotangent`` for a leaf."""
    arguments: tuple[Any, ...]
    array: Any
    call: Any = None
    """The row of the op table, the function that makes a Tensor, or the Tensor of a constant."""
    keywords: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    """The name of an input or a cotangent."""
    output: int | None = None
    """Which output it is of an operation with several."""
    siblings: list[Node] = field(default_factory=list)
    """All outputs of an operation with several."""
    in_backward: bool = False
    needs_gradient: bool = False
    depends_on_input: bool = False
    flows: bool = False
    """Whether it is computed from a cotangent."""

    def __post_init__(self) -> None:
        self.tensor = Traced(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape at the traced inputs."""
        return tuple(self.array.shape)

    def read(self) -> Iterator[Node]:
        """The nodes among the arguments, in order, each as often as it is an argument."""
        yield from nodes_in((self.arguments, self.keywords))


class Traced(Tensor, Symbol):
    """A Tensor of the trace. The engine's operations give it to the tracer, as they give a
    Variable to the recorder of static mode; its array has the values at the traced inputs."""

    def __init__(self, node: Node) -> None:
        super().__init__(node.array, None, not (node.needs_gradient or node.flows))
        self.__dict__["traced"] = node

    @property
    def traced(self) -> Node:
        """Its value in the trace."""
        return self.__dict__["traced"]  # type: ignore[no-any-return]

    def __copy__(self) -> Traced:
        return Traced(self.traced)

    def described(self) -> str:
        return f"{self.traced.operation} {list(self.array.shape)}"

    @property
    def shape(self) -> Size:
        sizes = enumerate(self.array.shape)
        return Size([with_source(size, SizeOf(self.traced, axis)) for axis, size in sizes])

    @property
    def size(self) -> Any:
        return math.prod(self.shape)

    def numpy(self, force: bool = False) -> Any:
        if exchange.get() is None:
            raise NotDerived("values leave the graph by .numpy()")
        return super().numpy(force)

    def detach(self) -> Tensor:
        recorder: Any = recording.get()
        return recorder.detached(self)  # type: ignore[no-any-return]

    # ----------------------------------------------------------------- what reads values
    def _values(self, how: str) -> Any:
        self.refuse_reading(how)
        return super()._values(how)

    def refuse_reading(self, how: str) -> None:
        """Raise NotDerived: a value that depends on an input leaves the graph by `how`."""
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
        self.refuse_reading("an index of Python's own")
        return int(self.array)


def leave_graph(how: str) -> NoReturn:
    """Raise Refused for code that reads values of a Tensor by `how`."""
    raise NotDerived(f"forward reads values by {how}: the code would hold for these values alone")


def nodes_in(value: Any) -> list[Node]:
    """The nodes of the Tensors in a value, also inside lists, tuples, dicts and slices."""
    return [leaf.traced for leaf in leaves_in(value) if isinstance(leaf, Traced)]


def operation_name(value: Any) -> str:
    """The name of the operation that made a Tensor of the trace; empty for anything else."""
    return value.traced.operation if isinstance(value, Traced) else ""


def traced_shape(value: Any) -> tuple[int, ...]:
    """The shape of a Tensor; that of a number."""
    return tuple(value.array.shape) if isinstance(value, Tensor) else ()
