"""The process above a worker: the system hands it what cases have started and left, and it ends that after the worker.

So neither the command nor, under pytest, the user's own process takes orphans up and must tell its children from them.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from gradcheck.run.channel import Channel
from gradcheck.run.child import end_of
from gradcheck.run.limits import kill_children
from gradcheck.support.linux import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, PR_SET_PDEATHSIG, prctl

PATIENCE = 5.0
"""Seconds that a worker has to end by itself once nobody asks it any more."""


def below_a_reaper(channel: Channel) -> None:
    """Go on in a new process below this one, which stays until that has ended, and ends as that did. Linux only."""
    if sys.platform != "linux":
        return
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    reaper, worker = os.getpid(), os.fork()
    if worker == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != reaper:  # it ended before that
            os._exit(1)
        return
    prctl(PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGTERM, lambda number, frame: kill(worker))
    wait_for_end(worker, channel)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    status = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    kill_children()
    channel.close()  # not before: when the command sees the end, nothing is left
    end_as(status)


def wait_for_end(worker: int, channel: Channel) -> None:
    """Wait until the worker ends; once the other end of the channel is closed, not for ever."""
    end = end_of(worker)
    if end is None:
        return
    poll = select.poll()
    poll.register(end, select.POLLIN)
    poll.register(channel, 0)
    if end not in [fd for fd, _ in poll.poll()]:
        poll.unregister(channel)
        if not poll.poll(1000 * PATIENCE):
            kill(worker)


def kill(pid: int) -> None:
    """Kill a process, if it is there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def end_as(status: int) -> NoReturn:
    """End as another process did: with its exit status, or by its signal."""
    if status < 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [-status])
        with suppress(OSError, ValueError):  # SIGKILL has no handler
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 128 - status)
