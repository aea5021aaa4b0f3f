"""The mistakes that are tried on one input of an operation: what a backward may hand on in place of its cotangent.

A candidate has the input's shape. The right cotangent, and each candidate, may have a factor besides.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.causes.edges import Edge
from gradcheck.checking.arrays import wide


class Candidate(NamedTuple):
    """What a wrong backward would hand on."""

    code: str
    cost: float
    """How far-fetched it is."""
    says: str
    """What backward does, with {op}, {own}, {other} for the operation, this input and the other one, #7 for value 7."""
    value: Array


Family = Callable[[Edge], Iterator[Candidate]]


def tried(edge: Edge) -> Iterator[Candidate]:
    """All candidates of an edge, in the same order for every cotangent."""
    families: list[Family] = [factor_forgotten] if edge.position == Edge.WHOLE else []
    if edge.alone and edge.y.shape == edge.right.shape and (edge.read or not edge.right.any()):
        families += [unchanged, elementwise]  # else the derivative is the same at all points
    if edge.position >= 0:
        families += [*FAMILIES.get(edge.step.name, ()), inverse, exchanged, sisters, substituted]
    for family in families:
        yield from (found for found in family(edge) if np.shape(found.value) == edge.right.shape)


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

FORGETS = "forgets the factor {other}"

SOFTMAX: dict[str, dict[str, Callable[..., Array]]] = {
    "softmax": {
        "takes the row sum of g, not of y g,": lambda g, y, row: y * (g - row(g)),
        "takes the row mean of y g, not its sum,": lambda g, y, row: y * (g - row(y * g) / row(0 * g + 1)),
        "leaves out the factor y": lambda g, y, row: g - row(y * g),
        "subtracts the row sum without the factor y": lambda g, y, row: y * g - row(y * g),
    },
    "log_softmax": {
        "subtracts the row sum without the softmax": lambda g, y, row: g - row(g),
        "takes the row mean of g, not its sum,": lambda g, y, row: g - np.exp(y) * row(g) / row(0 * g + 1),
        "leaves out the row sum of g": lambda g, y, row: g - np.exp(y) * g,
        "leaves out g": lambda g, y, row: -np.exp(y) * row(g),
        "multiplies by the logarithm in place of the softmax": lambda g, y, row: g - y * row(g),
    },
}
"""Of the output y, the cotangent g, and what sums over a row."""

RIGHT_SOFTMAX: dict[str, Callable[..., Array]] = {
    "softmax": lambda g, y, row: y * (g - row(y * g)), "log_softmax": lambda g, y, row: g - np.exp(y) * row(g),
}  # fmt: skip
"""Their own rules."""

MONOMIALS = {
    ("multiply", 0): (1, 0, 1), ("multiply", 1): (1, 0, 1), ("divide", 0): (1, 0, -1), ("divide", 1): (-1, -2, 1),
    ("subtract", 1): (-1, 0, 0),
}  # fmt: skip
"""By operation and position: sign, power of this input and power of the other one in the derivative; 1 elsewhere."""


def unchanged(edge: Edge) -> Iterator[Candidate]:
    """The cotangent of the output."""
    flat = not bool(edge.right.any())  # no derivative goes through a rounding
    says = "passes the gradient straight through {op}" if flat else "passes the gradient through {op} unchanged"
    yield Candidate("GC122" if flat else "GC119", 1, says, edge.g)


def elementwise(edge: Edge) -> Iterator[Candidate]:
    """Another derivative."""
    for (name, formula), (letter, v) in itertools.product(DERIVATIVES.items(), (("y", edge.y), ("{own}", edge.x))):
        says, value = name.format(letter), formula(v)
        for words, factor in ((says, value), (f"1 / {bracketed(says)}", 1 / value)):
            yield Candidate("GC119", 2, f"takes {words} for the derivative of y = {{op}}", edge.g * factor)


def bracketed(formula: str) -> str:
    """A formula as a factor."""
    return f"({formula})" if " " in formula else formula


