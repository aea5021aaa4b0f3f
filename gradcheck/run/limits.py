"""How much memory a case may take: a limit that the system holds, and a look at what its processes really use."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

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


def no_core_files() -> None:
    """Let no process below this one leave its memory in a file when it crashes."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def data_size() -> int:
    """Bytes of private writable memory of this process, as RLIMIT_DATA counts them."""
    with open("/proc/self/status") as file:
        match = re.search(r"^VmData:\s+(\d+) kB$", file.read(), re.MULTILINE)
    return int(match[1]) << 10 if match else 0


class Used(NamedTuple):
    """Bytes of memory that a process occupies."""

    own: int
    """Its private memory, and what it has read of files; a forked copy shares what neither has written to since."""
    shared: int
    """What is mapped to be written by several processes: anonymous mappings, files in memory."""


def used(pid: int | str) -> Used:
    """What a process occupies; zeros if it is gone, or elsewhere than on Linux."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        kept = {name: int(size) << 10 for name, size in re.findall(r"^Rss(\w+):\s+(\d+) kB$", status, re.MULTILINE)}
        return Used(kept.get("Anon", 0) + kept.get("File", 0), kept.get("Shmem", 0))
    return Used(0, 0)


def used_below(before: Used) -> int:
    """Bytes that the processes below this one occupy; each of them began with a copy of the `before` of this one.

    Memory that is shared counts once, be it mapped or in a file.
    """
    pids = list(descendants("self"))
    each = [used(pid) for pid in pids]
    own = sum(max(0, one.own - before.own) for one in each)
    return own + max(sum(one.shared for one in each), in_shared_files(pids))


def children(pid: int | str) -> list[int]:
    """The processes that any thread of a process has started; none elsewhere than on Linux."""
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    return found


def kill_children(but: Collection[int | None] = ()) -> None:
    """Kill the processes below this one, except those in `but` and what is below them.

    What one of them started is this process's child in its turn, on Linux, where this process takes orphans up.
    """
    while pids := [pid for pid in children("self") if pid not in but]:
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
SHARED = "/dev/shm"
IPC_RMID = 0
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x20000, 0x8000000, 0x10000000
MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x4000, 0x40000
_own_shared_memory = False


def own_shared_memory() -> bool:
    """Give this process, and those it will start, a ``/dev/shm`` and System V segments that nobody else has.

    What cases leave there is then counted (`in_shared_files`) and removed (`empty_shared_memory`). Linux only, and only
    before this process has a second thread; False where the system does not permit it.
    """
    global _own_shared_memory
    if sys.platform != "linux":
        return False
    libc, user, group = ctypes.CDLL(None), os.getuid(), os.getgid()
    wanted = CLONE_NEWNS | CLONE_NEWIPC
    if libc.unshare(wanted) != 0:  # it takes rights, or a namespace of users in which one has them
        if user == 0 or libc.unshare(wanted | CLONE_NEWUSER) != 0:
            return False
        with suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    if libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:  # else the system would see our mount
        return False
    options = MS_NOSUID | MS_NODEV
    _own_shared_memory = bool(libc.mount(b"tmpfs", SHARED.encode(), b"tmpfs", options, b"mode=1777") == 0)
    return _own_shared_memory


def in_shared_files(pids: Iterable[int]) -> int:
    """Bytes in files that are memory: all in a ``/dev/shm`` of our own, and those without a name that `pids` hold."""
    total = 0
    if _own_shared_memory:
        disk = os.statvfs(SHARED)
        total = (disk.f_blocks - disk.f_bfree) * disk.f_frsize + sum(size for _, size in segments())
    nameless: dict[int, int] = {}
    for pid in pids:
        with suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    if os.readlink(entry.path).startswith("/memfd:"):
                        file = os.stat(entry.path)
                        nameless[file.st_ino] = file.st_blocks * 512
    return total + sum(nameless.values())


def segments() -> list[tuple[int, int]]:
    """The System V segments of our own: the number and the bytes in memory of each."""
    with suppress(OSError):
        _, *lines = Path("/proc/sysvipc/shm").read_text().splitlines()
        return [(int(fields[1]), int(fields[14])) for fields in map(str.split, lines)]
    return []


def empty_shared_memory() -> None:
    """Remove what a case has left in a ``/dev/shm`` of our own, and its System V segments."""
    if not _own_shared_memory:
        return
    for entry in os.scandir(SHARED):
        with suppress(OSError):
            shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else os.unlink(entry)
    for number, _ in segments():
        ctypes.CDLL(None).shmctl(number, IPC_RMID, None)


def kill_marked(mark: str) -> None:
    """Kill every process whose environment at its start held `mark`, a ``NAME=value``: all that a lost worker left."""
    for folder in Path("/proc").glob("[0-9]*") if sys.platform == "linux" else ():
        with suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
