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
import sys
import time
from importlib import import_module
from typing import IO, NoReturn

from gradcheck.backends.base import BACKENDS, kind_of
from gradcheck.case.case import Case
from gradcheck.run.child import ABORT_GRACE, PR_SET_CHILD_SUBREAPER, READY, Child, MemoryExceededError, Outcome, prctl
from gradcheck.run.inside import Execute, answer_and_leave, run_here, warm_up_case
from gradcheck.run.judges import Judges
from gradcheck.run.limits import data_size, empty_shared_memory, no_core_files, own_shared_memory, used


def main() -> None:
    """Answer ``ready``, then each request with an Outcome as a list, both as a line of JSON, until the pipe is closed.

    A request is a list: the case as JSON, its time limit in seconds, its memory limit in bytes. The pipes are this
    process's stdin and stdout, taken away at once so that nothing else writes to them. ``sys.argv`` names the function
    that runs a case, as ``module:function``, and the backend of all cases.
    """
    requests, answers = take_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    own_shared_memory()
    runner = Runner(function_named(sys.argv[1]), sys.argv[2], (requests.fileno(), answers.fileno()))
    answers.write(READY)
    answers.flush()
    for line in requests:
        text, seconds, memory = json.loads(line)
        answers.write(json.dumps(runner.run(text, seconds, memory)) + "\n")
        answers.flush()


def take_pipes() -> tuple[IO[str], IO[str]]:
    """Stdin and stdout as private files; in their places nothing to read, and stderr to print to."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def function_named(target: str) -> Execute:
    """The function that ``module:name`` names."""
    module, _, name = target.partition(":")
    function: Execute = getattr(import_module(module), name)
    return function


class Runner:
    """This process: what it imported; `private` are the pipes to the process that asks."""

    def __init__(self, execute: Execute, backend: str, private: tuple[int, int]) -> None:
        self.execute, self.private = execute, private
        entry = BACKENDS[kind_of(backend)]
        for module in entry.preload:
            import_module(module)
        if entry.warm_up:
            run_here(execute, warm_up_case(backend))
        self.judges = Judges()
        no_core_files()
        faulthandler.enable(file=2, all_threads=False)
        gc.collect()
        gc.freeze()  # processes that collect garbage need not copy these pages
        self.data, self.occupied = data_size(), used("self")

    def run(self, text: str, seconds: float, memory: int) -> Outcome:
        """Run the case that `text` holds as JSON within its limits; nothing of it is left afterwards.

        Raises:
            SystemExit: the pipe of requests was closed, which the parent does (or its end) to end this process.
        """
        started, stopped = time.perf_counter(), ""
        case = Case.model_validate_json(text)

        def work(answer_fd: int) -> NoReturn:
            answer_and_leave(case, self.execute, self.judges, answer_fd, self.data)

        child = Child(work, self.private, self.occupied)
        try:
            if not child.watch(seconds, self.private[0], memory):
                stopped = "time"
                os.kill(child.pid, signal.SIGABRT)  # faulthandler prints where it is
                child.watch(ABORT_GRACE, self.private[0])
        except MemoryExceededError:
            stopped = "memory"
        finally:
            outcome = child.outcome(stopped, time.perf_counter() - started)
            empty_shared_memory()
        return outcome
