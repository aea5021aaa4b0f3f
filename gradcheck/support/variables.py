"""Variables of the environment for other processes."""

from __future__ import annotations

import os


def without_our_paths() -> dict[str, str]:
    """The variables of this process, without those that would show another interpreter the packages
    of this one."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME")
    }
