"""What ``layer: {op: …}`` may name: functions of the framework that need no leave to run."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import NamedTuple


class Operation(NamedTuple):
    """How one is called, as far as that is known without running it."""

    least: int
    """Arguments that it needs."""
    most: float
    """Arguments that it takes, but for `name`."""
    broadcasts: bool
    """Whether its output has the shape to which its inputs broadcast, of one input that one's own."""


def _operation(line: str) -> tuple[str, Operation]:
    name, least, most, *shape = line.split()
    return name, Operation(int(least), inf if most == "*" else int(most), bool(shape))


OPERATIONS = dict(map(_operation, Path(__file__).with_name("operations.txt").read_text(encoding="utf-8").splitlines()))
"""By their names under ``paddle``, the same on every backend.

They compute Tensors from Tensors, sizes and numbers, and change nothing else; no other thing that the module
`paddle` gives access to is reached by name. ``tests/engine/test_operations.py`` makes the file from the engine's
public names: a line for each, with the least and the most arguments, and ``=`` where the output has the inputs' shape.
"""
