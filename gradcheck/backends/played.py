"""Replay of a framework's operations on the bundled engine, while the framework runs.

The engine alone defines derivatives, kinks, candidate mistakes and rounding. A framework
reports each operation that runs, with *shadows* (Tensors of the engine) in place of the framework's
tensors. Where the engine has a counterpart, the counterpart runs on the shadows, and the current
observer records it. Otherwise one step is recorded whose derivative is the framework's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array, is_differentiable
from gradcheck.backends.recording import is_close, outputs_of
from pylayer.ops.shape import cast
from pylayer.tape.graph import Output
from pylayer.tape.node import parent_of
from pylayer.tape.op import Op
from pylayer.tape.symbol import Symbol
from pylayer.tape.vjp import Vjp
from pylayer.tensor.tensor import Tensor as Shadow

PullBack = Callable[[list[Array]], Array]
"""A function from the cotangents of an operation's outputs to that of one input, in double
precision.
"""


class Unplayed(Exception):  # noqa: N818 - an answer, not an error
    """The engine has no counterpart of an operation at these arguments."""


class Counterpart(NamedTuple):
    """The engine's counterpart of an operation."""

    name: str
    """The engine's operation that gives the result; it determines how the result rounds."""
    play: Callable[..., Any]
    """Takes the arguments, shadows in place of Tensors; returns a shadow, or several."""


class ForeignRow(Op):
    """An operation without a counterpart in the engine, with the framework's derivative."""

    def __init__(self, name: str, pulls: Sequence[PullBack]) -> None:
        self.name, self.reads, self.positions = name, frozenset(), tuple(range(len(pulls)))
        self.arguments = self.inputs = tuple(f"x{k}" for k in self.positions)
        self.kernels, self.many, self.differentiable = {}, False, True  # type: ignore[assignment]
        self.view_gradient = False
        self.vjps = tuple(vjp_of(pull, self.arguments) for pull in pulls)


def vjp_of(pull: PullBack, arguments: Sequence[str]) -> Vjp:
    """A vjp for the engine that reads only the cotangent."""
    return Vjp(lambda g: pull(outputs_of(g)), arguments)


def shadow_of(value: Array) -> Shadow:
    """The shadow of a constant, with a copy of its values."""
    return Shadow(np.array(value, order="C"))


def play(
    counterpart: Counterpart | None,
    arguments: Sequence[Any],
    values: Sequence[Array],
) -> list[Shadow] | None:
    """The shadows of an operation's results, computed by its counterpart; None if it has none, or
    the counterpart gives other results.

    Args:
        arguments: those of the operation, shadows in place of Tensors.
        values: the results that the framework computed.
    """
    if counterpart is None:
        return None
    try:
        shadows = outputs_of(counterpart.play(*arguments))
        return [adopt_values(s, v, arguments) for s, v in zip(shadows, values, strict=True)]
    except Exception:  # whatever the engine raises for arguments that it does not take
        return None


def adopt_values(shadow: Shadow, value: Array, arguments: Sequence[Any]) -> Shadow:
    """The engine's result, cast to the framework's dtype and with the framework's exact values.

    Raises Unplayed if the results differ.
    """
    if tuple(shadow.array.shape) != tuple(value.shape):
        raise Unplayed(f"shape {shadow.array.shape} for {value.shape}")
    if shadow.array.dtype != value.dtype:
        shadow = cast(shadow, value.dtype.name)
    if is_equal(shadow.array, value):
        return shadow
    if not is_differentiable(value) or not is_close(shadow.array, value):
        raise Unplayed("another value")
    if isinstance(shadow, Symbol):  # exact digits do not matter in a trace
        return shadow
    return overwrite(shadow, value, arguments)


def is_equal(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape have the same elements, and no NaN."""
    return bool((a == b).all())


def overwrite(shadow: Shadow, value: Array, arguments: Sequence[Any] = ()) -> Shadow:
    """A shadow with other values written into it; into a copy if it has the memory of another."""
    ours = shadow.array
    if not (ours.flags.writeable and ours.flags.owndata) or any(shadow is a for a in arguments):
        shadow = shadow.clone()
    shadow.array[...] = value
    return shadow


def record_foreign(
    name: str, pulls: Sequence[tuple[Shadow, PullBack]], values: Sequence[Array]
) -> list[Shadow]:
    """The shadows of an operation's results, recorded as one step.

    Args:
        name: of the operation.
        pulls: for each input that a gradient may flow to, the function that pulls cotangents back
            to it.
        values: the results that the framework computed.
    """
    known = [(s, parent, pull) for s, pull in pulls if (parent := parent_of(s)) is not None]
    arrays = [np.array(value, order="C") for value in values]
    if not known or not any(map(is_differentiable, arrays)):
        return list(map(Shadow, arrays))
    row = ForeignRow(name, [pull for _, _, pull in known])
    output = arrays[0] if len(arrays) == 1 else arrays
    node = row.recorded([p for _, p, _ in known], [s.array for s, _, _ in known], output)
    if len(arrays) == 1:
        return [Shadow(arrays[0], node, False)]
    return [Shadow(array, Output(node, k), False) for k, array in enumerate(arrays)]
