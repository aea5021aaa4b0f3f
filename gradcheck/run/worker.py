"""A worker: a process that imports a backend once, and forks processes that run its cases.

A case runs in a forked process of its own (`run.child`), or in one that has only run cases which cannot disturb each
other (`run.share`). The worker waits for it, kills it and all that it started when its time or memory is up, and turns
whatever happens into a Result.

Where there is no ``os.fork`` (Windows) cases run in the worker itself: not isolated, and without limits.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from gradcheck.backends.base import BACKENDS
from gradcheck.case.case import Case
from gradcheck.result import Result, Status
from gradcheck.run.child import (
    PR_SET_CHILD_SUBREAPER,
    Answer,
    Child,
    Execute,
    MemoryExceededError,
    Snapshots,
    prctl,
    run_here,
)
from gradcheck.run.limits import shown_size
from gradcheck.run.share import ENGINE, JUDGES, MOST_CASES, Snapshot, is_contained

READY = "ready\n"
"""What a worker answers first: the imports went well."""
OUTPUT_SHOWN = 4_000
"""Bytes of what a case prints that a result carries."""
ABORT_GRACE = 1.0
"""Seconds that a child whose time is up has to print where it is."""


def main() -> None:
    """Answer ``ready``, then each line of JSON, a Case, with a line of JSON, a Result, until the pipe is closed.

    The pipes are this process's stdin and stdout, taken away at once so that nothing else writes to them.
    ``sys.argv`` names the function that runs a case, as ``module:function``, and the backend of all cases.
    """
    requests, results = take_pipes()
    execute = function_named(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    runner = CaseRunner(execute, sys.argv[2], requests, results)
    results.write(READY)
    results.flush()
    try:
        for line in requests:
            case = Case.model_validate_json(line)
            result = runner.run(case, line) if hasattr(os, "fork") else run_here(execute, case)
            results.write(result.model_dump_json() + "\n")
            results.flush()
            runner.look_round()  # while the parent is at work
    finally:
        runner.end()


def take_pipes() -> tuple[IO[str], IO[str]]:
    """Stdin and stdout as private files; in their places nothing to read, and stderr to print to."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, results


def function_named(target: str) -> Execute:
    """The function that ``module:name`` names."""
    module, _, name = target.partition(":")
    function: Execute = getattr(import_module(module), name)
    return function


