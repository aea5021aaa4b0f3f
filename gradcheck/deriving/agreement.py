"""The right gradients of a call, and whether a backward gives them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.deriving.call import (
    LayerCall,
    NoRank,
    as_tensor,
    grad_mode_as,
    has_floats,
    is_array,
    on_rank,
    raw_array,
    recorded_tensor,
    values_in,
)
from gradcheck.deriving.graph import NotDerived
from gradcheck.deriving.trace import drawn_cotangents, recorded_array
from pylayer.layer.py_layer import PyLayerContext
from pylayer.tape.autograd import grad
from pylayer.tensor.tensor import Tensor
from pylayer.watch import Observer, observe
from pylayer.watch.numpy_recording import Code, recording_numpy

AGREEMENT = 1e-9
"""How far a gradient may be off, relative to its largest entry: rounding in float64 leaves about
1e-13, and no mistake in a formula is that small.
"""


class Everything(Observer):
    """Records every operation, including those after `detach` and in NumPy code."""

    records = True


@dataclass(frozen=True)
class KnownPoint:
    """A call with its right gradients, and the arguments of its backward."""

    call: LayerCall
    context: list[PyLayerContext]
    """The context that forward filled; empty for a function of arrays."""
    cotangents: list[Array | None]
    gradients: list[Array | None]

    @classmethod
    def of(cls, call: LayerCall, code: Code, seed: int = 0) -> KnownPoint:
        """The point of a call; the seed is for the cotangents.

        Args:
            code: of the call's function, in which NumPy is recorded.

        Raises:
            NotDerived: no input takes a gradient.
            Exception: whatever forward raises.
        """
        inputs = call.fresh_args(as_tensor)
        slots = [
            v
            for v in (*inputs, *call.kwargs.values())
            if isinstance(v, Tensor) or call.played is not None
        ]
        needed = [t for t in filter(has_floats, slots) if not t.stop_gradient]
        with observe(Everything()), recording_numpy(code), grad_mode_as(True), on_rank(NoRank()):
            arguments = map(recorded_array, inputs) if call.takes_arrays else inputs
            with np.errstate(all="ignore"):
                returned = call.function(*call.context(), *arguments, **call.kwargs)
            outputs = [
                t for t in map(recorded_tensor, values_in(returned)) if isinstance(t, Tensor)
            ]
        cotangents = drawn_cotangents(outputs, seed)
        pairs = zip(outputs, cotangents, strict=True)
        started = [(t, Tensor(c)) for t, c in pairs if c is not None and not t.stop_gradient]
        if not started or not needed:
            raise NotDerived("no input takes a gradient")
        ends, starts = map(list, zip(*started, strict=True))
        pulled = grad(ends, needed, starts, allow_unused=True)
        gradients = {id(t): g.array for t, g in zip(needed, pulled, strict=True) if g is not None}
        context = call.context()
        call.run(*context)  # again, so that no recorded value is saved
        return cls(call, context, cotangents, [gradients.get(id(t)) for t in slots])

    def arguments(self) -> list[Any]:
        """The arguments of a backward."""
        first_arguments: list[Any] = self.context
        convert: Callable[[Array], Any] = Tensor
        if self.call.takes_arrays:
            first_arguments, convert = self.call.fresh_args(np.copy), np.asarray
        return [
            *first_arguments,
            *(None if c is None else convert(c.copy()) for c in self.cotangents),
        ]

    def gradients_by(self, backward: Callable[..., Any]) -> list[Any] | None:
        """The gradients that a backward gives; None if it raises or gives too many."""
        try:
            with grad_mode_as(False), np.errstate(all="ignore"):
                gradients = list(values_in(self.results(backward)))
        except Exception:
            return None
        missing = len(self.gradients) - len(gradients)
        return None if missing < 0 else gradients + [None] * missing

    def results(self, backward: Callable[..., Any]) -> Any:
        """Run a backward at the point and return its results."""
        if self.call.played is not None:
            args = self.call.fresh_args(as_tensor)
            return self.call.played.pull_back(backward, args, self.cotangents)
        if self.call.static is not None:
            return self.call.static.pull_back(backward, self.call.args, self.arguments())
        return backward(*self.arguments(), **self.keywords())

    def arguments_by_name(self, backward: Callable[..., Any]) -> dict[str, Any]:
        """The arguments of a backward by the names of its parameters."""
        bound = inspect.signature(backward).bind(*self.arguments(), **self.keywords())
        bound.apply_defaults()
        return bound.arguments

    def keywords(self) -> dict[str, Any]:
        """The keyword arguments of a backward: those of the call, if it is a backward of arrays."""
        return self.call.kwargs if self.call.takes_arrays else {}

    def is_right(self, backward: Callable[..., Any]) -> bool:
        """Whether all gradients of a backward are right; they are not if it raises."""
        return not any(wrong.any() for wrong in self.wrong(self.gradients_by(backward)))

    def wrong(self, gradients: Sequence[Any] | None) -> Sequence[Array]:
        """Whether the entries of each gradient are wrong, see `wrong_entries`; all if there are no
        gradients.
        """
        if gradients is None:
            return [np.array(True)] * len(self.gradients)
        return [*map(wrong_entries, gradients, self.gradients)]


def known_points(calls: Iterable[LayerCall], code: Code) -> Iterator[KnownPoint]:
    """The points of the calls at which forward runs and has finite gradients."""
    for seed, call in enumerate(calls, 1):
        with suppress(Exception):  # whatever forward raises there
            point = KnownPoint.of(call, code, seed)
            if all(g is None or np.isfinite(g).all() for g in point.gradients):
                yield point


def wrong_entries(value: Any, wanted: Any) -> Array:
    """Whether each entry of a gradient is wrong: a single answer if it has the wrong shape or kind.
    A gradient that is not needed may be any value of a valid kind.
    """
    if wanted is None:
        return np.array(not (value is None or is_array(value)))
    if not isinstance(value, (Tensor, np.ndarray, np.floating)):
        return np.array(True)
    array = np.asarray(raw_array(value))
    if array.shape != wanted.shape:
        return np.array(True)
    largest = float(abs(wanted).max(initial=0, where=np.isfinite(wanted)))
    with np.errstate(all="ignore"):
        wrong: Array = ~(abs(array - wanted) <= AGREEMENT * largest + 1e-300)
    return wrong
