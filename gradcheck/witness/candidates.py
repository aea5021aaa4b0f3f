"""The mistakes that are tried on one input of one operation: what its backward might give in place of the right cotangent.

A candidate is a cotangent of the input's shape. Factors need none: the right one times a number.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gradcheck.witness.graph import Array, Step, wide


class Candidate(NamedTuple):
    """What a wrong backward would hand on."""

    code: str
    cost: int
    """How far-fetched it is."""
    says: str
    """What backward does, with {op}, {own}, {other} for the operation, this input and the other one."""
    value: Array


@dataclass
class Edge:
    """One input of one operation, and what flows through it, in double precision."""

    step: Step
    position: int
    number: int
    """Of the value that is the input."""
    given: Sequence[Array | None]
    """The cotangents of the outputs."""
    right: Array
    """The cotangent of the input."""
    arrays: Sequence[Array]
    """All values, by number."""
    siblings: Sequence[Array]
    """The cotangents of the other inputs."""

    @property
    def g(self) -> Array:
        """The cotangent of the one output."""
        return self.given[0]

    @property
    def x(self) -> Array:
        return wide(self.arrays[self.number])

    @property
    def y(self) -> Array:
        return wide(self.step.values[0])

    @property
    def other(self) -> Any:
        """The other one of two inputs; None if it is not known."""
        if len(self.step.edges) != 2:
            return None
        number = self.step.edges[1 - self.position]
        return wide(self.arrays[number]) if number >= 0 else self.step.operands().get("yx"[self.position])

    def fit(self, value: Any) -> Array | None:
        """A value of the output's shape summed over the axes along which the input was broadcast; None if none fits."""
        shape = self.right.shape
        value = value + 0 * self.g if np.shape(value) != np.shape(self.g) else value
        if value.shape == shape:
            return value
        extra = value.ndim - len(shape)
        if extra < 0 or any(n != m and n != 1 for n, m in zip(shape, value.shape[extra:], strict=True)):
            return None
        stretched = [k + extra for k, n in enumerate(shape) if n == 1 and value.shape[k + extra] != 1]
        return value.sum(axis=(*range(extra), *stretched), keepdims=True).reshape(shape)


# --------------------------------------------------------------------------- functions of the input x and the output y
FORMULAS: dict[str, Callable[[Array, Array], Any]] = {
    "y": lambda x, y: y,
    "1 − y": lambda x, y: 1 - y,
    "1 + y": lambda x, y: 1 + y,
    "y (1 − y)": lambda x, y: y * (1 - y),
    "1 − y²": lambda x, y: 1 - y * y,
    "1 + y²": lambda x, y: 1 + y * y,
    "y²": lambda x, y: y * y,
    "y³": lambda x, y: y * y * y,
    "1 / y": lambda x, y: 1 / y,
    "1 / y²": lambda x, y: 1 / (y * y),
    "x": lambda x, y: x,
    "x²": lambda x, y: x * x,
    "x³": lambda x, y: x * x * x,
    "1 / x": lambda x, y: 1 / x,
    "1 / x²": lambda x, y: 1 / (x * x),
    "y / x²": lambda x, y: y / (x * x),
    "y x": lambda x, y: y * x,
    "1 − x": lambda x, y: 1 - x,
    "x (1 − x)": lambda x, y: x * (1 - x),
    "1 − x²": lambda x, y: 1 - x * x,
    "1 / (1 + x)": lambda x, y: 1 / (1 + x),
    "1 / (1 + x²)": lambda x, y: 1 / (1 + x * x),
    "sin x": lambda x, y: np.sin(x),
    "cos x": lambda x, y: np.cos(x),
    "exp x": lambda x, y: np.exp(x),
    "exp(−x)": lambda x, y: np.exp(-x),
    "exp(−x²)": lambda x, y: np.exp(-x * x),
    "sigmoid x": lambda x, y: 1 / (1 + np.exp(-x)),
    "the sign of x": lambda x, y: np.sign(x),
    "1 where x > 0, else 0": lambda x, y: x > 0,
    "1 where x < 0, else 0": lambda x, y: x < 0,
}
"""Derivatives that are mistaken for one another."""

