"""The user's line on which an operation stands, found from the compiled code."""

from __future__ import annotations

import ast
import functools
import linecache
from types import CodeType
from typing import Any, NamedTuple

from gradcheck.backends.base import Spot


class SourcePlace(NamedTuple):
    """A piece of a line of source: its file, the line from 1, and the columns from 0, the last not included."""

    file: str
    line: int
    column: int
    end_column: int
    source: str
    """The line as it stands in the file; empty if that cannot be read."""

    @property
    def told(self) -> dict[str, Any]:
        """As the parts of a diagnosis."""
        line = f"{self.file}:{self.line}" if self.line else ""
        return {"line": line, "source_line": self.source, "column": self.column, "end_column": self.end_column}


NOWHERE = SourcePlace("", 0, 0, 0, "")
"""That of an operation that no code of the user's stands behind."""


def source_place(spot: Spot | None) -> SourcePlace:
    """Where an instruction stands. An expression over several lines is cut at the end of its first."""
    return NOWHERE if spot is None else place_in(spot[0].co_filename, *spot)


@functools.lru_cache(maxsize=4096)
def place_in(file: str, code: CodeType, offset: int) -> SourcePlace:
    """Where an instruction stands. The same code in another file is equal to it, so that the file is asked for too."""
    positions = list(code.co_positions())
    line, end_line, column, end_column = positions[offset // 2]
    if line is None:
        return SourcePlace(file, code.co_firstlineno, 0, 0, "")
    source = linecache.getline(file, line).rstrip("\n")
    if column is None or end_column is None or not source:
        return SourcePlace(file, line, 0, 0, source)
    # The columns are of the source as it was compiled, which in a spec is indented further; where the code begins on
    # the line tells by how much. They count bytes. What the interpreter does on entry stands at no column, 0 to 0.
    starts = (start for at, _, start, end in positions if at == line and start is not None and end)
    shift = begins(source) - min(starts, default=column) if not file.endswith(".py") else 0
    encoded = source.encode()
    start = len(encoded[: column + shift].decode(errors="ignore"))
    end = len(encoded[: end_column + shift].decode(errors="ignore")) if end_line == line else len(source)
    return SourcePlace(file, line, start, end, source)


def begins(source: str) -> int:
    """The column at which the code on a line begins: its first token, or the body of a function that is on it whole."""
    indent = len(source) - len(source.lstrip())
    try:
        (node,) = ast.parse(source.strip()).body
    except (SyntaxError, ValueError):  # a part of a statement, or several
        return indent
    return indent + (node.body[0].col_offset if isinstance(node, ast.FunctionDef) else 0)
