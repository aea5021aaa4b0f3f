"""The inputs of recorded operations, what flows through each, and the mistakes that may be made there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.backends.bundled import Step
from gradcheck.checking.arrays import CLEAR, EPS, as_array, wide
from gradcheck.checking.graph import Flows, Graph
from gradcheck.checking.precision import MOVES

EXACT_TO = 1e-10
"""To what part of the largest error each element must be reproduced, beside the rounding."""


@dataclass(frozen=True, eq=False)
class Edge:
    """One input of one operation, and what flows through it, in double precision."""

    OUTPUT: ClassVar[int] = -1
    """The position of the output of an operation, which is only scaled."""
    INCOMING: ClassVar[int] = -2
    """That of an output of the call: what comes in."""

    WHOLE: ClassVar[int] = -3
    """That of the whole gradient of an input of the call, of which the factor that one operation reads is forgotten."""
    COMPOSED: ClassVar[int] = -4
    """That of what a function is computed from of which the operation is the last; see `Graph.composed`."""

    step: Step
    position: int
    number: int
    """Of the value that is the input."""
    given: Sequence[Any]
    """The cotangents of the outputs."""
    right: Array
    """The cotangent of the input."""
    arrays: Sequence[Array]
    """All values, by number."""
    output: int = 0
    """Which output of the call, where the position is INCOMING; the number of the factor, where it is WHOLE."""
    sisters: Mapping[int, Array] = field(default_factory=dict)
    """The cotangents of the outputs of all operations like this one, by number."""

    @property
    def g(self) -> Array:
        """The cotangent of the one output."""
        return as_array(self.given[0]) if len(self.given) == 1 else np.zeros(())

    @property
    def x(self) -> Array:
        return wide(self.arrays[self.number])

    @property
    def y(self) -> Array:
        return wide(self.step.values[0])

    @property
    def alone(self) -> bool:
        """Whether it is the one input of the operation, or a factor on both sides of a product."""
        return self.position >= 0 and len(set(self.step.edges)) == 1

    @property
    def other(self) -> Any:
        """The other one of two inputs; None if it is not known."""
        if len(self.step.edges) != 2:
            return None
        number = self.step.edges[1 - self.position]
        return wide(self.arrays[number]) if number >= 0 else self.step.operands().get("yx"[self.position])

    @property
    def read(self) -> dict[str, Array]:
        """What of the values the rules of the operation read, by the name of the argument."""
        found = self.step.operands()
        return {name: v for name, v in found.items() if type(v) is type(self.right) and v.dtype.kind in "fc"}

    def fit(self, value: Any) -> Array:
        """A value of the output's shape, summed over the axes along which the input was broadcast."""
        value, shape = value + 0 * self.g, self.right.shape
        extra = value.ndim - len(shape)
        stretched = [k + extra for k, n in enumerate(shape) if n == 1]
        return value.sum(axis=(*range(extra), *stretched), keepdims=True).reshape(shape)


@dataclass(frozen=True, eq=False)
class Mistake:
    """What is handed on in place of the right cotangent of an edge, or that one scaled; and its projections along a
    few directions."""

    edge: Edge
    along: Array
    right: Array
    """The projections of the right cotangent."""
    steps: frozenset[Step]
    """All operations that it is made in."""
    ordinal: int | None = None
    """Among the edge's candidates; None for the right cotangent, which is scaled."""
    code: str = ""
    cost: float = 0.0
    """How far-fetched it is."""
    says: str = ""
    when: str = ""
    """In which runs of its line it is made, as in a loop, if it is not in one alone."""


class Cause(NamedTuple):
    """Mistakes, each with its factor, that together reproduce the claim for the inputs that they explain."""

    mistakes: Sequence[tuple[Mistake, float]]
    cost: float
    explains: frozenset[int] = frozenset()
    spoils: int = 0
    """How many inputs it would change whose gradient is right."""
    residual: float = 0.0
    """How far it is off, relative to the largest error."""

    @property
    def rank(self) -> tuple[float, int]:
        """How far-fetched it is, then how late in the forward it stands."""
        return self.cost, sum(mistake.edge.step.first for mistake, _ in self.mistakes)


class Unexplained(NamedTuple):
    """What is to be explained, per input."""

    cotangents: Sequence[Sequence[Array | None]]
    gradients: list[Array]
    """What is claimed, one row per draw of cotangents."""
    errors: list[Array]
    """How far that is from the tape, for the first of them."""
    bars: list[float]
    """How far apart may be what reproduces the claim."""
    wrong: list[int]
    """The inputs whose gradient is wrong by more."""
    scaled: list[int]
    """Those whose gradient is wrong by one and the same factor as a whole."""
    several: list[int]
    """Those of which more than one number is wrong: any factor fits one."""


OF_WORLDS = {"broadcast_ranks", "unbind"}
"""Operations that take the inputs of a rank from those of a world, which no code of the user's does."""


