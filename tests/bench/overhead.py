"""What a process for every case costs: the bundled scenarios in one process, and through workers.

    python tests/bench/overhead.py [--backend numpy|paddle] [--rounds N] [--many N] [--json FILE]

Prints milliseconds a case on the wall and of processor time (of all processes together, which what else the machine
does changes less): in one process, without what earlier cases leave; through one worker, and what of it the process of
the case, the worker and the command take; of whole runs with one job and with two, start included. With ``--many N``
the time and memory of a run of N cases. All is the least of some rounds, but of whole runs the (upper) median.

An installed gradcheck has the bytecode of its modules. So has this, also where Python was told to write none
(PYTHONDONTWRITEBYTECODE): it is kept in a folder of its own while this runs.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from contextvars import copy_context
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "engine")]

from gradcheck.case.case import Case  # noqa: E402
from gradcheck.case.execute import execute  # noqa: E402
from gradcheck.commands.specs import read_bundled  # noqa: E402
from gradcheck.result import Status  # noqa: E402
from gradcheck.run.in_child import run_here  # noqa: E402
from gradcheck.run.plan import plan  # noqa: E402
from gradcheck.run.pool import Pool  # noqa: E402


class Cost(NamedTuple):
    """Of one case, in milliseconds."""

    wall: float
    processor: float
    parts: str = ""
    """What of the processor time is whose."""


def times() -> tuple[float, float]:
    """Seconds on the wall, and of processor time of this process."""
    return time.perf_counter(), time.process_time()


def in_one_process(cases: list[Case], rounds: int) -> Cost:
    """In a process in which imports and first uses are done."""
    reading, writing = os.pipe()
    if os.fork() == 0:  # cases change their process
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        found = []
        for _ in range(1 + rounds):
            took = [0.0, 0.0]
            for case in cases:
                gc.enable()  # which a case may have changed
                gc.collect()  # what a case leaves is in no other's way: the classes of all layers are looked through
                began = times()
                copy_context().run(run_here, execute, case)  # static mode and programs are those of a context
                took = [a + now - then for a, now, then in zip(took, times(), began, strict=True)]
            found.append(took)
        os.write(writing, json.dumps([*map(min, zip(*found[1:], strict=True))]).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        text = pipe.read()
    os.wait()
    return Cost(*(1000 * seconds / len(cases) for seconds in json.loads(text or "[NaN, NaN]")))


def processor_time(pid: int) -> tuple[float, float, int]:
    """Milliseconds of processor time of a process, and of those it has waited for, and the page faults of these."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own, waited = (1000 / os.sysconf("SC_CLK_TCK") * sum(map(int, fields[k : k + 2])) for k in (11, 13))
    return own, waited, int(fields[8])


def through_a_worker(cases: list[Case]) -> Cost:
    """With a process for each, one at a time."""
    with Pool(1) as pool:
        pool.run(cases[0])
        worker = pool.workers[0].pid
        assert worker is not None
        before, began = processor_time(worker), times()
        for case in cases:
            pool.run(case)
        wall, command = (1000 * (now - then) / len(cases) for now, then in zip(times(), began, strict=True))
        own, children, faults = ((b - a) / len(cases) for a, b in zip(before, processor_time(worker), strict=True))
    parts = f"its process {children:.2f} with {faults:.0f} page faults, the worker {own:.2f}, the command {command:.2f}"
    return Cost(wall, own + children + command, parts)


class Run(NamedTuple):
    """A whole run, its start included, in seconds."""

    wall: float
    processor: float
    peak: float
    """Of the command's own memory, in MiB."""


def whole_run(folder: Path, *options: str) -> Run:
    """A run of its own."""
    began, before, peak = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN), 0
    command = [sys.executable, str(ROOT / "cli.py"), "run", "-q", "--allow-code", *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        match = re.search(r"^VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
        peak = int(match[1]) if match else peak
        time.sleep(0.02)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(time.perf_counter() - began, processor, peak / 1024)


def many(folder: Path, count: int) -> Run:
    """One of `count` cases of one line of code."""
    scenario = "  - {{id: many-{k}, title: t, source: {{document: d}}, script: x = k, matrix: {{k: {values}}}}}\n"
    lines = [scenario.format(k=k, values=list(range(250))) for k in range(count // 250)]
    (folder / "a.grad.yaml").write_text("schema: gradcheck/v1\nscenarios:\n" + "".join(lines))
    return whole_run(folder, "a.grad.yaml")


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--rounds", type=int, default=2, help="each runs all cases four times")
    parser.add_argument("--many", type=int, default=0)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as bytecode:
        if sys.dont_write_bytecode:
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
            os.environ["PYTHONPYCACHEPREFIX"] = bytecode
        measure(options)


def measure(options: argparse.Namespace) -> None:
    """Measure and print."""
    cases = [case for case in plan(read_bundled(), [options.backend]) if case.not_run() is None]
    with Pool(2) as pool:  # what fails on an installed Paddle may end the process of the loop
        cases = [case for case in cases if pool.run(case).status in (Status.PASS, Status.KINK)]

    def show(what: str, wall: float, processor: float, more: str = "") -> None:
        print(f"  {what:18} {wall:6.2f} on the wall, {processor:6.2f} of processor time{more and f': {more}'}")

    print(f"{len(cases)} bundled cases on {options.backend}, milliseconds a case")
    loop = in_one_process(cases, options.rounds)  # the best of the rounds: what else the machine does only adds
    show("in one process", *loop)
    worker = min(through_a_worker(cases) for _ in range(options.rounds))
    show("through one worker", *worker)
    whole: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for jobs in (1, 2):
            given = ["--bundled", "-b", options.backend, "-j", str(jobs)]
            runs = sorted(whole_run(Path(folder), *given) for _ in range(options.rounds))
            run = runs[len(runs) // 2]
            whole[jobs] = run.wall
            each = 1000 / len(cases)
            show(f"whole run, -j {jobs}", each * run.wall, each * run.processor, f"{run.wall:.1f} s, start included")
        if options.many:
            few, lots = many(Path(folder), 250), many(Path(folder), options.many)
            print(f"  {options.many} cases: {lots.wall:.1f} s, peak {lots.peak:.0f} MiB (250: {few.peak:.0f})")
    if options.json:
        figures = {"cases": len(cases), "backend": options.backend, "loop": loop.wall, "worker": worker.wall}
        options.json.write_text(json.dumps({**figures, "whole": whole}), encoding="utf-8")
    print(f"  peak of this process's memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


if __name__ == "__main__":
    main()
