"""What a case sees of the system, and what rights it has there: Linux alone has the means.

A worker has new namespaces for each case: of mounts, so that ``/dev/shm`` is empty and gone afterwards with all that is
in it, and of queues, semaphores and segments, System V and POSIX. The process of a case has no capability with which it
could undo that, nor look into a process that has one.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

from gradcheck.support.linux import PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, libc, prctl

SHARED = "/dev/shm"

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x20000, 0x8000000, 0x10000000
MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x4000, 0x40000
MNT_DETACH = 0x2
CAPABILITY_VERSION = 0x20080522
ON_FILES = sum(1 << number for number in (0, 1, 2, 3, 4, 6, 7))
"""CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID, CAP_SETGID, CAP_SETUID: what root needs to
work with the files of other users, and as them. A process of root without the others cannot look into one with them."""


class Namespaces:
    """Those of this process, a worker. Make it before the process has a second thread."""

    def __init__(self) -> None:
        self.user = False
        """Whether it is in a namespace of users of its own: that alone shuts its cases out of all others' processes."""
        self.own = False
        """Whether each case has its own ``/dev/shm`` and its own System V objects."""
        self.kept = ON_FILES if os.name == "posix" and os.geteuid() == 0 else 0
        if libc is None:
            return
        with suppress(OSError):  # the system does not permit it
            self.user = enter_namespaces()
            raise_for(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))  # else others would see our mounts
            mount_shared()
            self.own = True
        prctl(PR_SET_DUMPABLE, 0)

    def renew(self) -> None:
        """New ones for the next case. Raises OSError: the system permits no more of them."""
        if self.own and libc is not None:
            raise_for(libc.unshare(CLONE_NEWNS | CLONE_NEWIPC))
            raise_for(libc.umount2(SHARED.encode(), MNT_DETACH))
            mount_shared()

    def give_up_rights(self) -> None:
        """In the process of a case: have no rights over the namespaces, nor any way to get more rights.

        Raises OSError: the system does not do it.
        """
        if libc is None:
            return
        header, sets = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
        raise_for(libc.capget(header, sets))
        for at, kept in enumerate((self.kept & 0xFFFFFFFF,) * 3 + (self.kept >> 32,) * 3):
            sets[at] &= kept
        raise_for(libc.capset(header, sets))
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        if self.user:
            prctl(PR_SET_DUMPABLE, 1)  # cases of other workers are shut out all the same


def enter_namespaces() -> bool:
    """Put this process into new namespaces; whether one of users is among them.

    Raises OSError: the system does not permit it.
    """
    assert libc is not None
    user, group = os.getuid(), os.getgid()
    wanted = CLONE_NEWNS | CLONE_NEWIPC
    if libc.unshare(wanted) == 0:
        return False
    if user == 0:  # in a namespace of users it would lose its rights on the files of others
        raise PermissionError
    raise_for(libc.unshare(wanted | CLONE_NEWUSER))
    prctl(PR_SET_DUMPABLE, 1)  # else the files below would be root's
    with suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def mount_shared() -> None:
    """Mount an empty ``/dev/shm``. Raises OSError: the system does not permit it."""
    assert libc is not None
    raise_for(libc.mount(b"tmpfs", SHARED.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, b"mode=1777"))


def raise_for(status: int) -> None:
    """Raise the error of a call of the system's that has failed. Raises OSError: `status` says so."""
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
