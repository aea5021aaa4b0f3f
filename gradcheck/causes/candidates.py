"""The inputs of recorded operations, what flows through each, and the mistakes that are tried there: what a backward
may hand on in place of the right cotangent.

A candidate has the input's shape. The right cotangent, and each candidate, may have a factor besides.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.backends.bundled import Step
from gradcheck.checking.kinks import axes_of
from gradcheck.checking.precision import CLEAR, EPS, MOVES, wide
from gradcheck.checking.tape import Tape


def as_array(value: Any) -> Array:
    """A NumPy scalar, as arithmetic of 0-d arrays gives, as such an array; others unchanged."""
    return np.asarray(value) if isinstance(value, np.generic) else value


@dataclass(frozen=True, eq=False)
class Edge:
    """One input of one operation, and what flows through it, in double precision."""

    OUTPUT, INCOMING, WHOLE, COMPOSED = -1, -2, -3, -4
    """Positions of what is no input of an operation: its output, which is only scaled; an output of the call, what
    comes in; the whole gradient of an input of the call, of which a factor that the operation reads is forgotten; what
    a function is computed from of which the operation is the last, see `Tape.composed`."""

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
    add: Callable[[Array], None]
    """Lets more flow there, on the walk that it was met on."""
    output: int = 0
    """Which output of the call, where the position is INCOMING; the number of the factor, where it is WHOLE."""

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

    @property
    def readable(self) -> dict[str, Array]:
        """The same; where the output is read, also what it was computed from: without an epsilon, say."""
        read = self.read
        return read | {"x": self.x} if len(self.step.edges) == 1 and "out" in read else read

    def ruled(self, given: Sequence[Array] | None = None, **values: Any) -> Array:
        """What the rule of the operation gives for other cotangents, or reading other values, by name."""
        return self.step.replaced(self.position, self.given if given is None else given, values)

    @property
    def monomial(self) -> Sequence[int]:
        """Of a derivative that is a product of powers: sign, power of this input, and of the other one."""
        return MONOMIALS.get((self.step.name, self.position), (1, 0, 0))

    def times(self, a: int, b: int) -> Array:
        """The cotangent of the output with that sign, times powers of this input and of the other one."""
        return self.monomial[0] * self.g * self.x**a * ((np.asarray(self.other) + 0.0) ** b if b else 1)

    def fit(self, value: Array) -> Array:
        """A value of the output's shape, summed over the axes along which the input was broadcast."""
        shape = self.right.shape
        extra = value.ndim - len(shape)
        stretched = [k + extra for k, n in enumerate(shape) if n == 1]
        return value.sum(axis=(*range(extra), *stretched), keepdims=True).reshape(shape)


# --------------------------------------------------------------------------- what may be wrong
OF_WORLDS = {"broadcast_ranks", "unbind"}
"""Operations that take the inputs of a rank from those of a world, which no code of the user's does."""


def edges_of(
    graph: Tape, cotangents: Sequence[Array | None], pending: dict[int, Array], steps: frozenset[Step] = frozenset()
) -> Iterator[Edge]:
    """All edges on a walk for some cotangents: the outputs of the call; those of operations, of the ones in `steps` if
    there are any; else, in the end, the gradients of the inputs, with every factor that has no larger shape. `pending`
    holds what flows to the outputs, and in the end to the inputs."""
    recording, arrays = graph.recording, graph.recording.arrays

    def add(number: int, change: Array) -> None:
        pending[number] = pending[number] + change

    for k, (end, u) in enumerate(zip(recording.ends, cotangents, strict=True)):
        maker = graph.maker(end)
        while maker is not None and maker.name in MOVES and len(maker.edges) == 1:  # where the user's formula ends
            maker = graph.maker(maker.edges[0])
        if maker is not None and u is not None:
            yield Edge(maker, Edge.INCOMING, end, [wide(u)], wide(u), arrays, partial(add, end), k)
    for passed in graph.walk(pending):
        if not steps or passed[0] in steps:
            yield from edges_at(graph, *passed)
    scaling = [step for step in recording.steps if step.name in ("multiply", "divide")] if not steps else []
    factors = {factor: step for step in scaling for factor in step.edges if factor >= 0}
    for (factor, step), k in itertools.product(factors.items(), pending):
        shape, into = arrays[factor].shape[::-1], arrays[k].shape[::-1]
        if k != factor and len(shape) <= len(into) and all(n in (1, m) for n, m in zip(shape, into, strict=False)):
            yield Edge(step, Edge.WHOLE, k, [], pending[k], arrays, partial(add, k), factor)


