"""One recorded operation of the bundled engine, and the engine's own rule to pull a cotangent back through it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from gradcheck.backends.base import Array, Spot
from pylayer.array import XP
from pylayer.op_node import OpNode, SeveralOutputs, unbroadcast
from pylayer.vjp import Vjp, raw_ops

NARROW = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}
"""The dtypes in which nothing is pulled back, and what is taken for them."""


@dataclass(slots=True, eq=False)
class Step:
    """One operation of a recording: see `gradcheck.backends.base.Step`."""

    name: str
    values: list[Array]
    first: int
    edges: list[int]
    node: OpNode
    spot: Spot | None

    def pull(self, cotangents: Sequence[Array | None]) -> list[tuple[int, int, Array]]:
        given = self.given(cotangents)
        node, kind = self.node, type(self.values[0])
        rules = enumerate(zip(node.op.vjps, self.edges, self.saved, node.shapes))  # noqa: B905 - the rule of a list is repeated
        return [
            (k, edge, pulled(vjp, given, [widened(v) for v in values], kind, shape))
            for k, (vjp, edge, values, shape) in rules
            if edge >= 0
        ]

    def given(self, cotangents: Sequence[Array | None]) -> Any:
        if not isinstance(self.node, SeveralOutputs):
            return cotangents[0]
        return [
            widened(XP[type(v)].zeros_like(v)) if c is None else c for c, v in zip(cotangents, self.values, strict=True)
        ]

    @property
    def saved(self) -> Sequence[tuple[Any, ...]]:
        """Per input, what its rule reads."""
        return self.node.values()

    def operands(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for vjp, values in zip(self.node.op.vjps, self.saved):  # noqa: B905 - the rule of a list is repeated
            found |= dict(zip(vjp.reads, map(widened, values), strict=False))
        return found

    def replaced(self, position: int, cotangents: Sequence[Array | None], values: Mapping[str, Array]) -> Array:
        """The cotangent of one input if its rule reads `values`, by name, in place of those of the call.

        The output is computed again where it is a function of the one value replaced.
        """
        rules = zip(self.node.op.vjps, self.saved, self.node.shapes)  # noqa: B905 - as above
        vjp, saved, shape = next(islice(rules, position, None))
        kind = type(self.values[0])
        read = {**dict(zip(vjp.reads, map(widened, saved), strict=False)), **values}
        if self.node.op.arguments == tuple(values) and "out" in read:
            read["out"] = self.node.op.kernels[kind](*values.values())
        return pulled(vjp, self.given(cotangents), [read[name] for name in vjp.reads], kind, shape)

    def again(self, cotangent: Array) -> Array | None:
        arguments = self.operands()
        try:
            rest = {name: arguments[name] for name in self.node.op.arguments[1:] if name in arguments}
            return self.node.op.kernels[type(cotangent)](cotangent, **rest)
        except (ValueError, TypeError, IndexError):
            return None


def pulled(vjp: Vjp, given: Any, values: Sequence[Any], kind: type, shape: Sequence[int] | None) -> Array:
    """What a rule makes of the cotangent of the output, summed to the shape of the input."""
    gradient = vjp.function(given, raw_ops[kind], *values) if vjp.takes_ops else vjp.function(given, *values)
    if type(gradient) is not kind:  # NumPy turns 0-d results into scalars
        gradient = XP[kind].asarray(gradient)
    if not bool(np.isfinite(gradient).all()):
        gradient = without_flow(gradient, given)
    if shape is not None and tuple(gradient.shape) != tuple(shape):
        gradient = unbroadcast(raw_ops[kind], gradient, tuple(shape))
    return gradient


def without_flow(gradient: Array, given: Any) -> Array:
    """A gradient with 0 in place of NaN where nothing flows: 0 times a slope that is not finite."""
    if type(given) is list:  # an operation of several outputs
        return gradient
    shape, extra = np.shape(given), gradient.ndim - np.ndim(given)
    if extra < 0 or any(n not in (1, m) for n, m in zip(shape, gradient.shape[extra:], strict=True)):
        return gradient
    return XP[type(gradient)].where((given == 0) & np.isnan(gradient), 0.0, gradient)


def widened(value: Any) -> Any:
    """Arrays in double precision, and dtypes to cast to; anything else unchanged."""
    if type(value) in XP:
        return value.astype(in_double(value.dtype), copy=False)
    if type(value) is list:
        return [widened(v) for v in value]
    if isinstance(value, np.dtype):
        return in_double(value)
    return value


@functools.cache
def in_double(dtype: Any) -> Any:
    """The dtype of double precision for a floating one, or the same."""
    return np.dtype(NARROW[dtype.name]) if dtype.name in NARROW else dtype
