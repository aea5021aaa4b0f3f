"""The outputs of a function at a point: which have a derivative, and their place in one flat real vector."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gradcheck.backends.base import is_differentiable
from gradcheck.checking.arrays import Array, array_and_element, flat_real, wide


@dataclass
class FlatOutputs:
    """The outputs at the point; those that have a derivative one after the other in a flat vector of float64.

    If one of them is complex, all are: real and imaginary parts in turn.
    """

    arrays: list[Array]
    active: list[int]

    @classmethod
    def of(cls, arrays: list[Array]) -> FlatOutputs:
        """Those of floating or complex dtype are active."""
        return cls(arrays, [k for k, a in enumerate(arrays) if is_differentiable(a)])

    @cached_property
    def complex(self) -> bool:
        """Whether every element has two places in the vector."""
        return any(self.arrays[k].dtype.kind == "c" for k in self.active)

    @cached_property
    def vector(self) -> Array:
        """The active outputs, flat, in float64."""
        return flat_real([self.arrays[k] for k in self.active])

    @property
    def size(self) -> int:
        """Elements of the active outputs."""
        return sum(self.arrays[k].size for k in self.active)

    def split(self, cotangent: Array) -> list[Array | None]:
        """A flat real cotangent as one array per output, of its dtype; None for outputs without a derivative.

        What is too large for the dtype becomes its largest number: that is no finding about the layer.
        """
        vector = cotangent.view("complex128") if self.complex else cotangent
        parts: list[Array | None] = [None] * len(self.arrays)
        start = 0
        for k in self.active:
            array = self.arrays[k]
            part = vector[start : start + array.size]
            start += array.size
            if array.dtype.kind != "c":
                part = part.real
                if array.dtype.kind == "f" and array.dtype.itemsize < 8:
                    largest = float(np.finfo(array.dtype).max)
                    part = part.clip(-largest, largest)
            parts[k] = part.astype(array.dtype).reshape(array.shape)
        return parts

    def held(self, cotangent: Array) -> Array:
        """A flat cotangent as the outputs' dtypes can hold it: what backward is given."""
        parts = self.split(cotangent)
        return flat_real([part for part in parts if part is not None])

    def unit(self, position: int) -> Array:
        """The cotangent that is 1 at one place of the vector and 0 elsewhere."""
        one = self.vector * 0
        one[position] = 1
        return one

    def element(self, position: int) -> int:
        """The flat element that a place of the vector belongs to."""
        return position // 2 if self.complex else position

    def locate(self, position: int) -> tuple[int, tuple[int, ...]]:
        """Which output, and which element of it, an element of the flat outputs is."""
        number, own = array_and_element([self.arrays[k] for k in self.active], position)
        k = self.active[number]
        return k, tuple(int(i) for i in np.unravel_index(own, self.arrays[k].shape))

    def not_finite(self) -> tuple[int, tuple[int, ...]] | None:
        """The first element that is inf or NaN, if any."""
        for k in self.active:
            array = self.arrays[k]
            if array.size and not bool(np.isfinite(abs(wide(array)).max())):
                bad = np.argwhere(~np.isfinite(np.asarray(abs(wide(array)).tolist())))
                return k, tuple(int(i) for i in bad[0])
        return None
