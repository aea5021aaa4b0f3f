"""How much memory a case may take: a limit that the system holds, and a look at what its processes really use."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gradcheck.run.namespaces import SHARED

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text: str) -> int:
    """The bytes in ``512M``, ``2G``, ``1.5GB`` or a plain number of bytes; a unit is a power of 1024.

    Raises ValueError: it is no size of at least 1 MiB.
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
    wanted = (used("self").reserved if present is None else present) + extra
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def no_core_files() -> None:
    """Let no process below this one leave its memory in a file when it crashes."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Used(NamedTuple):
    """Bytes of memory that a process occupies; what it has read of files is the system's to take back."""

    own: int
    """Its private memory; a forked copy shares what neither has written to since."""
    shared: int
    """What is mapped to be written by several processes: anonymous mappings, files in memory."""
    reserved: int
    """The private memory that it may write to, as RLIMIT_DATA counts it, be it occupied or not."""


def used(pid: int | str) -> Used:
    """What a process occupies; zeros if it is gone, or elsewhere than on Linux."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        kept = {name: int(size) << 10 for name, size in re.findall(r"^(\w+):\s+(\d+) kB$", status, re.MULTILINE)}
        return Used(kept.get("RssAnon", 0), kept.get("RssShmem", 0), kept.get("VmData", 0))
    return Used(0, 0, 0)


def used_below(before: Used, own_files: bool) -> int:
    """Bytes that the processes below this one occupy; each of them began with a copy of the `before` of this one.

    Memory that is shared counts once, be it mapped or in a file; `own_files` says whether ``/dev/shm`` and the System V
    segments are theirs alone (`run.namespaces`). A process that keeps to its limit (`limit_data`) may also occupy what
    this one had reserved and not occupied: so much is allowed to all of them.
    """
    pids = list(descendants("self"))
    each = [used(pid) for pid in pids]
    own = sum(max(0, one.own - before.own) for one in each) - max(0, before.reserved - before.own)
    return max(0, own) + max(sum(one.shared for one in each), in_shared_files(pids, own_files))


def children(pid: int | str) -> list[int]:
    """The processes that any thread of a process has started; none elsewhere than on Linux."""
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    return found


def kill_children() -> None:
    """Kill the processes below this one, which must be one that the system hands orphans to.

    So what one of them has started is this process's child in its turn.
    """
    while pids := children("self"):
        for pid in pids:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def descendants(pid: int | str) -> Iterator[int]:
    """All processes below a process."""
    waiting = children(pid)
    while waiting:
        child = waiting.pop()
        yield child
        waiting += children(child)


# ------------------------------------------------------------------------------------------- memory in files
def in_shared_files(pids: Iterable[int], own: bool) -> int:
    """Bytes in files that are memory: all in a ``/dev/shm`` of our own, and those without a name that `pids` hold."""
    total = 0
    if own:
        disk = os.statvfs(SHARED)
        total = (disk.f_blocks - disk.f_bfree) * disk.f_frsize + segments()
    nameless: dict[int, int] = {}
    for pid in pids:
        with suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    if os.readlink(entry.path).startswith("/memfd:"):
                        file = os.stat(entry.path)
                        nameless[file.st_ino] = file.st_blocks * 512
    return total + sum(nameless.values())


def segments() -> int:
    """Bytes in memory of the System V segments of our own."""
    with suppress(OSError):
        _, *lines = Path("/proc/sysvipc/shm").read_text().splitlines()
        return sum(int(line.split()[14]) for line in lines)
    return 0


def kill_marked(mark: str) -> None:
    """Kill every process whose environment at its start held `mark`, a ``NAME=value``: all that a lost worker left."""
    for folder in Path("/proc").glob("[0-9]*") if sys.platform == "linux" else ():
        with suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
