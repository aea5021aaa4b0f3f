"""What ``layer: {op: …}`` may name: functions of the framework that need no leave to run."""

from __future__ import annotations

from pathlib import Path

OPERATIONS = frozenset(Path(__file__).with_name("operations.txt").read_text(encoding="utf-8").split())
"""Their names under ``paddle``, the same on every backend.

They compute Tensors from Tensors, sizes and numbers, and change nothing else; no other thing that the module
`paddle` gives access to is reached by name. ``tests/engine/test_operations.py`` makes the file from the engine's
public names.
"""
