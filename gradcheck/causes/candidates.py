"""The inputs of recorded operations, what flows through each, and the mistakes that are tried there: what a backward
may hand on in place of the right cotangent.

A candidate has the input's shape. The right cotangent, and each candidate, may have a factor besides.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.backends.bundled import Step
from gradcheck.checking.kinks import axes_of
from gradcheck.checking.precision import CLEAR, EPS, MOVES, wide
from gradcheck.checking.tape import Flows, Tape


def as_array(value: Any) -> Array:
    """A NumPy scalar, as arithmetic of 0-d arrays gives, as such an array; others unchanged."""
    return np.asarray(value) if isinstance(value, np.generic) else value


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
    """That of what a function is computed from of which the operation is the last; see `Tape.composed`."""

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

    @property
    def summed(self) -> int:
        """How many elements are added up to one here, by a sum, a mean or a broadcast; 1 if none are."""
        sizes = [max(int(np.prod(shape)), 1) for shape in (self.right.shape, *map(np.shape, self.given))]
        return max(sizes) // min(sizes)

    def fit(self, value: Any) -> Array:
        """A value of the output's shape, summed over the axes along which the input was broadcast."""
        value, shape = value + 0 * self.g, self.right.shape
        extra = value.ndim - len(shape)
        stretched = [k + extra for k, n in enumerate(shape) if n == 1]
        return value.sum(axis=(*range(extra), *stretched), keepdims=True).reshape(shape)


# --------------------------------------------------------------------------- what may be wrong
OF_WORLDS = {"broadcast_ranks", "unbind"}
"""Operations that take the inputs of a rank from those of a world, which no code of the user's does."""


def edges_of(
    graph: Tape, flows: Flows, step: Step, given: Sequence[Array | None], pulled: Sequence[tuple[int, int, Array]]
) -> Iterator[Edge]:
    """The inputs of an operation, the two of a square as one; and its output if it has several inputs."""
    arrays = graph.recording.arrays
    if step.name in OF_WORLDS and step.spot is None:
        return
    if step.name == "multiply" and len(set(step.edges)) == 1:
        pulled = [(0, step.edges[0], pulled[0][2] + pulled[1][2])]
    for position, number, right in pulled:
        yield Edge(step, position, number, given, right, arrays, sisters=flows.get(step.name, {}))
    if step in graph.composed:
        for number, right in pulled_through(graph.composed[step], given[0]).items():
            yield Edge(step, Edge.COMPOSED, number, given, right, arrays)
    if len(pulled) > 1 and len(step.values) == 1:
        yield Edge(step, Edge.OUTPUT, step.first, given, given[0], arrays)


def pulled_through(steps: Sequence[Step], given: Any) -> dict[int, Array]:
    """The cotangent of what a function is computed from, by number, for that of its value; none if nothing flows, or
    the function is none of single elements."""

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


def incoming(graph: Tape, cotangents: Sequence[Array | None]) -> Iterator[Edge]:
    """The outputs of the call."""
    for k, (end, u) in enumerate(zip(graph.recording.ends, cotangents, strict=True)):
        step = graph.maker(end)
        while step is not None and step.name in MOVES and len(step.edges) == 1:  # where the user's formula ends
            step = graph.maker(step.edges[0])
        if step is not None and u is not None:
            yield Edge(step, Edge.INCOMING, end, [u], wide(u), graph.recording.arrays, output=k)


def whole(graph: Tape, gradients: Mapping[int, Array]) -> Iterator[Edge]:
    """The gradients of the inputs, with every factor on the way that has no larger shape."""
    arrays = graph.recording.arrays
    for step in graph.recording.steps:
        for factor in {e for e in step.edges if e >= 0} if step.name in ("multiply", "divide") else ():
            for k, gradient in gradients.items():
                shape, into = arrays[factor].shape[::-1], gradient.shape[::-1]
                fits = len(shape) <= len(into) and all(n in (1, m) for n, m in zip(shape, into, strict=False))
                if k != factor and fits:
                    yield Edge(step, Edge.WHOLE, k, [], gradient, arrays, output=factor)


class Candidate(NamedTuple):
    """What a wrong backward would hand on."""

    code: str
    cost: float
    """How far-fetched it is."""
    says: str
    """What backward does, with {op}, {own}, {other} for the operation, this input and the other one, #7 for value 7."""
    value: Array | Callable[[], Array | None] | None

    def fitting(self, edge: Edge) -> Array | None:
        """What it hands on; None where that cannot be computed, or has another shape."""
        try:
            value = self.value() if callable(self.value) else self.value
        except (ValueError, IndexError, TypeError):  # no matrix that has such a factor, say
            return None
        return as_array(value) if value is not None and np.shape(value) == edge.right.shape else None