def powers(edge: Edge, a: int, b: int) -> Array:
    """The cotangent of the output times powers of this input and of the other one, in the output's shape."""
    sign, *_ = MONOMIALS.get((edge.step.name, edge.position), (1,))
    return sign * edge.g * edge.x**a * ((np.asarray(edge.other) + 0.0) ** b if b else 1)


def monomials(edge: Edge) -> Iterator[Candidate]:
    """The cotangent times other powers of both inputs."""
    _, *right = MONOMIALS[edge.step.name, edge.position]
    forgets = "forgets to divide by {other}" if (edge.step.name, edge.position) == ("divide", 0) else FORGETS
    for a, b in itertools.product(range(-2, 3), repeat=2) if edge.other is not None else ():
        if [a, b] != right:
            further = 0 if (a, b) == (right[1], right[0]) else 1  # one operand for the other is a slip
            cost = 1 + further + abs(a - right[0]) + abs(b - right[1]) if a or b else 1
            says = f"multiplies by {product(a, b)} in place of {product(*right)}" if a or b else forgets
            yield Candidate("GC116", cost, says, edge.fit(powers(edge, a, b)))


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
    for chosen in (c for k in axes for c in itertools.combinations(axes, k + 1)):
        along = ", ".join(map(str, chosen))
        says = f"sums over axis {along} in place of the axes along which {{own}} was broadcast"
        found.append((says, full.sum(chosen)))
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
    yield Candidate("GC116", 2, FORGETS, edge.g)
    for name, value in products(("dy", edge.g), [("{other}", edge.other), ("{own}", edge.x)]):
        yield Candidate("GC116", 2, f"takes {name} for the gradient of {{own}}", value)
        if value.shape[1:] == edge.right.shape:
            yield Candidate("GC106", 2, f"takes the first of {name} in place of their sum over the batch", value[0])


def softmax(edge: Edge) -> Iterator[Candidate]:
    """Softmax and its logarithm without a part of their rule, or along another axis."""
    axis = edge.step.operands().get("axis", -1) % max(edge.y.ndim, 1)

    def over(axis: int) -> Callable[[Array], Array]:
        return lambda value: value.sum(axis, keepdims=True)

    for says, formula in SOFTMAX[edge.step.name].items():
        yield Candidate("GC119", 2, f"{says} in {{op}}", formula(edge.g, edge.y, over(axis)))
    for other in (k for k in range(edge.y.ndim) if k != axis):
        value = RIGHT_SOFTMAX[edge.step.name](edge.g, edge.y, over(other))
        yield Candidate("GC119", 2, f"sums over axis {other} in place of axis {axis} in {{op}}", value)


def masked(edge: Edge) -> Iterator[Candidate]:
    """A mask ignored, a part of one, or the mask of the other branch."""
    named = edge.step.operands()
    yield Candidate("GC123", 0.5, "ignores the mask of {op}", edge.fit(edge.g))
    yield Candidate("GC123", 2, "takes the opposite of the mask of {op}", edge.fit(edge.g) - edge.right)
    for bound, inside in (("min", np.greater_equal), ("max", np.less_equal)):
        if named.get(bound) is not None:
            says = f"masks at the bound {bound} of {{op}} alone"
            yield Candidate("GC123", 2, says, edge.g * inside(edge.x, named[bound]))


def spread_out(edge: Edge) -> Iterator[Candidate]:
    """The cotangent of a reduction handed to all elements, or along another axis."""
    x, g = edge.x, edge.g
    shapes = [[1 if axis in (k, None) else n for k, n in enumerate(x.shape)] for axis in (None, *range(x.ndim))]
    for value in (g.reshape(shape) + 0 * x for shape in shapes if int(np.prod(shape)) == g.size < x.size):
        yield Candidate("GC119", 2, "hands the gradient of {op} to all elements alike", value)
        for name, of in (("{own}", x), ("the sign of {own}", np.sign(x)), ("exp({own})", np.exp(x))):
            yield Candidate("GC119", 3, f"takes {name} for the derivative of {{op}}", value * of)


