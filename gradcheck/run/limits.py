"""Enforcing the memory limit of a case, and the notation of sizes; the default is in
`case.defaults`.
"""

from __future__ import annotations

import re
import resource
import sys
from contextlib import suppress
from pathlib import Path

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text: str) -> int:
    """Return the bytes in ``512M``, ``2G``, ``1.5GB`` or a plain number of bytes; a unit is a power
    of 1024.

    Raises ValueError: the text is not a size of at least 1 MiB.
    """
    match = re.fullmatch(
        r"(\d{1,15}(?:\.\d{1,6})?) ?([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE
    )
    size = int(float(match[1]) * UNITS[match[2].upper()]) if match else 0
    if not 1 << 20 <= size < 1 << 60:
        raise ValueError(f"{text!r} is not a size: write one of at least 1M, such as 512M or 2G")
    return size


def shown_size(size: int) -> str:
    """Return the text of a size: ``4G``, ``1536M``."""
    for unit in ("T", "G", "M", "K"):
        if size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]}{unit}"
    return f"{size / UNITS['M']:.1f}M"


def limit_own_memory(extra: int) -> None:
    """Allow this process to allocate `extra` bytes more than it has; beyond that MemoryError is
    raised.

    Linux only. RLIMIT_DATA counts private writable memory, so that libraries and reserved address
    space take nothing from it. A lower limit that the user has set stays.
    """
    if sys.platform != "linux":
        return
    status = Path("/proc/self/status").read_text()
    present = int(re.search(r"^VmData:\s+(\d+) kB", status, re.MULTILINE)[1]) << 10  # type: ignore[index]
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    with suppress(ValueError):  # it is above the hard limit
        resource.setrlimit(resource.RLIMIT_DATA, (present + extra, hard))