def edges_at(graph: Tape, step: Step, given: Sequence[Any], pulled: list[tuple[int, int, Array]]) -> Iterator[Edge]:
    """The inputs of an operation, the two of a square as one; and its output if it has several inputs."""
    if step.name in OF_WORLDS and step.spot is None:
        return

    def add(number: int, change: Array) -> None:
        pulled.append((0, number, change))

    square = step.name == "multiply" and len(set(step.edges)) == 1
    inputs = [(0, step.edges[0], pulled[0][2] + pulled[1][2])] if square else pulled[:]
    composed = pulled_through(graph.composed[step], given[0]) if step in graph.composed else {}
    for position, number, right in (*inputs, *((Edge.COMPOSED, *flow) for flow in composed.items())):
        yield Edge(step, position, number, given, right, graph.recording.arrays, partial(add, number))
    if len(inputs) > 1 and len(step.values) == 1:
        outwards = step.first, given, given[0], graph.recording.arrays
        yield Edge(step, Edge.OUTPUT, *outwards, lambda change: pulled.extend(step.pull([change])))


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


class Candidate(NamedTuple):
    """What a wrong backward would hand on."""

    code: str
    cost: float
    """How far-fetched it is."""
    says: str
    """What backward does, with {op}, {own}, {other} for the operation, this input and the other one, #7 for value 7."""
    value: Callable[[Edge], Any]
    """What it hands on, of this edge or another one like it; None where it cannot be."""

    def fitting(self, edge: Edge) -> Array | None:
        """What it hands on; None where that cannot be computed, or has another shape."""
        try:
            value = self.value(edge)
        except (ValueError, IndexError, TypeError):  # no matrix that has such a factor, say
            return None
        return as_array(value) if value is not None and np.shape(value) == edge.right.shape else None


SHARE = Candidate("", 0.0, "", attrgetter("right"))
"""What is right, which may have a factor."""

Family = Callable[[Edge], Iterator[Candidate]]


def all_candidates(edge: Edge) -> Iterator[Candidate]:
    """All candidates of an edge; not all fit."""
    at, name = edge.position, edge.step.name
    # what reads no value has the same derivative at all points, and of complex numbers the conjugate is forgotten
    alone = edge.alone and edge.y.shape == edge.right.shape and (edge.read or not edge.right.any())
    if (alone or at == Edge.COMPOSED) and edge.right.dtype.kind != "c":
        yield from elementwise(edge)
    if at >= 0:
        yield from (Candidate(*row[1:]) for row in ROWS if name in row[0])
        for family in (*FAMILIES.get(name, ()), one_thing_otherwise):
            yield from family(edge)
    if at == Edge.WHOLE:
        of = f"the gradient of {{own}} by #{edge.output}"
        yield Candidate("GC116", 4.5, f"forgets to divide {of}", lambda e: e.right * wide(e.arrays[e.output]))
        yield Candidate("GC116", 4.5, f"forgets to multiply {of}", lambda e: e.right / wide(e.arrays[e.output]))
    if at == Edge.INCOMING:
        yield Candidate("GC109", 2.5, DERIVATIVE_ALONE, lambda e: np.ones_like(e.right))


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
DERIVATIVE_ALONE = "does not multiply by the gradient that flows into {op}"

MONOMIALS = {
    ("multiply", 0): (1, 0, 1), ("multiply", 1): (1, 0, 1), ("divide", 0): (1, 0, -1), ("divide", 1): (-1, -2, 1),
    ("subtract", 1): (-1, 0, 0),
}  # fmt: skip
"""By operation and position, see `Edge.monomial`."""


def elementwise(edge: Edge) -> Iterator[Candidate]:
    """Another derivative, or none."""
    composed = edge.position == Edge.COMPOSED
    less = AS_A_WHOLE * composed
    flat = not bool(edge.right.any())  # no derivative goes through a rounding
    says = "passes the gradient " + ("straight through {op}" if flat else "through {op} without its derivative")
    yield Candidate("GC122" if flat else "GC119", 1 - less, says, attrgetter("g"))
    for (name, formula), (letter, value) in itertools.product(DERIVATIVES.items(), (("y", "y"), ("{own}", "x"))):
        says = f"takes {name.format(letter)} for the derivative of y = {{op}}" + " by {own}" * composed
        yield Candidate("GC119", 2 - less, says, partial(spread, edge.g.shape, formula, value))


