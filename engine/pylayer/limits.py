"""The limits of dtypes: `paddle.finfo` and `paddle.iinfo`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from pylayer.dtype import as_dtype


class finfo:  # noqa: N801 - Paddle's name
    """The limits of a floating dtype; of a complex one, those of its parts.

    Raises:
        ValueError: it is of integers.
    """

    def __init__(self, dtype: Any) -> None:
        wanted = as_dtype(dtype)
        if not wanted.is_differentiable:
            raise ValueError(f"finfo(): the dtype must be floating or complex, but is {wanted.name}.")
        limits: Any = ml_dtypes.finfo  # untyped
        found = limits(np.zeros((), wanted.numpy).real.dtype)
        self.min, self.max, self.eps, self.tiny = (float(v) for v in (found.min, found.max, found.eps, found.tiny))
        self.resolution, self.smallest_normal = float(found.resolution), float(found.smallest_normal)
        self.bits, self.dtype = int(found.bits), found.dtype.name

    def __repr__(self) -> str:
        return (
            f"paddle.finfo(min={self.min:g}, max={self.max:g}, eps={self.eps:g}, resolution={self.resolution:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, bits={self.bits}, dtype={self.dtype})"
        )


class iinfo:  # noqa: N801 - Paddle's name
    """The limits of an integer dtype.

    Raises:
        ValueError: it is none.
    """

    def __init__(self, dtype: Any) -> None:
        wanted = as_dtype(dtype)
        if wanted.rank != 1:
            raise ValueError(f"iinfo(): the dtype must be an integer one, but is {wanted.name}.")
        found = np.iinfo(wanted.numpy)
        self.min, self.max, self.bits, self.dtype = int(found.min), int(found.max), found.bits, wanted.name

    def __repr__(self) -> str:
        return f"paddle.iinfo(min={self.min}, max={self.max}, bits={self.bits}, dtype={self.dtype})"
