"""Which lines of the engine a case runs, so that a mutant costs only the cases that can notice it."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

Line = tuple[str, int]


class Reach(NamedTuple):
    """What one case runs: the lines of functions, each with its file, and the seconds that it takes."""

    lines: frozenset[Line]
    seconds: float


class Traced:
    """Notes the lines of the files in a folder: of functions for each block, of modules and classes once for all.

    Args:
        folder: None for nothing.

    What is computed once for all cases, as by `functools.cache`, counts for the first that needs it alone.
    """

    def __init__(self, folder: Path | None) -> None:
        self.prefix = f"{folder}/" if folder else ""
        self.imported: set[Line] = set()
        """The lines of modules and class bodies, on which every case depends."""
        self._seen: dict[CodeType, set[int]] = {}

    @contextmanager
    def block(self) -> Iterator[set[Line]]:
        """Fill the set that it gives, at the end of the block, with the lines that ran in it."""
        self._seen = {}
        found: set[Line] = set()
        if self.prefix:
            sys.settrace(self._called)
            threading.settrace(self._called)
        try:
            yield found
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
        for code, lines in self._seen.items():
            file = code.co_filename.removeprefix(self.prefix)
            in_function = bool(code.co_flags & inspect.CO_OPTIMIZED)
            (found if in_function else self.imported).update((file, line) for line in lines)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        if not code.co_filename.startswith(self.prefix):
            return None
        lines = self._seen.setdefault(code, set())
        lines.add(frame.f_lineno)

        def line_run(frame: FrameType, event: str, argument: Any) -> Any:
            lines.add(frame.f_lineno)
            return line_run

        return line_run
