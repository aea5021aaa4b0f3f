"""How much memory a case may take: a limit that the system holds, and a look at what its processes really use."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text: str) -> int:
    """The bytes in ``512M``, ``2G``, ``1.5GB`` or a plain number of bytes; a unit is a power of 1024.

    Raises:
        ValueError: it is no size of at least 1 MiB.
    """
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?) ?([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if not 1 << 20 <= size < 1 << 60:
        raise ValueError(f"{text!r} is not a size: write one of at least 1M, such as 512M or 2G")
    return size


def shown_size(size: int) -> str:
    """A size as it is written: ``4G``, ``1536M``."""
    for unit in ("T", "G", "M", "K"):
        if size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return f"{size / _UNITS['M']:.1f}M"


def limit_data(extra: int, present: int | None = None) -> None:
    """Let this process allocate `extra` bytes more than it has: what goes beyond raises MemoryError. Linux only.

    `present` is what it has, if that is known.

    RLIMIT_DATA counts private writable memory, so that libraries and reserved address space take nothing from it.
    """
    if sys.platform != "linux":
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = (data_size() if present is None else present) + extra
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def data_size() -> int:
    """Bytes of private writable memory of this process, as RLIMIT_DATA counts them."""
    with open("/proc/self/status") as file:
        match = re.search(r"^VmData:\s+(\d+) kB$", file.read(), re.MULTILINE)
    return int(match[1]) << 10 if match else 0


def resident(pid: int | str) -> int:
    """Bytes of memory that a process really occupies; 0 if it is gone, or elsewhere than on Linux."""
    with suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def children(pid: int | str) -> list[int]:
    """The processes that any thread of a process has started; none elsewhere than on Linux."""
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    return found


def descendants(pid: int | str) -> Iterator[int]:
    """All processes below a process."""
    waiting = children(pid)
    while waiting:
        child = waiting.pop()
        yield child
        waiting += children(child)


def kill_marked(mark: str) -> None:
    """Kill every process whose environment at its start held `mark`, a ``NAME=value``: all that a lost worker left."""
    for folder in Path("/proc").glob("[0-9]*") if sys.platform == "linux" else ():
        with suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