MOVING = {
    "cast", "reshape", "transpose", "broadcast_view", "broadcast_to", "clone", "tile", "flip", "roll", "tril", "triu",
    "concat", "stack", "split", "unbind", "getitem", "setitem", "pad", "as_strided", "add_at", "add_n",
}  # fmt: skip
"""Operations whose derivative does not depend on values."""

POWERS = (-2, -1, 0, 1, 2)
"""Of the two inputs of a product or quotient."""


def candidates(edge: Edge) -> Iterator[Candidate]:
    """All that are tried on an edge, of the input's shape."""
    families = [*FAMILIES.get(edge.step.name, ()), rearranged, exchanged]
    if len(edge.step.edges) == 1 and edge.step.name not in MOVING and edge.y.shape == edge.right.shape:
        families = [unchanged, elementwise, *families]
    for family in families:
        for found in family(edge):
            if np.shape(found.value) == edge.right.shape:
                yield found


def unchanged(edge: Edge) -> Iterator[Candidate]:
    flat = not bool(edge.right.any())  # no derivative goes through a rounding
    says = "passes the gradient straight through {op}" if flat else "passes the gradient through {op} unchanged"
    yield Candidate("GC122" if flat else "GC119", 1, says, edge.g)


def elementwise(edge: Edge) -> Iterator[Candidate]:
    for name, formula in FORMULAS.items():
        value = edge.g * formula(edge.x, edge.y)
        yield Candidate("GC119", 2, f"takes {name} for the derivative of y = {{op}}", value)


def monomials(edge: Edge) -> Iterator[Candidate]:
    """The cotangent times powers of both inputs."""
    x, other = edge.x, edge.other
    if other is None:
        return
    right = {("multiply", 0): (0, 1), ("multiply", 1): (0, 1), ("divide", 0): (0, -1), ("divide", 1): (-2, 1)}
    for a, b in itertools.product(POWERS, POWERS):
        expected = right[edge.step.name, edge.position]
        if (a, b) == expected:
            continue
        value = edge.fit(edge.g * x**a * other**b)
        if value is not None:
            cost = 1 if (a, b) == (0, 0) else 2 + abs(a - expected[0]) + abs(b - expected[1])
            says = f"multiplies by {product(a, b)} in place of {product(*expected)}"
            yield Candidate("GC116", cost, "forgets the factor {other}" if (a, b) == (0, 0) else says, value)


def product(a: int, b: int) -> str:
    """A product of powers of {own} and {other}, in words."""
    upper = [f"{name}{'²' if n == 2 else ''}" for name, n in (("{own}", a), ("{other}", b)) if n > 0]
    lower = [f"{name}{'²' if n == -2 else ''}" for name, n in (("{own}", a), ("{other}", b)) if n < 0]
    return (" · ".join(upper) or "1") + "".join(f" / {name}" for name in lower)


def unsummed(edge: Edge) -> Iterator[Candidate]:
    """One slice in place of the sum over the axes along which the input was broadcast, or a sum over others."""
    shape, full = edge.right.shape, edge.g
    if edge.step.name in ("multiply", "divide") and edge.other is not None and edge.position == 0:
        full = full * edge.other if edge.step.name == "multiply" else full / edge.other
    elif edge.step.name == "multiply" and edge.other is not None:
        full = full * edge.other
    elif edge.step.name == "subtract" and edge.position == 1:
        full = -full
    if full.size == edge.right.size or full.shape == shape:
        return
    for axes in itertools.chain.from_iterable(itertools.combinations(range(full.ndim), k) for k in range(1, full.ndim)):
        if all(full.shape[k] == 1 for k in axes):
            continue
        for says, value in (
            ("takes the first slice along axis {} in place of the sum over it", full.take(0, axes[0])),
            ("takes the last slice along axis {} in place of the sum over it", full.take(-1, axes[0])),
            ("sums over axis {} instead of the axes along which {{own}} was broadcast", full.sum(axes)),
        ):
            if value.size == edge.right.size:
                yield Candidate("GC106", 2, says.format(", ".join(map(str, axes))), value.reshape(shape))


