"""Fresh processes of Python that are ready at once: forked from one that has imported gradcheck and the engine.

To start an interpreter and to import all that takes longer than most of what tests do with it. `python` runs a program
as ``python -c``, ``python -m`` or ``python FILE`` would, in a folder, with an environment and module path of its own.
The servers of cases are forked, too: those of commands that run in this process, as `WARM` stands for the module
`subprocess` in `gradcheck.run.server_process` (see `conftest.py`), and those of commands that `python` runs.

Not for what is about the start itself: what is imported when, options of the interpreter, its streams and signals,
variables that are read while modules are imported.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from gradcheck.run import server_process
from gradcheck.run.in_case import prepare_process
from gradcheck.run.interpreter import EXECUTE, READY, environment
from gradcheck.run.server import signal_when_children_end

SERVER = "from gradcheck.run.server import main"
"""What the program of a server contains."""
OF_ENGINE = "-engine"
"""Ends the address of the process from which servers of the bundled engine are forked: it has run a case already."""
IMPORTED = ("api", "commands.run_cases", "commands.validate", "report.console", "report.result_text", "spec.read")
"""Modules of gradcheck that are imported beforehand, beside those of a server."""
LENGTH_BYTES = 8
"""Of the length of a request, big-endian."""
MOST_DESCRIPTORS = 4
"""Of a request: standard input, output and error, and the connection of a server."""


class Request(NamedTuple):
    """The process that is wanted."""

    arguments: Sequence[str]
    """The command line, without the interpreter and its options."""
    folder: str
    environment: dict[str, str]
    path: Sequence[str] | None
    """The module path; None if it is that of a new interpreter."""


# -------------------------------------------------------------------------- in the process that is forked
def main() -> None:
    """Import what most processes need, then fork one for each request, until the first connection is closed.

    One process forks programs, and one, in which the engine is Paddle, the servers of the engine.
    A request is its length, in `LENGTH_BYTES`, with the descriptors, and then its JSON. The replies are the number of
    the process and, once it has ended, its exit status, a line each.
    """
    address, lifeline, installed = sys.argv[1], socket.socket(fileno=int(sys.argv[2])), json.loads(sys.argv[3])
    prepare_process(EXECUTE, "numpy", warm_up=False)  # which would give all of them the engine as Paddle
    for name in IMPORTED:
        import_module(f"gradcheck.{name}")
    gc.collect()
    gc.freeze()  # as a server does: what is forked need not look through all of it
    doors = [opened(address), opened(address + OF_ENGINE)]
    for_servers = os.fork() == 0
    if for_servers:
        prepare_process(EXECUTE, "numpy", warm_up=True)
        gc.collect()
        gc.freeze()
    else:
        lifeline.sendall(READY)
    doors.pop(not for_servers).close()
    serve(doors[0], lifeline, installed, address)


def opened(address: str) -> socket.socket:
    """A socket at which processes are asked for."""
    door = socket.socket(socket.AF_UNIX)
    door.bind(address)
    door.listen()
    return door


def serve(door: socket.socket, lifeline: socket.socket, installed: Sequence[str], address: str) -> None:
    """Fork a process for each request, until the lifeline is closed."""
    children_end = signal_when_children_end()
    clients: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([lifeline, door, children_end], [], [])
        if lifeline in ready:
            return
        if door in ready:
            client, _ = door.accept()
            request, descriptors = receive(client)
            pid = os.fork()
            if pid == 0:
                for inherited in (door, lifeline, client, *clients.values()):
                    inherited.close()
                become(request, descriptors, installed, address)
            for descriptor in descriptors:
                os.close(descriptor)
            client.sendall(b"%d\n" % pid)
            clients[pid] = client
        if children_end in ready:
            children_end.recv(1 << 10)
            while clients and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with clients.pop(ended[0]) as client, suppress(BrokenPipeError):
                    client.sendall(b"%d\n" % os.waitstatus_to_exitcode(ended[1]))


def receive(client: socket.socket) -> tuple[Request, list[int]]:
    """Receive a request, and the descriptors that belong to it."""
    header, descriptors, _, _ = socket.recv_fds(client, LENGTH_BYTES, MOST_DESCRIPTORS)
    length, text = int.from_bytes(header, "big"), bytearray()
    while len(text) < length:
        text += client.recv(length - len(text))
    return Request(*json.loads(text)), list(descriptors)


def become(request: Request, descriptors: Sequence[int], installed: Sequence[str], address: str) -> None:
    """Be the process that was asked for, to its end."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.chdir(request.folder)
        os.environ.clear()
        os.environ.update(request.environment)
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
            os.close(descriptor)
        arguments = [*request.arguments, *map(str, descriptors[3:])]
        first = str(Path(arguments[0]).parent) if arguments[0] not in ("-c", "-m") else ""
        named = [part for part in request.environment.get("PYTHONPATH", "").split(os.pathsep) if part]
        sys.path[:] = request.path or [first, *named, *installed]
        server_process.subprocess = Warm(address)  # type: ignore[assignment]
        execute(arguments)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(BaseException):
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def execute(arguments: list[str]) -> None:
    """Do what Python does with such a command line."""
    what, *rest = arguments
    if what == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.modules["__main__"] = module = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(module))
    elif what == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(what, run_name="__main__")