def inverse(edge: Edge) -> Iterator[Candidate]:
    """An operation that moves elements in place of its inverse, or neither."""
    right, g, name = edge.right, edge.g, edge.step.name
    if name in ("transpose", "flip", "roll", "cumsum"):
        again = edge.step.again(g)
        back = "a sum from the other end" if name == "cumsum" else "its inverse"
        if again is not None:
            yield Candidate("GC104", 2, f"applies {{op}} itself, not {back}, to the gradient", again)
        if g.size == right.size:
            says = f"hands on the gradient of {{op}} as it is, without {back}"
            yield Candidate("GC104", 2, says, g.reshape(right.shape))
    if name == "getitem":
        once = np.zeros_like(right)
        try:
            once[edge.step.operands().get("index")] = g
        except (IndexError, ValueError, TypeError):
            return
        yield Candidate("GC104", 2, "writes what {op} selects several times only once", once)


def exchanged(edge: Edge) -> Iterator[Candidate]:
    """The cotangent of another input of the operation, or of its outputs in another order."""
    for sibling in edge.siblings:
        yield Candidate("GC105", 4, "gives {own} the gradient of another input of {op}", sibling)
    for a, b in itertools.combinations(range(len(edge.given)), 2):
        order = list(edge.given)
        order[a], order[b] = order[b], order[a]
        if np.shape(order[a]) == np.shape(order[b]):
            value = edge.step.replaced(edge.position, order, {})
            yield Candidate("GC105", 2, f"exchanges the parts {a} and {b} of {{op}}", value)


def sisters(edge: Edge) -> Iterator[Candidate]:
    """The cotangent of another operation of the same kind: a line that was copied from that one's."""
    for number, g in edge.sisters.items() if len(edge.given) == 1 else ():
        if number != edge.step.first and g.shape == edge.g.shape and g.dtype == edge.g.dtype:
            says = f"takes the gradient of #{number} for that of {{out}} in {{op}}"
            yield Candidate("GC116", 5, says, edge.step.replaced(edge.position, [g], {}))


def factor_forgotten(edge: Edge) -> Iterator[Candidate]:
    """The whole gradient of an input without a factor that all of it has."""
    value = wide(edge.arrays[edge.output])
    for says, found in (("to divide", edge.right * value), ("to multiply", edge.right / value)):
        yield Candidate("GC116", 4.5, f"forgets {says} the gradient of {{own}} by #{edge.output}", found)


def substituted(edge: Edge) -> Iterator[Candidate]:
    """The operation's own rule, reading another value of the same shape in place of one that it saves."""
    read = edge.read
    if len(edge.step.edges) == 1 and "out" in read:
        read["x"] = edge.x  # what the output was computed from: without an epsilon, say
    meant = {name: f"#{number}" for name, number in zip("xy", edge.step.edges, strict=False) if number >= 0}
    meant["out"] = f"#{edge.step.first}"
    for name, present in read.items():
        for number, value in enumerate(edge.arrays):
            if value.shape == present.shape and value.dtype.kind == present.dtype.kind and value is not present:
                try:
                    found = edge.step.replaced(edge.position, edge.given, {name: wide(value)})
                except ValueError:  # no matrix that has such a factor, say
                    continue
                says = f"reads #{number} in place of {meant.get(name, 'another value')} in the rule of {{op}}"
                yield Candidate("GC116", 4, says, found)


FAMILIES: Mapping[str, Sequence[Family]] = {
    **dict.fromkeys(("multiply", "divide"), (monomials, unsummed)),
    **dict.fromkeys(("add", "subtract", "broadcast_to", "broadcast_view"), (unsummed,)),
    **dict.fromkeys(("matmul", "bmm"), (products_of_matrices,)),
    **dict.fromkeys(SOFTMAX, (softmax,)),
    **dict.fromkeys(("where", "clip", "maximum", "minimum", "fmax", "fmin", "hardtanh", "tril", "triu"), (masked,)),
    **dict.fromkeys(("relu", "leaky_relu"), (masked,)),
    **dict.fromkeys(("sum", "mean", "max", "min", "norm", "logsumexp"), (spread_out,)),
}
"""The mistakes that belong to an operation."""