def products_of_matrices(edge: Edge) -> Iterator[Candidate]:
    """All products of two of the cotangent, the other operand and this one, transposed or not."""

    def both(value: Array, name: str) -> Iterator[tuple[Array, str]]:
        yield value, name
        if value.ndim > 1:
            yield value.swapaxes(-1, -2), f"{name}ᵀ"

    g = edge.g
    for value, name in ((edge.other, "{other}"), (edge.x, "{own}")):
        if value is None or not np.ndim(value) or not g.ndim:
            continue
        for (a, left), (b, right) in itertools.product(both(g, "g"), both(value, name)):
            for first, second, text in ((a, b, f"{left} @ {right}"), (b, a, f"{right} @ {left}")):
                if min(first.ndim, second.ndim) > 1 and first.shape[-1] == second.shape[-2]:
                    try:
                        yield Candidate("GC116", 2, f"takes {text} for the gradient of {{own}}", first @ second)
                    except ValueError:
                        continue


def softmax(edge: Edge) -> Iterator[Candidate]:
    axis = edge.step.operands().get("axis", -1)
    logarithmic = edge.step.name == "log_softmax"
    g, p = edge.g, np.exp(edge.y) if logarithmic else edge.y
    for says, value in (
        ("leaves out the row sum of softmax: y g", p * g),
        ("takes the row sum of g, not of y g, in softmax", p * (g - g.sum(axis, keepdims=True))),
        ("takes the row mean of y g, not its sum, in softmax", p * (g - (p * g).mean(axis, keepdims=True))),
        ("leaves out the factor y of softmax", g - (p * g).sum(axis, keepdims=True)),
        ("takes y (1 − y) for the derivative of softmax: its diagonal alone", p * (1 - p) * g),
        ("subtracts the row sum without y in softmax", p * g - (p * g).sum(axis, keepdims=True)),
        ("subtracts the row sum without the softmax", g - g.sum(axis, keepdims=True)),
        ("takes the row mean of g, not its sum, in log_softmax", g - p * g.mean(axis, keepdims=True)),
        ("takes y g, not y times the row sum of g, in log_softmax", g - p * g),
        ("takes g − y, without the row sum, in log_softmax", g - p),
        ("multiplies by the logarithm in place of the softmax", g - edge.y * g.sum(axis, keepdims=True)),
        (
            "sums over the wrong axis in softmax",
            p * (g - (p * g).sum(0 if axis in (-1, p.ndim - 1) else -1, keepdims=True)),
        ),
    ):
        yield Candidate("GC119", 2, says, value)


def masked(edge: Edge) -> Iterator[Candidate]:
    """A mask ignored, or the mask of the other branch."""
    g, named = edge.g, edge.step.operands()
    spread = edge.fit(g)
    if spread is not None:
        yield Candidate("GC123", 1, "ignores the mask of {op}", spread)
    if "condition" in named:
        for says, mask in (("takes the mask of the other branch of {op}", edge.position == 2),):
            value = edge.fit(g * (named["condition"] == mask))
            if value is not None:
                yield Candidate("GC123", 2, says, value)
    for bound, inside in (("min", edge.x >= named.get("min", 0) if named.get("min") is not None else None),
                          ("max", edge.x <= named.get("max", 0) if named.get("max") is not None else None)):  # fmt: skip
        if inside is not None:
            yield Candidate("GC123", 2, f"masks at the bound {bound} of {{op}} alone", g * inside)
            yield Candidate("GC123", 2, f"masks by the wrong side of the bound {bound} of {{op}}", g * ~inside)
    other = edge.other
    if other is not None and edge.step.name in ("maximum", "minimum", "fmax", "fmin"):
        for says, mask in (("takes the mask of the other input", edge.x < other), ("takes the mask", edge.x > other)):
            value = edge.fit(g * (mask if "max" in edge.step.name else ~mask))
            if value is not None:
                yield Candidate("GC123", 2, f"{says} of {{op}}", value)


