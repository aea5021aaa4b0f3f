"""The outputs of a function at a point: which have a derivative, and their place in one flat vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradcheck.checker.problem import Array
from gradcheck.numeric.derivative import flat


def is_differentiable(array: Array) -> bool:
    """Whether an array holds real floating-point or complex numbers; NumPy's kind V is bfloat16."""
    return array.dtype.kind in "fcV"


def widened(array: Array) -> Array:
    """A floating array in float64, a complex one in complex128; others unchanged."""
    if not is_differentiable(array):
        return array
    return array.astype("complex128" if array.dtype.kind == "c" else "float64", copy=False)


@dataclass
class Outputs:
    """The outputs at the point, those that have a derivative one after the other in a flat vector."""

    arrays: list[Array]
    active: list[int]

    @classmethod
    def of(cls, arrays: list[Array]) -> Outputs:
        """Those of floating or complex dtype are active."""
        return cls(arrays, [k for k, a in enumerate(arrays) if is_differentiable(a)])

    @property
    def vector(self) -> Array:
        """The active outputs, flat."""
        return flat([self.arrays[k] for k in self.active])

    def split(self, cotangent: Array) -> list[Array | None]:
        """A flat cotangent as one array per output, of its dtype; None for outputs without a derivative."""
        parts: list[Array | None] = [None] * len(self.arrays)
        start = 0
        for k in self.active:
            array = self.arrays[k]
            part = cotangent[start : start + array.size].reshape(array.shape)
            parts[k] = (part if array.dtype.kind == "c" else part.real).astype(array.dtype)
            start += array.size
        return parts

    def locate(self, position: int) -> tuple[int, tuple[int, ...]]:
        """Which output, and which element of it, a position in the flat vector is."""
        for k in self.active:
            size = self.arrays[k].size
            if position < size:
                return k, tuple(int(i) for i in np.unravel_index(position, self.arrays[k].shape))
            position -= size
        raise IndexError(position)

    def starts(self) -> dict[int, int]:
        """Where each active output begins in the flat vector."""
        found, start = {}, 0
        for k in self.active:
            found[k] = start
            start += self.arrays[k].size
        return found

    def not_finite(self) -> tuple[int, tuple[int, ...]] | None:
        """The first element that is inf or NaN, if any."""
        for k in self.active:
            array = self.arrays[k]
            if array.size and not bool(np.isfinite(abs(widened(array)).max())):
                bad = np.argwhere(~np.isfinite(np.asarray(abs(widened(array)).tolist())))
                return k, tuple(int(i) for i in bad[0])
        return None


def natural_size(x: Array, outputs: Sequence[Array], cotangents: Sequence[Array | None]) -> float:
    """The size of an input's gradient if the outputs were proportional to it.

    Beside it rounding errors are small, also where the gradient is nothing but rounding errors of a zero.
    """
    size = float(abs(x).max()) if x.size else 0.0
    along = [
        float(abs(g).max()) * float(abs(y).max())
        for g, y in zip(cotangents, outputs, strict=True)
        if g is not None and g.size
    ]
    return max(along, default=0.0) / size if size else 0.0
