"""What ``layer: {op: …}`` may name: functions of the framework that need no leave to run."""

from __future__ import annotations

from math import inf
from pathlib import Path


def _operation(line: str) -> tuple[str, tuple[int, float]]:
    name, least, most = line.split()
    return name, (int(least), inf if most == "*" else int(most))


OPERATIONS = dict(map(_operation, Path(__file__).with_name("operations.txt").read_text(encoding="utf-8").splitlines()))
"""By their names under ``paddle``, the same on every backend: the least and the most arguments, but for `name`.

They compute Tensors from Tensors, sizes and numbers, and change nothing else; no other thing that the module
`paddle` gives access to is reached by name. ``tests/engine/test_operations.py`` makes the file from the engine's
public names: a line for each, with the least and the most arguments.
"""
