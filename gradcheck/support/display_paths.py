"""Formatting of paths, counts, lists and columns in all output. Imports nothing slow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gradcheck.support.escape import escape
from gradcheck.support.resources import bundled_specs


def shown_path(path: str) -> str:
    """Return a path for display: a bundled spec as ``specs/…``, others relative to the current
    folder.
    """
    bundled, full = bundled_specs(), Path(path).absolute()
    if full.is_relative_to(bundled):
        return escape(str(Path("specs") / full.relative_to(bundled)))
    return escape(min(path, os.path.relpath(full), key=len))


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of text as lines, their columns below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def with_heading(heading: str, lines: list[str]) -> list[str]:
    """Return lines below their heading; empty without lines."""
    return [heading, *lines] if lines else []


def count(number: int, noun: str) -> str:
    """Return ``1 case``, ``2 cases``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
