"""Candidate mistakes: for each input of each recorded operation, the wrong cotangents that a
backward may pass on.

A candidate is a value that a wrong backward may pass on instead of the right cotangent of an edge
(an input of an operation). It has the input's shape. The right cotangent and each candidate may
also have a factor.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array, Cotangents
from gradcheck.backends.recording import Step
from gradcheck.checking.kinks import axes_of
from gradcheck.checking.precision import CLEAR, EPS, MOVES, wide
from gradcheck.checking.tape import Tape, sum_to_shape


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a tape by number, and the cotangents that flow to them."""

    arrays: Sequence[Array]
    flows: Mapping[int, Array]
    """The right cotangents, where wider mistakes are tried; empty otherwise."""
    turns: Mapping[int, tuple[Sequence[int], int]]
    """For a value on a line that runs several times: its numbers in all runs, and its position
    among them.
    """

    @classmethod
    def of(cls, tape: Tape, cotangents: Cotangents, is_wide: bool) -> Values:
        """The values of a tape, and their cotangents for some cotangents of the outputs."""
        turns: dict[int, tuple[Sequence[int], int]] = {}
        for run in tape.runs:
            for k in range(len(run[0].values)):
                numbers = [step.first + k for step in run]
                turns |= {number: (numbers, place) for place, number in enumerate(numbers)}
        flows = flows_of(tape, cotangents) if is_wide else {}
        return cls(tape.recording.arrays, flows, turns)

    def run_after(self, number: int, other: str) -> str:
        """Say by how many runs of their line `other` comes after or before a value; empty unless
        the same line computed both.
        """
        numbers, place = self.turns.get(number, ((), 0))
        positions = [k for k, n in enumerate(numbers) if other == f"#{n}"]
        if not positions:
            return ""
        return (
            f", {abs(place - positions[0])} run {'later' if place > positions[0] else 'earlier'},"
        )

    def counterpart(self, number: int, origin: int, destination: int) -> int:
        """The value that corresponds, at the operation `destination`, to `number` at the operation
        `origin`, as in a loop.

        Raises:
            IndexError: the loop has no such run.
        """
        numbers, place = self.turns.get(number, ([number], 0))
        if len(numbers) > 1 and origin in self.turns:
            place += self.turns[destination][1] - self.turns[origin][1]
            if place < 0:
                raise IndexError
        return numbers[place]


@dataclass(frozen=True, eq=False)
class Edge:
    """One input of one operation, and the cotangent that flows through it, in double precision."""

    OUTPUT, INCOMING, WHOLE, COMPOSED, VALUE = -1, -2, -3, -4, -5
    """Positions of edges that are not an input of an operation.

    OUTPUT: its output. INCOMING: the incoming cotangent of an output of the call. WHOLE: the
    gradient of an input of the call, without a factor that the operation reads, or replaced by the
    gradient of the operation's output. COMPOSED: the input of a function whose last operation this
    is, see `Tape.composed`. VALUE: its value in forward, which backward computes differently.
    """

    step: Step
    position: int
    number: int
    """The number of the input's value."""
    incoming: Sequence[Any]
    """The cotangents of the outputs."""
    right: Array
    """The cotangent of the input."""
    values: Values
    add: Callable[[Array], None]
    """A function that adds to the cotangent of the input, on the current walk."""
    of_call: tuple[int, ...] = ()
    """INCOMING: which output of the call. WHOLE: the numbers of the other value and of the
    input.
    """

    @property
    def place(self) -> tuple[Step, int, tuple[int, ...]]:
        """The identity of the edge, equal on every walk."""
        return self.step, self.position, self.of_call

    @property
    def arrays(self) -> Sequence[Array]:
        return self.values.arrays

    @property
    def flows(self) -> Mapping[int, Array]:
        return self.values.flows

    def counterpart(self, number: int, origin: int) -> int:
        """The value that corresponds, at this operation, to `number` at the operation `origin`."""
        return self.values.counterpart(number, origin, self.step.first)

    @property
    def g(self) -> Array:
        """The cotangent of the operation's only output."""
        return np.asarray(self.incoming[0]) if len(self.incoming) == 1 else np.zeros(())

    @property
    def x(self) -> Array:
        return wide(self.arrays[self.number])

    @property
    def y(self) -> Array:
        return wide(self.step.values[0])

    @property
    def alone(self) -> bool:
        """Whether this is the only input of the operation, or both factors of a product."""
        return self.position >= 0 and len(set(self.step.edges)) == 1

    @property
    def other(self) -> Any:
        """The other one of two inputs; None if it is not known."""
        if len(self.step.edges) != 2:
            return None
        number = self.step.edges[1 - self.position]
        if number >= 0:
            return wide(self.arrays[number])
        return self.step.operands.get("yx"[self.position])

    @property
    def read(self) -> dict[str, Array]:
        """Values that the rules of the operation read, by the name of the argument."""
        array_type = type(self.right)
        operands = self.step.operands.items()
        return {n: v for n, v in operands if type(v) is array_type and v.dtype.kind in "fc"}

    @property
    def readable(self) -> dict[str, Array]:
        """`read`, and, if the output is read, also the operation's input: it may lack an epsilon,
        for example.
        """
        read = self.read
        return read | {"x": self.x} if len(self.step.edges) == 1 and "out" in read else read

    @property
    def summed(self) -> int:
        """The number of elements that a sum, a mean or a broadcast adds up to one element; 1 if it
        adds none.
        """
        shapes = [self.right.shape, *map(np.shape, self.incoming)]
        sizes = [max(int(np.prod(shape)), 1) for shape in shapes]
        return max(sizes) // min(sizes)

    def apply_rule(self, incoming: Sequence[Array] | None = None, **values: Any) -> Array:
        """The result of the operation's rule for other cotangents, or other values by name."""
        incoming = self.incoming if incoming is None else incoming
        return self.step.pull_with_values(self.position, incoming, values)

    @property
    def monomial(self) -> tuple[int, int, int]:
        """The sign and the exponents of this input and the other, if the derivative is a product of
        their powers.
        """
        return MONOMIALS.get((self.step.name, self.position), (1, 0, 0))

    def times(self, a: int, b: int) -> Array:
        """The output's cotangent with that sign, times powers of this input and of the other."""
        powers_of_other = (np.asarray(self.other) + 0.0) ** b if b else 1
        return self.monomial[0] * self.g * self.x**a * powers_of_other

    def fit(self, value: Array) -> Array:
        """Sum a value of the output's shape over the axes along which the input was broadcast."""
        return sum_to_shape(value, self.right.shape)