def edges_of(
    graph: Graph,
    step: Step,
    given: Sequence[Array | None],
    pulled: Sequence[tuple[int, int, Array]],
    flows: Flows,
) -> Iterator[Edge]:
    """The inputs of an operation, the two of a square as one; and its output if it has several inputs."""
    arrays = graph.recording.arrays
    if step.name in OF_WORLDS and step.spot is None:
        return
    if step.name == "multiply" and len(set(step.edges)) == 1:
        pulled = [(0, step.edges[0], pulled[0][2] + pulled[1][2])]
    for position, number, right in pulled:
        yield Edge(step, position, number, given, right, arrays, sisters=flows.get(step.name, {}))
    if flows and step in graph.composed:
        for number, right in pulled_through(graph.composed[step], given[0]).items():
            yield Edge(step, Edge.COMPOSED, number, given, right, arrays)
    if len(pulled) > 1 and len(step.values) == 1:
        yield Edge(step, Edge.OUTPUT, step.first, given, given[0], arrays)


def pulled_through(steps: Sequence[Step], given: Any) -> dict[int, Array]:
    """The cotangent of what a function is computed from, by number, for that of its value; empty if nothing flows, or
    the function is none of its elements, one by one."""

    def pulled(start: Array) -> dict[int, Array]:
        pending = {steps[-1].first: start}
        for step in reversed(steps):
            reached = [pending.pop(step.first)] if step.first in pending else []
            for _, number, cotangent in step.pull(reached) if reached else ():
                pending[number] = pending[number] + cotangent if number in pending else cotangent
        return pending

    right, slopes = pulled(given), pulled(0 * given + 1)
    apart = ((abs(g - given * slopes[k]), abs(g).max(initial=0.0)) for k, g in right.items())
    return right if all(bool((off <= CLEAR * EPS * size).all()) for off, size in apart) else {}


def incoming(graph: Graph, cotangents: Sequence[Array | None]) -> Iterator[Edge]:
    """The outputs of the call."""
    for k, (end, u) in enumerate(zip(graph.recording.ends, cotangents, strict=True)):
        step = graph.maker(end)
        while step is not None and step.name in MOVES and len(step.edges) == 1:  # where the user's formula ends
            step = graph.maker(step.edges[0])
        if step is not None and u is not None:
            yield Edge(step, Edge.INCOMING, end, [u], wide(u), graph.recording.arrays, output=k)


def whole(graph: Graph, flows: Flows) -> Iterator[Edge]:
    """The gradients of the inputs, with every factor on the way that has no larger shape."""
    arrays, inputs = graph.recording.arrays, flows.get("", {})
    for step in graph.recording.steps:
        for factor in {e for e in step.edges if e >= 0} if step.name in ("multiply", "divide") else ():
            for k, gradient in inputs.items():
                if k != factor and broadcasts(arrays[factor].shape, gradient.shape):
                    yield Edge(step, Edge.WHOLE, k, [], gradient, arrays, output=factor)


def broadcasts(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Whether an array of one shape can be a factor of one of the other, which then keeps its shape."""
    return len(shape) <= len(into) and all(n in (1, m) for n, m in zip(shape[::-1], into[::-1], strict=False))


NO_FACTOR = 3.0
"""How much more far-fetched a factor is where an operation only moves values."""


def factors(mistake: Mistake) -> dict[float, float]:
    """Factors that explain themselves, of the right cotangent or beside a wrong rule, and how far-fetched each is."""
    if mistake.ordinal is not None:
        return {1.0: 0.0, -1.0: 0.5, **dict.fromkeys((2.0, 0.5), 1.0), **dict.fromkeys((-2.0, -0.5, 3.0, 1 / 3), 2.0)}
    edge = mistake.edge
    square = edge.step.name in ("square", "pow", "sqrt", "rsqrt") or (edge.step.name == "multiply" and edge.alone)
    found = {0.0: 0.0, -1.0: 1.0, **dict.fromkeys((2.0, 0.5), 1.0 if square else 1.5)}
    found |= dict.fromkeys((-2.0, -0.5, 3.0, 1 / 3, 4.0, 0.25), 3.0)
    if edge.step.name in ("neg", "subtract") or (edge.step.name == "divide" and edge.position == 1):
        found[-1.0] = 0.5  # the sign is written there
    shapes = [edge.right.shape, *map(np.shape, edge.given)]
    together = summed(edge)
    for n in {n for shape in shapes for n in (*shape, int(np.prod(shape)), together) if n > 1}:
        added_up = 1.0 if n == together else 2.0
        found = {n: added_up, 1 / n: added_up, n / (n - 1): 2.0, (n - 1) / n: 2.0, -n: 3.0, -1 / n: 3.0} | found
    if edge.step.name in MOVES:  # what reads elements several times may count them
        as_many = len({int(np.prod(shape)) for shape in shapes}) == 1
        found = {c: cost + NO_FACTOR * (c < 0 or (c > 0 and as_many)) for c, cost in found.items()}
    return found


def summed(edge: Edge) -> int:
    """How many elements are added up to one here, by a sum, a mean or a broadcast; 1 if none are."""
    sizes = [max(int(np.prod(shape)), 1) for shape in (edge.right.shape, *map(np.shape, edge.given))]
    return max(sizes) // min(sizes)
