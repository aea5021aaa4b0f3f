"""Attributes of this process that Linux alone has."""

from __future__ import annotations

import ctypes
import sys

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38

libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, on Linux; elsewhere nothing."""
    if libc is not None:
        libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0)