class CaseRunner:
    """This process: what it imported, and the process that runs its cases now."""

    def __init__(self, execute: Execute, backend: str, requests: IO[str], results: IO[str]) -> None:
        self.execute, self.entry = execute, BACKENDS[backend]
        self.requests, self.results = requests, results
        for module in self.entry.preload:
            import_module(module)
        warm_up = warm_up_case(backend)  # whatever is made on first use is made once, not in every child
        if self.entry.warm_up:
            run_here(execute, warm_up)
        engine = Snapshot(ENGINE) if self.entry.shared else None
        self.snapshots = Snapshots(Snapshot(JUDGES), engine)
        gc.collect()
        gc.freeze()  # children that collect garbage need not copy these pages
        self.child: Child | None = None

    def run(self, case: Case, line: str) -> Result:
        """The result of `case`, which `line` holds as JSON.

        Raises:
            SystemExit: the pipe of requests was closed, which the parent does (or its end) to end this process.
        """
        contained = self.entry.shared and is_contained(case)
        if not contained or (self.child and self.child.has_ended()):
            self.end()
        used = self.child is not None
        result = self.run_in_child(case, line, contained)
        if used and not result.status.green and result.status is not Status.TIMEOUT:
            self.end()  # what failed must have failed by itself
            result = self.run_in_child(case, line, contained)
        return result

    def run_in_child(self, case: Case, line: str, contained: bool) -> Result:
        """The result of `case` from the present child, or from a new one; it stays if `contained` and nothing shows."""
        started = time.perf_counter()
        child = self.child or Child(self.execute, self.snapshots, (self.requests.fileno(), self.results.fileno()))
        self.child = child
        stopped: Status | None = None
        try:
            child.start(line)
            if not child.watch(case.timeout, self.requests.fileno(), case.memory):
                stopped = Status.TIMEOUT
                os.kill(child.pid, signal.SIGABRT)  # faulthandler prints where it is
                child.watch(ABORT_GRACE, self.requests.fileno())
        except MemoryExceededError:
            stopped = Status.CRASH
        child.drain()
        answer = None if stopped else answer_of(child, case)
        ended = child.has_ended()
        if not (answer and answer.clean and contained and child.cases_run < MOST_CASES):
            self.end()
        seconds = time.perf_counter() - started
        printed, spec_line = cut_trace(child.printed.decode("utf-8", "replace"), case.scenario.path)
        output = printed[-OUTPUT_SHOWN:]
        if answer:
            return answer.result.model_copy(update={"output": output})
        message = how_it_ended(child.exit_code) if ended else "the process sent something that is no result"
        if stopped is Status.TIMEOUT:
            message = f"ran longer than {case.timeout:g} s and was stopped"
        elif stopped is Status.CRASH:
            message = f"used more than {shown_size(case.memory)} of memory and was stopped"
        where = f", at line {spec_line} of the spec" if spec_line else ""
        return case.result(stopped or Status.CRASH, message + where, output=output, seconds=seconds)

    def look_round(self) -> None:
        """End the child if its last case has left a process behind."""
        if self.child is not None and not self.child.is_alone():
            self.end()

    def end(self) -> None:
        """End the child, if there is one."""
        if self.child is not None:
            child, self.child = self.child, None
            child.end()


def answer_of(child: Child, case: Case) -> Answer | None:
    """What the child has answered; None if nothing, or if the case wrote something else to the pipe."""
    line, complete, _ = child.answer.partition(b"\n")
    if complete:
        with suppress(ValidationError):
            answer = Answer.model_validate_json(line)
            return answer if answer.result.name == case.name else None
    return None


def warm_up_case(backend: str) -> Case:
    """A case that uses what most cases use."""
    layer = (
        "class Square(PyLayer):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x * x\n"
        "    @staticmethod\n    def backward(ctx, dy):\n        x, = ctx.saved_tensor()\n        return 2 * dy * x\n"
    )
    expect = {"gradient": "matches", "values": {"out.shape": (2,)}}
    scenario = {"id": "warm-up", "title": "Warm-up", "source": {"document": "none"}, "layer": layer, "expect": expect}
    return Case.model_validate({"scenario": {**scenario, "inputs": {"x": {"shape": (2,)}}}, "backend": backend})


def cut_trace(printed: str, path: str) -> tuple[str, int]:
    """`printed` with the trace that faulthandler left in it cut to the user's frames, and the line of `path` in it.

    The innermost line of the spec is what the user can act on; 0 if the trace has none.
    """
    *before, trace = re.split(r"^Fatal Python error: .*\n\n?", printed, flags=re.MULTILINE)
    if not before:
        return printed, 0
    package = re.escape(str(Path(__file__).parent.parent))
    for ours in (rf'  File "(?:{package}/.*|<string>)".*', "Extension modules: .*"):
        trace = re.sub(rf"^{ours}\n?", "", trace, flags=re.MULTILINE)
    shown_path = re.escape(path.encode("ascii", "backslashreplace").decode())  # as faulthandler writes it
    line = re.search(rf'^  File "{shown_path}", line (\d+)', trace, re.MULTILINE)
    return "".join(before) + trace.rstrip("\n"), int(line[1]) if line else 0


def how_it_ended(exit_code: int | None) -> str:
    """What became of a process: `exit_code` is negative for a signal."""
    if exit_code is None or exit_code >= 0:
        return f"the process exited with status {exit_code} before the case was done"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    cause = " (the system does that when memory runs out)" if name == "SIGKILL" else ""
    return f"the process was killed by {name}{cause}"