def reductions(edge: Edge) -> Iterator[Candidate]:
    """The cotangent handed to all elements, or along another axis."""
    for axis in (None, *range(edge.x.ndim)) if edge.g.size < edge.x.size else ():
        shape = [1 if axis in (k, None) else n for k, n in enumerate(edge.x.shape)]
        says = "hands the gradient of {op} to all elements alike"
        yield Candidate("GC119", 2, says, partial(spread, shape, np.ones_like, "x"))
        for name, formula in (("{own}", np.positive), ("the sign of {own}", np.sign), ("exp({own})", np.exp)):
            says = f"takes {name} for the derivative of {{op}}"
            yield Candidate("GC119", 3, says, partial(spread, shape, formula, "x"))


def spread(shape: Sequence[int], formula: Callable[[Array], Any], value: str, edge: Edge) -> Array:
    """The cotangent of the output in a shape that fits, times a function of the input or output."""
    return edge.g.reshape(shape) * formula(getattr(edge, value))


def monomials(edge: Edge) -> Iterator[Candidate]:
    """The cotangent times other powers of both inputs."""

    def powers(a: int, b: int, edge: Edge) -> Array:  # of an input whose power is right no value is needed
        return edge.right * edge.x ** (a - right[0]) if b == right[1] else edge.fit(edge.times(a, b))

    _, *right = edge.monomial
    forgets = "forgets to divide by {other}" if (edge.step.name, edge.position) == ("divide", 0) else FORGETS
    for a, b in itertools.product(range(-2, 3), repeat=2):
        if [a, b] != right and (edge.other is not None or b == right[1]):
            says = f"multiplies by {product(a, b)} in place of {product(*right)}" if a or b else forgets
            # a factor forgotten, times for divided by, one operand for the other are slips
            swapped = 2 - ([b, a] == right) + abs(a - right[0]) + abs(b - right[1])
            cost = 1 if (a, b) == (0, 0) else 2 if [a, -b] == right else swapped
            yield Candidate("GC116", cost, says, partial(powers, a, b))


def product(a: int, b: int) -> str:
    """A product of powers of {own} and {other}, in words."""
    factors = (("{own}", a), ("{other}", b))
    upper, lower = ([name + "²" * (abs(n) == 2) for name, n in factors if n * sign > 0] for sign in (1, -1))
    return " / ".join([" · ".join(upper) or "1", *lower])


def unsummed(edge: Edge) -> Iterator[Candidate]:
    """The first slice in place of the sum over the axes along which the input was broadcast, or a sum over others."""

    def reduced(reduce: Callable[[Array], Array], edge: Edge) -> Array:
        return reduce(edge.times(*right)).reshape(edge.right.shape)

    _, *right = edge.monomial
    axes = range(edge.g.ndim)
    if (edge.other is None and right[1]) or edge.g.size == edge.right.size:
        return
    for axis in axes:
        says = f"takes the first slice along axis {axis} in place of the sum over it"
        yield Candidate("GC106", 2, says, partial(reduced, partial(np.take, indices=0, axis=axis)))
    for along in (c for k in axes for c in itertools.combinations(axes, k + 1)):
        says = f"sums over axis {', '.join(map(str, along))} in place of the axes along which {{own}} was broadcast"
        yield Candidate("GC106", 2, says, partial(reduced, partial(np.sum, axis=along)))


def matrices(named: Mapping[str, Any]) -> dict[str, Array]:
    """Those of some values that are matrices, or batches, each also transposed, by name."""
    found = {name: v for name, v in named.items() if np.ndim(v) > 1}
    return {name + t: v.swapaxes(-1, -2) if t else v for name, v in found.items() for t in ("", ".T")}