Family = Callable[[Edge], Iterator[Candidate]]


def all_candidates(edge: Edge) -> Iterator[Candidate]:
    """All candidates of an edge, in the same order for every cotangent; not all fit."""
    found: list[Iterator[Candidate]] = [factor_forgotten(edge)] if edge.position == Edge.WHOLE else []
    # what reads no value has the same derivative at all points, and of complex numbers the conjugate is forgotten
    alone = edge.alone and edge.y.shape == edge.right.shape and (edge.read or not edge.right.any())
    if (alone or edge.position == Edge.COMPOSED) and edge.right.dtype.kind != "c":
        found.append(elementwise(edge))
    if edge.position >= 0:
        rows = (Candidate(*row[1:4], partial(row[4], edge)) for row in ROWS if edge.step.name in row[0])
        families = (*FAMILIES.get(edge.step.name, ()), sisters, substituted, reordered)
        found += [rows, *(family(edge) for family in families)]
    if edge.position >= 0 or edge.position == Edge.INCOMING:
        found.append(incoming_forgotten(edge))
    return itertools.chain(*found)


# --------------------------------------------------------------------------- families
FORMULAS: dict[str, Callable[[Array], Any]] = {
    "{}": lambda v: v, "1 − {}": lambda v: 1 - v, "1 + {}": lambda v: 1 + v, "{}²": lambda v: v * v,
    "1 − {}²": lambda v: 1 - v * v, "1 + {}²": lambda v: 1 + v * v, "{0} · (1 − {0})": lambda v: v * (1 - v),
    "exp({})": np.exp, "cos({})": np.cos, "sin({})": np.sin, "sqrt({})": np.sqrt, "abs({})": np.abs,
    "sign({})": np.sign, "log({})": np.log, "tanh({})": np.tanh,
}  # fmt: skip
"""Functions of an input or output that are mistaken for a derivative or a factor of it."""

DERIVATIVES: dict[str, Callable[[Array], Any]] = {
    "1 where {} > 0, else 0": lambda v: v > 0, "1 where {} < 0, else 0": lambda v: v < 0, **FORMULAS,
    "exp(−{})": lambda v: np.exp(-v), "sigmoid({})": lambda v: 1 / (1 + np.exp(-v)),
}  # fmt: skip

AS_A_WHOLE = 0.7
"""By how much another derivative of a function as a whole is less far-fetched than one of an operation inside of it."""

FORGETS = "forgets to multiply by {other}"

MONOMIALS = {
    ("multiply", 0): (1, 0, 1), ("multiply", 1): (1, 0, 1), ("divide", 0): (1, 0, -1), ("divide", 1): (-1, -2, 1),
    ("subtract", 1): (-1, 0, 0),
}  # fmt: skip
"""By operation and position: sign, power of this input and power of the other one in the derivative; 1 elsewhere."""


def elementwise(edge: Edge) -> Iterator[Candidate]:
    """Another derivative, or none."""
    composed = edge.position == Edge.COMPOSED
    less = AS_A_WHOLE * composed
    flat = not bool(edge.right.any())  # no derivative goes through a rounding
    says = "passes the gradient " + ("straight through {op}" if flat else "through {op} without its derivative")
    yield Candidate("GC122" if flat else "GC119", 1 - less, says, edge.g)
    for (name, formula), (letter, v) in itertools.product(DERIVATIVES.items(), (("y", edge.y), ("{own}", edge.x))):
        says = f"takes {name.format(letter)} for the derivative of y = {{op}}" + " by {own}" * composed
        yield Candidate("GC119", 2 - less, says, partial(times, edge.g, formula, v))


def times(g: Array, formula: Callable[[Array], Any], value: Array) -> Array:
    """A cotangent times a function of a value."""
    return g * formula(value)


def powers(edge: Edge, a: int, b: int) -> Array:
    """The cotangent of the output times powers of this input and of the other one, in the output's shape."""
    sign, *_ = MONOMIALS.get((edge.step.name, edge.position), (1,))
    return sign * edge.g * edge.x**a * ((np.asarray(edge.other) + 0.0) ** b if b else 1)


