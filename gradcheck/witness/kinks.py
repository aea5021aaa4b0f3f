"""Where an operation has no derivative at this point: a kink, a tie or a jump, and the inputs that feed it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcheck.witness.graph import EPSILON, Array, Decision, Graph, Operation, Step, wide

FEW = 4
"""Units of rounding within which a value counts as being at a kink: one apiece for the value, for what it is compared
with, and for the two that a sum was added up from."""


class Kink(NamedTuple):
    """An operation that is at a kink or a jump for some of its elements."""

    operation: Operation
    inputs: list[Array]
    """Per input of the call, which of its elements those depend on."""


class Arguments(NamedTuple):
    """What an operation read: arrays and numbers by position, their units of rounding, other arguments by name."""

    values: Sequence[Any]
    units: Sequence[Any]
    named: dict[str, Any]

    def near(self, k: int, place: Any) -> Array:
        """Which elements of an argument lie at `place`, which is exact."""
        return abs(self.values[k] - place) <= FEW * self.units[k]


Rule = Callable[[Arguments], Sequence[Any]]
"""Gives, per argument, which of its elements are at a kink; None for none of them."""


def at(*places: float) -> Rule:
    """Kinks at fixed places."""
    return lambda a: [np.logical_or.reduce([a.near(0, place) for place in places])]


def at_bounds(a: Arguments) -> Sequence[Any]:
    """Kinks at the arguments `min` and `max`."""
    places = [a.named[name] for name in ("min", "max") if a.named.get(name) is not None]
    return [sum((a.near(0, place) for place in places), a.values[0] != a.values[0])]


def at_whole_numbers(a: Arguments) -> Sequence[Any]:
    """Jumps at the integers."""
    return [a.near(0, np.round(a.values[0]))]


def at_halves(a: Arguments) -> Sequence[Any]:
    """Jumps halfway between numbers of so many decimals."""
    scaled = a.values[0] * 10.0 ** a.named.get("decimals", 0)
    return [abs(abs(scaled - np.trunc(scaled)) - 0.5) <= FEW * a.units[0] * 10.0 ** a.named.get("decimals", 0)]


def where_equal(a: Arguments) -> Sequence[Any]:
    """Two arguments that are equal."""
    x, y = a.values[:2]
    equal = abs(x - y) <= FEW * (a.units[0] + a.units[1])
    return [equal, equal]


def where_multiples(a: Arguments) -> Sequence[Any]:
    """A remainder or a quotient where it jumps."""
    x, y = a.values[:2]
    jumps = abs(x - np.round(x / y) * y) <= FEW * (a.units[0] + a.units[1])
    return [jumps, jumps]


def tied_extremes(a: Arguments) -> Sequence[Any]:
    """Several elements that are the extreme: the output, if it is given, else the largest or the smallest."""
    x, axis = a.values[0], a.named.get("axis")
    axes = None if axis is None or axis == [] else tuple(np.atleast_1d(axis).tolist())
    found = x != x
    for extreme in (x.max(axis=axes, keepdims=True), x.min(axis=axes, keepdims=True)):
        out = a.named.get("out")
        if out is not None and bool((out.reshape(extreme.shape) != extreme).any()):
            continue
        near = abs(x - extreme) <= FEW * a.units[0]
        found = found | (near & (near.sum(axis=axes, keepdims=True) > 1))
    return [found]


def tied_neighbours(a: Arguments) -> Sequence[Any]:
    """Elements that are equal to the next one in order along the axis."""
    x, axis = a.values[0], a.named.get("axis", -1)
    if not x.ndim or x.shape[axis] < 2:
        return [x != x]
    order = np.argsort(x, axis)
    ordered, units = np.take_along_axis(x, order, axis), np.take_along_axis(a.units[0] + x * 0, order, axis)
    tied = np.diff(ordered, axis=axis) <= FEW * np.delete(units, 0, axis)
    none = np.zeros_like(np.take(ordered, [0], axis), dtype=bool)
    found = np.zeros(x.shape, dtype=bool)
    np.put_along_axis(found, order, np.concatenate([tied, none], axis) | np.concatenate([none, tied], axis), axis)
    return [found]


def among(a: Arguments) -> Sequence[Any]:
    """Values that are equal to one of a sorted sequence."""
    sequence, values = a.values[:2]
    if sequence.ndim != 1:
        return [None, None]
    equal = abs(values[..., None] - sequence) <= FEW * (a.units[1] + sequence * 0).max(initial=0)
    return [equal.reshape(-1, sequence.size).any(0), equal.any(-1)]


def zero_norm(a: Arguments) -> Sequence[Any]:
    """Vectors of length 0."""
    axis = a.named.get("axis")
    axes = None if axis is None or axis == [] else tuple(np.atleast_1d(axis).tolist())
    return [abs(a.values[0]).max(axis=axes, keepdims=True, initial=0) + 0 * abs(a.values[0]) == 0]


KINKED: dict[str, Rule] = {
    **dict.fromkeys(("relu", "leaky_relu", "elu", "abs", "sign"), at(0)),
    **dict.fromkeys(("floor", "ceil", "trunc", "cast"), at_whole_numbers),
    "round": at_halves,
    **dict.fromkeys(("clip", "hardtanh"), at_bounds),
    "softplus": lambda a: [abs(a.values[0] * a.named["beta"] - a.named["threshold"]) <= FEW * a.units[0]],
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), where_equal),
    **dict.fromkeys(("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal"), where_equal),
    **dict.fromkeys(("isclose", "allclose", "equal_all"), where_equal),
    **dict.fromkeys(("remainder", "floor_divide"), where_multiples),
    **dict.fromkeys(("max", "min", "argmax", "argmin"), tied_extremes),
    "argsort": tied_neighbours,
    "searchsorted": among,
    **dict.fromkeys(("bool", "nonzero", "count_nonzero", "any", "all"), at(0)),
}
"""The operations that can have a kink or a jump, and where they have one."""

AT_ZERO: dict[str, Rule] = {"sqrt": at(0), "norm": zero_norm}
"""Those that are smooth except at the edge of their domain, where a kink may arise: √(x²)."""


def kinks(graph: Graph) -> list[Kink]:
    """The operations at a kink, a tie or a jump, in order of execution."""
    random = np.random.default_rng(0)
    found = []
    for step in in_order(graph):
        rule = KINKED.get(step.name) or AT_ZERO.get(step.name)
        if rule is None or not can_jump(graph, step):
            continue
        starts: dict[int, Array] = {}
        with np.errstate(all="ignore"):
            masks = rule(arguments(graph, step))
        for edge, mask in zip(step.edges, masks, strict=False):
            if edge >= 0 and mask is not None and bool(mask.any()):
                shape = graph.recording.arrays[edge].shape
                starts[edge] = random.uniform(1, 2, shape) * unbroadcast(mask, shape)
        if starts:
            pulled = graph.filled(graph.pulled(starts))
            found.append(Kink(graph.operation(step), [g != 0 for g in pulled]))
    return found


def smooth(graph: Graph) -> bool:
    """Whether no operation on the way can have a kink or a jump."""
    return not any(
        (step.name in KINKED and can_jump(graph, step)) or (step.name in AT_ZERO and at_zero(graph, step))
        for step in in_order(graph)
    )


def can_jump(graph: Graph, step: Step | Decision) -> bool:
    """All do but a cast that is recorded, which is to a floating dtype."""
    return step.name != "cast" or not hasattr(step, "values")


def at_zero(graph: Graph, step: Step | Decision) -> bool:
    """Whether an operation of `AT_ZERO` is there."""
    return any(bool(mask.any()) for mask in AT_ZERO[step.name](arguments(graph, step)))


def in_order(graph: Graph) -> list[Any]:
    """Operations and decisions, in order of execution."""
    recording = graph.recording
    keyed = [(step.first, 1, step) for step in recording.steps] + [(d.at, 0, d) for d in recording.decisions]
    return [step for _, _, step in sorted(keyed, key=lambda entry: entry[:2])]


def arguments(graph: Graph, step: Any) -> Arguments:
    """What an operation read, by position, with units of rounding, and by name."""
    arrays = graph.recording.arrays
    named = step.operands() if hasattr(step, "operands") else {}
    if hasattr(step, "inputs"):
        values, named = list(step.inputs), dict(zip(step.arguments, step.inputs, strict=False))
    else:
        values = [arrays[e] if e >= 0 else named.get("xy"[k]) for k, e in enumerate(step.edges[:2])]
    values = [wide(v) if hasattr(v, "dtype") and v.dtype.name in EPSILON else v for v in values]
    units = []
    for edge, value in zip(step.edges, values, strict=False):
        if edge < 0:
            units.append(0.0)
            continue
        size = abs(value)
        maker = graph.maker(edge)
        if maker is not None and maker.name in ("add", "subtract"):  # the sum may have cancelled
            size = size + sum(abs(arrays[e]) for e in maker.edges if e >= 0)
        units.append(EPSILON[arrays[edge].dtype.name] * size)
    return Arguments(values, units, named)


def unbroadcast(mask: Array, shape: tuple[int, ...]) -> Array:
    """Which elements of an argument of `shape` are marked in the shape that it was broadcast to."""
    mask = mask.any(axis=tuple(range(mask.ndim - len(shape))))
    stretched = tuple(k for k, n in enumerate(shape) if n == 1 and mask.shape[k] != 1)
    return mask.any(axis=stretched, keepdims=True) if stretched else mask
