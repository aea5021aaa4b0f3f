"""The right gradients of a call, and whether a backward gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcheck.deriving.call import LayerCall, is_array, raw_array
from gradcheck.deriving.trace import Trace, grad_mode_as
from pylayer.layer.py_layer import PyLayerContext
from pylayer.tensor.tensor import Tensor

AGREEMENT = 1e-9
"""The share of the largest entry by which a gradient may be off: float64 leaves some 1e-13, and no
slip of a formula is so small."""


@dataclass(frozen=True)
class KnownPoint:
    """A call with its right gradients, and what its backward gets."""

    call: LayerCall
    trace: Trace
    context: list[PyLayerContext]
    """The context that forward filled; empty for a function of arrays."""

    @classmethod
    def of(cls, call: LayerCall, seed: int = 0, simplifies: bool = False) -> KnownPoint:
        """The point of a call; the seed is that of the cotangents.

        Raises:
            NotDerived: the gradients are not known.
        """
        context = call.context()
        traced = call.trace(seed, simplifies)
        call.run(*context)
        return cls(call, traced, context)

    def arguments(self) -> list[Any]:
        """The arguments of a backward."""
        arrays = [None if node is None else node.array.copy() for node in self.trace.cotangents]
        if self.call.takes_arrays:
            return [*(np.copy(v) if is_array(v) else v for v in self.call.args), *arrays]
        return [*self.context, *(None if array is None else Tensor(array) for array in arrays)]

    def agreement(self, backward: Callable[..., Any]) -> list[bool]:
        """Which gradients of a backward are right; none of them where it raises."""
        wanted = list(self.trace.gradients.values())
        try:
            with grad_mode_as(False), np.errstate(all="ignore"):
                returned = backward(*self.arguments(), **self.keywords())
        except Exception:
            return [False] * len(wanted)
        found = list(returned) if isinstance(returned, (list, tuple)) else [returned]
        if len(found) > len(wanted):
            return [False] * len(wanted)
        found += [None] * (len(wanted) - len(found))
        nodes = zip(found, wanted, strict=True)
        return [is_right(value, None if node is None else node.array) for value, node in nodes]

    def keywords(self) -> dict[str, Any]:
        """The keyword arguments of a backward: those of the call go to one of arrays."""
        return self.call.kwargs if self.call.takes_arrays else {}

    def is_right(self, backward: Callable[..., Any]) -> bool:
        """Whether all gradients are right."""
        return all(self.agreement(backward))


def is_right(value: Any, wanted: Any) -> bool:
    """Whether a gradient is right. One that is not wanted may be anything but of a wrong kind."""
    if wanted is None:
        return value is None or is_array(value)
    if not isinstance(value, (Tensor, np.ndarray, np.floating)):
        return False
    found = np.asarray(raw_array(value))
    if found.shape != wanted.shape:
        return False
    largest = float(abs(wanted).max(initial=0))
    with np.errstate(all="ignore"):
        return bool((abs(found - wanted) <= AGREEMENT * largest + 1e-300).all())
