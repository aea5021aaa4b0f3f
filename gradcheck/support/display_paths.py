"""How paths and numbers of things are written in all that is shown. Loads nothing that a command would wait for."""

from __future__ import annotations

import os
from pathlib import Path

from gradcheck.support.escape import escape
from gradcheck.support.resources import bundled_specs


def shown_path(path: str) -> str:
    """A path as briefly as it can be told: bundled specs as ``specs/…``, others relative to the current folder."""
    bundled, full = bundled_specs(), Path(path).absolute()
    if full.is_relative_to(bundled):
        return escape(str(Path("specs") / full.relative_to(bundled)))
    relative = os.path.relpath(full)
    return escape(relative if len(relative) < len(path) else path)


def count(number: int, noun: str) -> str:
    """``1 case``, ``2 cases``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