def monomials(edge: Edge) -> Iterator[Candidate]:
    """The cotangent times other powers of both inputs."""
    _, *right = MONOMIALS[edge.step.name, edge.position]
    forgets = "forgets to divide by {other}" if (edge.step.name, edge.position) == ("divide", 0) else FORGETS
    for a, b in itertools.product(range(-2, 3), repeat=2):
        if [a, b] != right and (edge.other is not None or b == right[1]):
            says = f"multiplies by {product(a, b)} in place of {product(*right)}" if a or b else forgets
            # a factor forgotten, times for divided by, one operand for the other are slips
            swapped = 2 - ([b, a] == right) + abs(a - right[0]) + abs(b - right[1])
            cost = 1 if (a, b) == (0, 0) else 2 if [a, -b] == right else swapped
            yield Candidate("GC116", cost, says, partial(monomial, edge, right, a, b))


def monomial(edge: Edge, right: Sequence[int], a: int, b: int) -> Array:
    """The cotangent with other powers than the right ones; of an input whose power is right no value is needed."""
    return edge.right * edge.x ** (a - right[0]) if b == right[1] else edge.fit(powers(edge, a, b))


def product(a: int, b: int) -> str:
    """A product of powers of {own} and {other}, in words."""
    factors = (("{own}", a), ("{other}", b))
    upper, lower = ([name + "²" * (abs(n) == 2) for name, n in factors if n * sign > 0] for sign in (1, -1))
    return " / ".join([" · ".join(upper) or "1", *lower])


def unsummed(edge: Edge) -> Iterator[Candidate]:
    """The first slice in place of the sum over the axes along which the input was broadcast, or a sum over others."""
    _, *right = MONOMIALS.get((edge.step.name, edge.position), (1, 0, 0))
    if edge.other is None and right[1]:
        return
    full = powers(edge, *right)
    axes = range(full.ndim)
    found = [(f"takes the first slice along axis {k} in place of the sum over it", full.take(0, k)) for k in axes]
    for along in (c for k in axes for c in itertools.combinations(axes, k + 1)):
        says = f"sums over axis {', '.join(map(str, along))} in place of the axes along which {{own}} was broadcast"
        found.append((says, full.sum(along)))
    for says, value in found:
        if value.size == edge.right.size < full.size:
            yield Candidate("GC106", 2, says, value.reshape(edge.right.shape))


def products(first: tuple[str, Array], others: Sequence[tuple[str, Array]]) -> Iterator[tuple[str, Array]]:
    """The matrix products of an array with one of some others, each perhaps transposed, in both orders, by name."""

    def both(name: str, value: Array) -> list[tuple[str, Array]]:
        return [(name, value), (f"{name}.T", value.swapaxes(-1, -2))] if np.ndim(value) > 1 else []

    for pair in itertools.product(both(*first), [turned for other in others for turned in both(*other)]):
        for (left, a), (right, b) in (pair, pair[::-1]):
            if a.shape[-1] == b.shape[-2] and (a.shape[:-2] == b.shape[:-2] or min(a.ndim, b.ndim) == 2):
                yield f"{left} @ {right}", a @ b


def products_of_matrices(edge: Edge) -> Iterator[Candidate]:
    """The cotangent, or its product with the other operand or this one, transposed or not, or the first of a batch."""
    for name, value in products(("dy", edge.g), [("{other}", edge.other), ("{own}", edge.x)]):
        yield Candidate("GC116", 2, f"takes {name} for the gradient of {{own}}", value)
        if value.shape[1:] == edge.right.shape:
            yield Candidate("GC106", 2, f"takes the first of {name} in place of their sum over the batch", value[0])


def otherwise_set(edge: Edge) -> Iterator[Candidate]:
    """The operation's own rule along another axis, or without one of two bounds."""
    given = edge.step.operands()
    axis = given["axis"] % max(edge.y.ndim, 1) if isinstance(given.get("axis"), int) else None
    others = [k for k in range(edge.y.ndim) if k != axis] if axis is not None else []
    rows: list[tuple[str, str, dict[str, float]]]
    rows = [("GC119", f"sums over axis {k} in place of axis {axis} in {{op}}", {"axis": k}) for k in others]
    for bound, other, none in (("min", "max", np.inf), ("max", "min", -np.inf)):
        if given.get(bound) is not None:
            rows.append(("GC123", f"masks at the bound {bound} of {{op}} alone", {other: none}))
    for code, says, values in rows:
        yield Candidate(code, 2, says, partial(edge.step.replaced, edge.position, edge.given, values))