def products(named: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of matrices, by name, of which one is the cotangent, ``dy``, in both orders."""
    for one, other in itertools.permutations(named, 2):
        if one.startswith("dy") != other.startswith("dy"):
            yield one, other


def products_of_matrices(edge: Edge) -> Iterator[Candidate]:
    """The cotangent times the other operand or this one, transposed or not, or the first of a batch."""

    def operands(edge: Edge) -> dict[str, Array]:
        return matrices({"dy": edge.g, "{other}": edge.other, "{own}": edge.x})

    def multiplied(left: str, right: str, edge: Edge) -> Array:
        found = operands(edge)
        value = found[left] @ found[right]
        return value[0] if value.shape[1:] == edge.right.shape else value

    for left, right in products(operands(edge)):
        code, says = "GC116", f"takes {left} @ {right} for the gradient of {{own}}"
        if edge.g.ndim > edge.right.ndim:
            code, says = "GC106", f"takes the first of {left} @ {right} in place of their sum over the batch"
        yield Candidate(code, 2, says, partial(multiplied, left, right))


TRANSPOSED = "transposed"
MOST_PERMUTED = 24
"""Orders of axes that are tried: all of four."""


def orders(
    shape: Sequence[int], named: Callable[[int], str] = "axis {}".format
) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """Other orders of an array of a shape, in words; `named` are its axes."""
    axes = range(len(shape))
    for order in itertools.islice(itertools.permutations(axes), 1, MOST_PERMUTED):
        if tuple(shape[k] for k in order) == tuple(shape):
            transposed = order == (*axes[:-2], *axes[:-3:-1])
            words = TRANSPOSED if transposed else f"with its axes permuted to {list(order)}"
            yield words, partial(np.transpose, axes=order)
    for axis in (k for k in axes if shape[k] > 1):
        for by in (1, -1):
            yield f"rolled by {by} along {named(axis)}", partial(np.roll, shift=by, axis=axis)
        yield f"flipped along {named(axis)}", partial(np.flip, axis=axis)


def one_thing_otherwise(edge: Edge) -> Iterator[Candidate]:
    """The operation's own rule along another axis, without one of two bounds, or reading a value in another order, not
    at all, or another one; without the cotangent; what it gives in another order."""

    def changed(name: str, value: Any, edge: Edge) -> Array:
        if name == "right":
            return value(edge.right)
        if name == "g":
            return edge.ruled([value(edge.g)])
        return edge.ruled(**{name: value(edge.readable[name]) if callable(value) else value})

    name, given, axes = edge.step.name, edge.step.operands(), range(edge.y.ndim)
    rows: list[tuple[str, float, str, str, Any]] = []
    if name in ("softmax", "log_softmax", "cumsum") and isinstance(given["axis"], int):
        axis = given["axis"] % max(len(axes), 1)
        sums = {f"axis {k}": k for k in axes if k != axis} | {"all axes": None}
        says = f"sums over {{}} in place of axis {axis} in {{{{op}}}}"
        rows += [("GC119", 2, says.format(words), "axis", k) for words, k in sums.items()]
    for bound, other, none in (("min", "max", np.inf), ("max", "min", -np.inf)):
        if name in ("clip", "hardtanh") and given.get(bound) is not None:
            rows.append(("GC123", 2, f"masks at the bound {bound} of {{op}} alone", other, none))
    if len(edge.given) == 1:
        rows.append(("GC109", 2.5, DERIVATIVE_ALONE, "g", np.ones_like))
    meant = {"out": edge.step.first, **dict(zip("xy", edge.step.edges, strict=False))}
    for read, present in edge.readable.items():
        what = f"#{meant[read]}" if meant.get(read, -1) >= 0 else "a constant"
        others = [(2 + (words != TRANSPOSED), f"reads {what} {words}", order) for words, order in orders(present.shape)]
        if name not in MASKS:  # what is compared is no factor
            others.append((3, f"leaves {what} out", np.ones_like))
        for number, value in enumerate(edge.arrays):
            if value.shape == present.shape and value.dtype.kind == present.dtype.kind and value is not present:
                others.append((4, f"reads #{number} in place of {what}", wide(value)))
        rows += [("GC116", cost, f"{says} in the rule of {{op}}", read, value) for cost, says, value in others]
    for words, order in orders(edge.right.shape):
        rows.append(("GC104", 3, f"hands on the gradient of {{own}} in {{op}} {words}", "right", order))
    return (Candidate(code, cost, says, partial(changed, what, value)) for code, cost, says, what, value in rows)


def written_once(edge: Edge) -> Array:
    """The cotangent of a selection written to where it was selected from, once where it was selected several times."""
    once = np.zeros_like(edge.right)
    once[edge.step.operands().get("index")] = edge.g
    return once


def least_for_largest(edge: Edge) -> Array:
    """The cotangent of an extreme handed to the elements that are the other one."""
    other = np.min if edge.step.name in ("max", "amax") else np.max
    out = other(edge.x, axes_of(edge.step.operands().get("axis")))
    return edge.ruled(out=np.reshape(out, edge.y.shape))


MASKS = ("where", "clip", "maximum", "minimum", "fmax", "fmin", "hardtanh", "tril", "triu", "relu", "leaky_relu")
REORDERING = ("transpose", "flip", "roll")
ROWS: tuple[tuple[Sequence[str], str, float, str, Callable[[Edge], Any]], ...] = (
    (MASKS, "GC123", 0.5, "ignores the mask of {op}", lambda e: e.fit(e.g)),
    (MASKS, "GC123", 2, "takes the opposite of the mask of {op}", lambda e: e.fit(e.g) - e.right),
    ((*REORDERING, "getitem"), "GC104", 2, "applies {op} itself, not its inverse, to the gradient",
     lambda e: e.step.again(e.g)),
    (REORDERING, "GC104", 2, "hands on the gradient of {op} as it is, without its inverse",
     lambda e: e.g.reshape(e.right.shape)),
    (("symmetric_from_lower",), "GC119", 0.5,
     "gives {own} the gradient of a symmetric matrix, of which one triangle alone is read",
     lambda e: (e.g + np.swapaxes(e.g, -1, -2)) / 2),
    (("cumsum",), "GC104", 2, "applies {op} itself, not a sum from the other end, to the gradient",
     lambda e: e.step.again(e.g)),
    (("cumsum",), "GC104", 2, "hands on the gradient of {op} as it is, without a sum from the other end",
     lambda e: e.g.reshape(e.right.shape)),
    (("getitem",), "GC104", 2, "writes what {op} selects several times only once", written_once),
    (("pow",), "GC119", 2, "leaves the exponent as it is in the derivative of {op}", lambda e: e.right * e.x),
    (("matmul", "bmm"), "GC116", 2, FORGETS, lambda e: e.g),
    (("max", "amax"), "GC123", 2, "hands the gradient of {op} to the smallest element", least_for_largest),
    (("min", "amin"), "GC123", 2, "hands the gradient of {op} to the largest element", least_for_largest),
    (("softmax",), "GC119", 2, "takes the row sum of g, not of y g, in {op}", lambda e: e.y * (e.g - row_sums(e, e.g))),
    (("softmax",), "GC119", 2, "takes the row mean of y g, not its sum, in {op}",
     lambda e: e.y * (e.g - row_sums(e, e.y * e.g) / row_sums(e, 0 * e.g + 1))),
    (("softmax",), "GC119", 2, "adds the row sum of y g in place of subtracting it in {op}",
     lambda e: e.y * (e.g + row_sums(e, e.y * e.g))),
    (("softmax",), "GC119", 2, "leaves out the factor y in {op}", lambda e: e.g - row_sums(e, e.y * e.g)),
    (("softmax",), "GC119", 2, "subtracts the row sum without the factor y in {op}",
     lambda e: e.y * e.g - row_sums(e, e.y * e.g)),
    (("log_softmax",), "GC119", 2, "subtracts the row sum without the softmax in {op}",
     lambda e: e.g - row_sums(e, e.g)),
    (("log_softmax",), "GC119", 2, "takes the row mean of g, not its sum, in {op}",
     lambda e: e.g - np.exp(e.y) * row_sums(e, e.g) / row_sums(e, 0 * e.g + 1)),
    (("log_softmax",), "GC119", 2, "adds the row sum of g in place of subtracting it in {op}",
     lambda e: e.g + np.exp(e.y) * row_sums(e, e.g)),
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
    **dict.fromkeys(("sum", "mean", "max", "min", "norm", "logsumexp"), (reductions,)),
}
"""The mistakes that belong to an operation, of which there are more or fewer."""


def row_sums(edge: Edge, values: Array) -> Array:
    """The sums over the rows of a softmax."""
    return values.sum(edge.step.operands().get("axis", -1), keepdims=True)
