"""Environment variables for child processes."""

from __future__ import annotations

import os


def without_our_paths() -> dict[str, str]:
    """The environment variables of this process, without those that would give another interpreter
    this one's packages.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME")
    }