def spread_out(edge: Edge) -> Iterator[Candidate]:
    """The cotangent of a reduction handed to all elements, or along another axis."""
    x, g = edge.x, edge.g
    shapes = [[1 if axis in (k, None) else n for k, n in enumerate(x.shape)] for axis in (None, *range(x.ndim))]
    for value in (g.reshape(shape) + 0 * x for shape in shapes if int(np.prod(shape)) == g.size < x.size):
        yield Candidate("GC119", 2, "hands the gradient of {op} to all elements alike", value)
        for name, of in (("{own}", x), ("the sign of {own}", np.sign(x)), ("exp({own})", np.exp(x))):
            yield Candidate("GC119", 3, f"takes {name} for the derivative of {{op}}", value * of)


def written_once(edge: Edge) -> Array:
    """The cotangent of a selection written to where it was selected from, once where it was selected several times."""
    once = np.zeros_like(edge.right)
    once[edge.step.operands().get("index")] = edge.g
    return once


def sisters(edge: Edge) -> Iterator[Candidate]:
    """The cotangent of another operation of the same kind: a line that was copied from that one's."""
    for number, g in edge.sisters.items() if len(edge.given) == 1 else ():
        if number != edge.step.first and g.shape == edge.g.shape and g.dtype == edge.g.dtype:
            says = f"takes the gradient of #{number} for that of {{out}} in {{op}}"
            yield Candidate("GC116", 5, says, partial(edge.step.replaced, edge.position, [g], {}))


def factor_forgotten(edge: Edge) -> Iterator[Candidate]:
    """The whole gradient of an input without a factor that all of it has."""
    value = wide(edge.arrays[edge.output])
    for says, found in (("to divide", edge.right * value), ("to multiply", edge.right / value)):
        yield Candidate("GC116", 4.5, f"forgets {says} the gradient of {{own}} by #{edge.output}", found)


def incoming_forgotten(edge: Edge) -> Iterator[Candidate]:
    """The derivative itself, not times the incoming gradient."""
    if len(edge.given) == 1:
        ones = np.ones_like(edge.g)
        alone = ones if edge.position == Edge.INCOMING else partial(edge.step.replaced, edge.position, [ones], {})
        yield Candidate("GC109", 2.5, "does not multiply by the gradient that flows into {op}", alone)


TRANSPOSED = "transposed"
MOST_PERMUTED = 24
"""Orders of axes that are tried: all of four."""


def orders(value: Array) -> Iterator[tuple[str, Array]]:
    """An array in other orders, in words."""
    axes = range(value.ndim)
    for order in itertools.islice(itertools.permutations(axes), 1, MOST_PERMUTED):
        if tuple(value.shape[k] for k in order) == value.shape:
            transposed = order == (*axes[:-2], *axes[:-3:-1])
            yield TRANSPOSED if transposed else f"with its axes permuted to {list(order)}", value.transpose(order)
    for axis in (k for k in axes if value.shape[k] > 1):
        yield from ((f"rolled by {by} along axis {axis}", np.roll(value, by, axis)) for by in (1, -1))
        yield f"flipped along axis {axis}", np.flip(value, axis)


def reordered(edge: Edge) -> Iterator[Candidate]:
    """The right cotangent in another order."""
    for words, value in orders(edge.right):
        yield Candidate("GC104", 3, f"hands on the gradient of {{own}} in {{op}} {words}", value)


def substituted(edge: Edge) -> Iterator[Candidate]:
    """The operation's own rule, reading another value of the same shape in place of one that it saves, that one in
    another order, or leaving it out."""
    read = edge.read
    if len(edge.step.edges) == 1 and "out" in read:
        read["x"] = edge.x  # what the output was computed from: without an epsilon, say
    meant = {name: f"#{number}" for name, number in zip("xy", edge.step.edges, strict=False) if number >= 0}
    meant["out"] = f"#{edge.step.first}"
    for name, present in read.items():
        what = meant.get(name, "a constant")
        others = [(2.0 + (words != TRANSPOSED), f"reads {what} {words}", value) for words, value in orders(present)]
        if edge.step.name not in MASKS:  # what is compared is no factor
            others.append((3.0, f"leaves {what} out", np.ones_like(present)))
        for number, value in enumerate(edge.arrays):
            if value.shape == present.shape and value.dtype.kind == present.dtype.kind and value is not present:
                others.append((4.0, f"reads #{number} in place of {what}", wide(value)))
        for cost, says, other in others:
            value = partial(edge.step.replaced, edge.position, edge.given, {name: other})
            yield Candidate("GC116", cost, f"{says} in the rule of {{op}}", value)


