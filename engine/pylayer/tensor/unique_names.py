"""Unique names, numbered per word, as Paddle names layers and parameters."""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

_counts: dict[str, itertools.count[int]] = defaultdict(itertools.count)


def generate(key: str) -> str:
    """``key_0``, ``key_1`` …: a name that was not used before."""
    return f"{key}_{next(_counts[key])}"


@contextlib.contextmanager
def name_guard(new_generator: Any = None) -> Iterator[None]:
    """A block in which numbering starts again."""
    before = dict(_counts)
    _counts.clear()
    try:
        yield
    finally:
        _counts.clear()
        _counts.update(before)
