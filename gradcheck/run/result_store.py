"""The results of a run, kept small: each as a line of JSON, which is read again whenever the result is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from gradcheck.result import Result


class Results(Sequence[Result]):
    """A sequence of results that takes a few hundred bytes for each, an eighth of what the objects take."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def append(self, result: Result) -> None:
        """Add a result at the end."""
        self._lines.append(result.model_dump_json(exclude_defaults=True).encode())

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> list[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | list[Result]:
        if isinstance(index, slice):
            return [Result.model_validate_json(line) for line in self._lines[index]]
        return Result.model_validate_json(self._lines[index])

    def __len__(self) -> int:
        return len(self._lines)
