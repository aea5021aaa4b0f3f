"""The values of a YAML document with their lines and columns.

The parser is separate, as servers in other environments load the model without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

DataPath = tuple[int | str, ...]
"""The keys and indices on the path to a value of a document."""
Place = tuple[int, int, int]
"""Line, column, and the number of characters to underline."""


@dataclass(slots=True, eq=False)
class Span:
    """The position of a key or value. Lines and columns count from 1, the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str = ""
    """The text of a scalar, without quotes."""
    style: str = ""
    """How a scalar is written: "" plain, ``'`` or ``"`` quoted, ``|`` or ``>`` a block."""

    @property
    def place(self) -> Place:
        """The span to underline."""
        one_line = self.end_line == self.line
        return self.line, self.column, max(1, self.end_column - self.column) if one_line else 1

    @property
    def is_block(self) -> bool:
        """Whether the text is a block, below a ``|`` or ``>``."""
        return self.style in ("|", ">")

    @property
    def first_character(self) -> tuple[int, int]:
        """Line and column at which the text of a scalar begins; for a block, below its ``|``."""
        if self.is_block:
            return self.line + 1, 1
        return self.line, self.column + len(self.style)


class Part(NamedTuple):
    """A value in a list or mapping."""

    step: int | str
    value: Any
    mark: Span
    key_mark: Span
    """The position of the key; for an entry of a list, of the entry."""


class Map(dict[str, Any]):
    """A mapping of a document, with the marks of its keys and values.

    Values that the reader added have no marks.
    """

    def __init__(self, mark: Span) -> None:
        super().__init__()
        self.mark = mark
        self.marks: dict[str, tuple[Span, Span]] = {}
        self.inherited: Collection[str] = ()
        """The keys that come from another scenario or the file's defaults."""
        self.kind: Any = None
        """The class of the model that validates the mapping."""

    def put(self, key: str, value: Any, marks: tuple[Span, Span]) -> None:
        """Set the value of `key`, and the positions of both."""
        self[key] = value
        self.marks[key] = marks

    def copy(self) -> Map:
        """Return a mapping of the same values at the same position."""
        same = Map(self.mark)
        same.update(self)
        same.marks.update(self.marks)
        same.inherited = self.inherited
        return same

    def without(self, keys: Collection[str]) -> Map:
        """Return a copy without some keys."""
        rest = self.copy()
        for key in keys:
            rest.pop(key, None)
            rest.marks.pop(key, None)
        return rest

    def union(self, other: Map) -> Map:
        """Return a copy with the entries of another mapping added; these override its own."""
        merged = self.copy()
        merged.update(other)
        merged.marks.update(other.marks)
        return merged

    def keys_beside(self, key: str) -> Collection[str]:
        """Return the keys from the same place as `key`, itself included: the inherited ones, or
        those that the mapping itself has in the file.
        """
        return self.inherited if key in self.inherited else self.marks.keys() - self.inherited

    def map(self, key: str) -> Map:
        """Return the mapping at `key`; an empty one if there is none."""
        value = self.get(key)
        return value if isinstance(value, Map) else Map(self.mark)

    def part(self, key: int | str) -> Part | None:
        """Return the value of a key that is written in the file."""
        if key not in self.marks:
            return None
        key_mark, mark = self.marks[str(key)]
        return Part(key, self[str(key)], mark, key_mark)

    def parts(self) -> Iterator[Part]:
        """Yield the values that are written in the file."""
        for key, (key_mark, mark) in self.marks.items():
            yield Part(key, self[key], mark, key_mark)

    @cached_property
    def size(self) -> int:
        """The number of values in the mapping, itself included."""
        return 1 + sum(getattr(value, "size", 1) for value in self.values())


class Seq(tuple[Any, ...]):
    """A list of a document, with the marks of its items."""

    marks: list[Span]
    kind: Any = None
    """See `Map`. None: a list is not an object of the model."""

    def __new__(cls, items: Iterable[Any], marks: Iterable[Span]) -> Seq:
        """Make a list of items and their marks."""
        sequence = super().__new__(cls, items)
        sequence.marks = list(marks)
        return sequence

    def part(self, index: int | str) -> Part | None:
        """Return an item."""
        if not isinstance(index, int) or index >= len(self):
            return None
        return Part(index, self[index], self.marks[index], self.marks[index])

    def parts(self) -> Iterator[Part]:
        """Yield the items."""
        for index, (value, mark) in enumerate(zip(self, self.marks, strict=True)):
            yield Part(index, value, mark, mark)

    @cached_property
    def size(self) -> int:
        """The number of values in the list, itself included."""
        return 1 + sum(getattr(value, "size", 1) for value in self)


class Location(NamedTuple):
    """A value of a document, found by a path."""

    value: Any
    mark: Span
    key_mark: Span
    steps: DataPath = ()
    """The steps of the path that exist."""
    kind: Any = None
    """The class of the model that validates the innermost object around the value."""
    key: str = ""
    """The key under which the value is in that object."""


def locate(root: Map, path: Iterable[int | str]) -> Location:
    """Return the value at a path of the document.

    Steps other than keys and indices (union members of pydantic, missing keys) are skipped.
    """
    start = Span(1, 1, 1, 1)
    location = Location(root, start, start)
    for step in path:
        if not isinstance(location.value, (Map, Seq)):
            break
        if part := location.value.part(step):
            kind, key = location.kind, location.key
            if location.value.kind is not None:
                kind, key = location.value.kind, str(step)
            steps = (*location.steps, step)
            location = Location(part.value, part.mark, part.key_mark, steps, kind, key)
    return location
