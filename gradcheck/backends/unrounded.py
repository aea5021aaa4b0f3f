"""NumPy arrays that keep their digits: casts to floating dtypes of fewer are left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcheck.numeric.arrays import EPSILON


class Unrounded(np.ndarray[Any, Any]):
    """An array whose `astype` does not round to a floating dtype of fewer digits; what is computed of it is one too.

    `np.asarray` and `np.array` make plain arrays of it.
    """

    left_out: set[str]
    """The dtypes that were asked for, and not taken."""

    def __array_finalize__(self, parent: Any) -> None:
        self.left_out = getattr(parent, "left_out", set())

    def astype(self, dtype: Any, *args: Any, **named: Any) -> Any:
        name = np.dtype(dtype).name
        own = self.dtype.name
        if (
            name in EPSILON
            and own in EPSILON
            and EPSILON[name] > EPSILON[own]
            and ("complex" in name) == ("complex" in own)
        ):
            self.left_out.add(name)
            return self.copy()
        return super().astype(dtype, *args, **named)


def unrounded(values: np.ndarray[Any, Any], left_out: set[str]) -> np.ndarray[Any, Any]:
    """The same values as an array that keeps its digits; `left_out` is told of casts that are not made."""
    found = values.view(Unrounded)
    found.left_out = left_out
    return found