# --------------------------------------------------------------------------- the edges of a tape
OF_WORLDS = {"broadcast_ranks", "unbind"}
"""Operations that take the inputs of a rank from those of a world, without any user code."""


def edges_of(
    tape: Tape,
    cotangents: Cotangents,
    pending: dict[int, Array],
    steps: Collection[Step],
    is_wide: bool = False,
) -> Iterator[Edge]:
    """Walk over the tape for some cotangents, and yield the edges of `steps`.

    The outputs of the call come first, whatever the steps. Last come the gradients of the inputs,
    each with every factor that broadcasts to it. `pending` holds the cotangents of the outputs, and
    in the end those of the inputs. `is_wide`: the edges have the cotangents of all values.
    """
    recording, arrays = tape.recording, tape.recording.arrays
    values = Values.of(tape, cotangents, is_wide)

    def add(number: int, change: Array) -> None:
        pending[number] = pending[number] + change

    for k, (end, u) in enumerate(zip(recording.ends, cotangents, strict=True)):
        maker = last_computed(tape, end)
        if maker is not None and u is not None:
            cotangent, flow = wide(u), partial(add, end)
            yield Edge(maker, Edge.INCOMING, end, [cotangent], cotangent, values, flow, (k,))

    for step, incoming, pulled in tape.walk(pending):
        if step in steps:
            yield from edges_at(tape, step, incoming, pulled, values)

    factors: dict[int, Step] = {}
    for step in recording.steps:
        if step in steps and (is_wide or step.name in ("multiply", "divide")):
            factors |= {step.first: step} if is_wide else dict.fromkeys(step.edges, step)
    factors.pop(-1, None)
    for (other, step), k in itertools.product(factors.items(), pending):
        if k != other and broadcasts_to(arrays[other].shape, arrays[k].shape):
            flow = partial(add, k)
            yield Edge(step, Edge.WHOLE, k, [], pending[k], values, flow, (other, k))


def flows_of(tape: Tape, cotangents: Cotangents) -> dict[int, Array]:
    """The right cotangents of all values that some cotangents of the outputs reach, by number."""
    flows = dict[int, Array]()
    pending = tape.starts(cotangents)
    for step, incoming, _ in tape.walk(pending):
        flows |= {step.first + k: g for k, g in enumerate(incoming) if g is not None}
    return flows | pending


def last_computed(tape: Tape, number: int) -> Step | None:
    """The operation at which the user's formula for a value ends: later operations only move
    values.
    """
    maker = tape.maker(number)
    while maker is not None and maker.name in MOVES and len(maker.edges) == 1:
        maker = tape.maker(maker.edges[0])
    return maker


