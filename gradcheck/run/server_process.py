"""Starting server processes; one may be started before the command line is parsed. Imports nothing
slow.
"""

from __future__ import annotations

import socket
import subprocess
import tempfile
from contextlib import suppress
from typing import IO, NamedTuple

from gradcheck.run.interpreter import EXECUTE, START, environment, python


class ServerKind(NamedTuple):
    """The cases that a server can run."""

    execute: str
    """The function that runs a case, as ``module:function``."""
    backend: str
    interpreter: str
    """The path of the interpreter; empty for this one."""
    start: str
    """How the process of a case is made, see `run.interpreter.START`."""


class ServerProcess(NamedTuple):
    """A process that will be a server, the connection to it, and the file for its output."""

    process: subprocess.Popen[bytes]
    connection: socket.socket
    log: IO[bytes]


USUAL_SERVER = ServerKind(EXECUTE, "numpy", "", START)
_started: dict[ServerKind, ServerProcess] = {}
"""The server that was started in advance, until it is used."""


def start_ahead() -> None:
    """Start the usual server, so that it imports its modules while this process does.

    An unused one ends with this process.
    """
    with suppress(OSError):  # reported when the server is needed
        _started[USUAL_SERVER] = start_process(USUAL_SERVER)


def take_process(kind: ServerKind) -> ServerProcess:
    """Return a server process, which may have been started in advance."""
    return _started.pop(kind, None) or start_process(kind)


def start_process(kind: ServerKind) -> ServerProcess:
    """Start the process of a server.

    It has the module paths of this process; another `interpreter` has other packages.
    """
    log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `Server.end`
    connection, theirs = socket.socketpair()
    with theirs:
        command = [*python("gradcheck.run.server", kind.interpreter), kind.execute, kind.backend]
        process = subprocess.Popen(
            [*command, kind.start, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[theirs.fileno()],
            env=environment(kind.interpreter),
            start_new_session=True,
        )
    return ServerProcess(process, connection, log)
