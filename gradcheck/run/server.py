"""The server: a process that has imported everything and forks a fresh process for each case.

Where processes cannot be forked, it runs one case itself and ends with it. `run.runner` starts servers and watches over
cases; a server does what only a parent can: it learns at once that the process of a case has ended.
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
from gradcheck.run.interpreter import LENGTH_BYTES, READY
from gradcheck.support.signals import use_default_signals


def main() -> None:
    """Serve until the connection is closed.

    ``sys.argv`` holds the function that runs a case, as ``module:function``; the backend; ``fork`` or ``spawn``; and
    the descriptor of the connection. A request is the length of the case as JSON, in `LENGTH_BYTES`, and with it two
    descriptors, for the answer of the case and for what it prints; then the JSON. The reply is the exit status of its
    process, as a line. Meanwhile each byte that arrives is the number of a signal for the process group of the case.
    """
    execute, backend, start, descriptor = sys.argv[1:5]
    use_default_signals()
    connection = socket.socket(fileno=int(descriptor))
    function = prepare_process(execute, backend, warm_up=start == "fork")
    # A forked process shares memory pages until it writes to them: keep its garbage collector off ours.
    gc.collect()
    gc.freeze()
    children_end = signal_when_children_end()
    connection.sendall(READY)
    while (request := receive_request(connection)) is not None:
        text, answer, output = request
        pid = os.fork() if start == "fork" else 0
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            children_end.close()
            if start == "fork":
                connection.close()
            run_case(function, text, answer, output)
        os.close(answer)
        os.close(output)
        connection.sendall(b"%d\n" % exit_status(pid, connection, children_end))


def signal_when_children_end() -> socket.socket:
    """Return a socket that has something to read whenever a child of this process ends."""
    readable, written = socket.socketpair()
    for end in (readable, written):
        end.setblocking(False)
    signal.signal(
        signal.SIGCHLD, lambda number, frame: None
    )  # a handler, so that Python writes to the socket
    signal.set_wakeup_fd(written.detach())
    return readable


def receive_request(connection: socket.socket) -> tuple[bytes, int, int] | None:
    """Receive a case as JSON and the descriptors for its answer and output; None once the command has gone."""
    header, descriptors, _, _ = socket.recv_fds(connection, LENGTH_BYTES, 2)
    length, text = int.from_bytes(header, "big"), bytearray()
    while len(text) < length:
        chunk = connection.recv(length - len(text))
        if not chunk:
            return None
        text += chunk
    if not header:
        return None
    return bytes(text), descriptors[0], descriptors[1]


def exit_status(pid: int, connection: socket.socket, children_end: socket.socket) -> int:
    """Wait for the end of a case's process, kill what it left in its group, and return its exit status.

    Raises SystemExit: the command has gone; the process has been killed.
    """
    while True:
        ready, _, _ = select.select([children_end, connection], [], [])
        if children_end in ready:
            children_end.recv(1 << 10)
        order = connection.recv(1) if connection in ready else b"\0"
        if order != b"\0":
            signal_group(pid, order[0] if order else signal.SIGKILL)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            signal_group(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status)
        if not order:
            os.waitpid(pid, 0)
            raise SystemExit


def signal_group(pid: int, number: int) -> None:
    """Send a signal to the group of a process, or to itself if it has not made its group yet, if they are there."""
    for send in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            send(pid, number)
            return
