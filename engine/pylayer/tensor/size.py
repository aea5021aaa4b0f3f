"""The types of ``Tensor.shape`` and ``Tensor.size``."""

from __future__ import annotations

import math
from typing import Any


class Size(list[int]):
    """A shape, as ``Tensor.shape`` gives it: a list of ints that compares with tuples too (observed
    rule 72).
    """

    __hash__ = None

    def __repr__(self) -> str:
        return f"paddle.Size({list.__repr__(self)})"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __eq__(self, other: object) -> bool:
        return list.__eq__(self, list(other) if isinstance(other, tuple) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __add__(self, other: Any) -> Size:  # type: ignore[override]
        return Size([*self, *other])

    def __radd__(self, other: Any) -> Size:
        return Size([*other, *self])

    def __mul__(self, count: Any) -> Size:
        return Size(super().__mul__(count))

    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        return Size(item) if isinstance(index, slice) else item

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self)


class TensorSize(int):
    """The number of elements, as ``Tensor.size`` gives it; when called, it returns the shape or one
    size.
    """

    shape: Size

    def __new__(cls, shape: tuple[int, ...]) -> TensorSize:
        size = super().__new__(cls, math.prod(shape))
        size.shape = Size(shape)
        return size

    def __call__(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]
