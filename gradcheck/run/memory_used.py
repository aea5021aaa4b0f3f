"""The memory that a case uses, as its runner measures it.

Servers in the environment of a release do not import this: psutil is not installed there.
"""

from __future__ import annotations

from contextlib import suppress

import psutil


def memory_of(pid: int) -> int:
    """Return the bytes in memory of a process, and those that each process below it has beyond
    that.

    A forked process begins with a copy of what its parent has.
    """
    total = 0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        total = own = process.memory_info().rss
        for below in process.children(recursive=True):
            with suppress(psutil.Error):
                total += max(0, below.memory_info().rss - own)
    return total