def least_for_largest(edge: Edge) -> Array:
    """The cotangent of an extreme handed to the elements that are the other one."""
    other = np.min if edge.step.name in ("max", "amax") else np.max
    out = other(edge.x, axes_of(edge.step.operands().get("axis")))
    return edge.step.replaced(edge.position, edge.given, {"out": np.reshape(out, edge.y.shape)})


MASKS = ("where", "clip", "maximum", "minimum", "fmax", "fmin", "hardtanh", "tril", "triu", "relu", "leaky_relu")
REORDERING = ("transpose", "flip", "roll")
ROWS: tuple[tuple[Sequence[str], str, float, str, Callable[[Edge], Any]], ...] = (
    (MASKS, "GC123", 0.5, "ignores the mask of {op}", lambda e: e.fit(e.g)),
    (MASKS, "GC123", 2, "takes the opposite of the mask of {op}", lambda e: e.fit(e.g) - e.right),
    ((*REORDERING, "getitem"), "GC104", 2, "applies {op} itself, not its inverse, to the gradient",
     lambda e: e.step.again(e.g)),
    (REORDERING, "GC104", 2, "hands on the gradient of {op} as it is, without its inverse",
     lambda e: e.g.reshape(e.right.shape)),
    (("cumsum",), "GC104", 2, "applies {op} itself, not a sum from the other end, to the gradient",
     lambda e: e.step.again(e.g)),
    (("cumsum",), "GC104", 2, "hands on the gradient of {op} as it is, without a sum from the other end",
     lambda e: e.g.reshape(e.right.shape)),
    (("getitem",), "GC104", 2, "writes what {op} selects several times only once", written_once),
    (("matmul", "bmm"), "GC116", 2, FORGETS, lambda e: e.g),
    (("max", "amax"), "GC123", 2, "hands the gradient of {op} to the smallest element", least_for_largest),
    (("min", "amin"), "GC123", 2, "hands the gradient of {op} to the largest element", least_for_largest),
    (("softmax",), "GC119", 2, "takes the row sum of g, not of y g, in {op}", lambda e: e.y * (e.g - row_sums(e, e.g))),
    (("softmax",), "GC119", 2, "takes the row mean of y g, not its sum, in {op}",
     lambda e: e.y * (e.g - row_sums(e, e.y * e.g) / row_sums(e, 0 * e.g + 1))),
    (("softmax",), "GC119", 2, "leaves out the factor y in {op}", lambda e: e.g - row_sums(e, e.y * e.g)),
    (("softmax",), "GC119", 2, "subtracts the row sum without the factor y in {op}",
     lambda e: e.y * e.g - row_sums(e, e.y * e.g)),
    (("log_softmax",), "GC119", 2, "subtracts the row sum without the softmax in {op}",
     lambda e: e.g - row_sums(e, e.g)),
    (("log_softmax",), "GC119", 2, "takes the row mean of g, not its sum, in {op}",
     lambda e: e.g - np.exp(e.y) * row_sums(e, e.g) / row_sums(e, 0 * e.g + 1)),
    (("log_softmax",), "GC119", 2, "leaves out the row sum of g in {op}", lambda e: e.g - np.exp(e.y) * e.g),
    (("log_softmax",), "GC119", 2, "leaves out g in {op}", lambda e: -np.exp(e.y) * row_sums(e, e.g)),
    (("log_softmax",), "GC119", 2, "multiplies by the logarithm in place of the softmax in {op}",
     lambda e: e.g - e.y * row_sums(e, e.g)),
)  # fmt: skip
"""By operations: code, cost, what backward does, and what it hands on; None where it cannot be."""

FAMILIES: Mapping[str, Sequence[Family]] = {
    **dict.fromkeys(("multiply", "divide"), (monomials, unsummed)),
    **dict.fromkeys(("add", "subtract", "broadcast_to", "broadcast_view"), (unsummed,)),
    **dict.fromkeys(("matmul", "bmm"), (products_of_matrices,)),
    **dict.fromkeys(("softmax", "log_softmax", "cumsum", "clip", "hardtanh"), (otherwise_set,)),
    **dict.fromkeys(("sum", "mean", "max", "min", "norm", "logsumexp"), (spread_out,)),
}
"""The mistakes that belong to an operation, of which there are more or fewer."""


def row_sums(edge: Edge, values: Array) -> Array:
    """The sums over the rows of a softmax."""
    return values.sum(edge.step.operands().get("axis", -1), keepdims=True)
