"""A worker: a process that imports a backend once, and forks a process of its own for every case.

No code of a case ever runs in the worker itself. It waits for the forked process, kills it and all that it started when
its time or memory is up, and says what became of it (`run.child`).
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from gradcheck.backends.base import BACKENDS, kind_of
from gradcheck.case.case import Case
from gradcheck.run.channel import Channel
from gradcheck.run.child import ABORT_GRACE, Child, MemoryExceededError, Outcome
from gradcheck.run.in_child import Execute, answer_and_leave, run_here, warm_up_case
from gradcheck.run.limits import no_core_files, used
from gradcheck.run.namespaces import Namespaces
from gradcheck.run.reaper import below_a_reaper
from gradcheck.run.tamper_check import Judges
from gradcheck.support.linux import PR_SET_CHILD_SUBREAPER, prctl
from gradcheck.support.signals import use_default_signals

MOST_REQUEST = 1 << 30
"""Bytes that a request may have. A spec file has 10 MB at most, so none comes near."""


def main() -> None:
    """Say what this process is, then answer requests until the channel is closed.

    ``sys.argv`` names the function that runs a case, as ``module:function``, the backend of all cases, and the number
    of the channel's socket. A request is two messages: a list as JSON (the case as JSON, its time limit in seconds, its
    memory limit in bytes), and a word with which the answer must begin, before the Outcome as a list. That word is
    read when the process of the case is no more, so no case ever has it.
    """
    execute, backend, number = sys.argv[1:4]
    channel = Channel(socket.socket(fileno=int(number)))
    use_default_signals()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    below_a_reaper(channel)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    namespaces = Namespaces()
    runner = Runner(function_named(execute), backend, channel, namespaces)
    channel.send(json.dumps([os.getpid(), namespaces.own]).encode())
    with suppress(ConnectionError):
        while True:
            text, seconds, memory = json.loads(channel.receive(MOST_REQUEST))
            outcome = runner.run(text, seconds, memory)
            word = channel.receive(MOST_REQUEST).decode()
            channel.send(json.dumps([word, outcome], ensure_ascii=False).encode())
            namespaces.renew()
    os._exit(0)  # nothing is left to do, and Python would take its modules apart first


def function_named(target: str) -> Execute:
    """The function that ``module:name`` names."""
    module, _, name = target.partition(":")
    function: Execute = getattr(import_module(module), name)
    return function


class Runner:
    """This process: what it imported, the `channel` to the process that asks, what its cases have for themselves."""

    def __init__(self, execute: Execute, backend: str, channel: Channel, namespaces: Namespaces) -> None:
        self.execute, self.private, self.namespaces = execute, channel.fileno(), namespaces
        entry = BACKENDS[kind_of(backend)]
        for module in entry.preload:
            import_module(module)
        gc.freeze()  # what was imported is no garbage, and need not be looked through
        gc.enable()
        if entry.warm_up:
            run_here(execute, warm_up_case(backend))
        self.judges = Judges()
        no_core_files()
        faulthandler.enable(file=2, all_threads=False)
        gc.collect()
        gc.freeze()  # processes that collect garbage need not copy these pages
        self.occupied = used("self")

    def run(self, text: str, seconds: float, memory: int) -> Outcome:
        """Run the case that `text` holds as JSON within its limits; nothing of it is left afterwards.

        Raises SystemExit: the channel was closed, which the parent does (or its end) to end this process.
        """
        started, stopped = time.perf_counter(), ""
        case = Case.model_validate_json(text)

        def work(answer_fd: int) -> NoReturn:
            answer_and_leave(case, self.execute, self.judges, answer_fd, self.occupied.reserved)

        child = Child(work, (self.private,), self.occupied, self.namespaces)
        try:
            if not child.watch(seconds, self.private, memory):
                stopped = "time"
                os.kill(child.pid, signal.SIGABRT)  # faulthandler prints where it is
                child.watch(ABORT_GRACE, self.private)
        except MemoryExceededError:
            stopped = "memory"
        finally:
            outcome = child.outcome(stopped, time.perf_counter() - started)
        return outcome