def broadcasts_to(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Whether an array of a shape broadcasts to another shape."""
    try:
        return np.broadcast_shapes(shape, into) == into
    except ValueError:
        return False


def edges_at(
    tape: Tape,
    step: Step,
    incoming: Sequence[Any],
    pulled: list[tuple[int, int, Array]],
    values: Values,
) -> Iterator[Edge]:
    """Yield the inputs of an operation, and its output if it has several inputs. The two equal
    factors of a square are one input.
    """
    if step.name in OF_WORLDS and step.spot is None:
        return

    def add(number: int, change: Array) -> None:
        pulled.append((0, number, change))

    inputs = pulled[:]
    if step.name == "multiply" and len(set(step.edges)) == 1:
        inputs = [(0, step.edges[0], pulled[0][2] + pulled[1][2])]
    composed = pull_through(tape.composed[step], incoming[0]) if step in tape.composed else []
    for position, number, right in (*inputs, *composed):
        yield Edge(step, position, number, incoming, right, values, partial(add, number))

    if len(inputs) > 1 and len(step.values) == 1:

        def add_to_output(change: Array) -> None:
            pulled.extend(step.pull([change]))

        yield Edge(step, Edge.OUTPUT, step.first, incoming, incoming[0], values, add_to_output)


def pull_through(steps: Sequence[Step], incoming: Any) -> list[tuple[int, int, Array]]:
    """Return the COMPOSED input of a function of one value, as in `Step.pull`.

    Empty if the function is not elementwise.
    """

    def pull(start: Array) -> tuple[int, Array]:
        pending = {steps[-1].first: start}
        for step in reversed(steps):
            for _, number, cotangent in step.pull([pending.pop(step.first)]):
                pending[number] = pending.get(number, 0.0) + cotangent
        ((number, cotangent),) = pending.items()
        return number, cotangent

    number, right = pull(incoming)
    _, slope = pull(0 * incoming + 1)
    close = CLEAR * EPS * abs(right).max(initial=0.0)
    elementwise = bool((abs(right - incoming * slope) <= close).all())
    return [(Edge.COMPOSED, number, right)] if elementwise else []


# ------------------------------------------------------------------------------------ mistakes
class Candidate(NamedTuple):
    """A mistake: the value that a wrong backward would pass on."""

    code: str
    cost: float
    """How far-fetched the mistake is."""
    says: str
    """The mistake in words. {op}, {own}, {other} are the operation, this input and the other one;
    #7 is value 7.
    """
    value: Callable[[Edge], Any]
    """A function that computes the value for this edge or a corresponding one."""

    def hand_on(self, edge: Edge) -> Array:
        """Return its value; the right gradient if the value cannot be computed or has another
        shape.
        """
        try:
            value = self.value(edge)
        except (ValueError, LookupError, TypeError):  # the matrix does not have such a factor, say
            return edge.right
        array = np.asarray(value)
        return array if value is not None and array.shape == edge.right.shape else edge.right


SHARE = Candidate("", 0.0, "", attrgetter("right"))
"""The right cotangent, which may have a factor."""

Family = Callable[[Edge], Iterator[Candidate]]


def all_candidates(edge: Edge) -> Iterator[Candidate]:
    """All candidates of an edge, whether they fit or not; the wider ones if the edge has the
    cotangents of other values.
    """
    for family in (WIDE if edge.flows else TRIED_FIRST).get(min(edge.position, 0), ()):
        yield from family(edge)


# --------------------------------------------------------------------------- families
FORMULAS: dict[str, Callable[[Array], Any]] = {
    "{}": lambda v: v,
    "1 − {}": lambda v: 1 - v,
    "1 + {}": lambda v: 1 + v,
    "{}²": lambda v: v * v,
    "1 − {}²": lambda v: 1 - v * v,
    "1 + {}²": lambda v: 1 + v * v,
    "{0} · (1 − {0})": lambda v: v * (1 - v),
    "exp({})": np.exp,
    "cos({})": np.cos,
    "sin({})": np.sin,
    "sqrt({})": np.sqrt,
    "abs({})": np.abs,
    "sign({})": np.sign,
    "log({})": np.log,
    "tanh({})": np.tanh,
}
"""Functions of an input or output that are mistaken for a derivative or a factor of it."""

DERIVATIVES: dict[str, Callable[[Array], Any]] = {
    "1 where {} > 0, else 0": lambda v: v > 0,
    "1 where {} < 0, else 0": lambda v: v < 0,
    **FORMULAS,
    "exp(−{})": lambda v: np.exp(-v),
    "sigmoid({})": lambda v: 1 / (1 + np.exp(-v)),
}

AS_A_WHOLE = 0.7
"""How much less far-fetched a wrong derivative of a whole function is than that of an operation
inside it.
"""

FORGETS = "forgets to multiply by {other}"
DERIVATIVE_ALONE = "does not multiply by the gradient that flows into {op}"

MONOMIALS = {
    ("multiply", 0): (1, 0, 1),
    ("multiply", 1): (1, 0, 1),
    ("divide", 0): (1, 0, -1),
    ("divide", 1): (-1, -2, 1),
    ("subtract", 1): (-1, 0, 0),
}
"""The exponents in `Edge.monomial`, by operation and position."""


def derivative_alone(edge: Edge) -> Iterator[Candidate]:
    """The incoming gradient left out."""
    yield Candidate("GC109", 2.5, DERIVATIVE_ALONE, lambda e: np.ones_like(e.right))


def forgotten_factors(edge: Edge) -> Iterator[Candidate]:
    """The gradient of an input of the call, with a factor left out."""
    factor, _ = edge.of_call
    for verb, operation in (("divide", np.multiply), ("multiply", np.divide)):
        says = f"forgets to {verb} the gradient of {{own}} by #{factor}"
        yield Candidate("GC116", 4.5, says, partial(with_factor, operation))


def with_factor(operation: Callable[[Array, Array], Array], edge: Edge) -> Array:
    """The gradient of an input of the call, multiplied or divided by the factor."""
    return operation(edge.right, wide(edge.arrays[edge.of_call[0]]))


def if_alone(edge: Edge) -> Iterator[Candidate]:
    """A wrong derivative of an operation of one value."""
    # An operation that reads no value has the same derivative at all points.
    reads = bool(edge.read) or not edge.right.any()
    if edge.alone and edge.y.shape == edge.right.shape and reads:
        yield from elementwise(edge)


def elementwise(edge: Edge) -> Iterator[Candidate]:
    """A wrong derivative, or none at all."""
    if edge.right.dtype.kind == "c":  # there the usual mistake is a missing conjugate
        return
    composed = edge.position == Edge.COMPOSED
    less, of_what = AS_A_WHOLE * composed, " by {own}" * composed
    code, how = "GC119", "through {op} without its derivative"
    if not edge.right.any():  # no derivative goes through a rounding
        code, how = "GC122", "straight through {op}"
    yield Candidate(code, 1 - less, f"passes the gradient {how}", attrgetter("g"))
    letters = (("y", "y"), ("{own}", "x"))
    for (name, formula), (letter, value) in itertools.product(DERIVATIVES.items(), letters):
        says = f"takes {name.format(letter)} for the derivative of y = {{op}}{of_what}"
        yield Candidate(
            "GC119", 2 - less, says, partial(spread_cotangent, edge.g.shape, formula, value)
        )


def simple_slips(edge: Edge) -> Iterator[Candidate]:
    """The mistakes in the table `ROWS`."""
    yield from (candidate for names, candidate in ROWS if edge.step.name in names)


def reductions(edge: Edge) -> Iterator[Candidate]:
    """The cotangent passed to all elements, or along another axis."""
    if edge.g.size >= edge.x.size:
        return
    formulas = (("{own}", np.positive), ("the sign of {own}", np.sign), ("exp({own})", np.exp))
    for axis in (None, *range(edge.x.ndim)):
        shape = edge.x.sum(axis=axis, keepdims=True).shape
        says = "gives the gradient of {op} to all elements alike"
        yield Candidate("GC119", 2, says, partial(spread_cotangent, shape, np.ones_like, "x"))
        for name, formula in formulas:
            says = f"takes {name} for the derivative of {{op}}"
            yield Candidate("GC119", 3, says, partial(spread_cotangent, shape, formula, "x"))


def spread_cotangent(
    shape: Sequence[int], formula: Callable[[Array], Any], value: str, edge: Edge
) -> Array:
    """The cotangent of the output in a shape that fits, times a function of the input or output."""
    return edge.g.reshape(shape) * formula(getattr(edge, value))


def monomials(edge: Edge) -> Iterator[Candidate]:
    """The cotangent times other powers of both inputs."""
    _, *right = edge.monomial
    forgets = FORGETS
    if (edge.step.name, edge.position) == ("divide", 0):
        forgets = "forgets to divide by {other}"
    for a, b in itertools.product(range(-2, 3), repeat=2):
        says = f"multiplies by {product(a, b)} in place of {product(*right)}"
        cost = 2 - ([b, a] == right) + abs(a - right[0]) + abs(b - right[1])
        # Likely slips: a missing factor, a product in place of a quotient, swapped operands.
        if [a, -b] == right:
            cost = 2
        if a == b == 0:
            cost, says = 1, forgets
        if edge.other is not None or b == right[1]:
            yield Candidate("GC116", cost, says, partial(powers, a, b))


def powers(a: int, b: int, edge: Edge) -> Array:
    """The output's cotangent times powers of this input and of the other one."""
    _, right_a, right_b = edge.monomial
    if b == right_b:  # the other value is not needed, and may be unknown
        return edge.right * edge.x ** (a - right_a)
    return edge.fit(edge.times(a, b))


def product(a: int, b: int) -> str:
    """A product of powers of {own} and {other}, in words."""
    upper, lower = [], []
    for name, n in (("{own}", a), ("{other}", b)):
        power = name + "²" * (abs(n) == 2)
        upper += [power] * (n > 0)
        lower += [power] * (n < 0)
    return " / ".join([" · ".join(upper) or "1", *lower])


def axes_subsets(ndim: int) -> Iterator[tuple[int, ...]]:
    """All sets of one axis or more, the small ones first."""
    for count in range(ndim):
        yield from itertools.combinations(range(ndim), count + 1)


def mistaken_sums(edge: Edge) -> Iterator[Candidate]:
    """The first slice, or a sum over other axes, in place of the sum over the axes along which the
    input was broadcast.
    """
    if edge.g.size == edge.right.size:
        return
    says = "takes the mean in place of the sum over the axes along which {own} was broadcast"
    yield Candidate("GC112", 2, says, lambda e: e.right / e.summed)
    for axis in range(edge.g.ndim):
        says = f"takes the first slice along axis {axis} in place of the sum over it"
        yield Candidate(
            "GC106", 2, says, partial(reduce_cotangent, partial(np.take, indices=0, axis=axis))
        )
    for axes in axes_subsets(edge.g.ndim):
        listed = ", ".join(map(str, axes))
        says = f"sums over axis {listed} in place of the axes along which {{own}} was broadcast"
        yield Candidate("GC106", 2, says, partial(reduce_cotangent, partial(np.sum, axis=axes)))


def reduce_cotangent(reduce: Callable[[Array], Array], edge: Edge) -> Array:
    """The cotangent of the broadcast input, reduced in another way."""
    _, *right = edge.monomial
    return reduce(edge.times(*right)).reshape(edge.right.shape)


def matrices(values: Mapping[str, Any]) -> dict[str, Array]:
    """The matrices, or batches of them, among some values, each also transposed, by name."""
    by_name: dict[str, Array] = {}
    for name, value in values.items():
        if np.ndim(value) > 1:
            by_name |= {name: value, f"{name}.T": value.swapaxes(-1, -2)}
    return by_name


def products(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of matrices by name, in both orders, one of which is the cotangent ``dy``."""
    for left, right in itertools.permutations(names, 2):
        if left.startswith("dy") != right.startswith("dy"):
            yield left, right


def matrix_factors(edge: Edge) -> dict[str, Array]:
    """The factors of products of matrices, by name."""
    return matrices({"dy": edge.g, "{other}": edge.other, "{own}": edge.x})


def products_of_matrices(edge: Edge) -> Iterator[Candidate]:
    """The cotangent times either operand, transposed or not, or the first of a batch."""
    for left, right in products(matrix_factors(edge)):
        code, says = "GC116", f"takes {left} @ {right} for the gradient of {{own}}"
        if edge.g.ndim > edge.right.ndim:
            code = "GC106"
            says = f"takes the first of {left} @ {right} in place of their sum over the batch"
        yield Candidate(code, 2, says, partial(multiply_matrices, left, right))


def multiply_matrices(left: str, right: str, edge: Edge) -> Array:
    """A product of two matrices by name, or the first of a batch."""
    values = matrix_factors(edge)
    value = values[left] @ values[right]
    return value[0] if value.shape[1:] == edge.right.shape else value


TRANSPOSED = "transposed"
MOST_PERMUTED = 24
"""The most orders of axes that are tried: all orders of four."""


def orders(
    shape: Sequence[int], axis_name: Callable[[int], str] = "axis {}".format
) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """Other orders of an array of a shape, in words."""
    axes = range(len(shape))
    for order in itertools.islice(itertools.permutations(axes), 1, MOST_PERMUTED):
        if all(shape[k] == n for k, n in zip(order, shape, strict=True)):
            words = f"with its axes permuted to {list(order)}"
            if order == (*axes[:-2], *axes[:-3:-1]):
                words = TRANSPOSED
            yield words, partial(np.transpose, axes=order)
    for axis in axes:
        for by in (1, -1):
            yield f"rolled by {by} along {axis_name(axis)}", partial(np.roll, shift=by, axis=axis)
        yield f"flipped along {axis_name(axis)}", partial(np.flip, axis=axis)


def one_thing_otherwise(edge: Edge) -> Iterator[Candidate]:
    """The operation's vjp along another axis, or without the cotangent; with a value in another
    order, left out, or replaced by another one; or with its result in another order.
    """
    step, arguments, axes = edge.step, edge.step.operands, range(edge.y.ndim)
    axis = arguments.get("axis")
    if step.name in ("softmax", "log_softmax", "cumsum") and isinstance(axis, int):
        place = f"in place of axis {axis % max(len(axes), 1)} in {{op}}"
        for other, words in [*((k, f"axis {k}") for k in axes), (None, "all axes")]:
            says = f"sums over {words} {place}"
            yield Candidate("GC119", 2, says, partial(with_argument, "axis", other))
    yield Candidate("GC109", 2.5, DERIVATIVE_ALONE, lambda e: e.apply_rule([np.ones_like(e.g)]))

    for name, present in edge.readable.items():
        yield from other_readings(edge, name, present, read_in(edge, name))
    for words, order in orders(edge.right.shape):
        says = f"passes on the gradient of {{own}} in {{op}} {words}"
        yield Candidate("GC104", 3, says, partial(reorder_gradient, order))


def read_in(edge: Edge, name: str) -> str:
    """The value that a rule reads as an argument, in words."""
    step = edge.step
    numbers = {"out": step.first, **dict(zip("xy", step.edges, strict=False))}
    number = numbers.get(name, -1)
    return f"#{number}" if number >= 0 else "a constant"


MERGES: Sequence[tuple[str, Callable[[int, Array], Array]]] = (
    ("summed over {}", lambda k, v: v * 0 + v.sum(axis=k, keepdims=True)),
    ("with its first entry along {} repeated", lambda k, v: v * 0 + v.take([0], axis=k)),
    ("with its last entry along {} repeated", lambda k, v: v * 0 + v.take([-1], axis=k)),
    ("with its halves swapped along {}", lambda k, v: np.roll(v, v.shape[k] // 2, axis=k)),
    ("with one half along {} 0", lambda k, v: v * (places_along(v, k) < v.shape[k] // 2)),
    ("with one half along {} 0", lambda k, v: v * (places_along(v, k) >= v.shape[k] // 2)),
    ("moved by one along {}", lambda k, v: np.roll(v, 1, axis=k) * (places_along(v, k) > 0)),
    (
        "moved by one along {}",
        lambda k, v: np.roll(v, -1, axis=k) * (places_along(v, k) < v.shape[k] - 1),
    ),
    ("with 0 at its first position along {}", lambda k, v: v * (places_along(v, k) > 0)),
    (
        "with 0 at its last position along {}",
        lambda k, v: v * (places_along(v, k) < v.shape[k] - 1),
    ),
    ("grouped in pairs instead of halves along {}", lambda k, v: in_pairs(v, k, (-1, 2))),
    ("grouped in halves instead of pairs along {}", lambda k, v: in_pairs(v, k, (2, -1))),
)
"""Mistakes in the order of elements along one axis that lose elements, or that concern halves."""


def places_along(values: Array, axis: int) -> Array:
    """The positions along an axis, shaped to be multiplied with an array."""
    return np.arange(values.shape[axis]).reshape(-1, *[1] * (values.ndim - axis - 1))


def in_pairs(values: Array, axis: int, shape: tuple[int, int]) -> Array:
    """The elements along an axis, read as a table of some shape column by column."""
    order = np.arange(values.shape[axis]).reshape(shape).T.reshape(-1)
    return values.take(order, axis=axis)


def merges(values: Array) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """Permutations of values, in words; none for values with many equal ones, such as those of a
    mask.
    """
    if 2 * np.unique(values).size < values.size:
        return
    for (words, merge), axis in itertools.product(MERGES, range(values.ndim)):
        if values.shape[axis] > 1:
            yield words.format(f"axis {axis}"), partial(merge, axis)


def other_places(edge: Edge) -> Iterator[Candidate]:
    """The cotangent, a value that the vjp reads, or its result, with elements at other
    positions.
    """
    for name, present in edge.readable.items() if edge.position >= 0 else ():
        for words, merge in merges(present):
            says = f"reads {read_in(edge, name)} {words} in the rule of {{op}}"
            yield Candidate("GC104", 4.5, says, partial(with_changed, name, merge))
    if edge.position != Edge.OUTPUT:
        for words, merge in merges(edge.right):
            says = f"passes on the gradient of {{own}} in {{op}} {words}"
            yield Candidate("GC104", 3.5, says, partial(reorder_gradient, merge))
    of_input = " on the way to {own}" * (edge.position >= 0)
    for words, order in (*orders(edge.g.shape), *merges(edge.g)):
        says = f"takes the gradient of {{out}} {words}{of_input}"
        yield Candidate("GC104", 3.5, says, partial(with_cotangent, order))


def other_cotangents(edge: Edge) -> Iterator[Candidate]:
    """The cotangent of another value, or with another value as a factor."""
    of_input = " on the way to {own}" * (edge.position >= 0)
    for number, flow in edge.flows.items():
        if flow.shape == edge.g.shape and number != edge.step.first:
            says = f"takes the gradient of #{number} for that of {{out}}{of_input}"
            yield Candidate("GC105", 3.5, says, partial(with_flow, number, edge.step.first))
    for number, value in enumerate(edge.arrays):
        if value.dtype.kind == "f" and broadcasts_to(value.shape, edge.g.shape):
            for verb, operation in (("multiplies", np.multiply), ("divides", np.divide)):
                says = f"{verb} the gradient of {{out}} by #{number} once too often{of_input}"
                change = partial(combine_with_value, operation, number, edge.step.first)
                yield Candidate("GC114", 4, says, change)


def with_cotangent(change: Callable[[Array], Array], edge: Edge) -> Array:
    """The gradient by the right vjp, with the output's cotangent changed."""
    cotangent = change(edge.g)
    return edge.apply_rule([cotangent]) if edge.position >= 0 else cotangent


def with_flow(number: int, origin: int, edge: Edge) -> Array:
    """The gradient by the right vjp, with the cotangent of another value."""
    return with_cotangent(lambda _: edge.flows[edge.counterpart(number, origin)], edge)


def combine_with_value(
    operation: Callable[[Array, Array], Array], number: int, origin: int, edge: Edge
) -> Array:
    """The gradient by the right vjp, with the cotangent multiplied or divided by another value."""
    value = wide(edge.arrays[edge.counterpart(number, origin)])
    return with_cotangent(lambda g: operation(g, value), edge)


def another_gradient(edge: Edge) -> Iterator[Candidate]:
    """The gradient of an intermediate value, returned as that of an input."""
    number, _ = edge.of_call
    says = f"returns the gradient of #{number} for that of {{own}}"
    yield Candidate("GC105", 3, says, lambda e: e.flows.get(number))


def other_readings(edge: Edge, name: str, present: Array, description: str) -> Iterator[Candidate]:
    """The operation's own vjp with another value for one argument; `description` is of the
    argument's value.
    """
    end = "in the rule of {op}"
    for words, order in orders(present.shape):
        cost = 2 if words == TRANSPOSED else 3
        says = f"reads {description} {words} {end}"
        yield Candidate("GC116", cost, says, partial(with_changed, name, order))
    if edge.step.name not in MASKS:  # the vjp compares this value and does not multiply by it
        says = f"leaves {description} out {end}"
        yield Candidate("GC116", 3, says, partial(with_changed, name, np.ones_like))
    for number, value in enumerate(edge.arrays):
        if (value.shape, value.dtype.kind) == (present.shape, present.dtype.kind):
            which = edge.values.run_after(number, description)
            says = f"reads #{number}{which} in place of {description} {end}"
            reading = partial(with_reading, name, number, edge.step.first)
            yield Candidate("GC116", 4, says, reading)


def with_argument(name: str, value: Any, edge: Edge) -> Array:
    """The result of the vjp with another value for an argument."""
    return edge.apply_rule(**{name: value})


def with_reading(name: str, number: int, origin: int, edge: Edge) -> Array:
    """The result of the vjp with the value of another operation for an argument."""
    value = edge.arrays[edge.counterpart(number, origin)]
    return with_argument(name, wide(value), edge)


def with_changed(name: str, change: Callable[[Array], Array], edge: Edge) -> Array:
    """The result of the vjp with the value of an argument changed."""
    return edge.apply_rule(**{name: change(edge.readable[name])})


def reorder_gradient(order: Callable[[Array], Array], edge: Edge) -> Array:
    """The right cotangent in another order."""
    return order(edge.right)


def written_once(edge: Edge) -> Array:
    """The cotangent of a selection, written back to the selected positions: only once even to a
    position that was selected several times.
    """
    once = np.zeros_like(edge.right)
    once[edge.step.operands.get("index")] = edge.g
    return once


def handed_to(extreme: Callable[..., Any], edge: Edge) -> Array:
    """The cotangent of a minimum or maximum, passed to the elements of the other extreme."""
    extremes = extreme(edge.x, axes_of(edge.step.operands.get("axis")))
    return edge.apply_rule(out=np.reshape(extremes, edge.y.shape))


def row_sums(edge: Edge, values: Array) -> Array:
    """The sums over the rows of a softmax."""
    return values.sum(edge.step.operands.get("axis", -1), keepdims=True)


def row_length(edge: Edge) -> Array:
    """The lengths of the rows of a softmax."""
    return row_sums(edge, 0 * edge.g + 1)


SOFTMAX: dict[str, Callable[[Edge], Any]] = {
    "takes the row sum of g, not of y g, in {op}": lambda e: e.y * (e.g - row_sums(e, e.g)),
    "takes the row mean of y g, not its sum, in {op}": lambda e: (
        e.y * (e.g - row_sums(e, e.y * e.g) / row_length(e))
    ),
    "adds the row sum of y g in place of subtracting it in {op}": lambda e: (
        e.y * (e.g + row_sums(e, e.y * e.g))
    ),
    "leaves out the factor y in {op}": lambda e: e.g - row_sums(e, e.y * e.g),
    "subtracts the row sum without the factor y in {op}": lambda e: (
        e.y * e.g - row_sums(e, e.y * e.g)
    ),
}
LOG_SOFTMAX: dict[str, Callable[[Edge], Any]] = {
    "subtracts the row sum without the softmax in {op}": lambda e: e.g - row_sums(e, e.g),
    "takes the row mean of g, not its sum, in {op}": lambda e: (
        e.g - np.exp(e.y) * row_sums(e, e.g) / row_length(e)
    ),
    "adds the row sum of g in place of subtracting it in {op}": lambda e: (
        e.g + np.exp(e.y) * row_sums(e, e.g)
    ),
    "leaves out the row sum of g in {op}": lambda e: e.g - np.exp(e.y) * e.g,
    "leaves out g in {op}": lambda e: -np.exp(e.y) * row_sums(e, e.g),
    "multiplies by the logarithm in place of the softmax in {op}": lambda e: (
        e.g - e.y * row_sums(e, e.g)
    ),
}

MASKS = (
    *("where", "clip", "maximum", "minimum", "fmax", "fmin", "hardtanh", "tril", "triu", "relu"),
    "leaky_relu",
)
REORDERING = ("transpose", "flip", "roll")
ROWS: Sequence[tuple[Sequence[str], Candidate]] = (
    (MASKS, Candidate("GC123", 0.5, "ignores the mask of {op}", lambda e: e.fit(e.g))),
    (
        MASKS,
        Candidate(
            "GC123", 2, "takes the opposite of the mask of {op}", lambda e: e.fit(e.g) - e.right
        ),
    ),
    (
        (*REORDERING, "getitem"),
        Candidate(
            "GC104",
            2,
            "applies {op} itself, not its inverse, to the gradient",
            lambda e: e.step.apply_to(e.g),
        ),
    ),
    (
        REORDERING,
        Candidate(
            "GC104",
            2,
            "passes on the gradient of {op} as it is, without its inverse",
            lambda e: e.g.reshape(e.right.shape),
        ),
    ),
    (
        ("symmetric_from_lower",),
        Candidate(
            "GC119",
            0.5,
            "gives {own} the gradient of a symmetric matrix, although only one triangle is read",
            lambda e: (e.g + np.swapaxes(e.g, -1, -2)) / 2,
        ),
    ),
    (
        ("cumsum",),
        Candidate(
            "GC104",
            2,
            "applies {op} itself, not a sum from the other end, to the gradient",
            lambda e: e.step.apply_to(e.g),
        ),
    ),
    (
        ("cumsum",),
        Candidate(
            "GC104",
            2,
            "passes on the gradient of {op} as it is, without a sum from the other end",
            lambda e: e.g.reshape(e.right.shape),
        ),
    ),
    (
        ("getitem",),
        Candidate(
            "GC104",
            2,
            "writes only once the elements that {op} selects several times",
            written_once,
        ),
    ),
    (
        ("pow",),
        Candidate(
            "GC119",
            2,
            "leaves the exponent as it is in the derivative of {op}",
            lambda e: e.right * e.x,
        ),
    ),
    (("matmul", "bmm"), Candidate("GC116", 2, FORGETS, lambda e: e.g)),
    (
        ("max", "amax"),
        Candidate(
            "GC123",
            2,
            "gives the gradient of {op} to the smallest element",
            partial(handed_to, np.min),
        ),
    ),
    (
        ("min", "amin"),
        Candidate(
            "GC123",
            2,
            "gives the gradient of {op} to the largest element",
            partial(handed_to, np.max),
        ),
    ),
    (
        ("clip", "hardtanh"),
        Candidate(
            "GC123", 2, "masks only at the bound min of {op}", lambda e: e.apply_rule(max=np.inf)
        ),
    ),
    (
        ("clip", "hardtanh"),
        Candidate(
            "GC123", 2, "masks only at the bound max of {op}", lambda e: e.apply_rule(min=-np.inf)
        ),
    ),
    *((("softmax",), Candidate("GC119", 2, says, value)) for says, value in SOFTMAX.items()),
    *(
        (("log_softmax",), Candidate("GC119", 2, says, value))
        for says, value in LOG_SOFTMAX.items()
    ),
)
"""Mistakes, by the operation at which they are tried."""

FAMILIES: Mapping[str, Sequence[Family]] = {
    **dict.fromkeys(("multiply", "divide"), (monomials, mistaken_sums)),
    **dict.fromkeys(("add", "subtract", "broadcast_to", "broadcast_view"), (mistaken_sums,)),
    **dict.fromkeys(("matmul", "bmm"), (products_of_matrices,)),
    **dict.fromkeys(("sum", "mean", "max", "min", "norm", "logsumexp"), (reductions,)),
}
"""The mistakes that are specific to an operation."""


def slips_in_operation(edge: Edge) -> Iterator[Candidate]:
    """Yield possible mistakes at an input of an operation."""
    of_name = FAMILIES.get(edge.step.name, ())
    for family in (if_alone, simple_slips, *of_name, one_thing_otherwise):
        yield from family(edge)


TRIED_FIRST: Mapping[int, Sequence[Family]] = {
    0: (slips_in_operation,),
    Edge.INCOMING: (derivative_alone,),
    Edge.WHOLE: (forgotten_factors,),
    Edge.COMPOSED: (elementwise,),
}
"""The mistakes that are tried first, by position; 0 means any input."""

WIDE: Mapping[int, Sequence[Family]] = {
    0: (other_places, other_cotangents),
    Edge.OUTPUT: (other_places, other_cotangents),
    Edge.INCOMING: (other_places, other_cotangents),
    Edge.WHOLE: (another_gradient,),
}
"""The mistakes that are tried if no other explains the gradient, by position."""


# --------------------------------------------------------------------------- values of forward
FACTORS = (2.0, 0.5, -1.0, 0.0, 10.0, 0.1)
"""Factors by which a value, or a constant in it, may be wrong in backward."""


def other_values(step: Step, arrays: Sequence[Array]) -> Iterator[Candidate]:
    """Values that a backward may compute in place of an operation's."""
    for cost, says, value in values_in_words(step, arrays):
        yield Candidate("GC116", cost, says, partial(constant, value))


def constant(value: Array, edge: Edge) -> Array:
    """A value that is the same on every walk."""
    return value


def values_in_words(step: Step, arrays: Sequence[Array]) -> Iterator[tuple[float, str, Array]]:
    """Values that a backward may compute in place of an operation's, each with how far-fetched it
    is.
    """
    output = step.values[0]
    for number in step.edges:
        if number >= 0 and arrays[number].shape == output.shape:
            yield 2.0, f"computes #{number} in place of {{out}}", arrays[number]
    constants = [v for v in step.arguments if isinstance(v, (int, float))]
    constants += [v for v in step.arguments if getattr(v, "size", 0) == 1]
    sign = {"add": 1.0, "subtract": -1.0}.get(step.name)
    for factor in FACTORS:
        if sign and -1 in step.edges and constants:
            changed = output + sign * (factor - 1) * float(np.asarray(constants[0]))
            yield 2.5, f"computes {{out}} with {factor:g} times the constant", changed
        elif factor:
            yield 3.0, f"computes {factor:g} times {{out}}", factor * output
    if sign and -1 not in step.edges and step.edges[0] != step.edges[1]:
        changed = output - 2 * sign * arrays[step.edges[1]]
        yield 2.5, f"computes {{out}} with the other sign of #{step.edges[1]}", changed
    yield 3.0, "computes the square of {out}", output * output
    if (output > 0).all():
        yield 3.0, "computes the square root of {out}", np.sqrt(output)
    for number, value in enumerate(arrays[: step.first]):
        if value.shape == output.shape and number not in step.edges:
            yield 4.0, f"computes with #{number} in place of {{out}}", value
