"""A call of a layer or function: its arguments, at given and at other sizes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcheck.deriving.graph import NotDerived
from gradcheck.deriving.points import is_array, other_points, raw_array
from gradcheck.deriving.trace import Trace, is_layer_class, trace

CHECKED_DTYPES = ("float64", "float32")
NO_SUCH_CALL = "forward takes no such arguments"


@dataclass(frozen=True)
class LayerCall:
    """A layer or function, and how it is called."""

    subject: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    """Arguments that can be given by name alone."""

    @classmethod
    def of(cls, subject: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> LayerCall:
        """A call, with all arguments that can be given by position in order.

        Raises:
            NotDerived: forward takes no such arguments.
        """
        function = subject.forward if is_layer_class(subject) else subject
        first = [None] if is_layer_class(subject) else []
        try:
            bound = inspect.signature(function).bind(*first, *args, **kwargs)
        except (TypeError, ValueError) as error:
            raise NotDerived(f"{NO_SUCH_CALL}: {error}") from None
        bound.apply_defaults()
        return cls(subject, bound.args[len(first) :], bound.kwargs)

    @property
    def names(self) -> list[str]:
        """The names of the arguments in order."""
        is_layer = is_layer_class(self.subject)
        function = self.subject.forward if is_layer else self.subject
        return list(inspect.signature(function).parameters)[is_layer:]

    def at(self, args: Sequence[Any]) -> LayerCall:
        """The same call with other arguments."""
        return LayerCall(self.subject, tuple(args), self.kwargs)

    def trace(self, seed: int = 0, simplifies: bool = True) -> Trace:
        """The trace of this call."""
        random = np.random.default_rng(seed)
        return trace(self.subject, self.args, self.kwargs, random, simplifies)

    def others(self, seed: int = 0) -> Iterator[LayerCall]:
        """The call at other sizes."""
        random = np.random.default_rng(seed)
        return map(self.at, other_points(self.subject, self.args, self.kwargs, random))

    def shapes(self) -> str:
        """The shapes of its arguments: ``x=3x4, w=4``."""
        named = zip(self.names, self.args, strict=False)
        shapes = {name: raw_array(value).shape for name, value in named if is_array(value)}
        return ", ".join(f"{name}={'x'.join(map(str, s))}" for name, s in shapes.items())

    def in_dtype(self, dtype: str) -> tuple[Any, ...]:
        """The arguments with floats of a dtype, for a check."""
        return tuple(value_in_dtype(value, dtype) for value in self.args)


def value_in_dtype(value: Any, dtype: str) -> Any:
    """An argument in a dtype, if it is of floats."""
    if not is_array(value) or raw_array(value).dtype.kind != "f":
        return value
    if isinstance(value, np.ndarray):
        return value.astype(dtype)
    cast = value.astype(dtype).detach()
    cast.stop_gradient = value.stop_gradient
    return cast
