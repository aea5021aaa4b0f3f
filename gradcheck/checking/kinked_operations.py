"""Where an operation has no derivative at this point: a kink, a tie or a jump, and the inputs that feed it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.backends.bundled import Step
from gradcheck.checking.arrays import EPSILON, FEW, axes_of, wide
from gradcheck.checking.graph import Graph, dead_steps


class Kink(NamedTuple):
    """An operation that is at a kink or a jump for some of its elements."""

    name: str
    """Of the operation."""
    inputs: list[Array]
    """Per input of the call, which of its elements those depend on."""


class Arguments(NamedTuple):
    """What an operation read: arrays and numbers by position, units of rounding of each, other arguments by name."""

    values: Sequence[Any]
    units: Sequence[Any]
    named: dict[str, Any]

    def near(self, *places: Any) -> list[Array]:
        """Which elements of the first argument lie at one of some places, which are exact."""
        return [sum((abs(self.values[0] - p) <= FEW * self.units[0] for p in places), self.values[0] != self.values[0])]

    def axes(self) -> tuple[int, ...] | None:
        """The axes of a reduction; None for all."""
        return axes_of(self.named.get("axis"))


KinkRule = Callable[[Arguments], Sequence[Any]]
"""Gives, per argument, which of its elements are at a kink; None for none of them."""


def where_equal(a: Arguments) -> Sequence[Any]:
    """Two arguments that are equal."""
    equal = abs(a.values[0] - a.values[1]) <= FEW * (a.units[0] + a.units[1])
    return [equal, equal]


def where_multiples(a: Arguments) -> Sequence[Any]:
    """A first argument that is a multiple of the second, where that is known."""
    x, y = a.values[:2]
    return [abs(x - np.round(x / y) * y) <= FEW * (a.units[0] + a.units[1])] * 2 if y is not None else []


def tied(a: Arguments, extreme: str) -> Sequence[Any]:
    """Several elements that are the extreme, "max" or "min"."""
    x, axes = a.values[0], a.axes()
    near = abs(x - getattr(x, extreme)(axis=axes, keepdims=True)) <= FEW * a.units[0]
    return [near & (near.sum(axis=axes, keepdims=True) > 1)]


def tied_neighbours(a: Arguments) -> Sequence[Any]:
    """Elements that are equal to the next one in order along the axis."""
    x, axis = np.atleast_1d(a.values[0]), a.named.get("axis", -1)
    order, places = np.argsort(x, axis), np.arange(x.shape[axis])
    gaps = np.diff(np.take_along_axis(x, order, axis), axis=axis, prepend=-np.inf, append=np.inf)
    close = gaps <= FEW * float(np.max(a.units[0], initial=0))
    either = close.take(places, axis) | close.take(places + 1, axis)
    return [np.take_along_axis(either, np.argsort(order, axis), axis).reshape(np.shape(a.values[0]))]


def among(a: Arguments) -> Sequence[Any]:
    """Values that are equal to one of a sorted sequence."""
    sequence, values = a.values[:2]
    equal = abs(values[..., None] - sequence) <= FEW * float(np.max(a.units[1], initial=0))
    return (
        [equal.reshape(-1, sequence.size).any(0).reshape(sequence.shape), equal.any(-1)] if sequence.ndim == 1 else []
    )


KINKED: dict[str, KinkRule] = {
    **dict.fromkeys(("relu", "leaky_relu", "elu", "abs", "sign", "sqrt"), lambda a: a.near(0)),
    **dict.fromkeys(("bool", "nonzero", "count_nonzero", "any", "all"), lambda a: a.near(0)),
    **dict.fromkeys(("floor", "ceil", "trunc", "cast to integers"), lambda a: a.near(np.round(a.values[0]))),
    "round": lambda a: a.near(np.floor(a.values[0]) + 0.5),
    **dict.fromkeys(("clip", "hardtanh"), lambda a: a.near(*(a.named[k] for k in a.named if k in ("min", "max")))),
    "softplus": lambda a: a.near(a.named["threshold"] / a.named["beta"]),
    "norm": lambda a: [abs(a.values[0]).max(axis=a.axes(), keepdims=True, initial=0) + 0 * abs(a.values[0]) == 0],
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), where_equal),
    **dict.fromkeys(("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal"), where_equal),
    **dict.fromkeys(("isclose", "allclose", "equal_all"), where_equal),
    **dict.fromkeys(("remainder", "floor_divide"), where_multiples),
    **dict.fromkeys(("max", "argmax"), lambda a: tied(a, "max")),
    **dict.fromkeys(("min", "argmin"), lambda a: tied(a, "min")),
    "argsort": tied_neighbours,
    "searchsorted": among,
}
"""The operations that can have a kink or a jump, and where they have one."""


def kinks(graph: Graph) -> list[Kink]:
    """The operations at a kink, a tie or a jump, in order of execution."""
    random, found = np.random.default_rng(0), []
    for step in kinked(graph):
        starts: dict[int, Array] = {}
        for edge, mask in zip(step.edges, masks(graph, step), strict=False):
            if edge >= 0 and mask is not None and bool(mask.any()):
                shape = graph.recording.arrays[edge].shape
                mask = mask.any(axis=tuple(range(mask.ndim - len(shape))))
                mask = mask.any(axis=tuple(k for k, n in enumerate(shape) if n == 1), keepdims=True)
                starts[edge] = random.uniform(1, 2, shape) * mask
        if starts:
            found.append(Kink(step.name, [g != 0 for g in graph.pulled(starts)]))
    return found


def kinked(graph: Graph) -> list[Any]:
    """Operations and decisions that can have a kink, in order of execution, those left out whose output cancels."""
    recording, random = graph.recording, np.random.default_rng(0)
    steps = [step for step in recording.steps if step.name in KINKED]
    if steps:
        dead = dead_steps(graph, [random.standard_normal(out.shape) for out in recording.outputs])
        steps = [step for step in steps if step.first not in dead]
    keyed: list[tuple[int, int, Any]] = [(step.first, 1, step) for step in steps]
    keyed += [(decision.at, 0, decision) for decision in recording.decisions if decision.name in KINKED]
    return [step for _, _, step in sorted(keyed, key=lambda entry: entry[:2])]


def masks(graph: Graph, step: Any) -> Sequence[Any]:
    """Per argument of an operation or decision, which of its elements are at a kink."""
    arrays, units = graph.recording.arrays, []
    if isinstance(step, Step):
        named = {name: value for name, value in step.operands().items() if value is not None}
        values: list[Any] = [arrays[e] if e >= 0 else named.get("xy"[k]) for k, e in enumerate(step.edges[:2])]
    else:
        values, named = list(step.inputs), dict(zip(step.arguments, step.inputs, strict=False))
    values = [wide(v) if getattr(getattr(v, "dtype", None), "name", "") in EPSILON else v for v in values]
    for edge, value in zip(step.edges, values, strict=False):
        maker = graph.maker(edge) if edge >= 0 else None
        cancelled = maker.edges if maker is not None and maker.name in ("add", "subtract") else ()
        size = 0.0 if edge < 0 else abs(value) + sum(abs(wide(arrays[e])) for e in cancelled if e >= 0)
        units.append(size * EPSILON.get(arrays[edge].dtype.name, 0.0))
    with np.errstate(all="ignore"):
        return KINKED[step.name](Arguments(values, units, named))