# -------------------------------------------------------------------------------- in the process of the tests
class Warm:
    """The process that is forked: it has this address, or is started when it is first needed, and ends with this one.

    It stands for the module `subprocess` where servers are started.
    """

    DEVNULL, TimeoutExpired = subprocess.DEVNULL, subprocess.TimeoutExpired

    def __init__(self, address: str = "") -> None:
        self.address = address
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = threading.Lock()  # a run with several jobs starts servers from several threads

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        self.address = f"{tempfile.mkdtemp()}/warm"
        self.lifeline, theirs = socket.socketpair()
        with theirs:
            program = (
                "import json, sys; sys.argv.append(json.dumps(sys.path)); "
                f"sys.path[:] = {sys.path!r}; from warm import main; main()"
            )
            without = {name: value for name, value in environment().items() if name != "PYTHONPATH"}
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", program, self.address, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=without,
                start_new_session=True,
            )
        assert self.lifeline.recv(len(READY)) == READY

    def close(self) -> None:
        """End it."""
        if self.process is not None:
            self.lifeline.close()
            self.process.wait()
            shutil.rmtree(Path(self.address).parent)

    def fork(self, request: Request, descriptors: Sequence[int], kind: str = "") -> WarmProcess:
        """Start a process with these descriptors as standard input, output and error, and as a connection.

        `kind` ends the address of the process that is forked.
        """
        with self.lock:
            if not self.address:
                self.start()
        text = json.dumps(request).encode()
        client = socket.socket(socket.AF_UNIX)
        client.connect(self.address + kind)
        socket.send_fds(client, [len(text).to_bytes(LENGTH_BYTES, "big")], descriptors)
        client.sendall(text)
        return WarmProcess(client)

    def Popen(self, command: list[str], **options: Any) -> Any:  # noqa: N802 - as in `subprocess`
        """Start a server as `gradcheck.run.server_process` does; what starts another interpreter is started as ever."""
        if command[0] != sys.executable or SERVER not in command[3]:
            return subprocess.Popen(command, **options)
        request = Request(command[2:-1], os.getcwd(), options["env"], sys.path)
        kind = OF_ENGINE if command[4:-1] == [EXECUTE, "numpy", "fork"] else ""
        with open(os.devnull, "rb") as nothing:
            log = options["stdout"].fileno()
            return self.fork(request, [nothing.fileno(), log, log, int(command[-1])], kind)


class WarmProcess:
    """What is used of a `subprocess.Popen`."""

    def __init__(self, client: socket.socket) -> None:
        self.replies = client.makefile("rb", buffering=0)
        client.close()
        self.pid = int(self.replies.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, or None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit status. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self.replies], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a warm process", timeout or 0)
            self.returncode = int(self.replies.readline())
            self.replies.close()
        return self.returncode

    def kill(self) -> None:
        """Kill it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


WARM = Warm()


def python(
    *arguments: str | Path, folder: Path | None = None, env: dict[str, str] | None = None, input: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run ``python ARGUMENTS`` in a folder (by default the current one) to its end."""
    request = Request([*map(str, arguments)], str(folder or os.getcwd()), {**(env or os.environ)}, None)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(input.encode())
        given.seek(0)
        status = WARM.fork(request, [given.fileno(), out.fileno(), err.fileno()]).wait()
        printed = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read().decode())
    return subprocess.CompletedProcess(request.arguments, status, *printed)
