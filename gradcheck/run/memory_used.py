"""Measuring the memory that a case uses, for its runner.

Servers in the environment of a release do not import this module: psutil is not installed there.
"""

from __future__ import annotations

from contextlib import suppress

import psutil


def memory_of(pid: int) -> int:
    """Return the resident bytes of a process, plus those by which each child process exceeds its
    parent.

    A forked process begins with a copy of its parent's memory.
    """
    total = 0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        total = parent_bytes = process.memory_info().rss
        for below in process.children(recursive=True):
            with suppress(psutil.Error):
                total += max(0, below.memory_info().rss - parent_bytes)
    return total
