"""Finding single elements behind something that a whole shows: halving."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradcheck.numeric.line import Array


def halved(xp: Any, size: int, shows: Callable[[Array], bool], most: int) -> Iterator[int]:
    """The single elements of a mask over `size` for which `shows` holds, found by halving; at most `most`."""
    stack = [(0, size)]
    found = 0
    while stack and found < most:
        start, stop = stack.pop()
        mask = xp.zeros(size)
        mask[start:stop] = 1
        if not shows(mask):
            continue
        if stop - start == 1:
            found += 1
            yield start
        else:
            middle = (start + stop) // 2
            stack += [(middle, stop), (start, middle)]


def unflat(vector: Array, like: Sequence[Array]) -> list[Array | None]:
    """A flat vector cut into arrays like those given; None for those that are zero throughout."""
    parts: list[Array | None] = []
    start = 0
    for array in like:
        part = vector[start : start + array.size].reshape(array.shape)
        parts.append(part if bool((part != 0).any()) else None)
        start += array.size
    return parts