def spread_out(edge: Edge) -> Iterator[Candidate]:
    """The cotangent of a reduction handed to all elements, or along another axis."""
    x, g = edge.x, edge.g
    if g.size == edge.right.size:
        return
    for axis in (None, *range(x.ndim)):
        shape = [1] * x.ndim if axis is None else [1 if k == axis else n for k, n in enumerate(x.shape)]
        if int(np.prod(shape)) == g.size:
            value = g.reshape(shape) + 0 * x
            yield Candidate("GC119", 2, "hands the gradient of {op} to all elements alike", value)
            yield Candidate("GC119", 3, "takes the derivative of {op} for x", value * x)
            yield Candidate("GC119", 3, "takes the derivative of {op} for its sign", value * np.sign(x))


def rearranged(edge: Edge) -> Iterator[Candidate]:
    """The right cotangent transposed, or the operation itself in place of its inverse."""
    right = edge.right
    if right.ndim > 1 and right.shape[-1] == right.shape[-2]:
        yield Candidate("GC103", 3, "hands on the transpose of the gradient of {own}", right.swapaxes(-1, -2))
    if edge.step.name in ("transpose", "flip", "roll", "cumsum", "reshape"):
        again = edge.step.again(edge.g)
        if again is not None:
            yield Candidate("GC104", 2, "applies {op} itself, not its inverse, to the gradient", again)
        if edge.g.size == right.size:
            yield Candidate("GC104", 2, "leaves out the inverse of {op}", edge.g.reshape(right.shape))
    if edge.step.name == "getitem":
        with_repeats = np.zeros_like(right)
        index = edge.step.operands().get("index")
        try:
            with_repeats[index] = edge.g
        except (IndexError, ValueError, TypeError):
            return
        yield Candidate(
            "GC104", 2, "writes what {op} has selected several times once, in place of adding", with_repeats
        )


def exchanged(edge: Edge) -> Iterator[Candidate]:
    """The cotangent of another input of the operation, or of its outputs in another order."""
    for sibling in edge.siblings:
        yield Candidate("GC105", 3, "exchanges the gradients of the inputs of {op}", sibling)
    if len(edge.given) > 1:
        for a, b in itertools.combinations(range(len(edge.given)), 2):
            order = list(edge.given)
            order[a], order[b] = order[b], order[a]
            if np.shape(order[a]) == np.shape(order[b]):
                value = edge.step.replaced(edge.position, order, {})
                yield Candidate("GC105", 2, f"exchanges the parts {a} and {b} of {{op}}", value)


Family = Callable[[Edge], Iterator[Candidate]]

FAMILIES: Mapping[str, Sequence[Family]] = {
    "multiply": (monomials, unsummed),
    "divide": (monomials, unsummed),
    **dict.fromkeys(("add", "subtract", "broadcast_to", "broadcast_view", "tile"), (unsummed,)),
    "matmul": (products_of_matrices,),
    **dict.fromkeys(("softmax", "log_softmax"), (softmax,)),
    **dict.fromkeys(
        ("where", "relu", "leaky_relu", "hardtanh", "clip", "maximum", "minimum", "fmax", "fmin", "tril", "triu"),
        (masked,),
    ),
    **dict.fromkeys(("sum", "mean", "max", "min", "norm", "logsumexp"), (spread_out,)),
}
"""The mistakes that belong to an operation."""


def substitutions(edge: Edge, pool: Mapping[str, Array]) -> Iterator[Candidate]:
    """The operation's own rule, reading another value of the same shape in place of one that it saves.

    `pool` are values by what to call them.
    """
    read = edge.step.operands()
    for name, present in read.items():
        if not hasattr(present, "dtype") or isinstance(present, np.dtype) or present.dtype.kind not in "fc":
            continue
        for called, value in pool.items():
            if value.shape == present.shape and value.dtype.kind == present.dtype.kind and value is not present:
                try:
                    found = edge.step.replaced(edge.position, edge.given, {name: wide(value)})
                except (KeyError, ValueError, TypeError):
                    continue
                yield Candidate("GC116", 4, f"reads {called} in place of another value in the rule of {{op}}", found)
