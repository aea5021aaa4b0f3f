"""The shape of a Tensor as users see it."""

from __future__ import annotations

from typing import Any


class Size(list[int]):
    """A shape, as ``Tensor.shape`` gives it: a list of ints (observed rule 72)."""

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return Size(found) if isinstance(index, slice) else found

    def numel(self) -> int:
        """The number of elements."""
        count = 1
        for n in self:
            count *= n
        return count
