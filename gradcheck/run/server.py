"""A server process: it forks a process for each case, and kills the case's whole process group at
its end.

It has everything imported. If processes cannot be forked, it runs one case itself and ends with it.
`run.runner` starts servers and monitors cases; a server does what only a parent process can: it
learns immediately that the process of a case has ended.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from contextlib import suppress

from gradcheck.run.in_case import prepare_process, run_case
from gradcheck.run.interpreter import READY
from gradcheck.support.signals import use_default_signals


def main() -> None:
    """Serve until the connection is closed, then end immediately: there is nothing to clean up.

    ``sys.argv`` holds the function that runs a case, as ``module:function``; the backend; ``fork``
    or ``spawn``; and the descriptor of the connection. A request is a byte with three descriptors:
    for the case as JSON, for its answer, and for its output. The reply is the exit status of its
    process, as a line. A byte without descriptors is a signal for the process group of the case.
    """
    execute, backend, start, descriptor = sys.argv[1:5]
    use_default_signals()
    connection = socket.socket(fileno=int(descriptor))
    gc.disable()  # imported objects stay
    function = prepare_process(execute, backend, warm_up=start == "fork")
    # A forked process shares memory pages until it writes to them, as a garbage collection would.
    gc.freeze()
    gc.enable()
    children_end = signal_when_children_end()
    connection.sendall(READY)
    while True:
        message, files, _, _ = socket.recv_fds(connection, 1, 3)
        if not message:
            os._exit(0)
        if not files:  # a signal for a case that has ended meanwhile
            continue
        pid = os.fork() if start == "fork" else 0
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            children_end.close()
            if start == "fork":
                connection.close()
            run_case(function, *files)
        for file in files:
            os.close(file)
        connection.sendall(b"%d\n" % exit_status(pid, connection, children_end))


def signal_when_children_end() -> socket.socket:
    """Return a socket that has something to read whenever a child of this process ends."""
    readable, written = socket.socketpair()
    for end in (readable, written):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)  # so that Python writes to the socket
    signal.set_wakeup_fd(written.detach())
    return readable


def exit_status(pid: int, connection: socket.socket, children_end: socket.socket) -> int:
    """Wait for the end of a case's process, kill the remaining processes of its group, return its
    exit status.

    Raises SystemExit: the command has ended; the process has been killed.
    """
    while True:
        ready, _, _ = select.select([children_end, connection], [], [])
        if children_end in ready:
            children_end.recv(1 << 10)
        if connection in ready:
            order = connection.recv(1)
            signal_group(pid, order[0] if order else signal.SIGKILL)
            if not order:
                os.waitpid(pid, 0)
                raise SystemExit
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            signal_group(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status)


def signal_group(pid: int, number: int) -> None:
    """Send a signal to the group of a process, or only to the process if it has not created its
    group yet.
    """
    for send in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            send(pid, number)
            return
