"""What a document holds, apart from its parser: servers in other environments have none."""

from __future__ import annotations

DataPath = tuple[int | str, ...]
"""Keys and indices that lead to a value of a document."""


class Plain(str):
    """A text that is written without quotes."""

    __slots__ = ()
